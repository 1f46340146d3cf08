// What a text does to names and members apart from declaring them: attributes that are set from
// outside of a class, by `setattr` or through `__dict__`, variables that `global` binds again,
// modules that are replaced.
#ifndef PAWL_PLUGINS_MONITORS_PYTHON_CHANGES_H_
#define PAWL_PLUGINS_MONITORS_PYTHON_CHANGES_H_

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "plugins/monitors/syntax.h"

namespace pawl::monitors::python {

struct Scope;

struct Changes {
  std::unordered_set<std::string> set;          // x.name = ..., of any object but self
  std::unordered_set<std::string> set_on_self;  // self.name = ..., in any class
  // setattr(x, "name", ...), x.__dict__["name"] = ...
  std::unordered_set<std::string> given;
  // Classes that get members by names that are computed, and whether an object does of which it is
  // not known what it is.
  std::unordered_set<const Node*> classes;
  bool all_classes = false;
  // Functions, and which of their parameters get members by names that are computed.
  std::unordered_map<const Node*, std::unordered_set<std::string>> computes;
  std::unordered_set<std::string> rebound;  // global name
  bool globals = false;                     // variables of the module, by names that are computed
  std::unordered_set<std::string> patched;  // setattr(module, name, ...)
  // mock.patch("module.name"): something else stands for it; `all_replaced`: it is not known what.
  std::unordered_set<std::string> replaced;
  bool all_replaced = false;
};

// `scope`: of the module whose text this is.
Changes ReadChanges(const Tree& tree, const Scope& scope);

// x.a = ..., for x.a in ..., with ... as x.a, (x.a, b) = ...
bool AssignedTo(const Node* node);

// The class whose method takes the name as its first parameter, where the node stands; nullptr:
// none does.
const Node* ClassOfReceiver(const Node* node, std::string_view name);

// Whether a function in this one binds the name by `nonlocal`.
bool BoundFromInside(const Node* function, std::string_view name);

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_CHANGES_H_
