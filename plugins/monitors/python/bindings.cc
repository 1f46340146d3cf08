// What a Python text binds and what its annotations say.
//
// The names that a scope binds: statements are entered, functions and classes inside are not, since
// they have scopes of their own.
#include <algorithm>
#include <utility>

#include "plugins/monitors/python/symbol_table.h"

namespace pawl::monitors::python {

namespace {

using K = Kind;
using F = Field;

void BindTarget(const Node* target, Binding binding, Scope& scope) {
  std::vector<std::pair<const Node*, std::vector<int>>> todo = {{target, {}}};
  bool whole = true;
  while (!todo.empty()) {
    const auto [node, path] = std::move(todo.back());
    todo.pop_back();
    if (node->is(K::k_identifier)) {
      Binding own = binding;
      if (!whole) {  // a, b = ...
        const bool values =
            binding.kind == Binding::Kind::kAssignment || binding.kind == Binding::Kind::kLoop;
        own.kind = values ? Binding::Kind::kUnpacked : Binding::Kind::kOther;
        own.path = path;
      }
      scope.names[std::string(node->text())].push_back(std::move(own));
      continue;
    }
    if (node->is(K::k_attribute) || node->is(K::k_subscript)) continue;
    if (!node->is(K::k_as_pattern_target)) whole = false;
    int at = 0;
    for (const Node& kid : node->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      std::vector<int> below = path;
      if (kid.is(K::k_list_splat_pattern)) at = -1;
      if (!node->is(K::k_as_pattern_target)) below.push_back(at);
      if (at >= 0) ++at;
      todo.emplace_back(&kid, std::move(below));
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

// The names that a pattern binds. With others it compares: Color.RED, Point(x=1).
void BindCaptures(const Node* pattern, const Binding& binding, Scope& scope) {
  std::vector<const Node*> todo = {pattern};
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_identifier)) {
      if (node->text() != "_") scope.names[std::string(node->text())].push_back(binding);
      continue;
    }
    if (node->is(K::k_attribute) || node->is(K::k_member_type)) continue;
    if (node->is(K::k_dotted_name) && node->text().find('.') != std::string_view::npos) continue;
    bool skip = node->is(K::k_class_pattern) || node->is(K::k_keyword_pattern) ||
                node->is(K::k_call) || node->is(K::k_keyword_argument);
    for (const Node& kid : node->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      if (!std::exchange(skip, false)) todo.push_back(&kid);
    }
  }
}

}  // namespace

const Node* MisreadCase(const Node* assignment) {
  const Node* left = assignment->at(F::k_left);
  const Node* type = assignment->at(F::k_type);
  if (left == nullptr || type == nullptr || !type->text().starts_with("case")) return nullptr;
  const Node* subject = left;
  while (subject->is(K::k_subscript) && subject->at(F::k_value) != nullptr)
    subject = subject->at(F::k_value);
  if (subject == left || subject->text() != "match") return nullptr;
  const std::string_view text = assignment->tree->text();
  const std::string_view between = text.substr(left->end, type->start - left->end);
  return between.find('\n') == std::string_view::npos ? nullptr : type;
}

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
        if (const Node* misread = MisreadCase(node)) {
          // type: case[captures]: body
          const Node* pattern = misread->first_named();
          if (pattern != nullptr && pattern->first_named() != nullptr)
            pattern = pattern->first_named();
          BindCaptures(pattern, {.kind = Binding::Kind::kOther, .node = node}, scope);
          break;
        }
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
          const bool caught = node->parent != nullptr && node->parent->is(K::k_except_clause);
          BindTarget(alias,
                     {.kind = with     ? Binding::Kind::kWith
                              : caught ? Binding::Kind::kExcept
                                       : Binding::Kind::kOther,
                      .node = node},
                     scope);
        }
        break;
      case K::k_case_clause:
        for (const Node& kid : node->kids()) {
          if (kid.is(K::k_case_pattern))
            BindCaptures(&kid, {.kind = Binding::Kind::kOther, .node = node}, scope);
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

// Annotations: `list[int]`, `Optional[str]`, `"Node"`, `Callable[[int], str]`. What they say is a
// type of this module's, or kUnknown; a name in one is looked for where the annotation stands.

namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr int kMaxAnnotationDepth = 40;

// def f[T](x: T), class C[T]
bool HasTypeParameter(const Node* definition, std::string_view name) {
  const Node* list = definition->at(F::k_type_parameters);
  if (list == nullptr) return false;
  return std::ranges::any_of(list->kids(), [&](const Node& kid) {
    return kid.named && kid.text().substr(0, kid.text().find_first_of(":= ")) == name;
  });
}

}  // namespace

// list[int], Dict[str, int]: the arguments, in either form that the grammar gives.
std::vector<const Node*> TypeArguments(const Node* node) {
  std::vector<const Node*> args;
  if (node->is(K::k_subscript)) {
    for (const Node& kid : node->kids()) {
      if (kid.field != F::k_subscript) continue;
      if (kid.is(K::k_tuple)) {
        for (const Node& inner : kid.kids()) {
          if (inner.named) args.push_back(&inner);
        }
      } else {
        args.push_back(&kid);
      }
    }
    return args;
  }
  for (const Node& kid : node->kids()) {
    if (!kid.is(K::k_type_parameter)) continue;
    for (const Node& inner : kid.kids()) {
      if (inner.named && !inner.is(K::k_comment)) args.push_back(&inner);
    }
  }
  return args;
}

Type SymbolTable::Special(std::string_view name, const std::vector<const Node*>& args,
                          Module& module, int depth) {
  std::vector<Type> types;
  if (name == "Optional" || name == "Union") {
    for (const Node* arg : args) types.push_back(FromAnnotation(arg, module, depth + 1));
    if (name == "Optional") types.push_back({.kind = TK::kNone});
    return args.empty() ? Type{} : Either(std::move(types));
  }
  if (name == "Annotated" || name == "ClassVar" || name == "Final" || name == "Required" ||
      name == "NotRequired" || name == "ReadOnly") {
    return args.empty() ? Type{} : FromAnnotation(args[0], module, depth + 1);
  }
  if (name == "Literal") {
    for (const Node* arg : args) {
      const Node* value = arg->is(K::k_type) ? arg->first_named() : arg;
      if (value == nullptr) return {};
      if (value->is(K::k_string)) {
        types.push_back(InstanceOf(value->text().starts_with("b") ? "bytes" : "str"));
      } else if (value->is(K::k_integer) || value->is(K::k_unary_operator)) {
        types.push_back(InstanceOf("int"));
      } else if (value->is(K::kTrue) || value->is(K::kFalse)) {
        types.push_back(InstanceOf("bool"));
      } else {
        return {};
      }
    }
    return args.empty() ? Type{} : Either(std::move(types));
  }
  if (name == "Self") return {.kind = TK::kSelf};
  if (name == "AnyStr") return {.kind = TK::kVariable, .name = "AnyStr"};
  if (name == "LiteralString") return InstanceOf("str");
  return {};
}

const Scope& SymbolTable::LocalScope(const Node* function, Module& module) {
  auto& slot = module.functions[function];
  if (slot == nullptr) {
    slot = std::make_unique<Scope>();
    if (const Node* body = function->at(F::k_body)) CollectBindings(body, *slot);
  }
  return *slot;
}

// The name of an annotation, or a.b of modules and classes.
Type SymbolTable::NamedInAnnotation(const Node* head, Module& module, int depth) {
  Type of;
  const std::string text(head->text());
  size_t at = 0;
  for (bool first = true; at <= text.size(); first = false) {
    const size_t end = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, end - at);
    if (first) {
      // In a class's body its own names come first.
      for (const Node* up = head->parent; up != nullptr && !of.known(); up = up->parent) {
        if (up->is(K::k_function_definition)) {
          if (HasTypeParameter(up, part)) return {.kind = TK::kVariable, .name = part};
          const Node* body = up->at(F::k_body);
          if (module.stub || body == nullptr || head->start < body->start) continue;
          // A class of the function's own, or something else that is called like one outside.
          const Scope& local = LocalScope(up, module);
          const auto bound = local.names.find(part);
          if (bound == local.names.end() || local.elsewhere.contains(part)) continue;
          of = TypeOfBindings(bound->second, module, nullptr, depth + 1);
          if (!of.known()) return {};
          continue;
        }
        if (!up->is(K::k_class_definition)) continue;
        Class* c = ClassOf(up, module);
        const auto own = c->scope.names.find(part);
        const bool nested =
            own != c->scope.names.end() &&
            std::all_of(own->second.begin(), own->second.end(),
                        [](const Binding& b) { return b.kind == Binding::Kind::kClass; });
        if (nested && own->second.front().node != up)
          of = TypeOfBindings(own->second, module, c, depth + 1);
        if (HasTypeParameter(up, part)) return {.kind = TK::kVariable, .name = part};
      }
      if (!of.known()) of = MemberOfModule(module, part, depth + 1);
    } else {
      of = Attribute(of, part, depth + 1);
    }
    if (!of.known()) {
      return {};
    }
    at = end + 1;
  }
  return of;
}

// "Node", "list[Node] | None": what the string says.
Type SymbolTable::FromQuoted(const Node* text, Module& module, int depth) {
  constexpr size_t kMostQuoted = 500;
  constexpr size_t kMostBytes = 300;
  std::string_view inside = text->text();
  if (inside.size() < 3 || inside.size() > kMostBytes || inside.front() != inside.back() ||
      (inside.front() != '"' && inside.front() != '\'')) {
    return {};
  }
  inside = inside.substr(1, inside.size() - 2);
  if (inside.find_first_of("\"'\\\n") != std::string_view::npos) return {};
  std::string source = "x: " + std::string(inside) + "\n";
  auto found = module.quoted.find(source);
  if (found == module.quoted.end()) {
    if (module.quoted.size() > kMostQuoted) return {};
    Parser parser(Language::kPython);
    auto tree = parser.Parse(source);
    found = module.quoted.emplace(std::move(source), std::move(tree)).first;
  }
  if (found->second->broken()) return {};
  const Node* statement = found->second->root()->first_named();
  const Node* assignment = statement == nullptr ? nullptr : statement->first_named();
  if (assignment == nullptr || !assignment->is(K::k_assignment)) return {};
  return FromAnnotation(assignment->at(F::k_type), module, depth + 1);
}

Type SymbolTable::FromAnnotation(const Node* node, Module& module, int depth) {
  if (node == nullptr || depth > kMaxAnnotationDepth) return {};
  switch (node->kind) {
    case K::k_type:
    case K::k_parenthesized_expression:
      return FromAnnotation(node->first_named(), module, depth + 1);
    case K::k_none:
      return {.kind = TK::kNone};
    case K::k_string:
      return FromQuoted(node, module, depth + 1);
    case K::k_union_type:
    case K::k_binary_operator: {
      std::vector<Type> types;
      for (const Node& kid : node->kids()) {
        if (kid.named && !kid.is(K::k_comment))
          types.push_back(FromAnnotation(&kid, module, depth + 1));
        if (!kid.named && kid.text() != "|") return {};
      }
      return Either(std::move(types));
    }
    case K::k_identifier:
    case K::k_attribute:
    case K::k_member_type:
    case K::k_subscript:
    case K::k_generic_type:
      break;
    default:
      return {};
  }
  const Node* head = node;
  std::vector<const Node*> args;
  if (node->is(K::k_subscript)) head = node->at(F::k_value);
  if (node->is(K::k_generic_type)) head = node->first_named();
  if (head == nullptr) return {};
  if (head != node) args = TypeArguments(node);
  std::string_view last = head->text();
  if (const size_t dot = last.rfind('.'); dot != std::string_view::npos)
    last = last.substr(dot + 1);
  static constexpr std::array<std::string_view, 14> kSpecial = {
      "Optional", "Union",   "Annotated", "ClassVar", "Final",         "Required", "NotRequired",
      "ReadOnly", "Literal", "Self",      "Any",      "LiteralString", "AnyStr",   "Callable"};
  if (std::find(kSpecial.begin(), kSpecial.end(), last) != kSpecial.end())
    return Special(last, args, module, depth);
  Type of = NamedInAnnotation(head, module, depth);
  if (!of.known()) return {};
  if (of.is(TK::kEither) &&
      std::ranges::all_of(of.args, [](const Type& one) { return one.is(TK::kClass); })) {
    // A class that is declared for several versions.
    for (Type& one : of.args) {
      one.kind = TK::kInstance;
      for (const Node* arg : args) one.args.push_back(FromAnnotation(arg, module, depth + 1));
    }
    return of;
  }
  if (of.is(TK::kVariable) || of.is(TK::kEither) || of.is(TK::kNone)) return of;
  if (of.is(TK::kInstance) && of.name == "alias") {
    of.name.clear();
    return of;
  }
  // An alias of Any.
  if (of.cls != nullptr && of.cls->name == "Any" && of.cls->module->name == "typing") return {};
  // typing.Tuple, typing.Type
  if (of.is(TK::kInstance) && of.cls->name == "_SpecialForm" &&
      (last == "Tuple" || last == "Type")) {
    Class* plain = Builtin(last == "Tuple" ? "tuple" : "type");
    if (plain != nullptr) of = {.kind = TK::kClass, .cls = plain};
  }
  // type[X]: a class, of which only its bound is known.
  if (of.is(TK::kClass) && of.cls->name == "type" && of.cls->module->name == "builtins" &&
      args.size() == 1) {
    const Type bound = FromAnnotation(args[0], module, depth + 1);
    if (bound.is(TK::kInstance) && bound.name.empty())
      return {.kind = TK::kClass, .cls = bound.cls};
    return {};
  }
  if (!of.is(TK::kClass) || (of.cls->name == "type" && of.cls->module->name == "builtins"))
    return {};
  // Boxed[int] may be whatever the class says.
  if (!args.empty() && !of.cls->module->stub && of.cls->scope.names.contains("__class_getitem__"))
    return {};
  Type instance{.kind = TK::kInstance, .cls = of.cls};
  for (const Node* arg : args) instance.args.push_back(FromAnnotation(arg, module, depth + 1));
  // tuple[int, ...]
  if (of.cls->name == "tuple" && instance.args.size() > 1) {
    const bool same = args.size() == 2 && args[1]->text() == "...";
    const Type element = same ? instance.args[0] : Either(instance.args);
    if (!same) instance.items = instance.args;
    instance.args = {element};
  }
  return instance;
}

}  // namespace pawl::monitors::python
