// The modules that a Python text can import: stubs of the standard library, modules of the
// repository; and the types that their annotations tell.
#ifndef PAWL_PLUGINS_MONITORS_PYTHON_SYMBOL_TABLE_H_
#define PAWL_PLUGINS_MONITORS_PYTHON_SYMBOL_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "plugins/monitors/python/changes.h"
#include "plugins/monitors/source_folder.h"
#include "plugins/monitors/syntax.h"

namespace pawl::monitors::python {

// Python's types, as far as stubs, annotations and simple assignments tell them, and the classes
// and modules that they come from. A type that is not known is kUnknown, and then nothing is
// refused.

struct Module;
struct Class;

struct Type {
  enum class Kind : uint8_t {
    kUnknown,
    kNone,
    kModule,    // module
    kClass,     // cls: the class itself
    kInstance,  // cls, args
    kFunction,  // nodes of one name: overloads; bound: without their first parameter
    kVariable,  // name, of a generic class
    kSelf,      // the type that a method was called on
    kEither     // one of args
  };
  Kind kind = Kind::kUnknown;
  Module* module = nullptr;  // of a function: where its annotations are read
  Class* cls = nullptr;      // of a function: the class that has it
  std::string name;
  std::vector<Type> args;   // of a method: what it was called on
  std::vector<Type> items;  // of a tuple: each of its elements; empty: how many is not known
  std::vector<const Node*> functions;
  bool bound = false;

  bool known() const { return kind != Kind::kUnknown; }
  bool is(Kind k) const { return kind == k; }
  friend bool operator==(const Type&, const Type&) = default;
};

using Substitution = std::vector<std::pair<std::string, Type>>;

// What binds a name in a scope.
struct Binding {
  enum class Kind : uint8_t {
    kAssignment,  // node: the assignment; value where it is a plain one
    kFunction,
    kClass,
    kImport,    // module, member
    kLoop,      // node: the for statement
    kWith,      // node: the item
    kExcept,    // node: the pattern, ValueError as e
    kUnpacked,  // node: the assignment or for statement; path: which element
    kParameter,
    kOther
  };
  Kind kind = Kind::kOther;
  const Node* node = nullptr;
  std::string module;     // of an import: from which
  std::string member;     // empty: the module itself
  int level = 0;          // of a relative import
  std::vector<int> path;  // of a name in (a, b) = ...: where it stands; -1: not known
};

struct Scope {
  std::unordered_map<std::string, std::vector<Binding>> names;
  std::vector<Binding> stars;                 // from x import *
  std::unordered_set<std::string> elsewhere;  // global and nonlocal
};

// Stands for the name at the cursor, which is not written yet.
inline constexpr std::string_view kPlaceName = "pawl_name__";

struct Class {
  std::string name;
  Module* module = nullptr;
  const Node* node = nullptr;
  Scope scope;
  bool open = false;        // its members are not all known
  bool dynamic = false;     // for another reason than that it is unfinished
  bool replaced = false;    // by what a decorator returns
  bool unfinished = false;  // the cursor is in it
  bool bases_known = true;
  bool metaclass = false;    // it has one: the class itself has more than `type` has
  Class* meta = nullptr;     // which one, of the library; nullptr: not known
  bool is_abstract = false;  // an object of it is one of a class below
  bool protocol = false;     // an object of it may be of any class
  bool head_read = false;
  std::vector<Type> bases;
  std::vector<std::string> variables;
  std::unordered_set<std::string> set_on_self;  // named behind self or cls, also only read
  std::unordered_set<std::string> stored;       // assigned to behind self or cls
  // self.x: T = ...; nullptr: of several annotations.
  std::unordered_map<std::string, const Node*> self_annotations;
  bool self_read = false;
};

struct Module {
  std::string name;
  std::string path;  // of a package: its folder
  bool stub = false;
  bool repository = false;  // it was read from there
  bool package = false;
  bool open = false;
  std::unique_ptr<Tree> tree;
  Scope scope;
  std::unordered_set<std::string> submodules;
  std::unordered_set<std::string> unlisted;  // names that it has and its stub leaves out
  // Of a stub: see Unoffered; nullptr: not looked at yet.
  std::unique_ptr<std::unordered_set<std::string>> unoffered;
  std::unordered_map<const Node*, std::unique_ptr<Class>> classes;
  std::unordered_map<std::string, std::unique_ptr<Tree>> quoted;  // of annotations that are strings
  std::unique_ptr<Changes> changes;                               // see ChangesOf
  std::unordered_map<const Node*, std::unique_ptr<Scope>> functions;  // see LocalScope
  // Its classes, by those that they derive from directly; nullptr: not looked at yet.
  std::unique_ptr<std::unordered_map<const Class*, std::vector<Class*>>> derived;
};

// What the files of a repository do to modules and classes of others.
struct Patches {
  std::unordered_set<std::string> names;  // x.name = ..., of any x but self
  // The same by the last name of what stands before the point.
  std::unordered_map<std::string, std::unordered_set<std::string>> of;
  // The modules in which classes derive from one of that name; more than kMostDerived: many.
  std::unordered_map<std::string, std::unordered_set<std::string>> derived;
  static constexpr size_t kMostDerived = 20;
  bool many = false;     // there are more names than are kept
  bool loggers = false;  // logging.setLoggerClass

  // What `of` says; nullptr: nothing.
  const std::unordered_set<std::string>* Of(const std::string& owner) const;
};

// What the texts assign to behind points, and what their classes derive from; `text`: of one file.
void ReadPatches(std::string_view text, const std::string& module, Patches& patches);
// The module of a file: "src/a/b.py" is a.b.
std::string ModuleOfFile(const std::string& path);

// The classes that derive from one, directly or not.
struct ClassesBelow {
  std::vector<Class*> classes;
  bool all = true;  // false: there are too many
};

Type Either(std::vector<Type> types);
Type Substitute(const Type& type, const Substitution& with, const Type& self);

// Names that a scope binds: a module's, a class's body, a function.
void CollectBindings(const Node* body, Scope& scope);

// `match [a]:` with one case below it is read as `match[a]: case[b]`, with an annotation on the
// next line. The node of the case; nullptr: the assignment is one.
const Node* MisreadCase(const Node* assignment);

// Decorators of a function or class, without "@"; whether it still is what it is written as behind
// one; whether it has one of that name.
std::vector<std::string_view> DecoratorsOf(const Node* definition);
bool HarmlessName(std::string_view decorator);
bool Decorated(const Node* definition, std::string_view with);

// Names that a module ("sys"), or a class ("builtins:dict"), had in another version (old_names.cc).
void AddOldNames(std::string_view owner, std::vector<std::string>& names);

// Whether objects take no attributes but those that the class has: str, list.
bool TakesNoAttributes(const Class& c);

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
  // Also the modules of the repository, whose files may have changed.
  void ForgetRepository();
  // nullptr: not known.
  Module* Find(const std::string& name);
  Class* ClassOf(const Node* node, Module& module);
  void ReadHead(Class& c);
  Class* Builtin(const char* name);
  Type InstanceOf(const char* builtin, std::vector<Type> args = {});

  // What an annotation in a module says; `in`: the class whose body it stands in.
  Type FromAnnotation(const Node* node, Module& module, int depth = 0);
  // What a name of a module stands for.
  // `builtins`: the name is read inside of it, where what is built in is known too.
  Type MemberOfModule(Module& module, std::string_view name, int depth = 0, bool builtins = true);
  Type TypeOfBindings(const std::vector<Binding>& bindings, Module& module, Class* in, int depth);
  // Classes from a type's own upwards; false: some of them are not known.
  bool Walk(const Type& type, const std::function<bool(Class&, const Substitution&)>& visit);
  // The type of an attribute; kUnknown: not known, or there is none.
  Type Attribute(const Type& type, std::string_view name, int depth = 0);
  // What a call of it returns. `count`: how many arguments, -1: not known.
  // `given`: the types of those that are given by position. `list`: all of them as they are
  // written, nullptr: not known.
  Type Call(const Type& callee, int count, const std::vector<Type>& given = {},
            const Node* list = nullptr);
  // What `await` makes of a call of it.
  Type Awaited(const Type& callee);
  // The names behind the point; nullopt: not known.
  std::optional<std::vector<std::string>> NamesOf(const Type& type);
  // Of these names those that no list proposes (offered.cc).
  void Unoffered(const Type& type, std::unordered_set<std::string>& names);
  // Those that `from x import *` binds, sorted; nullopt: not known.
  std::optional<std::vector<std::string>> NamesBehindStar(const Binding& star);
  // The names that an import may have behind `module.`; nullopt: not known.
  std::optional<std::vector<std::string>> SubmodulesOf(const std::string& module, int level);
  // What the class and those above it have, and what is assigned to behind self in them. false: not
  // all of it is known.
  bool MembersOf(const Type& type, std::unordered_set<std::string>& names, bool& library);
  // Whether the class derives from one of the library's.
  bool Derives(Class& c, std::string_view module, std::string_view name);
  const std::unordered_set<std::string>& SetOnSelf(Class& c);
  const Changes& ChangesOf(Module& module);
  // HarmlessName, and the name means what it says.
  bool Harmless(std::string_view decorator, Module& module);
  // Whether objects have attributes that Python asks what they are: __get__.
  bool IsDescriptor(const Type& type);
  // What a plain value of a declared variable is: literals, and calls of classes.
  Type Plainly(const Node* value, const Type& declared, Module& module);
  // The classes below one that can be named in the text: of its own module, of the text, and of the
  // modules that the text imports (classes_below.cc).
  const ClassesBelow& Below(Class& c);
  // Whether the text imports a module that is not found.
  bool ImportsUnknown();
  // Whether a module of the text gets members from elsewhere: by a call that it is an argument of,
  // or by a statement before `to` that calls a module that is not found.
  bool ModuleExtended(std::string_view name, uint32_t to);
  // What the files of the repository assign to; nothing where there is no repository.
  const Patches& PatchesOfRepository();
  // The type as seen as the class above it of that name in typing or builtins.
  std::vector<Type> ArgumentsAs(const Type& type, std::string_view super);

 private:
  bool IsLibrary() const;
  std::unique_ptr<Module> Load(const std::string& name);
  // What variables stand for, where a parameter of this type is given that.
  void Solve(const Type& parameter, const Type& given, Substitution& with, int depth = 0);
  void SolveCall(const Node* function, bool bound, Module& module, const std::vector<Type>& given,
                 Substitution& with);
  bool MayBeSet(Class& c, const std::string& name);
  // Whether a name is an argument of a call that may give its object members by computed names: of
  // a function of a module that is not found, or of one whose text does (handed_over.cc).
  bool HandedOver(Module& module, std::string_view name, size_t from, size_t to, int depth = 0);
  bool ClassHandedOver(Class& c);
  bool GivesMembers(Module& module, const Node* call, const Node* argument, int depth);
  bool FunctionGives(const Type& function, size_t position, std::string_view keyword, int depth);
  bool Called(Module& module, const Node* function, Type& callee, int depth);
  Type Made(Class& c, int count, const std::vector<Type>& given);
  std::string Absolute(const Binding& import, const Module& from) const;
  bool HiddenByNeighbour(const std::string& module, const Module& from) const;
  void AddSubmodules(Module& module, bool in_repository) const;
  bool AddNamesOfModule(Module& top, std::vector<std::string>& names);
  void AddImported(const std::string& module, std::vector<std::string>& names) const;
  Type NamedInAnnotation(const Node* head, Module& module, int depth);
  Type FromQuoted(const Node* text, Module& module, int depth);
  Type AliasOfTyping(std::string_view name, int depth);
  bool KeepsClass(std::string_view decorator, Module& module);
  bool MakesOther(Class& c);
  const Scope& LocalScope(const Node* function, Module& module);
  // The modules that the text imports, with those that their packages consist of.
  const std::vector<Module*>& InSight();
  bool AddDerivedElsewhere(const std::string& name, std::vector<Module*>& modules);
  const std::unordered_map<const Class*, std::vector<Class*>>& DerivedIn(Module& module);
  // The overloads that a call with these arguments may mean.
  std::vector<const Node*> Meant(const Type& callee, const Node* list);
  bool LiteralsOf(const Node* annotation, Module& module, std::vector<std::string>& values,
                  int depth = 0);
  Type Special(std::string_view name, const std::vector<const Node*>& args, Module& module,
               int depth);

  std::string stubs_;
  std::optional<SourceFolder> repository_;
  std::unique_ptr<Module> program_ = std::make_unique<Module>();
  uint32_t cursor_ = UINT32_MAX;
  std::unordered_map<std::string, std::unique_ptr<Module>> modules_;  // nullptr: not there
  // Of the program; see InSight and Below.
  std::optional<std::vector<Module*>> in_sight_;
  bool imports_unknown_ = false;
  std::unordered_map<const Class*, ClassesBelow> below_;
  std::optional<Patches> patches_;
  mutable std::unordered_map<std::string, bool> hidden_;  // see HiddenByNeighbour
  bool handing_over_ = false;                             // see ClassHandedOver
  int depth_ = 0;
};

// What Pawl brings along for Python: the stubs of the standard library (typeshed), and the names
// that its modules and classes have although their stubs leave them out.

// A stub by its path, such as "os/path.pyi"; nullopt: there is none.
std::optional<std::string> PackagedStub(std::string_view path);
// What a folder of stubs holds: names of files and of folders.
std::vector<std::string> PackagedStubsIn(std::string_view folder);
// Of a module ("http.server") or of a class in it ("turtle:ScrolledCanvas").
std::unordered_set<std::string> UnlistedNames(std::string_view owner);

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_SYMBOL_TABLE_H_
