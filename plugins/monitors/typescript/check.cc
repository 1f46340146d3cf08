// The rules of the monitors, each about one node. All of them say nothing where a type is open,
// where the text is unfinished, and where TypeScript itself would let a program add what is
// missing: properties that are assigned to a function, names of the host, members of a class that
// is being written.
#include "plugins/monitors/typescript/check.h"

#include <algorithm>
#include <array>

#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

using K = Kind;
using F = Field;

namespace {

bool Word(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kWords = {
      "arguments", "async", "await", "globalThis", "new", "this", "undefined", "yield"};
  return std::find(kWords.begin(), kWords.end(), name) != kWords.end();
}

const Node* Callee(const Node* call) {
  return call->at(call->is(K::k_new_expression) ? F::k_constructor : F::k_function);
}

// The name that stands for an expression in a message.
const Node* NameOf(const Node* expression) {
  while (expression != nullptr) {
    if (expression->is(K::k_member_expression)) return expression->at(F::k_property);
    if (!expression->is(K::k_parenthesized_expression) && !expression->is(K::k_non_null_expression))
      break;
    expression = expression->first_named();
  }
  return expression;
}

Problem At(const Node* node, const char* monitor, std::string message) {
  return Problem{.byte = node->start,
                 .identifier = std::string(node->text().substr(0, 80)),
                 .monitor = monitor,
                 .message = std::move(message)};
}

// A type whose members a program may add to, or of which nothing is known. Only a function that has
// a name gets properties by assignment, where it is declared or in another file.
bool Extensible(Checker& checker, TypeRef type, const Node* object) {
  if (type->loose() || type->is(T::kNever) || type->is(T::kVoid)) return true;
  if (type->is(T::kFunction)) {
    if (!object->is(K::k_member_expression)) return true;
    const TypeRef of = checker.TypeOf(object->at(F::k_object));
    return of->is(T::kStatic) && of->symbol->is(kForeign);
  }
  if (type->is(T::kUnion)) {
    Work::Step(type->parts.size());
    return std::any_of(type->parts.begin(), type->parts.end(), [&](TypeRef p) {
      return !p->is(T::kNull) && !p->is(T::kUndefined) && Extensible(checker, p, object);
    });
  }
  return false;
}

}  // namespace

size_t FirstError(const Node* root) {
  const Node* at = root;
  for (;;) {
    const Node* inside = nullptr;
    for (const Node& kid : at->kids()) {
      if (kid.is(K::k_ERROR) || ts_node_is_missing(kid.raw)) return kid.start;
      if (inside == nullptr && kid.broken()) inside = &kid;
    }
    if (inside == nullptr) return at->start;
    at = inside;
  }
}

std::optional<std::vector<std::string>> MemberNames(Checker& checker, const Node* object) {
  if (object == nullptr) return std::nullopt;
  const TypeRef type = checker.TypeOf(object);
  if (object->is(K::k_super) && (!type->is(T::kRef) || !type->symbol->is(kClass)))
    return std::nullopt;
  if (Extensible(checker, type, object)) return std::nullopt;
  return checker.Members(type, object);
}

std::optional<std::vector<std::string>> TypeNames(Checker& checker, const Node* space) {
  if (space == nullptr || !space->is(K::k_identifier)) return std::nullopt;
  Symbol* symbol = checker.Resolve(space->text(), space, kNamespace);
  if (symbol == nullptr || !symbol->is(kForeign) || symbol->is(kImport)) return std::nullopt;
  checker.FillMembers(symbol);
  if (checker.OpenSymbol(symbol) || symbol->statics.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, member] : symbol->statics) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

bool Unchecked(std::string_view text, size_t byte) {
  constexpr size_t kTop = 4096;
  const std::string_view top = text.substr(0, kTop);
  if (const size_t at = top.find("@ts-nocheck"); at != std::string_view::npos) {
    const size_t line = top.rfind('\n', at);
    const size_t begin = line == std::string_view::npos ? 0 : line + 1;
    if (top.substr(begin).starts_with("//")) return true;
  }
  size_t line = text.rfind('\n', byte == 0 ? 0 : byte - 1);
  if (byte == 0 || line == std::string_view::npos) return false;
  // Comments may stand between.
  for (;;) {
    const size_t above = line == 0 ? std::string_view::npos : text.rfind('\n', line - 1);
    const size_t begin = above == std::string_view::npos ? 0 : above + 1;
    std::string_view code = text.substr(begin, line - begin);
    code.remove_prefix(std::min(code.find_first_not_of(" \t\r{"), code.size()));
    Work::Bytes(code.size());
    const size_t mark = std::min(code.find("@ts-ignore"), code.find("@ts-expect-error"));
    if (mark != std::string_view::npos) {
      const std::string_view before = code.substr(0, mark);
      if (before.starts_with('*') || before.find("//") != std::string_view::npos ||
          before.find("/*") != std::string_view::npos) {
        return true;
      }
    }
    if (!code.starts_with("//") && !code.starts_with("/*") && !code.starts_with("*")) return false;
    if (begin == 0) return false;
    line = begin - 1;
  }
}

std::optional<Problem> MemberProblem(Checker& checker, const Node* member) {
  const Node* object = member->at(F::k_object);
  const Node* property = member->at(F::k_property);
  if (object == nullptr || property == nullptr || !property->is(K::k_property_identifier))
    return std::nullopt;
  // What all conditions exclude has no members; said at the end of a text only, as conditions are
  // followed loosely.
  if (object->is(K::k_identifier) && checker.TypeOf(object)->is(T::kNever)) {
    return At(property, "dereference", "no member of never");
  }
  const auto names = MemberNames(checker, object);
  if (!names || std::binary_search(names->begin(), names->end(), property->text()))
    return std::nullopt;
  return At(property, "dereference", "no member of " + checker.Describe(checker.TypeOf(object)));
}

std::optional<Problem> CountProblem(Checker& checker, const Node* call) {
  const Node* callee = Callee(call);
  if (callee == nullptr || callee->is(K::k_super) || callee->text() == "import")
    return std::nullopt;
  const TypeRef type = checker.pool().NonNull(checker.TypeOf(callee));
  if (type->loose() || type->is(T::kUnion)) return std::nullopt;
  const auto& result = checker.ResolveCall(call);
  if (!result.bad_count) return std::nullopt;
  const Node* name = NameOf(callee);
  if (name == nullptr) return std::nullopt;
  bool spread = false;
  const size_t count = checker.Arguments(call, &spread).size();
  return At(name, "arguments", "takes no " + std::to_string(count) + " arguments");
}

std::optional<Problem> ConstantProblem(Checker& checker, const Node* assignment) {
  const Node* target =
      assignment->at(assignment->is(K::k_update_expression) ? F::k_argument : F::k_left);
  while (target != nullptr &&
         (target->is(K::k_parenthesized_expression) || target->is(K::k_non_null_expression))) {
    target = target->first_named();
  }
  if (target == nullptr) return std::nullopt;
  if (target->is(K::k_identifier)) {
    Symbol* symbol = checker.Resolve(target->text(), target, kValue);
    if (symbol == nullptr || symbol->is(kLib)) return std::nullopt;
    if (symbol->is(kConst) && !symbol->is(kLet | kVariable | kParameter)) {
      return At(target, "constants", "is a constant");
    }
    if (symbol->is(kEnum | kClass) ||
        (symbol->is(kFunctionName) && !symbol->is(kVariable | kLet | kConst))) {
      return At(target, "constants", "can not be assigned to");
    }
    return std::nullopt;
  }
  if (target->is(K::k_array_pattern) || target->is(K::k_array)) {
    for (const Node& kid : target->kids()) {
      if (!kid.is(K::k_identifier)) continue;
      Symbol* symbol = checker.Resolve(kid.text(), &kid, kValue);
      if (symbol != nullptr && symbol->is(kConst) && !symbol->is(kLib))
        return At(&kid, "constants", "is a constant");
    }
    return std::nullopt;
  }
  if (target->is(K::k_member_expression)) {
    const Node* object = target->at(F::k_object);
    const Node* property = target->at(F::k_property);
    if (object == nullptr || property == nullptr || object->is(K::k_this)) return std::nullopt;
    const TypeRef type = checker.TypeOf(object);
    if (Extensible(checker, type, object) || type->is(T::kUnion) || type->is(T::kIntersection))
      return std::nullopt;
    if (const auto member = checker.Member(type, property->text()); member && member->readonly) {
      return At(property, "constants", "is read-only");
    }
  }
  return std::nullopt;
}

std::optional<Problem> InstantiationProblem(Checker& checker, const Node* call) {
  const Node* name = call->at(F::k_constructor);
  if (name == nullptr || !name->is(K::k_identifier)) return std::nullopt;
  Symbol* symbol = checker.Resolve(name->text(), name, kValue | kTypeName);
  if (symbol == nullptr) return std::nullopt;
  if (symbol->is(kAbstract) && symbol->is(kClass)) return At(name, "new", "is abstract");
  if (!symbol->is(kValue) && symbol->is(kInterface | kAlias) && !symbol->is(kLib) &&
      checker.Resolve(name->text(), name, kValue) == nullptr) {
    return At(name, "new", "is only a type");
  }
  return std::nullopt;
}

// namespace A.B { ... }: what all parts of A and of B declare, which are not put together.
static bool InNestedSpace(const Node* node) {
  for (const Node* up = node->parent; up != nullptr; up = up->parent) {
    Work::Step();
    const Node* name =
        up->is(K::k_internal_module) || up->is(K::k_module) ? up->at(F::k_name) : nullptr;
    if (name != nullptr && name->is(K::k_nested_identifier)) return true;
  }
  return false;
}

std::optional<Problem> NameProblem(Checker& checker, const Node* name) {
  const std::string_view text = name->text();
  if (Word(text) || HostName(text) || checker.Shared(text)) return std::nullopt;
  const Node* parent = name->parent;
  if (parent == nullptr) return std::nullopt;
  if (name->is(K::k_type_identifier)) {
    // Where it declares, it is found.
    if (checker.Resolve(text, name, kTypeName | kNamespace) != nullptr) return std::nullopt;
    if (text == "bigint" || text == "const" || text == "unique" || text == "asserts")
      return std::nullopt;
    if (parent->is(K::k_nested_type_identifier)) return std::nullopt;
    if (checker.Resolve(text, name, kValue) != nullptr || InNestedSpace(name))
      return std::nullopt;  // its own message elsewhere
    return At(name, "names", "no type has this name");
  }
  // [first: string, ...others: number[]]: labels; export { a as b }, export { a } from "b".
  for (const Node* up = parent; up != nullptr && up->named; up = up->parent) {
    if (up->is(K::k_tuple_type)) return std::nullopt;
    if (up->is(K::k_export_statement)) {
      if (name->field == F::k_alias || up->at(F::k_source) != nullptr) return std::nullopt;
      break;
    }
    const bool label = up->is(K::k_required_parameter) || up->is(K::k_optional_parameter) ||
                       up->is(K::k_rest_pattern);
    const bool exported = up->is(K::k_export_specifier) || up->is(K::k_export_clause) ||
                          up->is(K::k_namespace_export);
    if (!label && !exported && up->kind != K::kOther) break;
  }
  switch (parent->kind) {
    case K::k_nested_identifier:
    case K::k_nested_type_identifier:
    case K::k_import_specifier:
    case K::k_import_clause:
    case K::k_namespace_import:
    case K::k_labeled_statement:
    case K::k_export_statement:
    case K::k_meta_property:
    case K::k_type_predicate:
    case K::k_asserts:
    case K::k_index_signature:
    case K::k_internal_module:
    case K::k_module:
    case K::k_import_alias:
    case K::k_import_require_clause:
    case K::k_decorator:
      return std::nullopt;
    default:
      break;
  }
  if (checker.Resolve(text, name, kValue) != nullptr) return std::nullopt;
  if (checker.Resolve(text, name, kTypeName) != nullptr || InNestedSpace(name)) return std::nullopt;
  return At(name, "names", "nothing has this name");
}

namespace {

// What may stand where an expression may, besides names, and what may go on behind one.
constexpr std::array<std::string_view, 43> kScopeWords = {
    "arguments", "async",    "await",    "class", "false",      "function", "globalThis", "import",
    "new",       "null",     "super",    "this",  "true",       "typeof",   "undefined",  "void",
    "yield",     "delete",   "let",      "const", "var",        "return",   "if",         "for",
    "while",     "do",       "switch",   "throw", "try",        "break",    "continue",   "case",
    "default",   "else",     "in",       "of",    "instanceof", "as",       "is",         "infer",
    "keyof",     "readonly", "satisfies"};

}  // namespace

bool ScopeWord(std::string_view word) {
  return std::find(kScopeWords.begin(), kScopeWords.end(), word) != kScopeWords.end();
}

std::optional<std::vector<std::string>> NamesInScope(Checker& checker, const Node* node) {
  if (!node->is(K::k_identifier) || node->parent == nullptr) return std::nullopt;
  switch (node->parent->kind) {
    case K::k_binary_expression:
    case K::k_arguments:
    case K::k_return_statement:
    case K::k_call_expression:
    case K::k_member_expression:
    case K::k_subscript_expression:
    case K::k_unary_expression:
    case K::k_ternary_expression:
    case K::k_array:
    case K::k_template_substitution:
    case K::k_new_expression:
    case K::k_spread_element:
      break;
    case K::k_variable_declarator:
    case K::k_pair:
      if (node->field != F::k_value) return std::nullopt;
      break;
    case K::k_assignment_expression:
      break;
    default:
      return std::nullopt;
  }
  if (InNestedSpace(node)) return std::nullopt;
  std::vector<std::string> names;
  checker.NamesAt(node, kValue, names);
  for (const std::string_view word : kScopeWords) names.emplace_back(word);
  names.insert(names.end(), checker.shared().begin(), checker.shared().end());
  size_t count = 0;
  const std::string_view* host = HostNames(&count);
  for (size_t i = 0; i < count; ++i) names.emplace_back(host[i]);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

namespace {

class Walker {
 public:
  Walker(Checker& checker, std::vector<Problem>& problems)
      : checker_(checker), problems_(problems) {}

  void Walk(const Node* root) {
    // Not recursive on the depth of the text.
    std::vector<const Node*> todo = {root};
    while (!todo.empty()) {
      const Node* node = todo.back();
      todo.pop_back();
      Visit(node);
      const auto kids = node->kids();
      for (auto kid = kids.rbegin(); kid != kids.rend(); ++kid) {
        if (kid->named) todo.push_back(&*kid);
      }
    }
  }

 private:
  void Add(std::optional<Problem> problem) {
    if (problem) problems_.push_back(std::move(*problem));
  }
  void Visit(const Node* node) {
    switch (node->kind) {
      case K::k_identifier:
      case K::k_type_identifier:
      case K::k_shorthand_property_identifier:
        Add(NameProblem(checker_, node));
        return;
      case K::k_member_expression:
        Add(MemberProblem(checker_, node));
        return;
      case K::k_call_expression:
        Add(CountProblem(checker_, node));
        return;
      case K::k_new_expression:
        Add(CountProblem(checker_, node));
        Add(InstantiationProblem(checker_, node));
        return;
      case K::k_assignment_expression:
      case K::k_augmented_assignment_expression:
      case K::k_update_expression:
        Add(ConstantProblem(checker_, node));
        return;
      default:
        return;
    }
  }
  Checker& checker_;
  std::vector<Problem>& problems_;
};

}  // namespace

std::vector<Problem> FindProblems(Checker& checker, bool strict) {
  std::vector<Problem> problems;
  Walker(checker, problems).Walk(checker.tree()->root());
  if (strict) FindStrictProblems(checker, problems);
  return problems;
}

// Names of types, for messages.
std::string Checker::Describe(TypeRef type, int depth) {
  if (depth > 3) return "...";
  const auto list = [&](const std::vector<TypeRef>& parts, const char* between) {
    std::string text;
    for (TypeRef part : parts) text += (text.empty() ? "" : between) + Describe(part, depth + 1);
    return text;
  };
  switch (type->kind) {
    case T::kOpen:
      return "?";
    case T::kAny:
      return "any";
    case T::kUnknown:
      return "unknown";
    case T::kNever:
      return "never";
    case T::kVoid:
      return "void";
    case T::kUndefined:
      return "undefined";
    case T::kNull:
      return "null";
    case T::kNumber:
      return "number";
    case T::kString:
      return "string";
    case T::kBoolean:
      return "boolean";
    case T::kBigInt:
      return "bigint";
    case T::kSymbol:
      return "symbol";
    case T::kObject:
      return "object";
    case T::kStringLiteral:
      return "\"" + type->text + "\"";
    case T::kNumberLiteral:
    case T::kBooleanLiteral:
    case T::kBigIntLiteral:
      return type->text;
    case T::kEnumMember:
    case T::kParam:
      return type->symbol->name;
    case T::kStatic:
      return "typeof " + type->symbol->name;
    case T::kUnion:
      return list(type->parts, " | ");
    case T::kIntersection:
      return list(type->parts, " & ");
    case T::kTuple:
      return "[" + list(type->parts, ", ") + "]";
    case T::kRef:
      if (type->symbol->name == "Array" && type->parts.size() == 1) {
        const std::string element = Describe(type->parts[0], depth + 1);
        return (element.find(" | ") == std::string::npos && element.find("=>") == std::string::npos
                    ? element
                    : "(" + element + ")") +
               "[]";
      }
      return type->symbol->name + (type->parts.empty() ? "" : "<" + list(type->parts, ", ") + ">");
    case T::kFunction: {
      std::string text = "(";
      const Signature* s = type->signatures.front();
      for (const Parameter& p : s->params)
        text += (text.size() > 1 ? ", " : "") + Describe(p.type, depth + 1);
      return text + ") => " + Describe(ResultOf(s), depth + 1);
    }
    case T::kShape: {
      const Shape* shape = ShapeOf(type);
      std::string text = "{";
      for (const Property& p : shape->properties) {
        text += (text.size() > 1 ? "; " : " ") + p.name + (p.optional ? "?: " : ": ") +
                Describe(TypeOfProperty(p), depth + 1);
        if (text.size() > 80) break;
      }
      if (shape->string_index != nullptr)
        text += " [string]: " + Describe(shape->string_index, depth + 1);
      if (shape->number_index != nullptr)
        text += " [number]: " + Describe(shape->number_index, depth + 1);
      return text + " }";
    }
  }
  return "?";
}

}  // namespace pawl::monitors::ts
