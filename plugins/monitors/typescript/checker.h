// What TypeScript's checker would say about the nodes of a tree, as far as it is followed: types of
// expressions, the members of a type, the scopes, which types fit where.
//
//   Checker checker(library_text);
//   checker.SetProgram(parser.Parse(text));
//   TypeRef type = checker.TypeOf(node);
//
// Answers about an unfinished text hold for every way to finish it: what a later byte could change
// is open. Nothing here reports errors; check.h does. Thread safety: one thread at a time.
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_CHECKER_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_CHECKER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plugins/monitors/syntax.h"
#include "plugins/monitors/typescript/module_files.h"
#include "plugins/monitors/typescript/types.h"

namespace pawl::monitors::ts {

// Short names of kinds and fields, and what several sources of the checker ask of a node.

using K = Kind;
using F = Field;

// Counts the calls of a function in each other.
class Nested {
 public:
  explicit Nested(int& depth) : depth_(depth) { ++depth_; }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int& depth_;
};

inline bool IsFunction(const Node* node) {
  switch (node->kind) {
    case K::k_arrow_function:
    case K::k_function_expression:
    case K::k_function_declaration:
    case K::k_generator_function:
    case K::k_generator_function_declaration:
    case K::k_method_definition:
      return true;
    default:
      return false;
  }
}

inline bool Async(const Node* function) {
  for (const Node& kid : function->kids()) {
    if (!kid.named && kid.text() == "async") return true;
    if (kid.field == F::k_parameters || kid.field == F::k_name) break;
  }
  return false;
}

inline bool HasWord(const Node* node, std::string_view word) {
  for (const Node& kid : node->kids()) {
    if (kid.field == F::k_name || kid.field == F::k_body || kid.field == F::k_parameters) break;
    if (kid.text() == word) return true;
  }
  return false;
}

inline bool HasQuestionMark(const Node* node) {
  bool after = false;
  for (const Node& kid : node->kids()) {
    if (kid.field == F::k_name) after = true;
    if (after && !kid.named && kid.text() == "?") return true;
  }
  return false;
}

// The names that a declaration or a statement with one declares.
void DeclaredNames(const Node* declaration, std::vector<std::string_view>& names);

enum class Fits : uint8_t { kNo, kYes, kMaybe };

class Checker {
 public:
  // The declarations of the standard library, as one text.
  explicit Checker(std::string library);
  // The same, of a tree that other checkers have used, one at a time.
  explicit Checker(std::shared_ptr<Tree> library);
  static std::shared_ptr<Tree> ReadLibrary(std::string library);
  ~Checker();

  // `cursor`: where the text goes on; what encloses it is unfinished. Its end: the text is
  // finished.
  void SetProgram(std::unique_ptr<Tree> tree, uint32_t cursor);
  const Tree* tree() const { return tree_.get(); }
  TypePool& pool() { return pool_; }
  bool Unfinished(const Node* node) const {
    return node->tree == tree_.get() && node->start <= cursor_ && cursor_ <= node->end &&
           !finished_;
  }

  // Where imports are looked for, and the path of the program there. nullptr: imports are open.
  void SetModules(ModuleFiles* files, const std::string& path) {
    files_ = files;
    path_ = path;
  }
  // What an import stands for, through files that export it again; nullptr: not known.
  Symbol* Target(Symbol* import);

  // --- names
  // What `name` stands for at `node`, as a value or as a type; nullptr: not declared.
  Symbol* Resolve(std::string_view name, const Node* node, uint32_t meaning);
  Symbol* Global(std::string_view name);
  // Whether a file of the repository that no import leads to may declare the name for all files.
  bool Shared(std::string_view name) const { return shared_.contains(std::string(name)); }
  const std::unordered_set<std::string>& shared() const { return shared_; }
  // All names that stand for something at the node.
  void NamesAt(const Node* node, uint32_t meaning, std::vector<std::string>& names);

  // --- types
  TypeRef TypeOf(const Node* expression);
  TypeRef TypeOfSymbol(Symbol* symbol);
  TypeRef TypeFromNode(const Node* node);
  TypeRef DeclaredType(Symbol* symbol, std::vector<TypeRef> args);
  TypeRef TypeOfPattern(const Node* name);
  TypeRef TypeOfParameter(const Node* parameter);
  TypeRef ContextualType(const Node* expression);
  TypeRef Instantiate(TypeRef type, const Mapper& mapper);
  const Signature* Instantiate(const Signature* signature, const Mapper& mapper);
  TypeRef ResultOf(const Signature* signature);
  TypeRef ReturnTypeFromBody(const Node* function);
  bool EndReachable(const Node* statement);
  bool BodyEndReachable(const Node* body);

  // --- members
  // The member of the type; nullopt: no such member. Its type is open when nothing is known of it.
  std::optional<Property> Member(TypeRef type, std::string_view name);
  TypeRef TypeOfProperty(const Property& property);
  // The names of all members; nullopt: not known, anything may be one.
  std::optional<std::vector<std::string>> Members(TypeRef type, const Node* at);
  const Shape* ShapeOf(TypeRef type);
  std::vector<const Signature*> CallSignatures(TypeRef type, bool construct);
  TypeRef ElementType(TypeRef type, TypeRef index);
  TypeRef IterationType(TypeRef type);
  // Base classes and interfaces with the arguments of `type`.
  std::vector<TypeRef> BasesOf(TypeRef type);
  // Whether a reference to a user's declaration has members that are not written yet, or not known.
  bool OpenSymbol(Symbol* symbol);

  // --- relations
  Fits Assignable(TypeRef from, TypeRef to);
  Fits Comparable(TypeRef a, TypeRef b);

  // --- calls
  struct Call {
    const Signature* signature = nullptr;  // instantiated; nullptr: none fits, or not known
    bool open = true;                      // not known
    bool bad_count = false;                // no overload takes so many arguments
    const Node* bad_argument = nullptr;
  };
  const Call& ResolveCall(const Node* call);
  std::vector<const Node*> Arguments(const Node* call, bool* spread);
  TypeRef ArrayOf(TypeRef element);
  TypeRef PromiseOf(TypeRef type);
  TypeRef Awaited(TypeRef type);
  // The type of a variable where it is used, after the conditions around it.
  TypeRef Narrowed(const Node* reference, TypeRef declared);
  bool IsReference(const Node* node) const;
  std::string ReferenceKey(const Node* node);

  std::string Describe(TypeRef type, int depth = 0);
  const std::vector<TypeRef>& ParamsOf(Symbol* symbol);
  TypeRef ConstraintOf(TypeRef param);
  std::vector<const Signature*> SignaturesOf(Symbol* symbol);
  const Signature* SignatureOf(const Node* node, const Mapper& mapper = {});
  void FillMembers(Symbol* symbol);
  Symbol* MemberSymbol(Symbol* of, const std::string& name);
  TypeRef Apparent(TypeRef type);
  TypeRef ThisType(const Node* node);

 private:
  friend class Narrowing;
  friend class Candidates;
  friend class CallAttempt;
  struct Scope {
    Table names;
    bool host = false;
  };
  // A file, or an ambient module in one, by what it exports.
  struct Module {
    const Node* container = nullptr;
    const Table* locals = nullptr;
    bool declarations = false;
    Table exports;
    std::vector<const Node*> stars;  // export * from
    bool open = false;               // it exports more than is known
    Symbol* assigned = nullptr;      // export =
    bool searching = false;
    Symbol* space = nullptr;  // import * as
  };
  // What is declared while it lives belongs to the tree: the library, the program or a module.
  class Binding {
   public:
    Binding(Checker& checker, const Tree* tree) : checker_(checker), before_(checker.home_) {
      checker.home_ = tree == checker.lib_.get()    ? kLib
                      : tree == checker.tree_.get() ? 0U
                                                    : kForeign;
    }
    ~Binding() { checker_.home_ = before_; }
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;

   private:
    Checker& checker_;
    const uint32_t before_;
  };
  // Types of nodes outside of the program are kept when the program changes.
  bool Kept(const Node* node) const { return node->tree != tree_.get(); }
  Symbol* FindTarget(const Symbol* import);
  Symbol* TargetOfAlias(const Node* alias);
  Symbol* Meant(Symbol* found, uint32_t meaning);
  Module* ModuleNamed(const Node* source);
  Module* ModuleIn(const ModuleText& text, const std::string& specifier);
  void FillExports(Module& module);
  void FillExport(Module& module, const Node* statement);
  void ExportDefault(Module& module, const Node* statement);
  Symbol* LocalOf(const Module& module, std::string_view name);
  Symbol* ExportOf(Module& module, const std::string& name);
  Symbol* SpaceOf(Module& module);
  bool AddExports(Module& module, Table& names);
  void ReadAmbient();
  void Augment(const Node* program);
  void AugmentBy(const ModuleText& text);
  void AddToLibrary(const Node* interface);
  bool IsScript() const;
  TypeRef WithReceiver(TypeRef type, const Property& property);
  bool Ambient(const Node* node) const;
  static bool Settled(TypeRef type);
  bool Discriminated(TypeRef a, TypeRef b);
  bool BadlyRead(const Node* declaration);
  TypeRef AliasOfGeneric(Symbol* alias, const Mapper& mapper);
  Symbol* BaseNamed(const Node* value, const Node* declaration);
  Scope& ScopeOf(const Node* node);
  void Bind(const Node* node, Scope& scope);
  void Overlay(Scope& scope);
  void BindGlobalBlocks(const Node* program);
  void InferGuard(const Node* node, Signature* signature);
  void BindStatement(const Node* statement, Scope& scope, bool var_only);
  void BindVars(const Node* statement, Scope& scope);
  void BindPattern(const Node* pattern, const Node* declaration, uint32_t flag, Scope& scope);
  void BindTypeParams(const Node* declaration, Scope& scope);
  Symbol* Declare(Scope& scope, std::string_view name, uint32_t flags, const Node* declaration);
  Symbol* NewSymbol(std::string_view name, uint32_t flags, const Node* declaration);
  void AddMembers(Symbol* symbol, const Node* body);
  void AddParameterProperties(Symbol* symbol, const Node* constructor);

  void ReadBases(Symbol* symbol);
  void CheckBases(Symbol* symbol);
  std::optional<Property> MemberOfUnion(TypeRef type, std::string_view name);
  std::optional<Property> MemberOfStatic(Symbol* symbol, std::string_view name);
  std::optional<Property> MemberOfTuple(TypeRef type, std::string_view name);
  std::optional<Property> MemberOfRef(TypeRef type, std::string_view name);
  std::optional<Property> MemberOfShape(TypeRef type, std::string_view name);
  std::optional<Property> MemberOfGlobal(std::string_view interface, std::string_view name);
  TypeRef ComputeTypeOf(const Node* node);
  TypeRef TypeOfNumber(std::string_view text);
  TypeRef TypeOfCall(const Node* node);
  TypeRef TypeOfAugmented(const Node* node);
  TypeRef TypeOfIdentifier(const Node* node);
  TypeRef TypeOfMember(const Node* node);
  TypeRef TypeOfSubscript(const Node* node);
  TypeRef TypeOfBinary(const Node* node);
  TypeRef TypeOfUnary(const Node* node);
  TypeRef TypeOfObject(const Node* node);
  TypeRef TypeOfArray(const Node* node);
  TypeRef TypeOfNew(const Node* node);
  TypeRef TypeOfFunction(const Node* node);
  TypeRef TypeOfConst(const Node* node);
  TypeRef TypeOfVariable(Symbol* symbol);
  TypeRef TypeOfDeclared(const Node* name);
  TypeRef EvolvedArray(const Node* name);
  TypeRef TypeOfRest(const Node* rest);
  TypeRef TypeOfPatternElement(const Node* name);
  TypeRef TypeOfDefaulted(const Node* name);
  TypeRef InitializerType(const Node* value, bool constant);
  TypeRef TypeOfReferenceNode(const Node* node);
  TypeRef Utility(Symbol* symbol, const std::vector<TypeRef>& args, bool* known);
  TypeRef KeyOf(TypeRef type);
  TypeRef ReadTypeNode(const Node* node);
  TypeRef TypeOfWord(std::string_view word);
  TypeRef Readonly(TypeRef type);
  TypeRef ReadonlyFromNode(const Node* inner);
  TypeRef TypeOfLiteralNode(const Node* node);
  TypeRef TupleFromNode(const Node* node);
  const Shape* ShapeFromNode(const Node* node, const Mapper& mapper);
  void AddSignatureMembers(const Node* body, const Mapper& mapper, Shape& shape);
  void EachReturn(const Node* body, const std::function<void(const Node*)>& visit);
  const Signature* ContextualSignature(const Node* function);
  TypeRef ContextOfProperty(const Node* node);
  TypeRef ContextOfElement(const Node* node);
  TypeRef ContextOfResult(const Node* function);
  TypeRef ContextOfArgument(const Node* node);
  TypeRef AgreedFunction(const Signature* a, const Signature* b);
  std::optional<Fits> AssignableToWord(TypeRef from, TypeRef to);
  std::optional<Fits> AssignableEnum(TypeRef from, TypeRef to);
  Fits AssignableTuple(TypeRef from, TypeRef to);
  std::optional<Fits> AssignableRef(TypeRef from, TypeRef to);
  std::optional<Fits> AssignableToLibrary(TypeRef from, TypeRef to);
  Fits AssignableToSignature(const std::vector<const Signature*>& offered, const Signature* wanted);
  Fits AssignableToStringIndex(const Shape& from, TypeRef wanted);
  Fits AssignableToNumberIndex(TypeRef from, const Shape* shape, TypeRef wanted);
  Fits AssignableShape(TypeRef from, TypeRef to);
  Fits AssignableSignature(const Signature* from, const Signature* to);
  std::optional<std::vector<const Signature*>> ConstructorsOf(Symbol* symbol);
  void ChooseOverload(const Node* call, const std::vector<const Signature*>& overloads,
                      const std::vector<const Node*>& args, bool spread, Call& result);
  void Forget(const Node* inside);
  bool ContextSensitive(const Node* argument);
  bool HasParams(TypeRef type, int depth = 0);
  TypeRef FilterTruthy(TypeRef type, bool truthy);

  TypePool pool_;
  std::deque<Symbol> lib_symbols_;
  std::deque<Symbol> symbols_;
  uint64_t next_symbol_ = 1;
  std::shared_ptr<Tree> lib_;
  std::unique_ptr<Tree> tree_;
  uint32_t cursor_ = 0;
  bool finished_ = true;
  uint32_t home_ = 0;  // of new symbols: 0, kLib, kForeign
  ModuleFiles* files_ = nullptr;
  std::string path_;
  std::map<std::string, std::unique_ptr<Module>> modules_;
  std::unordered_map<const Tree*, const ModuleText*> module_texts_;
  std::unordered_set<std::string> augmented_;  // what some file adds members to
  std::unordered_set<std::string> shared_;     // names that other files declare for all
  bool ambient_read_ = false;
  bool script_ = false;  // the program has no imports and exports
  Scope globals_;
  std::unordered_map<const Node*, std::unique_ptr<Scope>> scopes_;
  std::unordered_map<const Node*, std::unique_ptr<Scope>> lib_scopes_;
  std::unordered_map<const Node*, TypeRef> types_;
  std::unordered_set<const Node*> computing_;
  std::unordered_map<const Node*, Call> calls_;
  std::unordered_map<const Node*, TypeRef> lib_nodes_;  // types of the library's nodes
  std::unordered_map<const Node*, std::vector<TypeRef>> lambda_params_;
  std::unordered_map<const Node*, TypeRef> contextual_;
  std::unordered_set<const Node*> calling_;
  std::vector<std::pair<TypeRef, TypeRef>> assumed_;
  std::vector<std::pair<Symbol*, std::string>> overlay_;  // members a program adds to the library
  std::unordered_map<TypeRef, const Shape*> shapes_;
  std::unordered_map<const Node*, TypeRef> returns_;
  std::unordered_set<const Node*> returning_;
  // Of types that are declared in other files and have no arguments: kept for the next questions.
  std::unordered_map<TypeRef, const Shape*> settled_shapes_;
  std::unordered_map<uint64_t, Fits> settled_fits_;  // by the numbers of both types
  int depth_ = 0;
  int member_depth_ = 0;  // calls of Member in each other
  int union_depth_ = 0;   // of Members, for constraints that are unions
};

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_CHECKER_H_
