// What is wrong with calls, and with a finished text.
#include <algorithm>
#include <array>

#include "plugins/monitors/python/typer.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

struct Parameters {
  std::vector<std::string> names;  // that may be given by position, without self
  size_t required = 0;
  std::vector<std::string> only_by_name;
  std::vector<std::string> required_by_name;
  bool any_positions = false;
  bool any_names = false;
  bool known = true;
};

Parameters ParametersOf(const Node* function, bool bound) {
  Parameters found;
  const Node* list = function->at(F::k_parameters);
  if (list == nullptr) {
    found.known = false;
    return found;
  }
  bool only_names = false;
  for (const Node& p : list->kids()) {
    if (!p.named || p.is(K::k_comment) || p.is(K::k_positional_separator)) continue;
    if (p.is(K::k_ERROR)) found.known = false;
    const Node* inner = p.is(K::k_typed_parameter) ? p.first_named() : &p;
    if (inner == nullptr) continue;
    if (inner->is(K::k_list_splat_pattern)) {
      found.any_positions = only_names = true;
    } else if (inner->is(K::k_dictionary_splat_pattern)) {
      found.any_names = true;
    } else if (p.is(K::k_keyword_separator)) {
      only_names = true;
    } else {
      const Node* id = p.at(F::k_name) != nullptr ? p.at(F::k_name) : inner;
      const std::string name(id->text());
      const bool optional = p.is(K::k_default_parameter) || p.is(K::k_typed_default_parameter);
      if (bound) {
        bound = false;  // self
        continue;
      }
      if (only_names) {
        found.only_by_name.push_back(name);
        if (!optional) found.required_by_name.push_back(name);
      } else {
        found.names.push_back(name);
        if (!optional) found.required = found.names.size();
      }
    }
  }
  return found;
}

// A decorator may change what a function takes.
bool DecoratorChangesIt(const Node* function) {
  return std::ranges::any_of(DecoratorsOf(function), [](std::string_view text) {
    return text.find("overload") == std::string_view::npos &&
           text.find("classmethod") == std::string_view::npos &&
           text.find("staticmethod") == std::string_view::npos &&
           text.find("abstractmethod") == std::string_view::npos;
  });
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<Refusal> Typer::CallProblem(const Node* call, bool keywords) {
  const Node* list = call->at(F::k_arguments);
  const Node* function = call->at(F::k_function);
  // super() may be a class that this one is mixed with, whose functions take something else.
  if (list == nullptr || function == nullptr || !list->is(K::k_argument_list) ||
      function->text().starts_with("super(")) {
    return std::nullopt;
  }
  if (IsExpected(call, "TypeError")) return std::nullopt;
  Type callee = TypeOf(function);
  if (callee.is(TK::kClass)) {
    Class* top = callee.cls;
    // What makes the object: __init__ of the class, unless __new__ or a metaclass has a say.
    bool made_otherwise = false;
    const bool closed =
        world_.Walk({.kind = TK::kInstance, .cls = top}, [&](Class& c, const Substitution& with) {
          (void)with;
          const bool root = c.name == "object" && c.module->name == "builtins";
          if (!root &&
              (c.scope.names.contains("__new__") ||
               (c.node->parent != nullptr && c.node->parent->is(K::k_decorated_definition)))) {
            made_otherwise = true;
          }
          if (!c.module->stub && c.name.ends_with("Error")) return false;
          return false;
        });
    if (!closed || made_otherwise || !top->scope.names.contains("__init__")) return std::nullopt;
    const Type made{.kind = TK::kInstance, .cls = top};
    callee = world_.Attribute(made, "__init__");
  }
  if (!callee.is(TK::kFunction) || callee.functions.empty()) return std::nullopt;
  // A builtin that a function uses may get another meaning further down.
  const bool builtin = callee.module->name == "builtins" && function->is(K::k_identifier);
  if (unfinished_ && builtin && function->Enclosing(K::k_function_definition) != nullptr)
    return std::nullopt;
  // What is private in a stub is not kept true.
  if (callee.module->stub && callee.module->name.starts_with("_")) return std::nullopt;
  // Its functions pass on any option that the widget behind them takes.
  const bool options = callee.module->stub && callee.module->name.starts_with("tkinter");
  size_t positions = 0;
  std::vector<const Node*> given;
  bool spread = false;
  for (const Node& kid : list->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (kid.is(K::k_list_splat) || kid.is(K::k_dictionary_splat)) spread = true;
    if (kid.is(K::k_keyword_argument)) {
      given.push_back(&kid);
    } else {
      ++positions;
    }
  }
  if (std::ranges::any_of(callee.functions, DecoratorChangesIt)) return std::nullopt;
  if (keywords && !options) {
    for (const Node* argument : given) {
      const Node* name = argument->at(F::k_name);
      if (name == nullptr) continue;
      const bool taken =
          std::any_of(callee.functions.begin(), callee.functions.end(), [&](const Node* one) {
            const Parameters p = ParametersOf(one, callee.bound);
            return !p.known || p.any_names || Has(p.names, name->text()) ||
                   Has(p.only_by_name, name->text());
          });
      if (taken) continue;
      return Refusal{.byte = name->start,
                     .identifier = std::string(name->text()),
                     .monitor = "keywords",
                     .message = "no parameter is called so"};
    }
    return std::nullopt;
  }
  if (spread) return std::nullopt;
  for (const Node* one : callee.functions) {
    const Parameters p = ParametersOf(one, callee.bound);
    if (!p.known) return std::nullopt;
    if (positions > p.names.size() && !p.any_positions) continue;
    size_t missing = 0;
    for (size_t i = positions; i < p.required; ++i) {
      missing += std::none_of(given.begin(), given.end(), [&](const Node* g) {
        const Node* name = g->at(F::k_name);
        return name != nullptr && name->text() == p.names[i];
      });
    }
    if (missing == 0) return std::nullopt;
  }
  const Node* last = function->is(K::k_attribute) ? function->at(F::k_attribute) : function;
  if (last == nullptr) return std::nullopt;
  return Refusal{.byte = last->start,
                 .identifier = std::string(last->text()),
                 .monitor = "arguments",
                 .message = "takes no " + std::to_string(positions + given.size()) + " arguments"};
}

namespace {

// In the body of a class that has classes above, or a metaclass: `__prepare__` may give it names.
bool InBodyOfDerived(const Node* use) {
  for (const Node* up = use->parent; up != nullptr; up = up->parent) {
    if (up->is(K::k_function_definition) || up->is(K::k_lambda)) return false;
    if (up->is(K::k_class_definition)) {
      const Node* body = up->at(F::k_body);
      return up->at(F::k_superclasses) != nullptr && body != nullptr && use->start >= body->start;
    }
  }
  return false;
}

// match and case, where a match statement is read as an assignment.
bool IsWordOfMatch(const Node* word) {
  if (word->text() != "match" && word->text() != "case") return false;
  const Node* up = word->parent;
  while (up != nullptr && !up->is(K::k_assignment) && !up->is(K::k_block)) up = up->parent;
  if (up == nullptr || !up->is(K::k_assignment)) return false;
  const Node* type = MisreadCase(up);
  return type != nullptr && (word->start == up->start || word->start == type->start);
}

// An identifier that is no name in scope: a.b, f(b=1), the names of functions, keys of patterns.
bool IsLabel(const Node* node) {
  const Node* parent = node->parent;
  if (parent->is(K::k_dotted_name)) {
    // In a pattern the first one is: case Color.RED, case Point().
    const Node* around = parent->parent;
    while (around != nullptr && !around->is(K::k_case_pattern) && !around->is(K::k_block) &&
           !around->is(K::k_import_statement) && !around->is(K::k_import_from_statement)) {
      around = around->parent;
    }
    return around == nullptr || !around->is(K::k_case_pattern) || parent->first_named() != node;
  }
  return (parent->is(K::k_attribute) && node->field == F::k_attribute) ||
         (parent->is(K::k_keyword_argument) && node->field == F::k_name) ||
         (parent->is(K::k_keyword_pattern) && parent->first_named() == node) ||
         parent->is(K::k_function_definition) || parent->is(K::k_class_definition) ||
         IsWordOfMatch(node);
}

// Of Python 2.
constexpr std::array<std::string_view, 17> kOld = {
    "print",  "exec", "unicode", "xrange", "basestring", "long",   "reload", "buffer",  "raw_input",
    "unichr", "cmp",  "file",    "reduce", "apply",      "intern", "coerce", "execfile"};

}  // namespace

void Typer::CheckNames(std::vector<Refusal>& refusals) {
  Module& program = world_.program();
  const std::string& text = program.tree->text();
  Module* builtins = world_.Find("builtins");
  if (builtins == nullptr) return;
  for (const std::string_view dynamic :
       {"import *", "exec(", "globals()", "locals()", "vars()", "_convert_", "gettext.install("}) {
    if (text.find(dynamic) != std::string::npos) return;
  }
  // Every name that is bound anywhere in the text.
  std::unordered_set<std::string> bound;
  std::vector<const Node*> uses;
  std::vector<const Node*> todo = {program.tree->root()};
  for (const auto& [name, bindings] : program.scope.names) bound.insert(name);
  const auto all_in = [&](const Node* node) {
    std::vector<const Node*> inside = {node};
    while (!inside.empty()) {
      const Node* at = inside.back();
      inside.pop_back();
      if (at->is(K::k_identifier)) bound.insert(std::string(at->text()));
      for (const Node& kid : at->kids()) {
        if (kid.named) inside.push_back(&kid);
      }
    }
  };
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_function_definition) || node->is(K::k_class_definition)) {
      Scope scope;
      if (const Node* body = node->at(F::k_body)) CollectBindings(body, scope);
      for (const auto& [name, bindings] : scope.names) bound.insert(name);
      if (const Node* list = node->at(F::k_type_parameters)) all_in(list);
    }
    if (node->is(K::k_parameters) || node->is(K::k_lambda_parameters) ||
        node->is(K::k_global_statement) || node->is(K::k_nonlocal_statement) ||
        node->is(K::k_as_pattern_target) || node->is(K::k_type_alias_statement)) {
      all_in(node);
    }
    if (node->is(K::k_named_expression)) {
      if (const Node* name = node->at(F::k_name)) all_in(name);
    }
    if (node->is(K::k_for_in_clause)) {
      if (const Node* left = node->at(F::k_left)) all_in(left);
    }
    // Except where another use of the name is the question.
    if (node->is(K::k_try_statement) || node->is(K::k_print_statement) ||
        node->is(K::k_exec_statement)) {
      for (const Node& kid : node->kids()) {
        if (kid.field == F::k_body) all_in(&kid);
        if (kid.named) todo.push_back(&kid);
      }
      continue;
    }
    if (node->is(K::k_identifier) && node->parent != nullptr) {
      if (!IsLabel(node)) uses.push_back(node);
    }
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  for (const Node* use : uses) {
    const std::string name(use->text());
    if (name.starts_with("_") || bound.contains(name)) continue;
    if (builtins->scope.names.contains(name) || InBodyOfDerived(use)) continue;
    if (std::find(kOld.begin(), kOld.end(), name) != kOld.end()) continue;
    refusals.push_back(Refusal{.byte = use->start,
                               .identifier = name,
                               .monitor = "names",
                               .message = "nothing in the text declares it"});
  }
}

std::vector<Refusal> Typer::Check() {
  std::vector<Refusal> refusals;
  const Tree& tree = *world_.program().tree;
  if (tree.broken()) return refusals;
  std::vector<const Node*> todo = {tree.root()};
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_attribute)) {
      const Node* name = node->at(F::k_attribute);
      if (name != nullptr && !name->text().starts_with("_")) {
        const auto names = NamesFor(node);
        if (names && !std::binary_search(names->names.begin(), names->names.end(), name->text())) {
          refusals.push_back(Refusal{.byte = name->start,
                                     .identifier = std::string(name->text()),
                                     .monitor = "dereference",
                                     .message = "its object has no such member"});
        }
      }
    } else if (node->is(K::k_call)) {
      for (const bool keywords : {true, false}) {
        if (auto problem = CallProblem(node, keywords)) {
          refusals.push_back(std::move(*problem));
          break;
        }
      }
    }
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  CheckNames(refusals);
  std::stable_sort(refusals.begin(), refusals.end(),
                   [](const Refusal& a, const Refusal& b) { return a.byte < b.byte; });
  return refusals;
}

}  // namespace pawl::monitors::python
