// The classes that derive from one. What is declared as an object of a class is often one of a
// class below it, of which a condition tells: `a.bark() if isinstance(a, Dog) else a.n`. The
// condition may stand behind the name, where it is not read yet.
#include <algorithm>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using TK = Type::Kind;

constexpr size_t kMostModulesInSight = 200;
constexpr size_t kMostClassesBelow = 400;

// The statements of a text that import, also those in functions.
std::vector<const Node*> ImportsOf(const Tree& tree) {
  std::vector<const Node*> found;
  const std::string_view text = tree.text();
  Work::Bytes(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
    const std::string_view code = line.substr(indent);
    if (code.starts_with("import ") || code.starts_with("from ")) {
      const auto start = static_cast<uint32_t>(at + indent);
      const Node* node = tree.Smallest(start, start + 4);
      while (node != nullptr && !node->is(K::k_import_statement) &&
             !node->is(K::k_import_from_statement)) {
        node = node->parent;
      }
      if (node != nullptr && node->start == start) found.push_back(node);
    }
    at = end + 1;
  }
  return found;
}

}  // namespace

const std::vector<Module*>& SymbolTable::InSight() {
  if (in_sight_) return *in_sight_;
  std::vector<Module*> modules;
  bool unknown = false;
  const auto add = [&](Module* module) {
    if (module == nullptr || module == program_.get() || modules.size() >= kMostModulesInSight ||
        std::ranges::find(modules, module) != modules.end()) {
      return;
    }
    modules.push_back(module);
  };
  if (program_->tree != nullptr) {
    for (const Node* statement : ImportsOf(*program_->tree)) {
      Scope scope;
      CollectBindings(statement, scope);
      std::vector<Binding> bindings = scope.stars;
      for (const auto& [name, own] : scope.names)
        bindings.insert(bindings.end(), own.begin(), own.end());
      for (const Binding& binding : bindings) {
        const std::string from = Absolute(binding, *program_);
        Module* module = from.empty() ? nullptr : Find(from);
        add(module);
        if (binding.member.empty()) {
          unknown = unknown || module == nullptr;
          continue;
        }
        Module* sub = from.empty() || (module != nullptr && !module->package)
                          ? nullptr
                          : Find(from + "." + binding.member);
        add(sub);
        unknown = unknown || (module == nullptr && sub == nullptr);
        if (module == nullptr || module->stub) continue;
        const Type type = MemberOfModule(*module, binding.member);
        if (type.is(TK::kClass)) add(type.cls->module);
      }
      // import a.b.c
      if (!statement->is(K::k_import_statement)) continue;
      for (const Node& kid : statement->kids()) {
        const Node* path = kid.is(K::k_aliased_import) ? kid.at(Field::k_name) : &kid;
        if (path != nullptr && path->is(K::k_dotted_name) &&
            path->text().find('.') != std::string::npos)
          add(Find(std::string(path->text())));
      }
    }
  }
  // A package gives what its modules declare.
  for (size_t i = 0; i < modules.size(); ++i) {
    Module& package = *modules[i];
    if (!package.package) continue;
    const size_t dot = package.name.find('.');
    const std::string root = package.name.substr(0, dot) + ".";
    const auto part = [&](const Binding& import) {
      const std::string name = Absolute(import, package);
      if (name.starts_with(root)) add(Find(name));
    };
    for (const Binding& star : package.scope.stars) part(star);
    for (const auto& [name, bindings] : package.scope.names) {
      for (const Binding& binding : bindings) {
        if (binding.kind == Binding::Kind::kImport) part(binding);
      }
    }
  }
  imports_unknown_ = unknown;
  in_sight_ = std::move(modules);
  return *in_sight_;
}

bool SymbolTable::ImportsUnknown() {
  (void)InSight();
  return imports_unknown_;
}

const std::unordered_map<const Class*, std::vector<Class*>>& SymbolTable::DerivedIn(
    Module& module) {
  if (module.derived != nullptr) return *module.derived;
  auto derived = std::make_unique<std::unordered_map<const Class*, std::vector<Class*>>>();
  const auto note = [&](const Node* node) {
    Class* c = ClassOf(node, module);
    ReadHead(*c);
    for (const Type& base : c->bases) {
      if (base.cls == nullptr || base.cls->name == "object") continue;
      std::vector<Class*>& into = (*derived)[base.cls];
      if (std::ranges::find(into, c) == into.end()) into.push_back(c);
    }
  };
  if (module.stub) {
    for (const auto& [name, bindings] : module.scope.names) {
      for (const Binding& binding : bindings) {
        if (binding.kind == Binding::Kind::kClass) note(binding.node);
      }
    }
  } else if (module.tree != nullptr) {
    // Also those in functions and in other classes.
    const std::string& text = module.tree->text();
    Work::Bytes(text.size());
    for (size_t at = text.find("class "); at != std::string::npos;
         at = text.find("class ", at + 1)) {
      const Node* node =
          module.tree->Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(at + 5));
      if (node != nullptr && node->is(K::k_class_definition)) note(node);
    }
  }
  module.derived = std::move(derived);
  return *module.derived;
}

// Adds the modules of the repository that derive from a class of that name; false: too many do.
bool SymbolTable::AddDerivedElsewhere(const std::string& name, std::vector<Module*>& modules) {
  const Patches& patches = PatchesOfRepository();
  const auto found = patches.derived.find(name);
  if (found == patches.derived.end()) return true;
  if (found->second.size() > Patches::kMostDerived) return false;
  std::vector<std::string> sorted(found->second.begin(), found->second.end());
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& one : sorted) {
    if (one == program_->name) continue;
    Module* module = Find(one);
    if (module != nullptr && std::ranges::find(modules, module) == modules.end())
      modules.push_back(module);
  }
  return modules.size() <= kMostModulesInSight;
}

const ClassesBelow& SymbolTable::Below(Class& c) {
  if (const auto found = below_.find(&c); found != below_.end()) return found->second;
  std::vector<Module*> modules = InSight();
  const auto add = [&](Module* module) {
    if (module != nullptr && std::ranges::find(modules, module) == modules.end())
      modules.push_back(module);
  };
  add(program_.get());
  add(c.module);
  if (c.module->stub) {
    // io and _io, typing and what is built in.
    const std::string& name = c.module->name;
    if (name == "typing") add(Find("builtins"));
    if (name.find('.') == std::string::npos)
      add(Find(name.starts_with("_") ? name.substr(1) : "_" + name));
  }
  ClassesBelow below;
  std::vector<Class*> todo = {&c};
  std::unordered_set<const Class*> seen = {&c};
  // Files of the repository know the text as it is on the disk.
  size_t own = 1;
  Module* disk = c.module == program_.get() && repository_ ? Find(program_->name) : nullptr;
  if (disk != nullptr && !disk->stub) {
    if (const auto twin = disk->scope.names.find(c.name); twin != disk->scope.names.end()) {
      for (const Binding& binding : twin->second) {
        if (binding.kind != Binding::Kind::kClass) continue;
        todo.push_back(ClassOf(binding.node, *disk));
        seen.insert(todo.back());
        ++own;
      }
    }
  }
  for (size_t i = 0; i < todo.size() && below.all; ++i) {
    below.all = c.module->stub || AddDerivedElsewhere(todo[i]->name, modules);
    for (Module* module : modules) {
      Work::Step();
      const auto& derived = DerivedIn(*module);
      const auto found = derived.find(todo[i]);
      if (found == derived.end()) continue;
      for (Class* one : found->second) {
        if (seen.insert(one).second) todo.push_back(one);
      }
    }
    below.all = below.all && todo.size() <= kMostClassesBelow;
  }
  below.classes.assign(todo.begin() + static_cast<ptrdiff_t>(own), todo.end());
  return below_.emplace(&c, std::move(below)).first->second;
}

}  // namespace pawl::monitors::python
