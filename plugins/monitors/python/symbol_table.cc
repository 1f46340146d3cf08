// Modules and the types of what they declare. A module is read when it is first imported; its names
// are gathered from all its branches, since which of them runs depends on version and platform.
// What several declarations say of one name is taken together: any of them may hold.
#include "plugins/monitors/python/symbol_table.h"

#include <algorithm>
#include <array>

#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"
#include "src/base/file.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr int kMaxImportDepth = 40;
constexpr size_t kMaxModules = 600;
constexpr size_t kMaxSubmodules = 100'000;
constexpr size_t kMaxFileBytes = size_t{2} << 20;

// Modules whose stubs leave out names that the modules have.
bool Incomplete(std::string_view module) {
  return module.starts_with("_") || module.starts_with("distutils") || module == "tty" ||
         module == "pty" || module.find("._") != std::string_view::npos;
}

// Whether what stands behind `NAME =` in an Enum is a member of it for sure: no function, no
// nonmember(...).
bool MakesMember(const std::vector<Binding>& bindings) {
  return std::ranges::all_of(bindings, [](const Binding& binding) {
    if (binding.kind != Binding::Kind::kAssignment) return false;
    const Node* value = binding.node->at(F::k_right);
    if (value == nullptr || value->is(K::k_identifier) || value->is(K::k_lambda)) return false;
    if (!value->is(K::k_call)) return true;
    const Node* function = value->at(F::k_function);
    std::string_view name = function == nullptr ? "" : function->text();
    name = name.substr(name.rfind('.') + 1);
    return name == "auto" || name == "member";
  });
}

}  // namespace

Type Either(std::vector<Type> types) {
  Work::Step(1 + types.size());
  std::vector<Type> different;
  bool none = false;
  for (Type& type : types) {
    if (!type.known()) return {};
    if (type.is(TK::kNone)) {
      none = true;
      continue;
    }
    std::vector<Type> parts;
    if (type.is(TK::kEither)) {
      parts = std::move(type.args);
    } else {
      parts.push_back(std::move(type));
    }
    for (Type& part : parts) {
      if (std::find(different.begin(), different.end(), part) == different.end())
        different.push_back(std::move(part));
    }
  }
  constexpr size_t kMost = 16;
  if (different.size() > kMost) return {};
  if (different.empty()) return none ? Type{.kind = TK::kNone} : Type{};
  if (different.size() == 1) return std::move(different.front());
  return {.kind = TK::kEither, .args = std::move(different)};
}

Type Substitute(const Type& type, const Substitution& with, const Type& self) {
  const Work::Deeper deeper;
  Work::Step(2);
  if (type.is(TK::kVariable)) {
    for (const auto& [name, value] : with) {
      if (name == type.name) return Work::CountedCopy(value);
    }
    return {};
  }
  if (type.is(TK::kSelf)) return Work::CountedCopy(self);
  if (type.args.empty() || type.is(TK::kFunction)) return Work::CountedCopy(type);
  Type result = Work::CountedCopy(type);
  for (Type& arg : result.args) arg = Substitute(arg, with, self);
  for (Type& item : result.items) item = Substitute(item, with, self);
  if (type.is(TK::kEither)) return Either(std::move(result.args));
  return result;
}

std::string ModuleOfFile(const std::string& path) {
  std::string name = path;
  if (name.ends_with(".py")) name.resize(name.size() - 3);
  if (name.starts_with("src/")) name.erase(0, 4);
  if (name.ends_with("/__init__")) name.resize(name.size() - 9);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

void SymbolTable::SetProgram(std::unique_ptr<Tree> tree, const std::string& path, uint32_t cursor) {
  if (modules_.size() > kMaxModules) modules_.clear();
  if (hidden_.size() > kMaxModules) hidden_.clear();
  program_ = std::make_unique<Module>();
  program_->name = "__main__";
  program_->package = path.ends_with("/__init__.py") || path.ends_with("/__init__");
  const std::string name = ModuleOfFile(path);
  if (!name.empty()) program_->name = name;
  program_->tree = std::move(tree);
  cursor_ = cursor;
  in_sight_.reset();
  below_.clear();
  CollectBindings(program_->tree->root(), program_->scope);
}

void SymbolTable::Forget() noexcept {
  *program_ = Module{};
  in_sight_.reset();
  below_.clear();
  for (auto& [name, module] : modules_) {
    if (module == nullptr) continue;
    module->derived.reset();
    module->classes.clear();
  }
  handing_over_ = false;
  depth_ = 0;
}

void SymbolTable::ForgetRepository() {
  Forget();
  hidden_.clear();
  patches_.reset();
  std::erase_if(modules_, [](const auto& entry) {
    return entry.second == nullptr || entry.second->repository;
  });
}

void SymbolTable::AddSubmodules(Module& module, bool in_repository) const {
  std::vector<std::string> files;
  if (in_repository) {
    files = repository_->NamesIn(module.path, kMaxSubmodules);
  } else if (stubs_.empty()) {
    files = PackagedStubsIn(module.path);
  } else {
    files = SourceFolder(module.path).NamesIn(".", kMaxSubmodules);
  }
  for (const std::string& file : files) module.submodules.insert(file.substr(0, file.find('.')));
}

bool SymbolTable::IsLibrary() const {
  return repository_ && repository_->HasFile("abc.py") && repository_->HasFile("typing.py") &&
         repository_->HasFile("site.py");
}

std::unique_ptr<Module> SymbolTable::Load(const std::string& name) {
  std::string relative = name;
  std::replace(relative.begin(), relative.end(), '.', '/');
  struct Place {
    std::string folder;
    const char* ending;
    bool stubs = false;
  };
  std::vector<Place> places;
  // The library itself as a repository: its stubs tell more.
  const bool library = IsLibrary();
  if (repository_ && !library) places = {{"", ".py"}, {"src/", ".py"}, {"", ".pyi"}};
  places.push_back({stubs_.empty() ? "" : stubs_ + "/", ".pyi", true});
  const auto read = [&](const Place& place, const std::string& path) -> std::optional<std::string> {
    if (place.stubs && stubs_.empty()) return PackagedStub(path);
    auto text =
        place.stubs ? ReadRegularFile(path, kMaxFileBytes) : repository_->Read(path, kMaxFileBytes);
    if (!text.ok()) return std::nullopt;
    return *std::move(text);
  };
  const Work file(Work::Limits(), Work::Limits().file_steps);
  for (const Place& place : places) {
    for (const bool package : {true, false}) {
      const std::string base = place.folder + relative;
      auto text = read(place, package ? base + "/__init__" + place.ending : base + place.ending);
      if (!text) continue;
      auto module = std::make_unique<Module>();
      module->name = name;
      module->package = package;
      module->stub = std::string_view(place.ending) == ".pyi";
      module->repository = !place.stubs;
      if (package) module->path = base;
      Parser parser(Language::kPython);
      // A module may write names into itself, or become an object of another class.
      module->open = text->find("globals()") != std::string::npos ||
                     text->find("sys.modules[__name__]") != std::string::npos;
      try {
        module->tree = parser.Parse(std::move(*text));
        CollectBindings(module->tree->root(), module->scope);
        if (!module->stub && ChangesOf(*module).globals) module->open = true;
      } catch (const GaveUp&) {
        module->scope = {};
        module->changes = std::make_unique<Changes>();
        module->open = true;
        if (module->tree == nullptr) module->tree = parser.Parse("");
      }
      if (module->scope.names.contains("__getattr__")) module->open = true;
      if (module->stub && Incomplete(name)) module->open = true;
      if (!module->stub && module->tree->broken()) module->open = true;
      if (package) AddSubmodules(*module, !place.stubs);
      if (place.stubs) module->unlisted = UnlistedNames(name);
      return module;
    }
    // A folder without __init__ is a package too, of whatever is in it.
    if (!place.stubs && repository_->HasFolder(place.folder + relative)) return nullptr;
  }
  return nullptr;
}

Module* SymbolTable::Find(const std::string& name) {
  const auto found = modules_.find(name);
  if (found != modules_.end()) return found->second.get();
  auto loaded = Load(name);
  return (modules_[name] = std::move(loaded)).get();
}

// Whether a script of the folder of the importing script is called so: scripts/platform.py. Which
// of the two is meant depends on how the program is started. In packages it is the other one.
bool SymbolTable::HiddenByNeighbour(const std::string& module, const Module& from) const {
  const size_t dot = from.name.rfind('.');
  if (!repository_ || from.stub || from.package || dot == std::string::npos) return false;
  std::string folder = from.name.substr(0, dot + 1);
  std::replace(folder.begin(), folder.end(), '.', '/');
  const std::string path = folder + module.substr(0, module.find('.'));
  const auto known = hidden_.find(path);
  if (known != hidden_.end()) return known->second;
  bool hidden = false;
  for (const char* top : {"", "src/"}) {
    hidden = hidden || (repository_->HasFile(top + path + ".py") &&
                        !repository_->HasFile(top + folder + "__init__.py"));
  }
  return hidden_[path] = hidden;
}

std::string SymbolTable::Absolute(const Binding& import, const Module& from) const {
  if (import.level == 0) return HiddenByNeighbour(import.module, from) ? "" : import.module;
  std::string base = from.name;
  for (int up = import.level - (from.package ? 1 : 0); up > 0; --up) {
    const size_t dot = base.rfind('.');
    if (dot == std::string::npos) return up == 1 && base != "__main__" ? import.module : "";
    base.resize(dot);
  }
  if (base == "__main__") return "";
  return import.module.empty() ? base : base + "." + import.module;
}

Class* SymbolTable::Builtin(const char* name) {
  Module* builtins = Find("builtins");
  if (builtins == nullptr) return nullptr;
  const auto found = builtins->scope.names.find(name);
  if (found == builtins->scope.names.end()) return nullptr;
  for (const Binding& binding : found->second) {
    if (binding.kind == Binding::Kind::kClass) return ClassOf(binding.node, *builtins);
  }
  return nullptr;
}

Type SymbolTable::InstanceOf(const char* builtin, std::vector<Type> args) {
  Class* c = Builtin(builtin);
  if (c == nullptr) return {};
  return {.kind = TK::kInstance, .cls = c, .args = std::move(args)};
}

Type SymbolTable::TypeOfBindings(const std::vector<Binding>& bindings, Module& module, Class* in,
                                 int depth) {
  if (depth > kMaxImportDepth || bindings.empty()) return {};
  std::vector<Type> types;
  Type functions{.kind = TK::kFunction, .module = &module, .cls = in};
  for (const Binding& binding : bindings) {
    switch (binding.kind) {
      case Binding::Kind::kClass:
        types.push_back({.kind = TK::kClass, .cls = ClassOf(binding.node, module)});
        if (types.back().cls->replaced) return {};  // @singleton: it may be an object
        break;
      case Binding::Kind::kFunction:
        functions.functions.push_back(binding.node);
        break;
      case Binding::Kind::kImport: {
        const std::string from = Absolute(binding, module);
        if (from.empty()) return {};
        Module* target = Find(from);
        if (binding.member.empty()) {
          if (target == nullptr) return {};
          types.push_back({.kind = TK::kModule, .module = target});
          break;
        }
        Type type;
        // from . import path, in a package that has a name `path` made of it: the module is meant.
        Module* own = target == &module && module.submodules.contains(binding.member)
                          ? Find(from + "." + binding.member)
                          : nullptr;
        if (own != nullptr) {
          type = {.kind = TK::kModule, .module = own};
        } else if (target != nullptr && target->scope.names.contains(binding.member)) {
          type = MemberOfModule(*target, binding.member, depth + 1, false);
        } else if (Module* sub = Find(from + "." + binding.member)) {
          type = {.kind = TK::kModule, .module = sub};
        } else if (target != nullptr) {
          type = MemberOfModule(*target, binding.member, depth + 1, false);
        }
        if (!type.known()) return {};
        types.push_back(std::move(type));
        break;
      }
      case Binding::Kind::kAssignment: {
        const Node* annotation = binding.node->at(F::k_type);
        const Node* right = binding.node->at(F::k_right);
        if (annotation != nullptr && !annotation->text().ends_with("TypeAlias")) {
          Type type = FromAnnotation(annotation, module, depth + 1);
          if (!type.known()) return {};
          if (!module.stub) {
            Type value = Plainly(right, type, module);
            if (value.known()) types.push_back(std::move(value));
          }
          types.push_back(std::move(type));
          break;
        }
        if (right == nullptr) return {};
        const std::string_view text = right->text();
        if (text == "_Alias()" && module.name == "typing") {
          Type type = AliasOfTyping(binding.node->at(F::k_left)->text(), depth);
          if (!type.known()) return {};
          types.push_back(std::move(type));
          break;
        }
        if (text.starts_with("TypeVar(") || text.starts_with("typing.TypeVar(") ||
            text.starts_with("t.TypeVar(")) {
          types.push_back(
              {.kind = TK::kVariable, .name = std::string(binding.node->at(F::k_left)->text())});
          break;
        }
        if (!module.stub) {
          // In a module of the text's own: Path = Union[str, PathLike], Names = list[str], A = B.
          const bool alias = in == nullptr && bindings.size() == 1 &&
                             (right->is(K::k_identifier) || right->is(K::k_subscript) ||
                              right->is(K::k_binary_operator));
          if (!alias) return {};
        }
        // An alias: StrPath = str | PathLike[str], List = list.
        if (right->is(K::k_identifier) || right->is(K::k_attribute)) {
          const Type type =
              right->is(K::k_identifier)
                  ? (in != nullptr && in->scope.names.contains(std::string(text))
                         ? TypeOfBindings(in->scope.names[std::string(text)], module, in, depth + 1)
                         : MemberOfModule(module, text, depth + 1))
                  : Type{};
          if (!type.known()) return {};
          types.push_back(type);
          break;
        }
        Type type = FromAnnotation(right, module, depth + 1);
        if (!type.known()) return {};
        if (type.is(TK::kInstance)) type.name = "alias";
        types.push_back(std::move(type));
        break;
      }
      default:
        return {};
    }
  }
  if (!functions.functions.empty()) types.push_back(std::move(functions));
  return Either(std::move(types));
}

Type SymbolTable::MemberOfModule(Module& module, std::string_view name, int depth, bool builtins) {
  if (depth > kMaxImportDepth || module.name.starts_with("distutils")) return {};
  const auto found = module.scope.names.find(std::string(name));
  if (found != module.scope.names.end()) {
    const bool typed = std::ranges::all_of(found->second, [](const Binding& b) {
      return b.kind == Binding::Kind::kAssignment && b.node->at(F::k_type) != nullptr;
    });
    // A function of the module makes it another thing.
    if (!module.stub && !typed && ChangesOf(module).rebound.contains(std::string(name))) return {};
    return TypeOfBindings(found->second, module, nullptr, depth + 1);
  }
  if (!module.stub && ChangesOf(module).rebound.contains(std::string(name))) return {};
  if (module.unlisted.contains(std::string(name))) return {};
  if (module.submodules.contains(std::string(name))) {
    if (Module* sub = Find(module.name + "." + std::string(name)))
      return {.kind = TK::kModule, .module = sub};
  }
  for (const Binding& star : module.scope.stars) {
    Module* from = Find(Absolute(star, module));
    if (from == &module) continue;
    // It may be one of a module that is not known.
    if (from == nullptr) return {};
    Type type = MemberOfModule(*from, name, depth + 1, false);
    if (type.known()) return type;
    if (from->open || from->scope.names.contains(std::string(name))) return {};
  }
  if (builtins && module.name != "builtins") {
    if (Module* own = Find("builtins")) return MemberOfModule(*own, name, depth + 1);
  }
  return {};
}

namespace {

// What the variables of an object's class stand for.
Substitution VariablesOf(const Type& type) {
  Substitution with;
  const std::vector<std::string>& variables = type.cls->variables;
  for (size_t k = 0; k < variables.size(); ++k)
    with.emplace_back(variables[k], type.args.size() == variables.size() ? type.args[k] : Type{});
  return with;
}

}  // namespace

bool SymbolTable::Walk(const Type& type,
                       const std::function<bool(Class&, const Substitution&)>& visit) {
  if ((!type.is(TK::kInstance) && !type.is(TK::kClass)) || type.cls == nullptr) return false;
  // As Python orders them, for most classes: depth first, each where it comes last.
  constexpr size_t kMost = 400;
  std::vector<Type> order;
  std::vector<Type> todo = {type};
  bool closed = true;
  while (!todo.empty()) {
    Work::Step();
    const Type here = std::move(todo.back());
    todo.pop_back();
    if (here.cls == nullptr || order.size() > kMost) {
      closed = false;
      continue;
    }
    Class& c = *here.cls;
    ReadHead(c);
    order.push_back(here);
    if (c.bases.empty()) continue;
    const Substitution with = VariablesOf(here);
    for (auto base = c.bases.rbegin(); base != c.bases.rend(); ++base)
      todo.push_back(base->args.empty() ? *base : Substitute(*base, with, {}));
  }
  std::unordered_set<const Class*> seen;
  std::vector<const Type*> last;
  for (auto one = order.rbegin(); one != order.rend(); ++one) {
    if (seen.insert(one->cls).second) last.push_back(&*one);
  }
  for (auto one = last.rbegin(); one != last.rend(); ++one) {
    Class& c = *(*one)->cls;
    if (visit(c, VariablesOf(**one))) return closed;
    if (c.open) closed = false;
  }
  return closed;
}

std::vector<Type> SymbolTable::ArgumentsAs(const Type& type, std::string_view super) {
  std::vector<Type> args;
  if (!type.is(TK::kInstance)) return args;
  Walk(type, [&](Class& c, const Substitution& with) {
    if (c.name != super || !c.module->stub) return false;
    for (const auto& [name, value] : with) args.push_back(value);
    return true;
  });
  // What is no subclass of it may be one by its methods.
  if (args.empty() && super == "Iterable") {
    const Type iterator = Call(Attribute(type, "__iter__"), 0);
    Type element = Call(Attribute(iterator, "__next__"), 0);
    if (element.known()) args.push_back(std::move(element));
  }
  return args;
}

// Whether its methods assign to the member behind self, or it is one of which only the name is
// known.
bool SymbolTable::MayBeSet(Class& c, const std::string& name) {
  const auto& named = SetOnSelf(c);
  return (c.module->stub ? named : c.stored).contains(name);
}

Type SymbolTable::Attribute(const Type& type, std::string_view name, int depth) {
  if (depth > kMaxImportDepth) return {};
  if (type.is(TK::kModule)) return MemberOfModule(*type.module, name, depth + 1, false);
  if (type.is(TK::kEither)) {
    std::vector<Type> types;
    for (const Type& one : type.args) types.push_back(Attribute(one, name, depth + 1));
    return Either(std::move(types));
  }
  // Their callers are given what Python adds: the class, first.
  if (name == "__new__" || name == "__init_subclass__" || name == "__class_getitem__") return {};
  Type result;
  bool open = false;
  Walk(type, [&](Class& c, const Substitution& with) {
    const auto found = c.scope.names.find(std::string(name));
    if (found == c.scope.names.end()) {
      const bool set = MayBeSet(c, std::string(name));
      const auto annotation = c.self_annotations.find(std::string(name));
      if (!c.dynamic && annotation != c.self_annotations.end() && annotation->second != nullptr) {
        Type declared = FromAnnotation(annotation->second, *c.module);
        // self.pet: Animal = Dog()
        Type value = Plainly(annotation->second->parent->at(F::k_right), declared, *c.module);
        if (declared.known() && value.known()) declared = Either({std::move(value), declared});
        result = Substitute(declared, with, type);
        return true;
      }
      open = open || c.open || set;
      return open;
    }
    if (!c.module->stub) {
      // What a class of the text says in its body an object may have otherwise, but for a type.
      const bool typed = std::ranges::all_of(found->second, [](const Binding& b) {
        return b.kind == Binding::Kind::kAssignment && b.node->at(F::k_type) != nullptr;
      });
      if (!typed && MayBeSet(c, std::string(name))) return true;
      const bool plain = std::any_of(found->second.begin(), found->second.end(), [](const auto& b) {
        return b.kind == Binding::Kind::kAssignment && b.node->at(F::k_type) == nullptr;
      });
      if (plain) {
        if (Derives(c, "enum", "Enum") && !name.starts_with("_") && MakesMember(found->second))
          result = {.kind = TK::kInstance, .cls = &c};
        return true;
      }
    }
    Type of = TypeOfBindings(found->second, *c.module, &c, depth + 1);
    // A class in an Enum is a member of it, or not, by the version.
    if (of.is(TK::kClass) && !c.module->stub && Derives(c, "enum", "Enum")) return true;
    if (of.is(TK::kFunction)) {
      const Node* first = of.functions.front();
      if (Decorated(first, "property") || Decorated(first, "cached_property")) {
        const Node* returns = first->at(F::k_return_type);
        if (type.is(TK::kInstance) && returns != nullptr)
          result = Substitute(FromAnnotation(returns, *c.module), with, type);
        return true;
      }
      for (const Node* one : of.functions) {
        for (const std::string_view decorator : DecoratorsOf(one)) {
          if (!Harmless(decorator, *c.module)) return true;
        }
      }
      of.bound = !Decorated(first, "staticmethod") &&
                 (type.is(TK::kInstance) || Decorated(first, "classmethod"));
      of.args = {type};
      result = std::move(of);
      return true;
    }
    if (!IsDescriptor(of)) result = Substitute(of, with, type);
    return true;
  });
  return result;
}

bool SymbolTable::IsDescriptor(const Type& type) {
  if (type.is(TK::kEither))
    return std::ranges::any_of(type.args, [&](const Type& one) { return IsDescriptor(one); });
  if (!type.is(TK::kInstance)) return false;
  bool found = false;
  Walk(type, [&](Class& c, const Substitution& with) {
    (void)with;
    found = found || c.scope.names.contains("__get__") || c.name == "InitVar";
    return found;
  });
  return found;
}

std::optional<std::vector<std::string>> SymbolTable::SubmodulesOf(const std::string& module,
                                                                  int level) {
  const Binding import{.module = module, .level = level};
  const std::string name = Absolute(import, *program_);
  Module* found = name.empty() ? nullptr : Find(name);
  if (found == nullptr || !found->package || (found->stub && Incomplete(name))) return std::nullopt;
  // A package whose modules lie elsewhere.
  if (!found->stub) {
    for (const char* word : {"meta_path", "sys.modules", "__path__"}) {
      if (found->tree->text().find(word) != std::string::npos) return std::nullopt;
    }
  }
  std::vector<std::string> names(found->submodules.begin(), found->submodules.end());
  names.insert(names.end(), {"test", "tests", "__main__"});
  names.insert(names.end(), found->unlisted.begin(), found->unlisted.end());
  if (found->submodules.empty()) return std::nullopt;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// `import unittest.test` makes `test` a name of unittest, whether its stubs know it or not.
void SymbolTable::AddImported(const std::string& module, std::vector<std::string>& names) const {
  if (program_->tree == nullptr) return;
  const std::string_view text = program_->tree->text();
  Work::Bytes(text.size());
  const std::string wanted = "import " + module + ".";
  for (size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + 1)) {
    const size_t start = at + wanted.size();
    size_t end = start;
    while (end < text.size() && NameByte(text[end])) ++end;
    if (end > start) names.emplace_back(text.substr(start, end - start));
  }
}

std::optional<std::vector<std::string>> SymbolTable::NamesBehindStar(const Binding& star) {
  Module* from = Find(Absolute(star, *program_));
  if (from == nullptr || from == program_.get()) return std::nullopt;
  return NamesOf({.kind = TK::kModule, .module = from});
}

// The names of a module, and of those that it imports by "*". false: not all of them are known.
bool SymbolTable::AddNamesOfModule(Module& top, std::vector<std::string>& names) {
  std::vector<Module*> modules = {&top};
  for (size_t m = 0; m < modules.size(); ++m) {
    Module& module = *modules[m];
    if ((module.open && !(m > 0 && module.stub && !module.scope.names.contains("__getattr__"))) ||
        modules.size() > 50)
      return false;
    Work::Step(module.scope.names.size());
    for (const auto& [name, bindings] : module.scope.names) names.push_back(name);
    if (!module.stub) {
      const Changes& changes = ChangesOf(module);
      names.insert(names.end(), changes.rebound.begin(), changes.rebound.end());
      names.insert(names.end(), changes.given.begin(), changes.given.end());
    }
    names.insert(names.end(), module.submodules.begin(), module.submodules.end());
    names.insert(names.end(), module.unlisted.begin(), module.unlisted.end());
    AddImported(module.name, names);
    const size_t dot = module.name.rfind('.');
    const std::string last = dot == std::string::npos ? module.name : module.name.substr(dot + 1);
    if (const auto* more = PatchesOfRepository().Of(last))
      names.insert(names.end(), more->begin(), more->end());
    for (const Binding& star : module.scope.stars) {
      Module* from = Find(Absolute(star, module));
      if (from == nullptr) return false;
      if (std::find(modules.begin(), modules.end(), from) == modules.end()) modules.push_back(from);
    }
  }
  return true;
}

std::optional<std::vector<std::string>> SymbolTable::NamesOf(const Type& type) {
  std::vector<std::string> names;
  std::vector<Type> todo = {type};
  bool of_repository = false;
  for (size_t i = 0; i < todo.size() && i < 64; ++i) {
    const Type one = todo[i];
    if (one.is(TK::kEither)) {
      todo.insert(todo.end(), one.args.begin(), one.args.end());
    } else if (one.is(TK::kModule)) {
      if (!AddNamesOfModule(*one.module, names)) return std::nullopt;
    } else if (one.is(TK::kInstance) || one.is(TK::kClass)) {
      // An object of an abstract class is one of a class below that has more.
      ReadHead(*one.cls);
      if (one.is(TK::kInstance) && one.cls->is_abstract && one.cls->module->stub &&
          one.cls->module->name != "typing" && one.cls->module->name != "io") {
        return std::nullopt;
      }
      // Stubs say BinaryIO where some class of io is meant.
      if (one.is(TK::kInstance) && one.cls->module->name == "typing" &&
          (one.cls->name == "IO" || one.cls->name == "TextIO" || one.cls->name == "BinaryIO")) {
        for (const char* name : {"TextIOWrapper", "BufferedRandom", "BufferedReader",
                                 "BufferedWriter", "FileIO", "StringIO", "BytesIO"}) {
          Module* io = Find("io");
          Type stream = io == nullptr ? Type{} : MemberOfModule(*io, name);
          if (!stream.is(TK::kClass)) continue;
          stream.kind = TK::kInstance;
          todo.push_back(std::move(stream));
        }
      }
      std::vector<Class*> metas;
      const bool closed = Walk(one, [&](Class& c, const Substitution& with) {
        (void)with;
        Work::Step(c.scope.names.size());
        if (c.metaclass) metas.push_back(c.meta);
        for (const auto& [name, bindings] : c.scope.names) names.push_back(name);
        const auto& own = SetOnSelf(c);
        names.insert(names.end(), own.begin(), own.end());
        if (!c.module->stub) {
          // What its module gives it from outside.
          const Changes& changes = ChangesOf(*c.module);
          names.insert(names.end(), changes.set.begin(), changes.set.end());
          names.insert(names.end(), changes.given.begin(), changes.given.end());
        }
        if (!c.module->stub) {
          of_repository = true;
        } else if (const auto* more = PatchesOfRepository().Of(c.name)) {
          names.insert(names.end(), more->begin(), more->end());
        }
        return false;
      });
      if (!closed) return std::nullopt;
      of_repository = of_repository || (one.is(TK::kInstance) && !TakesNoAttributes(*one.cls));
      if (one.is(TK::kClass)) {
        // What its class has: mro and the like.
        for (Class* meta : metas) {
          if (meta == nullptr) return std::nullopt;
          Walk({.kind = TK::kInstance, .cls = meta}, [&](Class& c, const Substitution& with) {
            (void)with;
            for (const auto& [name, bindings] : c.scope.names) names.push_back(name);
            return false;
          });
        }
        names.emplace_back("register");  // of abstract base classes
        Class* of = Builtin("type");
        if (of == nullptr) return std::nullopt;
        for (const auto& [name, bindings] : of->scope.names) names.push_back(name);
      }
    } else {
      return std::nullopt;
    }
  }
  if (names.empty()) return std::nullopt;
  if (of_repository) {
    // Any file may give an object of its classes more: box.extra = 1.
    const Patches& patches = PatchesOfRepository();
    if (patches.many) return std::nullopt;
    names.insert(names.end(), patches.names.begin(), patches.names.end());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace pawl::monitors::python
