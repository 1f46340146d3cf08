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

// A place in a text that goes on behind it, as in an editor.
struct WrittenPlace {
  uint32_t byte = 0;
  // Only brackets that close stand behind it on its line: an editor may have written them, and more
  // may come before them.
  bool line_open = false;
};

// The names that may stand in an attribute.
struct Names {
  std::vector<std::string> names;   // sorted
  bool whole = false;               // also those that begin with "_"
  std::vector<std::string> hidden;  // of `names`, sorted: those that no list proposes
  // What follows may make another name right: x.new = 1.
  bool only_written = false;
};

inline bool Inside(const Node* node, const Node* around) {
  return around->start <= node->start && node->end <= around->end;
}

// Whether the text expects the error where the node stands (guards.cc).
bool IsExpected(const Node* node, std::string_view error);

class Typer {
 public:
  // `unfinished`: the text goes on at the world's cursor.
  Typer(SymbolTable& world, bool unfinished) : world_(world), unfinished_(unfinished) {}
  // The text is whole but for a name at the place.
  Typer(SymbolTable& world, const WrittenPlace& place)
      : world_(world), unfinished_(false), place_(place) {}

  Type TypeOf(const Node* node);
  // The names that may stand in an attribute; nullopt: not known.
  std::optional<Names> NamesFor(const Node* attribute);
  // The same of `import a.b`, `from a.b import`: of a name in them.
  std::optional<Names> ModulesFor(const Node* name);
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
  static constexpr const char* kMaybeNamed = "maybe named";  // Type::name of a tuple
  Type MaybeNamed(Type type, const Type& callee);
  Type TypeOfName(const Node* name);
  Type OfComprehension(const Node& clause, const Node* left, std::string_view name);
  Type OfParameter(const Node* use, const std::string& name, const Node* function, const Node& p);
  Type Flow(const std::vector<Binding>& bindings, const Node* use, const Node* container);
  Type FlowOver(Type declared, const std::vector<Binding>& all, const Node* use,
                const Node* container);
  Type DeclaredBy(const std::vector<Binding>& all);
  bool ReboundByStar(const std::vector<Binding>& bindings, const std::string& name,
                     bool in_function);
  Type TypeOfMember(const Type& of, std::string_view name);
  bool Redirected() const;
  // Classes below the one that a type names (members_below.cc).
  Type WithOverrides(const Type& of, std::string_view name, Type type);
  bool AddBelow(const Node* object, const std::vector<Type>& parts,
                std::vector<std::string>& names);
  void AddHidden(const Node* object, const std::vector<Type>& parts, Names& result);
  void AddSpecial(bool all, std::unordered_set<std::string>& names);
  bool MayBeOther(const Node* attribute, const std::vector<Type>& parts);
  bool IsBare(const Class& c);
  bool IsManager(Class& c);
  bool IsShared(const Node* object, const Class& c);
  bool PatchedElsewhere(const Module& module, const std::string& name);
  bool MayBeOfClassBelow(const Node* object);
  bool Overridden(const Node* member);
  bool MeantToBeDerivedFrom(const Class& c) const;
  bool BodiesBelow(Class& c, const std::string& name, const std::function<bool(Class&)>& body);
  Type BindingType(const Binding& binding);
  Type Elements(const Type& type);
  Type TupleOf(const Node* node);
  // What the iteration over an expression gives.
  Type ElementsOf(const Node* node);
  Type ItemAt(const Type& type, const std::vector<int>& path);
  Type Inferred(const Node* function);
  const Scope& ScopeOf(const Node* function);
  bool Guarded(const Node* attribute, const Type& receiver);
  // How far the text is read for questions about an object: to the end of the expression around it.
  size_t AskedUntil(const Node* node) const;
  bool AskedByFunction(const std::string& name, size_t from, size_t to);
  bool ToldApart(const Node* object) const;
  bool Overlooked(const Node* attribute) const;
  bool GuardedAbove(const Node* node, bool module) const;
  bool AsksForVersion(const Node* condition) const;
  bool LeftByVersion(const Node* block, const Node* below) const;
  size_t ScopeStart(const Node* name);
  // self, cls and super() in a method, and what they have (receivers.cc).
  Type TypeOfReceiver(const Node* method, const Node* parameter);
  Type TypeOfSuper(const Node* call);
  Type TypeOfOwnAttribute(Class& c, std::string_view name);
  std::optional<Names> NamesOfReceiver(const Type& type, const Node* attribute);
  bool IsReceiver(const Node* object) const { return receivers_.contains(object); }
  Type TypeOfCaught(const Node* pattern);
  // What tests say of an object (guards.cc).
  Type TestedType(const Node* call);
  Type Narrowed(const Node* use, const std::string& name, const Node* container, uint32_t last);
  Type WithTests(const Node* object, const Type& type);
  std::vector<const Node*> FailedAt(const Node* use) const;
  bool IsOfNoneOf(const Node* use, const Type& type);
  enum class Target : uint8_t { kNo, kMayBe, kIs };
  Target TargetOf(const Node* attribute) const;
  bool Assigned(const Node* attribute) const { return TargetOf(attribute) != Target::kNo; }
  bool MayBeBoundBehind(const Node* use);
  bool MayBeRenamed(const Node* use, const std::string& name);
  bool MayTakeGenerator(const Node* call);
  bool TakesNoGenerator(const Type& type, bool printed);
  void CheckNames(std::vector<Refusal>& refusals);

  SymbolTable& world_;
  bool unfinished_;
  std::optional<WrittenPlace> place_;
  bool only_written_ = false;                  // see Names::only_written
  std::unordered_set<const Node*> receivers_;  // uses of self and cls
  std::unordered_map<const Node*, Type> known_;
  std::unordered_map<const Node*, std::unique_ptr<Scope>> scopes_;
  int depth_ = 0;
};

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_TYPER_H_
