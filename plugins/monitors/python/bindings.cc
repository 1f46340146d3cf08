// The names that a scope binds. Statements are entered, functions and classes inside are not: they
// have scopes of their own.
#include "plugins/monitors/python/symbol_table.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;

void BindTarget(const Node* target, Binding binding, Scope& scope) {
  std::vector<const Node*> todo = {target};
  bool whole = true;
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_identifier)) {
      Binding own = binding;
      if (!whole) own.kind = Binding::Kind::kOther;  // a, b = ...
      scope.names[std::string(node->text())].push_back(std::move(own));
      continue;
    }
    if (node->is(K::k_attribute) || node->is(K::k_subscript)) continue;
    if (!node->is(K::k_as_pattern_target)) whole = false;
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
}

void BindImport(const Node* node, Scope& scope) {
  const bool from = node->is(K::k_import_from_statement);
  Binding base{.kind = Binding::Kind::kImport, .node = node};
  if (from) {
    const Node* name = node->at(F::k_module_name);
    if (name == nullptr) return;
    std::string_view text = name->text();
    while (!text.empty() && text.front() == '.') {
      ++base.level;
      text.remove_prefix(1);
    }
    for (const char c : text) {
      if (c != ' ') base.module += c;
    }
    if (node->first(K::k_wildcard_import) != nullptr) {
      scope.stars.push_back(base);
      return;
    }
  }
  for (const Node& kid : node->kids()) {
    if (kid.field != F::k_name) continue;
    const bool aliased = kid.is(K::k_aliased_import);
    const Node* name = aliased ? kid.at(F::k_name) : &kid;
    const Node* alias = aliased ? kid.at(F::k_alias) : nullptr;
    if (name == nullptr) continue;
    Binding binding = base;
    std::string text(name->text());
    std::string bound = alias != nullptr ? std::string(alias->text()) : text;
    if (from) {
      binding.member = text;
    } else if (alias != nullptr) {
      binding.module = text;
    } else {
      // import a.b binds a.
      bound = text.substr(0, text.find('.'));
      binding.module = bound;
    }
    scope.names[bound].push_back(std::move(binding));
  }
}

}  // namespace

void CollectBindings(const Node* body, Scope& scope) {
  std::vector<const Node*> todo = {body};
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    switch (node->kind) {
      case K::k_function_definition:
      case K::k_class_definition:
        if (node != body) {
          if (const Node* name = node->at(F::k_name)) {
            scope.names[std::string(name->text())].push_back(
                {.kind = node->is(K::k_class_definition) ? Binding::Kind::kClass
                                                         : Binding::Kind::kFunction,
                 .node = node});
          }
          continue;
        }
        break;
      case K::k_lambda:
        continue;
      case K::k_import_statement:
      case K::k_import_from_statement:
      case K::k_future_import_statement:
        BindImport(node, scope);
        continue;
      case K::k_assignment:
      case K::k_augmented_assignment:
        if (const Node* left = node->at(F::k_left)) {
          BindTarget(left,
                     {.kind = node->is(K::k_assignment) ? Binding::Kind::kAssignment
                                                        : Binding::Kind::kOther,
                      .node = node},
                     scope);
        }
        break;
      case K::k_named_expression:
        if (const Node* name = node->at(F::k_name))
          BindTarget(name, {.kind = Binding::Kind::kOther, .node = node}, scope);
        break;
      case K::k_for_statement:
        if (const Node* left = node->at(F::k_left))
          BindTarget(left, {.kind = Binding::Kind::kLoop, .node = node}, scope);
        break;
      case K::k_as_pattern:
        if (const Node* alias = node->at(F::k_alias)) {
          const bool with = node->parent != nullptr && node->parent->is(K::k_with_item);
          BindTarget(alias,
                     {.kind = with ? Binding::Kind::kWith : Binding::Kind::kOther, .node = node},
                     scope);
        }
        break;
      case K::k_case_clause:
        // Everything in a pattern may be a name that it binds.
        for (const Node& kid : node->kids()) {
          if (kid.is(K::k_case_pattern))
            BindTarget(&kid, {.kind = Binding::Kind::kOther, .node = node}, scope);
        }
        break;
      case K::k_delete_statement:
        for (const Node& kid : node->kids()) {
          if (kid.named) BindTarget(&kid, {.kind = Binding::Kind::kOther, .node = node}, scope);
        }
        break;
      case K::k_global_statement:
      case K::k_nonlocal_statement:
        for (const Node& kid : node->kids()) {
          if (kid.is(K::k_identifier)) scope.elsewhere.insert(std::string(kid.text()));
        }
        continue;
      case K::k_type_alias_statement:
        if (const Node* left = node->at(F::k_left))
          BindTarget(left, {.kind = Binding::Kind::kOther, .node = node}, scope);
        continue;
      case K::k_list_comprehension:
      case K::k_set_comprehension:
      case K::k_dictionary_comprehension:
      case K::k_generator_expression:
        // Their variables are their own, but := binds outside.
        break;
      default:
        break;
    }
    const auto kids = node->kids();
    for (auto kid = kids.rbegin(); kid != kids.rend(); ++kid) {
      if (kid->named) todo.push_back(&*kid);
    }
  }
}

}  // namespace pawl::monitors::python
