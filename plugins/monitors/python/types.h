// Python's types, as far as stubs, annotations and simple assignments tell them, and the classes
// and modules that they come from.
//
// A type that is not known is kUnknown, and then nothing is refused.
#ifndef PAWL_PLUGINS_MONITORS_PYTHON_TYPES_H_
#define PAWL_PLUGINS_MONITORS_PYTHON_TYPES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "plugins/monitors/syntax.h"

namespace pawl::monitors::python {

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
  std::vector<Type> args;  // of a method: what it was called on
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
    kImport,  // module, member
    kLoop,    // node: the for statement
    kWith,    // node: the item
    kParameter,
    kOther
  };
  Kind kind = Kind::kOther;
  const Node* node = nullptr;
  std::string module;  // of an import: from which
  std::string member;  // empty: the module itself
  int level = 0;       // of a relative import
};

struct Scope {
  std::unordered_map<std::string, std::vector<Binding>> names;
  std::vector<Binding> stars;                 // from x import *
  std::unordered_set<std::string> elsewhere;  // global and nonlocal
};

struct Class {
  std::string name;
  Module* module = nullptr;
  const Node* node = nullptr;
  Scope scope;
  bool open = false;
  bool unfinished = false;
  bool metaclass = false;    // it has one: the class itself has more than `type` has
  bool is_abstract = false;  // an object of it is one of a class below
  bool head_read = false;
  std::vector<Type> bases;
  std::vector<std::string> variables;
  std::unordered_set<std::string> set_on_self;
  bool self_read = false;
};

struct Module {
  std::string name;
  std::string path;  // of a package: its folder
  bool stub = false;
  bool package = false;
  bool open = false;
  std::unique_ptr<Tree> tree;
  Scope scope;
  std::unordered_set<std::string> submodules;
  std::unordered_set<std::string> unlisted;  // names that it has and its stub leaves out
  std::unordered_map<const Node*, std::unique_ptr<Class>> classes;
};

Type Either(std::vector<Type> types);
Type Substitute(const Type& type, const Substitution& with, const Type& self);

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_TYPES_H_
