// What an object may have besides what the class says that is declared for it: what the classes
// have that derive from this one. `date` is declared, and `d.hour if isinstance(d, datetime) else
// 0` is right, with the condition behind the name.
#include <algorithm>
#include <array>

#include "plugins/monitors/python/typer.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

// Of these a class below counts only where the text itself has it.
bool IsBuiltIn(const Class& c) {
  static constexpr std::array<std::string_view, 12> kPlain = {
      "str",  "int", "float", "bool",      "complex", "bytes",
      "list", "set", "tuple", "frozenset", "dict",    "bytearray"};
  return c.module->stub && c.module->name == "builtins" &&
         std::ranges::find(kPlain, c.name) != kPlain.end();
}

// super(): what the classes above have.
bool IsSuper(const Node* object) {
  return object != nullptr && object->is(K::k_call) && object->at(F::k_function) != nullptr &&
         object->at(F::k_function)->text() == "super";
}

// "text", [1, 2]: of exactly this class.
bool IsDisplay(const Node* object) {
  while (object != nullptr && object->is(K::k_parenthesized_expression))
    object = object->first_named();
  if (object == nullptr) return false;
  switch (object->kind) {
    case K::k_string:
    case K::k_concatenated_string:
    case K::k_integer:
    case K::k_float:
    case K::k_list:
    case K::k_set:
    case K::k_tuple:
    case K::k_dictionary:
    case K::k_list_comprehension:
    case K::k_set_comprehension:
    case K::k_dictionary_comprehension:
      return true;
    default:
      return false;
  }
}

std::vector<std::string_view> AlsoGiven(std::string_view built_in) {
  if (built_in == "float") return {"int"};
  if (built_in == "complex") return {"float", "int"};
  if (built_in == "bytes") return {"bytearray", "memoryview"};
  return {};
}

// A of A.make, and module.A of module.A.make: the class itself.
bool NamesTheClass(const Node* object, const Class& c) {
  const std::string_view text = object->text();
  return text == c.name || (text.ends_with(c.name) && text[text.size() - c.name.size() - 1] == '.');
}

// Classes whose objects get members as the program runs: the fields of a log record.
bool IsBag(const Class& c) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kBags = {
      {{"builtins", "object"},
       {"builtins", "BaseException"},
       {"builtins", "Exception"},
       {"logging", "LogRecord"},
       {"types", "SimpleNamespace"},
       {"types", "ModuleType"},
       {"types", "FunctionType"},
       {"argparse", "Namespace"}}};
  return std::ranges::any_of(
      kBags, [&](const auto& one) { return one.first == c.module->name && one.second == c.name; });
}

}  // namespace

// object, BaseException, and class Bag: pass: of such an object more is meant than is written.
bool Typer::IsBare(const Class& c) {
  if (!c.module->stub) return c.scope.names.empty() && c.bases.size() < 2;
  if (IsBag(c)) return true;
  const std::string& text = world_.program().tree->text();
  // ConfigParser(converters={"list": ...}) makes getlist().
  if (c.module->name == "configparser") return text.find("converters") != std::string::npos;
  return c.module->name == "logging" && c.name == "Logger" && world_.PatchesOfRepository().loggers;
}

// self.server: an object of the library that a class above has. Who makes it may give it members
// further down.
bool Typer::IsShared(const Node* object, const Class& c) {
  if (!c.module->stub || TakesNoAttributes(c) || !object->is(K::k_attribute)) return false;
  const Node* self = object->at(F::k_object);
  const Node* name = object->at(F::k_attribute);
  if (self == nullptr || name == nullptr || !self->is(K::k_identifier)) return false;
  const Node* around = ClassOfReceiver(object, self->text());
  if (around == nullptr) return false;
  Class& own = *world_.ClassOf(around, world_.program());
  const std::string key(name->text());
  return !own.scope.names.contains(key) &&
         (!world_.SetOnSelf(own).contains(key) || !own.stored.contains(key));
}

// Queues.register("get") gives a class of managers a method, here or in another file.
bool Typer::IsManager(Class& c) {
  if (c.module->stub && world_.program().tree->text().find(".register(") == std::string::npos)
    return false;
  return world_.Derives(c, "multiprocessing.managers", "BaseManager");
}

// Whether an object may be one of a class that cannot be seen here.
bool Typer::MayBeOther(const Node* attribute, const std::vector<Type>& parts) {
  if (IsSuper(attribute->at(F::k_object))) return false;
  const bool goes_on = unfinished_ || (place_ && place_->line_open);
  const bool later = unfinished_ && (attribute->Enclosing(K::k_function_definition) != nullptr ||
                                     attribute->Enclosing(K::k_lambda) != nullptr);
  for (const Type& part : parts) {
    // map_imperatively(User, table), further down.
    if (later && part.is(TK::kClass) && part.cls->module == &world_.program() &&
        world_.ImportsUnknown() && !world_.Derives(*part.cls, "enum", "Enum")) {
      return true;
    }
    if ((part.is(TK::kInstance) || part.is(TK::kClass)) && part.cls != nullptr &&
        IsManager(*part.cls)) {
      return true;
    }
    if (!part.is(TK::kInstance)) continue;
    Class& c = *part.cls;
    world_.ReadHead(c);
    if (part.name == kMaybeNamed) return true;
    if (IsBare(c) || (later && IsShared(attribute->at(F::k_object), c))) return true;
    // x.name if isinstance(x, A) else ...: what an abstract class stands for may be anything.
    const bool stream = c.name == "IO" || c.name == "TextIO" || c.name == "BinaryIO";
    const bool any =
        c.protocol || (c.module->stub && c.module->name == "typing" && !stream && c.is_abstract);
    if (goes_on && any) return true;
    // A class below it may be declared further down, if the function runs later.
    if (later && c.module == &world_.program() && !world_.Derives(c, "enum", "Enum")) return true;
  }
  return false;
}

// The names of the classes below those that an object is of. false: not all of them are known.
bool Typer::AddBelow(const Node* object, const std::vector<Type>& parts,
                     std::vector<std::string>& names) {
  if (IsDisplay(object) || IsSuper(object)) return true;
  for (const Type& part : parts) {
    if ((!part.is(TK::kInstance) && !part.is(TK::kClass)) || part.cls == nullptr) continue;
    if (part.is(TK::kClass) && NamesTheClass(object, *part.cls)) continue;
    Class& c = *part.cls;
    if (world_.ImportsUnknown() && world_.Derives(c, "builtins", "BaseException")) return false;
    const bool built_in = IsBuiltIn(c);
    // float is said where an int may be given, bytes where a bytearray may.
    if (built_in) {
      for (const std::string_view other : AlsoGiven(c.name)) {
        const auto more = world_.NamesOf(world_.InstanceOf(std::string(other).c_str()));
        if (more) names.insert(names.end(), more->begin(), more->end());
      }
    }
    const ClassesBelow& below = world_.Below(c);
    if (!below.all) return false;
    for (Class* one : below.classes) {
      Work::Step(1 + one->scope.names.size());
      const bool passed = built_in && (one->module != &world_.program() || !one->dynamic);
      if (one->open || !one->bases_known) {
        if (passed) continue;
        return false;
      }
      for (const auto& [name, bindings] : one->scope.names) names.push_back(name);
      const auto& set = world_.SetOnSelf(*one);
      names.insert(names.end(), set.begin(), set.end());
      if (!one->module->stub) {
        const Changes& changes = world_.ChangesOf(*one->module);
        names.insert(names.end(), changes.set.begin(), changes.set.end());
        names.insert(names.end(), changes.given.begin(), changes.given.end());
      }
      if (one->bases.size() <= 2) continue;
      const auto mixed = world_.NamesOf({.kind = TK::kInstance, .cls = one});
      if (!mixed && !passed) return false;
      if (mixed) names.insert(names.end(), mixed->begin(), mixed->end());
    }
  }
  return true;
}

// What every object has: __init_subclass__, __eq__. `all`: also what methods read, __class__.
void Typer::AddSpecial(bool all, std::unordered_set<std::string>& names) {
  static constexpr std::array<std::string_view, 2> kRead = {"__class__", "__dict__"};
  const Class* object = world_.Builtin("object");
  if (object == nullptr) return;
  for (const auto& [name, bindings] : object->scope.names) {
    if (all || std::ranges::find(kRead, name) == kRead.end()) names.insert(name);
  }
}

// Sorts the names, and adds those that may stand there and that no list proposes: of a class of the
// text that the object may also be of, x.dive() if isinstance(x, Swims) else ..., and of other
// versions of the library.
void Typer::AddHidden(const Node* object, const std::vector<Type>& parts, Names& result) {
  std::unordered_set<std::string> unoffered;
  std::vector<std::string> more;
  const bool goes_on = unfinished_ || (place_ && place_->line_open);
  Module& program = world_.program();
  for (const Type& part : parts) {
    world_.Unoffered(part, unoffered);
    if (!goes_on) continue;
    if (part.is(TK::kModule)) {
      AddOldNames(part.module->name, more);
      continue;
    }
    world_.Walk(part, [&](Class& c, const Substitution& with) {
      (void)with;
      if (c.module->stub) AddOldNames(c.module->name + ":" + c.name, more);
      return false;
    });
    if (!part.is(TK::kInstance) || TakesNoAttributes(*part.cls)) continue;
    for (const auto& [name, bindings] : program.scope.names) {
      Work::Step();
      for (const Binding& binding : bindings) {
        if (binding.kind != Binding::Kind::kClass) continue;
        Class& other = *world_.ClassOf(binding.node, program);
        for (const auto& [member, of] : other.scope.names) more.push_back(member);
        const auto& set = world_.SetOnSelf(other);
        more.insert(more.end(), set.begin(), set.end());
      }
    }
  }
  if (!IsSuper(object) &&
      std::ranges::all_of(parts, [](const Type& one) { return one.is(TK::kInstance); })) {
    AddSpecial(result.only_written, unoffered);
  }
  std::vector<std::string>& names = result.names;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::erase_if(more, [&](const std::string& name) {
    return name == kPlaceName || std::ranges::binary_search(names, name);
  });
  std::sort(more.begin(), more.end());
  more.erase(std::unique(more.begin(), more.end()), more.end());
  for (const std::string& name : unoffered) {
    if (std::ranges::binary_search(names, name)) result.hidden.push_back(name);
  }
  result.hidden.insert(result.hidden.end(), more.begin(), more.end());
  std::sort(result.hidden.begin(), result.hidden.end());
  const auto middle = static_cast<std::ptrdiff_t>(names.size());
  names.insert(names.end(), more.begin(), more.end());
  std::inplace_merge(names.begin(), names.begin() + middle, names.end());
}

// The type of a member, and what classes below declare it as.
Type Typer::WithOverrides(const Type& of, std::string_view name, Type type) {
  if (!type.known() || !of.is(TK::kInstance) || IsBuiltIn(*of.cls)) return type;
  const ClassesBelow& below = world_.Below(*of.cls);
  if (below.classes.empty()) return type;
  if (!below.all) return {};
  const std::string key(name);
  std::vector<Type> types = {std::move(type)};
  for (Class* one : below.classes) {
    Work::Step();
    (void)world_.SetOnSelf(*one);
    if (!one->scope.names.contains(key) && !one->stored.contains(key)) continue;
    Type own = world_.Attribute({.kind = TK::kInstance, .cls = one}, name);
    if (!own.known()) return {};
    types.push_back(std::move(own));
  }
  return Either(std::move(types));
}

// Whether another file of the repository assigns to the member of a module.
bool Typer::PatchedElsewhere(const Module& module, const std::string& name) {
  const size_t dot = module.name.rfind('.');
  const auto* set = world_.PatchesOfRepository().Of(
      dot == std::string::npos ? module.name : module.name.substr(dot + 1));
  return set != nullptr && set->contains(name);
}

}  // namespace pawl::monitors::python
