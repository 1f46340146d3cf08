// Names and expressions. A variable has the type of the last assignment that surely ran before, or
// one of the types that were assigned; in a loop of an unfinished text, where a later line may
// assign again, only what the loop itself assigned before counts.
#include "plugins/monitors/python/typer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr int kMaxExpressionDepth = 60;

bool Comprehension(const Node* node) {
  return node->is(K::k_list_comprehension) || node->is(K::k_set_comprehension) ||
         node->is(K::k_dictionary_comprehension) || node->is(K::k_generator_expression);
}

bool Mentions(const Node* target, std::string_view name) {
  std::vector<const Node*> todo = {target};
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_identifier) && node->text() == name) return true;
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return false;
}

bool Fixed(const std::vector<Binding>& bindings) {
  return std::all_of(bindings.begin(), bindings.end(), [](const Binding& b) {
    return b.kind == Binding::Kind::kImport || b.kind == Binding::Kind::kFunction ||
           b.kind == Binding::Kind::kClass;
  });
}

// Color: no variable of a loop is called so, but [path.name for path in paths] is usual.
bool LikeAClass(std::string_view name) {
  return name[0] >= 'A' && name[0] <= 'Z' &&
         std::ranges::any_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

// bltn_open = open, or __all__ = ["open"]: the module makes an `open` of its own further down.
bool WillBeRedefined(const std::string& name, const Module& module) {
  for (const auto& [bound, bindings] : module.scope.names) {
    Work::Step(bindings.size());
    for (const Binding& binding : bindings) {
      if (binding.kind != Binding::Kind::kAssignment) continue;
      const Node* right = binding.node->at(F::k_right);
      if (right == nullptr) continue;
      if (right->is(K::k_identifier) && right->text() == name) return true;
      if (bound != "__all__") continue;
      for (const char quote : {'"', '\''}) {
        if (right->text().find(quote + name + quote) != std::string_view::npos) return true;
      }
    }
  }
  return false;
}

}  // namespace

Type Typer::TypeOf(const Node* node) {
  if (node == nullptr || depth_ > kMaxExpressionDepth) return {};
  const auto found = known_.find(node);
  if (found != known_.end()) return found->second;
  known_[node] = {};
  ++depth_;
  Type type = Compute(node);
  --depth_;
  known_[node] = type;
  return type;
}

Type Typer::Elements(const Type& type) {
  if (type.is(TK::kEither)) {
    std::vector<Type> types;
    for (const Type& one : type.args) types.push_back(Elements(one));
    return Either(std::move(types));
  }
  if (type == world_.InstanceOf("str")) return type;
  const std::vector<Type> args = world_.ArgumentsAs(type, "Iterable");
  return args.size() == 1 ? args[0] : Type{};
}

Type Typer::TypeOfString(const Node* node) {
  const Node* first = node->is(K::k_string) ? node : node->first_named();
  if (first == nullptr) return {};
  for (const char c : first->text()) {
    if (c == '"' || c == '\'') break;
    if (c == 'b' || c == 'B') return world_.InstanceOf("bytes");
    if (c == 't' || c == 'T') return {};
  }
  return world_.InstanceOf("str");
}

Type Typer::TypeOfBinary(const Node* node) {
  const Type left = TypeOf(node->at(F::k_left));
  const Node* op = node->at(F::k_operator);
  const Type text = world_.InstanceOf("str");
  if (op == nullptr || !left.is(TK::kInstance)) return {};
  if (left == text && op->text() == "%") return text;
  const Type right = TypeOf(node->at(F::k_right));
  if (left == text && right == text && op->text() == "+") return text;
  const Type number = world_.InstanceOf("int");
  if (left == text && right == number && op->text() == "*") return text;
  static constexpr std::array<std::string_view, 8> kWhole = {"+", "-", "*", "//",
                                                             "%", "&", "|", "^"};
  if (left == number && right == number &&
      std::find(kWhole.begin(), kWhole.end(), op->text()) != kWhole.end()) {
    return number;
  }
  return {};
}

Type Typer::TypeOfSubscript(const Node* node) {
  const Type of = TypeOf(node->at(F::k_value));
  const Node* index = node->at(F::k_subscript);
  if (!of.is(TK::kInstance) || index == nullptr) return {};
  if (!of.cls->module->stub || of.cls->module->name != "builtins") return {};
  const std::string& name = of.cls->name;
  if (name == "str") return of;
  if (index->is(K::k_slice)) return name == "list" || name == "bytes" ? of : Type{};
  if (name == "list" && of.args.size() == 1) return of.args[0];
  if (name == "dict" && of.args.size() == 2) return of.args[1];
  return {};
}

// What a function of a text returns as a tuple may be a named one.
Type Typer::MaybeNamed(Type type, const Type& callee) {
  if (!callee.is(TK::kFunction) || callee.module == nullptr || callee.module->stub) return type;
  if (type.is(TK::kEither)) {
    for (Type& one : type.args) one = MaybeNamed(std::move(one), callee);
  } else if (type.is(TK::kInstance) && type.cls == world_.Builtin("tuple")) {
    type.name = kMaybeNamed;
  }
  return type;
}

Type Typer::TypeOfCall(const Node* node) {
  const Node* list = node->at(F::k_arguments);
  const Node* function = node->at(F::k_function);
  if (function != nullptr && function->text() == "super") return TypeOfSuper(node);
  const Type callee = TypeOf(function);
  if (!callee.known() || list == nullptr) return {};
  int count = list->is(K::k_argument_list) ? 0 : -1;
  std::vector<Type> given;
  for (const Node& kid : list->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (kid.is(K::k_list_splat) || kid.is(K::k_dictionary_splat)) {
      count = -1;
      break;
    }
    ++count;
    if (!kid.is(K::k_keyword_argument) && given.size() < 6) given.push_back(TypeOf(&kid));
  }
  if (list->is(K::k_generator_expression)) given.clear();
  Type type = MaybeNamed(world_.Call(callee, count, given, list), callee);
  if (type.known() || !callee.is(TK::kFunction) || callee.functions.size() != 1 ||
      callee.module != &world_.program()) {
    return type;
  }
  // Of self it may be a method of a class below.
  if (callee.cls != nullptr) {
    const Node* object = function->at(F::k_object);
    if (object == nullptr || MayBeOfClassBelow(object) || Overridden(function)) return {};
  }
  return Inferred(callee.functions.front());
}

// (a, b)
Type Typer::TupleOf(const Node* node) {
  std::vector<Type> items;
  for (const Node& kid : node->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (kid.is(K::k_list_splat) || items.size() > 16) return world_.InstanceOf("tuple", {Type{}});
    items.push_back(TypeOf(&kid));
  }
  Type type = world_.InstanceOf("tuple", {items.empty() ? Type{} : Either(items)});
  if (type.known()) type.items = std::move(items);
  return type;
}

Type Typer::ElementsOf(const Node* node) {
  // ["a", "b"] itself has no other elements; a variable may get others.
  if (node != nullptr && (node->is(K::k_list) || node->is(K::k_set))) {
    const Type tuple = TupleOf(node);
    return tuple.args.empty() ? Type{} : tuple.args[0];
  }
  return Elements(TypeOf(node));
}

Type Typer::ItemAt(const Type& type, const std::vector<int>& path) {
  Type at = type;
  for (const int index : path) {
    if (index < 0 || !at.known()) return {};
    std::vector<Type> types;
    const std::vector<Type> parts = at.is(TK::kEither) ? at.args : std::vector<Type>{at};
    for (const Type& one : parts) {
      if (one.items.empty()) {
        types.push_back(Elements(one));
      } else {
        if (static_cast<size_t>(index) >= one.items.size()) return {};
        types.push_back(one.items[static_cast<size_t>(index)]);
      }
    }
    at = Either(std::move(types));
  }
  return at;
}

Type Typer::Compute(const Node* node) {
  switch (node->kind) {
    case K::k_identifier:
      return TypeOfName(node);
    case K::k_string:
    case K::k_concatenated_string:
      return TypeOfString(node);
    case K::k_integer:
      return node->text().find_first_of("jJ") == std::string_view::npos ? world_.InstanceOf("int")
                                                                        : Type{};
    case K::k_float:
      return node->text().find_first_of("jJ") == std::string_view::npos ? world_.InstanceOf("float")
                                                                        : Type{};
    case K::kTrue:
    case K::kFalse:
    case K::k_not_operator:
      return world_.InstanceOf("bool");
    case K::k_none:
      return {.kind = TK::kNone};
    case K::k_list:
    case K::k_set: {
      // The types of elements are only looked at: a list may get others later.
      size_t elements = 0;
      for (const Node& kid : node->kids()) {
        if (kid.named && !kid.is(K::k_comment)) {
          (void)TypeOf(&kid);
          ++elements;
        }
        if (elements > 8) break;
      }
      return world_.InstanceOf(node->is(K::k_list) ? "list" : "set", {Type{}});
    }
    case K::k_list_comprehension:
      return world_.InstanceOf("list", {TypeOf(node->at(F::k_body))});
    case K::k_set_comprehension:
      return world_.InstanceOf("set", {Type{}});
    case K::k_dictionary:
    case K::k_dictionary_comprehension:
      return world_.InstanceOf("dict", {Type{}, Type{}});
    case K::k_tuple:
    case K::k_expression_list:
      return TupleOf(node);
    case K::k_parenthesized_expression:
      return TypeOf(node->first_named());
    case K::k_named_expression:
      return TypeOf(node->at(F::k_value));
    case K::k_assignment:
      return TypeOf(node->at(F::k_right));
    case K::k_conditional_expression: {
      std::vector<Type> types;
      size_t i = 0;
      for (const Node& kid : node->kids()) {
        if (!kid.named || kid.is(K::k_comment)) continue;
        if (i++ != 1) types.push_back(TypeOf(&kid));  // a if condition else b
      }
      return Either(std::move(types));
    }
    case K::k_boolean_operator:
      return Either({TypeOf(node->at(F::k_left)), TypeOf(node->at(F::k_right))});
    case K::k_binary_operator:
      return TypeOfBinary(node);
    case K::k_attribute: {
      const Node* object = node->at(F::k_object);
      const Node* name = node->at(F::k_attribute);
      if (object == nullptr || name == nullptr) return {};
      const Type of = WithTests(object, TypeOf(object));
      if (!of.known() || Guarded(node, of)) return {};
      return TypeOfMember(of, name->text());
    }
    case K::k_subscript:
      return TypeOfSubscript(node);
    case K::k_call:
      return TypeOfCall(node);
    case K::k_await: {
      // await f(): what the async function returns.
      const Node* call = node->first_named();
      if (call == nullptr || !call->is(K::k_call)) return {};
      const Type callee = TypeOf(call->at(F::k_function));
      return MaybeNamed(world_.Awaited(callee), callee);
    }
    default:
      return {};
  }
}

const Scope& Typer::ScopeOf(const Node* function) {
  auto& slot = scopes_[function];
  if (slot == nullptr) {
    slot = std::make_unique<Scope>();
    if (const Node* body = function->at(F::k_body)) CollectBindings(body, *slot);
  }
  return *slot;
}

Type Typer::BindingType(const Binding& binding) {
  switch (binding.kind) {
    case Binding::Kind::kAssignment:
      if (const Node* annotation = binding.node->at(F::k_type))
        return world_.FromAnnotation(annotation, world_.program());
      return TypeOf(binding.node->at(F::k_right));
    case Binding::Kind::kFunction:
    case Binding::Kind::kClass:
    case Binding::Kind::kImport:
      return world_.TypeOfBindings({binding}, world_.program(), nullptr, 0);
    case Binding::Kind::kLoop: {
      if (binding.node->text().starts_with("async")) return {};
      return ElementsOf(binding.node->at(F::k_right));
    }
    case Binding::Kind::kUnpacked: {
      const Node* right = binding.node->at(F::k_right);
      const bool loop = binding.node->is(K::k_for_statement);
      if (right == nullptr || (loop && binding.node->text().starts_with("async"))) return {};
      return ItemAt(loop ? ElementsOf(right) : TypeOf(right), binding.path);
    }
    case Binding::Kind::kExcept:
      return TypeOfCaught(binding.node);
    case Binding::Kind::kWith: {
      const Node* statement = binding.node->Enclosing(K::k_with_statement);
      if (statement == nullptr || statement->text().starts_with("async")) return {};
      const Type manager = TypeOf(binding.node->first_named());
      if (!manager.is(TK::kInstance) && !manager.is(TK::kEither)) return {};
      std::vector<Type> types;
      for (const Type& one : manager.is(TK::kEither) ? manager.args : std::vector<Type>{manager}) {
        Type entered = world_.Call(world_.Attribute(one, "__enter__"), 0);
        // A class above it may say less: BinaryIO of BytesIO.
        const bool above = entered.is(TK::kInstance) && one.is(TK::kInstance) &&
                           world_.Derives(*one.cls, entered.cls->module->name, entered.cls->name);
        types.push_back(above ? one : std::move(entered));
      }
      return Either(std::move(types));
    }
    default:
      return {};
  }
}

// Whether what a parameter takes can be no generator: (x.a for x in all) is no number and no text.
// `printed`: of a function that makes nothing of an object but a text or the like.
bool Typer::TakesNoGenerator(const Type& type, bool printed) {
  if (type.is(TK::kNone)) return true;
  if (type.is(TK::kEither))
    return std::ranges::all_of(type.args,
                               [&](const Type& one) { return TakesNoGenerator(one, printed); });
  if (!type.is(TK::kInstance)) return false;
  if (type.cls->module->name != "builtins") return false;
  static constexpr std::array<std::string_view, 12> kPlain = {
      "str",  "int",  "float", "bool",  "complex", "bytes",
      "list", "dict", "set",   "tuple", "type",    "frozenset"};
  if (printed && type.cls->name == "object") only_written_ = true;
  return std::ranges::count(kPlain, type.cls->name) > 0 || (printed && type.cls->name == "object");
}

// f(x.a: whether f may be given a generator, so that a `for x in` may follow. Without brackets of
// its own a generator is the only argument.
bool Typer::MayTakeGenerator(const Node* call) {
  Type callee = TypeOf(call->at(F::k_function));
  const bool made = callee.is(TK::kClass);
  if (made) {
    // By an __init__ of its own, and nothing else: tuple(x.a for x in all) is by __new__.
    const auto& own = callee.cls->scope.names;
    if (!own.contains("__init__") || own.contains("__new__")) return true;
    callee = world_.Attribute({.kind = TK::kInstance, .cls = callee.cls}, "__init__");
  }
  if (!callee.is(TK::kFunction) || callee.functions.empty()) return true;
  // print(x.a for x in all) is of no use; other functions may take any object.
  const bool printed = !made && callee.module->stub && callee.module->name == "builtins";
  return !std::ranges::all_of(callee.functions, [&](const Node* function) {
    const Node* list = function->at(F::k_parameters);
    if (list == nullptr) return false;
    bool skip = callee.bound;
    const Node* first = nullptr;
    size_t required = 0;
    for (const Node& parameter : list->kids()) {
      if (!parameter.named || parameter.is(K::k_comment) ||
          parameter.is(K::k_positional_separator) || parameter.is(K::k_keyword_separator)) {
        continue;
      }
      if (std::exchange(skip, false)) continue;
      if (first == nullptr) first = &parameter;
      const Node* inner = parameter.is(K::k_typed_parameter) ? parameter.first_named() : &parameter;
      required += inner != nullptr && inner->is(K::k_identifier);
    }
    if (first == nullptr) return true;
    // A decorator may give it some of them.
    if (required > 1 && (callee.module->stub || DecoratorsOf(function).empty())) return true;
    return TakesNoGenerator(world_.FromAnnotation(first->at(F::k_type), *callee.module), printed);
  });
}

// [x.a: a `for x in` may follow, and then this x is not the one before. Not behind [1, x.a, nor
// where a generator would be of no use.
bool Typer::MayBeBoundBehind(const Node* use) {
  const uint32_t cursor = place_ ? place_->byte : world_.cursor();
  const Node* below = use;
  for (const Node* up = use->parent; up != nullptr; below = up, up = up->parent) {
    if (up->is(K::k_block) || up->start > cursor) return false;
    if (cursor > up->end) continue;  // [x.a(
    const bool first = up->first_named() == below;
    switch (up->kind) {
      case K::k_list:
      case K::k_set:
      case K::k_dictionary:
      case K::k_list_comprehension:
      case K::k_set_comprehension:
      case K::k_dictionary_comprehension:
      case K::k_generator_expression:
        if (first) return true;
        break;
      case K::k_subscript:
        // match [x.a: the name of a list, as far as it is read, or the word.
        if (const Node* value = up->at(F::k_value); value != nullptr && value->text() == "match")
          return true;
        break;
      case K::k_parenthesized_expression: {
        const Node* around = up->parent;
        const bool condition = around != nullptr && up->field == F::k_condition &&
                               (around->is(K::k_if_statement) || around->is(K::k_elif_clause) ||
                                around->is(K::k_while_statement));
        if (!condition && (around == nullptr ||
                           (!around->is(K::k_not_operator) && !around->is(K::k_binary_operator)))) {
          return true;
        }
        break;
      }
      case K::k_argument_list:
        if (first && (up->parent == nullptr || MayTakeGenerator(up->parent))) return true;
        break;
      default:
        break;
    }
  }
  return false;
}

// The variable of `for a, (b, c) in all` in a comprehension.
Type Typer::OfComprehension(const Node& clause, const Node* left, std::string_view name) {
  if (clause.text().starts_with("async")) return {};
  const Type element = ElementsOf(clause.at(F::k_right));
  std::vector<int> path;
  for (const Node* pattern = left; !pattern->is(K::k_identifier);) {
    const Node* inside = nullptr;
    int at = 0;
    for (const Node& part : pattern->kids()) {
      if (!part.named || part.is(K::k_comment)) continue;
      if (part.is(K::k_list_splat_pattern)) return {};
      if (Mentions(&part, name)) {
        inside = &part;
        break;
      }
      ++at;
    }
    if (inside == nullptr) return {};
    path.push_back(at);
    pattern = inside;
  }
  return ItemAt(element, path);
}

// A parameter of the function that is used in it.
Type Typer::OfParameter(const Node* use, const std::string& name, const Node* function,
                        const Node& p) {
  const Scope& scope = ScopeOf(function);
  const auto bound = scope.names.find(name);
  const Node* annotation = p.at(F::k_type);
  Type given = world_.FromAnnotation(annotation, world_.program());
  if (bound != scope.names.end()) {
    if (given.known()) return FlowOver(std::move(given), bound->second, use, function);
    uint32_t last = 0;
    for (const Binding& b : bound->second) last = std::max(last, b.node->start);
    return Narrowed(use, name, function, last);
  }
  const Node* id = p.is(K::k_identifier) ? &p : p.at(F::k_name);
  if (id == nullptr) id = p.first_named();
  const bool splat = id == nullptr || !id->is(K::k_identifier) || p.is(K::k_list_splat_pattern) ||
                     p.is(K::k_dictionary_splat_pattern);
  if (splat) {
    const bool map = p.text().starts_with("**");
    return map ? world_.InstanceOf("dict", {world_.InstanceOf("str"), Type{}})
               : world_.InstanceOf("tuple", {Type{}});
  }
  return annotation == nullptr ? Narrowed(use, name, function, 0) : given;
}

// Whether what follows may give the name another meaning.
bool Typer::MayBeRenamed(const Node* use, const std::string& name) {
  if (!unfinished_ && (!place_ || !place_->line_open)) return false;
  const bool before = only_written_;
  const bool doubtful = MayBeBoundBehind(use);
  // print(json.title() for json in all): that a variable is bound so is not expected.
  const auto& names = world_.program().scope.names;
  const auto bound = names.find(name);
  const bool imported = bound != names.end() && std::ranges::all_of(bound->second, [](auto& b) {
                          return b.kind == Binding::Kind::kImport;
                        });
  only_written_ = before || (only_written_ && imported);
  return doubtful;
}

Type Typer::TypeOfName(const Node* use) {
  const std::string name(use->text());
  Module& program = world_.program();
  bool in_function = false;
  const bool doubtful = MayBeRenamed(use, name);
  const bool renamed = doubtful && !LikeAClass(name);
  for (const Node* up = use->parent; up != nullptr; up = up->parent) {
    Work::Step();
    if (Comprehension(up)) {
      for (const Node& kid : up->kids()) {
        const Node* left = kid.is(K::k_for_in_clause) ? kid.at(F::k_left) : nullptr;
        if (left == nullptr || !Mentions(left, name)) continue;
        return OfComprehension(kid, left, name);
      }
    }
    if (up->is(K::k_lambda)) {
      const Node* list = up->at(F::k_parameters);
      if (list != nullptr && Mentions(list, name)) return {};
      in_function = true;
    }
    if (up->is(K::k_class_definition)) {
      if (!in_function && world_.ClassOf(up, program)->scope.names.contains(name)) return {};
    }
    if (!up->is(K::k_function_definition)) continue;
    // Defaults and annotations stand outside of the function.
    const Node* body = up->at(F::k_body);
    if (body == nullptr || !Inside(use, body)) continue;
    const Scope& scope = ScopeOf(up);
    if (scope.elsewhere.contains(name)) return {};
    const auto bound = scope.names.find(name);
    if (BoundFromInside(up, name)) return {};
    if (const Node* list = up->at(F::k_parameters)) {
      bool first = true;
      for (const Node& p : list->kids()) {
        if (!p.named || p.is(K::k_comment)) continue;
        const Node* id = p.is(K::k_identifier) ? &p : p.at(F::k_name);
        if (id == nullptr) id = p.first_named();
        if (id == nullptr || !Mentions(id, name)) {
          first = false;
          continue;
        }
        if (first && bound == scope.names.end()) {
          Type receiver = TypeOfReceiver(up, &p);
          if (receiver.known()) {
            receivers_.insert(use);
            return receiver;
          }
        }
        if (in_function || doubtful) return {};
        return OfParameter(use, name, up, p);
      }
    }
    if (bound != scope.names.end()) {
      if (renamed || (doubtful && !Fixed(bound->second))) return {};
      if (!in_function) {
        Type type = Flow(bound->second, use, up);
        if (type.known()) return type;
        uint32_t last = 0;
        for (const Binding& b : bound->second) last = std::max(last, b.node->start);
        return Narrowed(use, name, up, last);
      }
      if (bound->second.size() != 1) return {};
      const auto kind = bound->second.front().kind;
      const bool fixed = kind == Binding::Kind::kImport || kind == Binding::Kind::kFunction ||
                         kind == Binding::Kind::kClass;
      return fixed ? BindingType(bound->second.front()) : Type{};
    }
    in_function = true;
  }
  const auto bound = program.scope.names.find(name);
  const Changes& changes = world_.ChangesOf(program);
  if (renamed || changes.all_replaced || changes.replaced.contains(name)) return {};
  if (bound == program.scope.names.end()) {
    if (!program.scope.stars.empty() || world_.ChangesOf(program).rebound.contains(name)) return {};
    if (unfinished_ && in_function && WillBeRedefined(name, program)) return {};
    Module* builtins = world_.Find("builtins");
    return builtins == nullptr ? Type{} : world_.MemberOfModule(*builtins, name);
  }
  if (changes.rebound.contains(name)) return DeclaredBy(bound->second);
  const bool given = changes.globals || changes.given.contains(name);
  if ((doubtful || given) && !Fixed(bound->second)) return {};
  if (ReboundByStar(bound->second, name, in_function)) return {};
  if (!in_function) return Flow(bound->second, use, program.tree->root());
  if (Type declared = DeclaredBy(bound->second); declared.known()) return declared;
  std::vector<Type> types;
  for (const Binding& binding : bound->second) {
    // A variable of the module that a function sees: only one that was set once. A line behind the
    // cursor may set it again.
    const bool plain = binding.kind == Binding::Kind::kAssignment;
    if (plain && (bound->second.size() != 1 || unfinished_)) return {};
    if (binding.kind != Binding::Kind::kAssignment && binding.kind != Binding::Kind::kImport &&
        binding.kind != Binding::Kind::kFunction && binding.kind != Binding::Kind::kClass) {
      return {};
    }
    Type type = BindingType(binding);
    if (!type.known() || type.is(TK::kNone)) return {};
    types.push_back(std::move(type));
  }
  return Either(std::move(types));
}

// x.a = 1, and what may become that.
Typer::Target Typer::TargetOf(const Node* attribute) const {
  const Node* below = attribute;
  for (const Node* up = attribute->parent; up != nullptr; below = up, up = up->parent) {
    switch (up->kind) {
      case K::k_pattern_list:
      case K::k_tuple_pattern:
      case K::k_list_pattern:
      case K::k_expression_list:
      case K::k_tuple:
      case K::k_list:
      case K::k_parenthesized_expression:
      case K::k_list_splat_pattern:
      case K::k_list_splat:
      case K::k_type:
        continue;
      case K::k_expression_statement:
        return unfinished_ || place_ ? Target::kMayBe : Target::kNo;
      case K::k_as_pattern_target:
      case K::k_delete_statement:
        return Target::kIs;
      case K::k_assignment:
      case K::k_augmented_assignment:
      case K::k_for_statement:
      case K::k_for_in_clause:
      case K::k_type_alias_statement:
        return below->field == F::k_left ? Target::kIs : Target::kNo;
      default:
        return Target::kNo;
    }
  }
  return Target::kNo;
}

namespace {

// The names of which the text has `.name =`.
void AssignedNames(std::string_view text, std::vector<std::string>& names) {
  Work::Bytes(text.size());
  for (size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    if (at + 1 < text.size() && text[at + 1] == '=') {
      ++at;
      continue;
    }
    size_t end = at;
    while (end > 0 && text[end - 1] == ' ') --end;
    size_t start = end;
    while (start > 0 && NameByte(text[start - 1])) --start;
    if (start < end && start > 0 && text[start - 1] == '.')
      names.emplace_back(text.substr(start, end - start));
  }
}

}  // namespace

std::optional<Names> Typer::NamesFor(const Node* attribute) {
  const Node* object = attribute->at(F::k_object);
  if (object == nullptr || (!unfinished_ && Overlooked(attribute))) return std::nullopt;
  const Type type = WithTests(object, TypeOf(object));
  if (!type.known() || type.is(TK::kNone) || Guarded(attribute, type)) return std::nullopt;
  const std::vector<Type> parts = type.is(TK::kEither) ? type.args : std::vector<Type>{type};
  const bool takes_none = std::ranges::all_of(
      parts, [](const Type& one) { return one.is(TK::kInstance) && TakesNoAttributes(*one.cls); });
  // Modules and objects take any attribute, except objects of classes that fix them.
  const Target target = takes_none ? Target::kNo : TargetOf(attribute);
  if (target == Target::kIs) return std::nullopt;
  // In its own class an object may be of a class below.
  const bool one = (type.is(TK::kInstance) || type.is(TK::kClass)) && type.cls != nullptr;
  const bool inside =
      one && place_ && type.cls->module == &world_.program() && Inside(attribute, type.cls->node);
  if (IsReceiver(object) || inside) {
    return target == Target::kNo ? NamesOfReceiver(type, attribute) : std::nullopt;
  }
  if (type.is(TK::kModule)) {
    // sys.modules["json"] = ..., setattr(json, name, ...)
    const Changes& changes = world_.ChangesOf(world_.program());
    const std::string& name = type.module->name;
    if (changes.patched.contains(name) || changes.given.contains(name)) return std::nullopt;
    if (object->is(K::k_identifier) && world_.ModuleExtended(object->text(), object->start))
      return std::nullopt;
  }
  if (MayBeOther(attribute, parts)) return std::nullopt;
  auto names = world_.NamesOf(type);
  if (!names || !AddBelow(object, parts, *names)) return std::nullopt;
  // Objects that the text gives attributes from outside: not those of classes that take none.
  if (!takes_none) {
    const Changes& changes = world_.ChangesOf(world_.program());
    for (const auto* set : {&changes.set, &changes.set_on_self, &changes.given, &changes.replaced})
      names->insert(names->end(), set->begin(), set->end());
    AssignedNames(world_.program().tree->text(), *names);
  }
  Names result{.names = std::move(*names),
               .only_written = only_written_ || target == Target::kMayBe};
  AddHidden(object, parts, result);
  return result;
}

}  // namespace pawl::monitors::python
