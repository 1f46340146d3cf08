// self, cls and super() in methods. What an object of a class has is known when the text behind the
// cursor is: while a class is written, a later method may assign more. A class is left open that
// reads from self what neither it nor a class above it has: then it is meant to be mixed with one
// that does.
#include <algorithm>
#include <array>

#include "plugins/monitors/python/typer.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

// The class whose method the function is, nullptr: none.
const Node* ClassOfMethod(const Node* function) {
  const Node* up = function->parent;
  if (up != nullptr && up->is(K::k_decorated_definition)) up = up->parent;
  // Below conditions too.
  while (up != nullptr && !up->is(K::k_class_definition)) {
    if (up->is(K::k_function_definition) || up->is(K::k_lambda)) return nullptr;
    up = up->parent;
  }
  return up;
}

enum class Taken : uint8_t { kObject, kClass, kOther };

// What a method is given first.
Taken FirstOf(const Node* method, std::string_view parameter) {
  bool other = false;
  if (const Node* around = method->parent; around->is(K::k_decorated_definition)) {
    for (const Node& kid : around->kids()) {
      if (!kid.is(K::k_decorator)) continue;
      if (kid.text().starts_with("@staticmethod")) return Taken::kOther;
      if (kid.text().starts_with("@classmethod")) return Taken::kClass;
      other = true;
    }
  }
  const Node* name = method->at(F::k_name);
  if (name != nullptr && (name->text() == "__new__" || name->text() == "__init_subclass__" ||
                          name->text() == "__class_getitem__")) {
    return Taken::kClass;
  }
  // An Enum calls it as a function, with the name of the member.
  if (name != nullptr && name->text() == "_generate_next_value_") return Taken::kOther;
  if (parameter == "self") return Taken::kObject;
  return parameter == "cls" || other ? Taken::kOther : Taken::kObject;
}

// What every object and class has, whether the stubs say it or not.
constexpr std::array<std::string_view, 18> kOfAll = {"__annotations__",
                                                     "__bases__",
                                                     "__doc__",
                                                     "__mro__",
                                                     "__name__",
                                                     "__orig_bases__",
                                                     "__orig_class__",
                                                     "__parameters__",
                                                     "__qualname__",
                                                     "__slots__",
                                                     "__weakref__",
                                                     "__subclasses__",
                                                     "__abstractmethods__",
                                                     "__objclass__",
                                                     "__dict__",
                                                     "__module__",
                                                     "__wrapped__",
                                                     "__type_params__"};
// type("X", (Mixin, base), {}), types.new_class(...), make_dataclass(...): a class below one that
// the arguments name.
bool MakesClassOf(const Node* call, std::string_view name) {
  const Node* function = call->at(F::k_function);
  if (function == nullptr) return false;
  std::string_view called = function->text();
  called = called.substr(called.rfind('.') + 1);
  if (called != "type" && called != "new_class" && called != "make_dataclass" &&
      called != "__new__") {
    return false;
  }
  const std::string_view text = call->text();
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (!NameByte(text[at - 1]) && end < text.size() && !NameByte(text[end]))
      return text.find(',') != std::string_view::npos;
  }
  return false;
}

// And those that a decorator gave more.
constexpr std::array<std::string_view, 4> kOfDecorated = {"__attrs_attrs__", "__dataclass_fields__",
                                                          "__match_args__", "__post_init__"};

}  // namespace

Type Typer::TypeOfReceiver(const Node* method, const Node* parameter) {
  if (!unfinished_ && !place_) return {};
  if (!parameter->is(K::k_identifier)) return {};
  const Node* around = ClassOfMethod(method);
  if (around == nullptr) return {};
  const Taken taken = FirstOf(method, parameter->text());
  if (taken == Taken::kOther) return {};
  Class* c = world_.ClassOf(around, world_.program());
  world_.ReadHead(*c);
  // The objects of a metaclass are classes.
  if (world_.Derives(*c, "builtins", "type")) return {};
  Type type{.kind = taken == Taken::kClass ? TK::kClass : TK::kInstance, .cls = c};
  if (taken == Taken::kObject) {
    for (const std::string& variable : c->variables)
      type.args.push_back({.kind = TK::kVariable, .name = variable});
  }
  return type;
}

// super(), super(C, self): what the classes have that the class is derived from.
Type Typer::TypeOfSuper(const Node* call) {
  if (!unfinished_ && !place_) return {};
  const Node* method = call->Enclosing(K::k_function_definition);
  const Node* around = method == nullptr ? nullptr : ClassOfMethod(method);
  const Node* list = method == nullptr ? nullptr : method->at(F::k_parameters);
  const Node* first = list == nullptr ? nullptr : list->first_named();
  if (around == nullptr || first == nullptr || !first->is(K::k_identifier)) return {};
  const Node* given = call->at(F::k_arguments);
  if (given != nullptr && given->first_named() != nullptr) {
    const Node* name = around->at(F::k_name);
    if (name == nullptr || given->first_named()->text() != name->text()) return {};
  }
  Class* c = world_.ClassOf(around, world_.program());
  world_.ReadHead(*c);
  const Taken taken = FirstOf(method, first->text());
  if (!c->bases_known || taken == Taken::kOther) return {};
  std::vector<Type> types;
  for (const Type& base : c->bases) {
    if (!base.is(TK::kInstance) || base.cls->name == "object") continue;
    Type one = base;
    if (taken == Taken::kClass) one = {.kind = TK::kClass, .cls = base.cls};
    types.push_back(std::move(one));
  }
  return types.empty() ? Type{} : Either(std::move(types));
}

// Whether what stands before the point may be an object of a class below its type: self, and what
// it gives.
bool Typer::MayBeOfClassBelow(const Node* object) {
  while (object != nullptr && !object->is(K::k_identifier)) {
    const Node* next = object->at(F::k_object);
    if (next == nullptr) next = object->at(F::k_function);
    if (next == nullptr) next = object->at(F::k_value);
    if (next == nullptr && object->is(K::k_parenthesized_expression)) next = object->first_named();
    object = next;
  }
  return object == nullptr || object->text() == "super" || IsReceiver(object) ||
         ClassOfReceiver(object, object->text()) != nullptr;
}

// Whether several classes of the text have a method of this name.
bool Typer::Overridden(const Node* member) {
  const Node* name = member->at(F::k_attribute);
  if (name == nullptr) return true;
  const std::string& text = world_.program().tree->text();
  Work::Bytes(text.size());
  const std::string head = "def " + std::string(name->text());
  const size_t first = text.find(head);
  for (size_t at = first; at != std::string::npos; at = text.find(head, at + 1)) {
    const size_t end = at + head.size();
    if (at != first && (end == text.size() || !NameByte(text[end]))) return true;
  }
  return false;
}

namespace {

// A value that classes below often replace by another: kind = None, options = {}.
bool IsDefault(const Type& type) {
  if (type.is(TK::kNone)) return true;
  if (type.is(TK::kEither)) return std::ranges::any_of(type.args, IsDefault);
  return !type.is(TK::kInstance) ||
         (type.cls->module->stub && type.cls->module->name == "builtins");
}

}  // namespace

// The type of self.x of what the class assigns to it, all of it.
Type Typer::TypeOfOwnAttribute(Class& c, std::string_view name) {
  if (c.module != &world_.program() || c.dynamic) return {};
  const std::string key(name);
  const Changes& changes = world_.ChangesOf(world_.program());
  if (changes.given.contains(key)) return {};
  std::vector<Type> types;
  // What the bodies of the class and of those above it and below it say.
  const auto body = [&](Class& one) {
    const auto own = one.scope.names.find(key);
    if (!one.module->stub && one.scope.names.contains("__setattr__")) return false;
    if (own == one.scope.names.end()) return true;
    for (const Binding& binding : own->second) {
      if (binding.kind != Binding::Kind::kAssignment || one.module != &world_.program())
        return false;
      const Node* annotation = binding.node->at(F::k_type);
      Type type = annotation != nullptr ? world_.FromAnnotation(annotation, world_.program())
                                        : TypeOf(binding.node->at(F::k_right));
      if (!type.known() || world_.IsDescriptor(type)) return false;
      // No class below has the same self.__name.
      if (annotation == nullptr && !name.starts_with("__") && IsDefault(type)) return false;
      types.push_back(std::move(type));
    }
    return true;
  };
  bool good = true;
  world_.Walk({.kind = TK::kInstance, .cls = &c}, [&](Class& above, const Substitution& with) {
    (void)with;
    good = good && body(above);
    return !good;
  });
  if (!good) return {};
  // Every `.name` of the text that is assigned to.
  const Tree& tree = *world_.program().tree;
  const std::string& text = tree.text();
  const std::string needle = "." + key;
  Work::Bytes(text.size());
  for (size_t at = text.find(needle); at != std::string::npos; at = text.find(needle, at + 1)) {
    const size_t end = at + needle.size();
    if (end >= text.size() || NameByte(text[end])) continue;
    const Node* node = tree.Smallest(static_cast<uint32_t>(at + 1), static_cast<uint32_t>(end));
    if (node == nullptr || !node->is(K::k_identifier) || node->field != F::k_attribute) continue;
    const Node* attribute = node->parent;
    if (!Assigned(attribute)) continue;
    const Node* object = attribute->at(F::k_object);
    const Node* statement = attribute->parent;
    const bool inside = c.node->start <= attribute->start && attribute->end <= c.node->end;
    const bool self = object != nullptr && object->text() == "self";
    // Of another class's self, which may have a type that is known.
    if (self && !inside) {
      const Node* other = attribute->Enclosing(K::k_class_definition);
      if (other != nullptr && other != c.node) {
        Class* theirs = world_.ClassOf(other, world_.program());
        bool related = false;
        bool known =
            world_.Walk({.kind = TK::kInstance, .cls = theirs}, [&](Class& a, const Substitution&) {
              related = related || &a == &c;
              return related;
            });
        (void)known;
        if (!related) continue;
      }
    }
    if (statement == nullptr || !statement->is(K::k_assignment) || attribute->field != F::k_left ||
        !self) {
      return {};
    }
    const Node* right = statement->at(F::k_right);
    if (right == nullptr) return {};
    if (place_ && right->start <= place_->byte && place_->byte <= right->end) continue;
    types.push_back(TypeOf(right));
  }
  if (types.empty() || !BodiesBelow(c, key, body)) return {};
  return Either(std::move(types));
}

// What classes of the text say that derive from this one, where their bodies name the member.
bool Typer::BodiesBelow(Class& c, const std::string& name,
                        const std::function<bool(Class&)>& body) {
  const std::string& text = world_.program().tree->text();
  Work::Bytes(text.size());
  for (size_t at = text.find("class "); at != std::string::npos; at = text.find("class ", at + 1)) {
    const Node* node =
        world_.program().tree->Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(at + 5));
    if (node == nullptr || !node->is(K::k_class_definition) || node == c.node) continue;
    Class* other = world_.ClassOf(node, world_.program());
    if (!other->scope.names.contains(name)) continue;
    bool derived = false;
    world_.Walk({.kind = TK::kInstance, .cls = other}, [&](Class& a, const Substitution&) {
      derived = derived || &a == &c;
      return derived;
    });
    if (derived && !body(*other)) return false;
  }
  return true;
}

// Whether a class looks like one that is written for classes below it, which give self more than
// its text says: a mixin, a template, an interface.
bool Typer::MeantToBeDerivedFrom(const Class& c) const {
  for (const std::string_view word : {"ixin", "Base", "Abstract", "Interface", "Template",
                                      "Protocol", "Trait", "Generic", "base"}) {
    if (c.name.find(word) != std::string::npos) return true;
  }
  const std::string_view text = c.node->text();
  Work::Bytes(3 * text.size());
  if (text.find("raise NotImplementedError") != std::string_view::npos) return true;
  // What its first string says.
  const Node* body = c.node->at(F::k_body);
  const Node* first = body == nullptr ? nullptr : body->first_named();
  const std::string_view said = first == nullptr || !first->is(K::k_expression_statement)
                                    ? std::string_view{}
                                    : first->text();
  for (const std::string_view word :
       {"ubclasses", "abstract", "Abstract", "ixin", "must overrid"}) {
    if (said.find(word) != std::string_view::npos) return true;
  }
  if (c.is_abstract) return true;
  // It makes no objects by itself: no state, no class above.
  const bool state = c.scope.names.contains("__init__") || c.scope.names.contains("__new__") ||
                     c.node->parent->is(K::k_decorated_definition);
  const bool plain =
      std::ranges::all_of(c.bases, [](const Type& base) { return base.cls->name == "object"; });
  return plain && !state;
}

std::optional<Names> Typer::NamesOfReceiver(const Type& type, const Node* attribute) {
  if (!place_) return std::nullopt;
  Class& c = *type.cls;
  Names result;
  std::unordered_set<std::string> names;
  bool library = false;
  if (c.dynamic || !world_.MembersOf(type, names, library) || MeantToBeDerivedFrom(c))
    return std::nullopt;
  Module& program = world_.program();
  const Tree& tree = *program.tree;
  // A stub of the file itself.
  Module* twin = program.name == "__main__" ? nullptr : world_.Find(program.name);
  if (twin != nullptr && twin->stub && twin->scope.names.contains(c.name)) {
    for (const Binding& binding : twin->scope.names[c.name]) {
      if (binding.kind != Binding::Kind::kClass) continue;
      bool stubbed = false;
      world_.MembersOf({.kind = TK::kInstance, .cls = world_.ClassOf(binding.node, *twin)}, names,
                       stubbed);
    }
  }
  std::unordered_set<std::string> read;
  std::vector<const Node*> todo = {tree.root()};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
    // Classes that are derived from it may be what self is.
    if (node->is(K::k_class_definition) && node != c.node) {
      const Node* heads = node->at(F::k_superclasses);
      if (heads == nullptr) continue;
      Class* other = world_.ClassOf(node, program);
      bool derived = false;
      world_.Walk({.kind = TK::kInstance, .cls = other}, [&](Class& a, const Substitution&) {
        derived = derived || &a == &c;
        return derived;
      });
      if (derived && !world_.MembersOf({.kind = TK::kInstance, .cls = other}, names, library))
        return std::nullopt;
      continue;
    }
    // type("X", (Mixin, base), {})
    if (node->is(K::k_call) && MakesClassOf(node, c.name)) return std::nullopt;
    if (!node->is(K::k_attribute) || node == attribute) continue;
    const Node* object = node->at(F::k_object);
    const Node* name = node->at(F::k_attribute);
    if (object == nullptr || name == nullptr || name->text() == kPlaceName) continue;
    const bool own = c.node->start <= node->start && node->end <= c.node->end &&
                     object->is(K::k_identifier) &&
                     (object->text() == "self" || object->text() == "cls" ||
                      ClassOfReceiver(node, object->text()) == c.node);
    if (Assigned(node)) {
      if (own || object->text() != "self") names.emplace(name->text());
    } else if (own && node->Enclosing(K::k_class_definition) == c.node) {
      read.emplace(name->text());
    }
  }
  // And those of other files.
  const ClassesBelow& below = world_.Below(c);
  if (!below.all) return std::nullopt;
  for (Class* other : below.classes) {
    if (other->module == &program) continue;
    if (!world_.MembersOf({.kind = TK::kInstance, .cls = other}, names, library))
      return std::nullopt;
  }
  for (const std::string_view one : kOfAll) names.emplace(one);
  if (c.node->parent->is(K::k_decorated_definition) || c.bases.size() > 1) {
    for (const std::string_view one : kOfDecorated) names.emplace(one);
  }
  if (type.is(TK::kClass)) {
    const auto of_class = world_.NamesOf({.kind = TK::kClass, .cls = &c});
    if (!of_class) return std::nullopt;
    names.insert(of_class->begin(), of_class->end());
  }
  // A class that reads what it has not is meant to be mixed with one that has it.
  for (const std::string& one : read) {
    if (one.starts_with("__") && one.ends_with("__")) continue;
    if (!names.contains(one) && !(library && one.starts_with("_"))) return std::nullopt;
  }
  names.erase(std::string(kPlaceName));
  result.names.assign(names.begin(), names.end());
  std::sort(result.names.begin(), result.names.end());
  result.whole = !library;
  if (type.is(TK::kInstance)) {
    std::unordered_set<std::string> special;
    AddSpecial(false, special);
    for (const std::string& one : result.names) {
      if (special.contains(one)) result.hidden.push_back(one);
    }
  }
  return result;
}

// except A as e, except (A, B) as e
Type Typer::TypeOfCaught(const Node* pattern) {
  const Node* clause = pattern->Enclosing(K::k_except_clause);
  const Node* what = pattern->first_named();
  if (clause == nullptr || what == nullptr || clause->text().starts_with("except*")) return {};
  std::vector<const Node*> classes;
  if (what->is(K::k_tuple)) {
    for (const Node& kid : what->kids()) {
      if (kid.named && !kid.is(K::k_comment)) classes.push_back(&kid);
    }
  } else {
    classes.push_back(what);
  }
  std::vector<Type> types;
  for (const Node* one : classes) {
    Type of = TypeOf(one);
    if (of.is(TK::kInstance) && of.name == "alias") of.kind = TK::kClass;
    if (!of.is(TK::kClass)) return {};
    types.push_back({.kind = TK::kInstance, .cls = of.cls});
  }
  return Either(std::move(types));
}

// What a function without annotation returns, where every return is known.
Type Typer::Inferred(const Node* function) {
  if (unfinished_ && function->end > world_.cursor()) return {};
  if (!unfinished_ && !place_) return {};
  if (function->parent != nullptr && function->parent->is(K::k_decorated_definition)) return {};
  const std::string_view text = function->text();
  const Node* body = function->at(F::k_body);
  Work::Bytes(text.size());
  if (body == nullptr || function->at(F::k_return_type) != nullptr || text.starts_with("async") ||
      text.find("yield") != std::string_view::npos) {
    return {};
  }
  std::vector<Type> types;
  std::vector<const Node*> todo = {body};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_function_definition) || node->is(K::k_class_definition) ||
        node->is(K::k_lambda)) {
      continue;
    }
    if (node->is(K::k_return_statement)) {
      const Node* value = node->first_named();
      // A class that derives from this one returns itself: return self, return copy(self).
      if (value != nullptr && (value->text() == "self" || value->text() == "cls" ||
                               value->text().find("(self)") != std::string_view::npos)) {
        return {};
      }
      types.push_back(value == nullptr ? Type{.kind = TK::kNone} : TypeOf(value));
      if (!types.back().known() || types.size() > 20) return {};
      continue;
    }
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return types.empty() ? Type{} : Either(std::move(types));
}

// import a.b, from a.b import c: the modules of a package.
std::optional<Names> Typer::ModulesFor(const Node* name) {
  const Node* path = name->parent;
  const Node* statement = path->parent;
  while (statement != nullptr && !statement->is(K::k_import_statement) &&
         !statement->is(K::k_import_from_statement)) {
    if (!statement->is(K::k_relative_import) && !statement->is(K::k_aliased_import))
      return std::nullopt;
    statement = statement->parent;
  }
  if (statement == nullptr || GuardedAbove(statement, true)) return std::nullopt;
  std::string module;
  for (const Node& kid : path->kids()) {
    if (kid.start >= name->start) break;
    if (kid.is(K::k_identifier)) module += (module.empty() ? "" : ".") + std::string(kid.text());
  }
  int level = 0;
  if (path->parent->is(K::k_relative_import)) {
    const std::string_view text = path->parent->text();
    while (level < static_cast<int>(text.size()) && text[static_cast<size_t>(level)] == '.')
      ++level;
  }
  auto names = world_.SubmodulesOf(module, level);
  if (!names) return std::nullopt;
  return Names{.names = std::move(*names)};
}

}  // namespace pawl::monitors::python
