// The types of Java's expressions.
//
//   Typer typer(world);                      // of the world's program
//   Value value = typer.Evaluate(node);      // an expression, or the name of a type
//   auto names = typer.MemberNames(value, node);
//
// What is not followed is kUnknown. Where several overloads may be meant, the type is one of
// theirs.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_TYPER_H_
#define PAWL_PLUGINS_MONITORS_JAVA_TYPER_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plugins/monitors/java/symbol_table.h"

namespace pawl::monitors::java {

struct Value {
  Type type;
  bool names_type = false;  // `Map`, not an object
};

struct Candidate {
  const Member* method = nullptr;
  Class* in = nullptr;
  Substitution with;  // the class's type parameters
};

class Typer {
 public:
  explicit Typer(SymbolTable& world) : world_(world) {}

  Value Evaluate(const Node* node);
  Type TypeOf(const Node* node);
  // The names that may follow `value.` at the node, sorted; nullopt: not known.
  std::optional<std::vector<std::string>> MemberNames(const Value& value, const Node* at);
  // The methods or constructors that a call may mean; nullopt: not all are known.
  std::optional<std::vector<Candidate>> CandidatesOf(const Node* call);
  // Constants of the enum that is switched over, nullopt: none, or not known.
  std::optional<std::vector<std::string>> LabelsOf(const Node* label);
  // Fewest and most arguments of a method.
  static void Arity(const Member& method, size_t& least, size_t& most);
  // Whether nothing that is known declares a variable of the identifier's name.
  bool NoVariable(const Node* identifier);
  // What `Above.super` stands for in such an access or call.
  Value AboveOf(const Node* access);
  // Whether an access or a call is one of `Above.super.name`.
  static bool OfSuper(const Node* access);

 private:
  // --- names
  // `no_variable`: set when a name is not a variable's, for sure.
  Value Identifier(std::string_view name, const Node* at, bool* no_variable = nullptr);
  std::optional<Type> Local(std::string_view name, const Node* at);
  std::optional<Type> LocalOf(const Node* up, std::string_view name, const Node* below,
                              const Node* at);
  std::optional<Type> LocalOfBlock(const Node* block, std::string_view name, const Node* below);
  std::optional<Type> LocalOfResources(const Node* list, std::string_view name, const Node* at);
  std::optional<Type> LocalOfCatch(const Node* clause, std::string_view name);
  std::optional<Type> LocalOfLambda(const Node* lambda, std::string_view name);
  std::optional<Type> DeclaredBy(const Node& statement, std::string_view name);
  std::optional<Type> Parameter(const Node* list, std::string_view name);
  std::vector<Type> Patterns(std::string_view name, const Node* at);
  std::optional<Type> FieldOf(const Type& type, std::string_view name, bool& closed);
  Type DeclaratorType(const Node& declaration, const Node& declarator);
  Type ElementOf(const Type& type);
  Class* EnclosingClass(const Node* at);
  Type SelfType(const Node* at);

  // --- calls
  Type CallType(const Node* call);
  std::optional<std::vector<Candidate>> MethodsOf(const Type& type, std::string_view name);
  Type ResultOf(const Node* call, const Candidate& candidate, const Type& receiver);
  Type CallResult(const Node* call, std::vector<Candidate> candidates, const Type& receiver);
  std::vector<const Node*> ArgumentsOf(const Node* call) const;
  std::vector<Candidate> Fitting(const Node* call, const std::vector<Candidate>& candidates);
  SymbolTable::Answer Fits(const Node* argument, const Type& parameter, const Member& method);
  Type ParameterAt(const Candidate& candidate, size_t i, size_t count) const;
  void Infer(const Type& parameter, const Type& argument, const std::vector<std::string>& variables,
             Substitution& found, int depth);
  void InferFromFunction(const Node* argument, const Type& parameter,
                         const std::vector<std::string>& variables, Substitution& found);
  // The one method that a function type has to be implemented.
  std::optional<Candidate> FunctionOf(const Type& type);
  std::optional<Type> LambdaParameter(const Node* lambda, size_t which);
  Type TargetOf(const Node* lambda, size_t which);
  bool Unfinished(const Node* node) const;

  bool ImportedByStar(const std::string& type);
  Type Binary(const Node* node);
  Type Compute(const Node* node);
  void Visible(Class& c, const Node* at, bool only_static, std::vector<std::string>& names);

  SymbolTable& world_;
  std::unordered_map<const Node*, Value> known_;
  int depth_ = 0;
};

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_TYPER_H_
