// The types of Python's expressions at a place of a text, and what is wrong with a finished one.
#ifndef PAWL_PLUGINS_MONITORS_PYTHON_TYPER_H_
#define PAWL_PLUGINS_MONITORS_PYTHON_TYPER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plugins/monitors/monitor.h"
#include "plugins/monitors/python/symbol_table.h"

namespace pawl::monitors::python {

class Typer {
 public:
  // `unfinished`: the text goes on at the world's cursor.
  Typer(SymbolTable& world, bool unfinished) : world_(world), unfinished_(unfinished) {}

  Type TypeOf(const Node* node);
  // The names that may stand in an attribute; nullopt: not known.
  std::optional<std::vector<std::string>> NamesFor(const Node* attribute);
  // What is wrong with a call's arguments: how many there are, or a keyword's name.
  std::optional<Refusal> CallProblem(const Node* call, bool keywords);
  // All that is wrong with the finished text.
  std::vector<Refusal> Check();

 private:
  Type Compute(const Node* node);
  Type TypeOfString(const Node* node);
  Type TypeOfBinary(const Node* node);
  Type TypeOfSubscript(const Node* node);
  Type TypeOfCall(const Node* node);
  Type TypeOfName(const Node* name);
  Type Flow(const std::vector<Binding>& bindings, const Node* use, const Node* container);
  Type BindingType(const Binding& binding);
  Type Elements(const Type& type);
  const Scope& ScopeOf(const Node* function);
  bool Guarded(const Node* attribute, const Type& receiver);
  bool Assigned(const Node* attribute) const;
  bool MayBeBoundBehind(const Node* use);
  bool MayTakeGenerator(const Node* call);
  static bool TakesNoGenerator(const Type& type, bool printed);
  void CheckNames(std::vector<Refusal>& refusals);

  SymbolTable& world_;
  bool unfinished_;
  std::unordered_map<const Node*, Type> known_;
  std::unordered_map<const Node*, std::unique_ptr<Scope>> scopes_;
  int depth_ = 0;
};

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_TYPER_H_
