// The modules that a Python text can import: stubs of the standard library, modules of the
// repository; and the types that their annotations tell.
#ifndef PAWL_PLUGINS_MONITORS_PYTHON_SYMBOL_TABLE_H_
#define PAWL_PLUGINS_MONITORS_PYTHON_SYMBOL_TABLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plugins/monitors/python/types.h"
#include "plugins/monitors/source_folder.h"

namespace pawl::monitors::python {

// Names that a scope binds: a module's, a class's body, a function.
void CollectBindings(const Node* body, Scope& scope);

// The arguments of list[int] or Dict[str, int].
std::vector<const Node*> TypeArguments(const Node* node);

class SymbolTable {
 public:
  // `stubs`: a folder with builtins.pyi, empty: those that Pawl brings. `repository`: a folder,
  // empty: none.
  SymbolTable(std::string stubs, const std::string& repository) : stubs_(std::move(stubs)) {
    if (!repository.empty()) repository_.emplace(repository);
  }

  // The text that is being written; `path` says where it is in the repository, empty: not known.
  void SetProgram(std::unique_ptr<Tree> tree, const std::string& path, uint32_t cursor);
  Module& program() { return *program_; }
  uint32_t cursor() const { return cursor_; }

  // Forgets the program, and what was found out about the classes of modules.
  void Forget() noexcept;
  // nullptr: not known.
  Module* Find(const std::string& name);
  Class* ClassOf(const Node* node, Module& module);
  void ReadHead(Class& c);
  Class* Builtin(const char* name);
  Type InstanceOf(const char* builtin, std::vector<Type> args = {});

  // What an annotation in a module says; `in`: the class whose body it stands in.
  Type FromAnnotation(const Node* node, Module& module, int depth = 0);
  // What a name of a module stands for.
  Type MemberOfModule(Module& module, std::string_view name, int depth = 0);
  Type TypeOfBindings(const std::vector<Binding>& bindings, Module& module, Class* in, int depth);
  // Classes from a type's own upwards; false: some of them are not known.
  bool Walk(const Type& type, const std::function<bool(Class&, const Substitution&)>& visit);
  // The type of an attribute; kUnknown: not known, or there is none.
  Type Attribute(const Type& type, std::string_view name, int depth = 0);
  // What a call of it returns. `count`: how many arguments, -1: not known.
  Type Call(const Type& callee, int count);
  // The names behind the point; nullopt: not known.
  std::optional<std::vector<std::string>> NamesOf(const Type& type);
  // The type as seen as the class above it of that name in typing or builtins.
  std::vector<Type> ArgumentsAs(const Type& type, std::string_view super);

 private:
  std::unique_ptr<Module> Load(const std::string& name);
  std::string Absolute(const Binding& import, const Module& from) const;
  void AddSubmodules(Module& module, bool in_repository) const;
  void AddImported(const std::string& module, std::vector<std::string>& names) const;
  Type Special(std::string_view name, const std::vector<const Node*>& args, Module& module,
               int depth);
  const std::unordered_set<std::string>& SetOnSelf(Class& c);

  std::string stubs_;
  std::optional<SourceFolder> repository_;
  std::unique_ptr<Module> program_ = std::make_unique<Module>();
  uint32_t cursor_ = UINT32_MAX;
  std::unordered_map<std::string, std::unique_ptr<Module>> modules_;  // nullptr: not there
  int depth_ = 0;
};

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_SYMBOL_TABLE_H_
