// Types of TypeScript, as far as the monitors follow them. What they do not follow is kOpen: a type
// of which nothing is known, about which nothing may be refused.
//
// Types are made by a TypePool and live as long as it does. Primitive and literal types, unions,
// tuples and references to a declaration are one object each, so that equal ones are equal
// pointers; shapes and functions are not.
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_TYPES_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_TYPES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugins/monitors/syntax.h"

namespace pawl::monitors::ts {

struct Symbol;
struct Signature;
struct Shape;

enum class T : uint8_t {
  kOpen,  // not known
  kAny,
  kUnknown,
  kNever,
  kVoid,
  kUndefined,
  kNull,
  kNumber,
  kString,
  kBoolean,
  kBigInt,
  kSymbol,
  kObject,  // the keyword "object"
  kNumberLiteral,
  kStringLiteral,
  kBooleanLiteral,
  kBigIntLiteral,
  kEnumMember,    // symbol: the member
  kUnion,         // parts
  kIntersection,  // parts
  kRef,           // an interface, class or enum with its arguments in parts; arrays too
  kTuple,         // parts, of which the first `required` must be there; rest: the last repeats
  kShape,         // an object type written or inferred
  kFunction,      // a shape with nothing but signatures
  kParam,         // a type parameter
  kStatic,        // the value of a class, enum or namespace
};

struct Type {
  T kind;
  uint32_t id = 0;
  std::string text;       // literals
  double number = 0;      // number literals
  bool fresh = false;     // of a literal expression: widened where a variable takes it
  bool readonly = false;  // tuples
  bool rest = false;      // tuples
  uint32_t required = 0;  // tuples
  std::vector<const Type*> parts;
  Symbol* symbol = nullptr;    // kRef, kStatic, kEnumMember, kParam
  const Node* node = nullptr;  // kShape: where it is written, resolved when first looked at
  std::vector<std::pair<const Type*, const Type*>>
      mapper;  // what stands for type parameters in `node`
  mutable Shape* shape = nullptr;
  std::vector<const Signature*> signatures;  // kFunction
  bool literal_object =
      false;  // of an object literal: properties it lacks are not there by mistake

  bool is(T k) const { return kind == k; }
  bool open() const { return kind == T::kOpen; }
  bool loose() const { return kind == T::kOpen || kind == T::kAny; }
  bool literal() const { return kind >= T::kNumberLiteral && kind <= T::kBigIntLiteral; }
};

using TypeRef = const Type*;
using Mapper = std::vector<std::pair<TypeRef, TypeRef>>;

struct Parameter {
  std::string name;
  TypeRef type;
  bool optional = false;
  bool rest = false;
};

struct Signature {
  std::vector<TypeRef> type_params;
  std::vector<Parameter> params;
  mutable TypeRef result = nullptr;  // nullptr: not looked at yet, from `node`
  const Node* node = nullptr;        // the declaration
  Mapper mapper;                     // for a result that is made later
  // x is T
  std::string guards;  // the parameter, empty: no guard
  TypeRef guarded = nullptr;
  bool asserts = false;
  bool abstract = false;
  TypeRef self = nullptr;  // f(this: T)

  size_t required() const {
    size_t n = params.size();
    while (n > 0 && (params[n - 1].optional || params[n - 1].rest)) --n;
    return n;
  }
  bool has_rest() const { return !params.empty() && params.back().rest; }
};

struct Property {
  std::string name;
  TypeRef type = nullptr;  // nullptr: from `symbol` under `mapper`
  bool optional = false;
  bool readonly = false;
  bool method = false;
  Symbol* symbol = nullptr;
  Mapper mapper;
  TypeRef receiver = nullptr;  // what `this` is, where it is not the class itself
};

struct Shape {
  std::vector<Property> properties;
  TypeRef string_index = nullptr;
  TypeRef number_index = nullptr;
  std::vector<const Signature*> calls;
  std::vector<const Signature*> constructs;
  bool open = false;
  const Property* Find(std::string_view name) const {
    for (const Property& p : properties) {
      if (p.name == name) return &p;
    }
    return nullptr;
  }
};

class TypePool {
 public:
  TypePool();
  TypePool(const TypePool&) = delete;
  TypePool& operator=(const TypePool&) = delete;

  TypeRef open, any, unknown, never, void_, undefined, null, number, string, boolean, bigint,
      symbol, object, true_, false_;

  TypeRef NumberLiteral(double value, std::string text, bool fresh = false);
  TypeRef StringLiteral(std::string text, bool fresh = false);
  TypeRef BooleanLiteral(bool value, bool fresh = false);
  TypeRef BigIntLiteral(std::string text, bool fresh = false);
  TypeRef Union(std::vector<TypeRef> parts);
  TypeRef Union(TypeRef a, TypeRef b) { return Union(std::vector<TypeRef>{a, b}); }
  TypeRef Intersection(std::vector<TypeRef> parts);
  TypeRef Ref(Symbol* symbol, std::vector<TypeRef> args);
  TypeRef Tuple(std::vector<TypeRef> parts, uint32_t required, bool rest, bool readonly);
  TypeRef Static(Symbol* symbol);
  TypeRef EnumMember(Symbol* symbol);
  TypeRef Param(Symbol* symbol);
  TypeRef Function(std::vector<const Signature*> signatures);
  TypeRef ShapeOf(Shape shape, bool literal_object = false);
  TypeRef ShapeAt(const Node* node, Mapper mapper);
  Signature* NewSignature();
  Shape* NewShape();

  // The type that a variable gets from a literal: 1 -> number.
  TypeRef Widen(TypeRef type);
  // Likewise of literals that were written as a type.
  TypeRef Base(TypeRef type);
  // The same without the freshness: what `const` keeps.
  TypeRef Regular(TypeRef type);
  // Without null and undefined.
  TypeRef NonNull(TypeRef type);
  size_t size() const { return types_.size(); }
  // Call `visit` for each part of a union, or for the type itself.
  template <typename F>
  static void Each(TypeRef type, F visit) {
    if (type->kind == T::kUnion) {
      for (TypeRef part : type->parts) visit(part);
    } else {
      visit(type);
    }
  }

 private:
  Type* New(T kind);
  TypeRef Interned(const std::string& key, T kind, std::vector<TypeRef> parts, Symbol* symbol);
  std::deque<Type> types_;
  std::deque<Signature> signatures_;
  std::deque<Shape> shapes_;
  std::unordered_map<std::string, Type*> interned_;
};

// Names and what they stand for: declarations gathered scope by scope, when a scope is first asked
// for a name.

enum SymbolFlag : uint32_t {
  kVariable = 1,  // var, and parameters
  kLet = 2,
  kConst = 4,
  kParameter = 8,
  kFunctionName = 16,
  kClass = 32,
  kInterface = 64,
  kAlias = 128,
  kEnum = 256,
  kEnumMember = 512,
  kNamespace = 1024,
  kTypeParameter = 2048,
  kImport = 4096,
  kProperty = 8192,
  kMethod = 16384,
  kGetter = 32768,
  kSetter = 65536,
  kAbstract = 131072,
  kLib = 262144,
  kReadonly = 524288,
  kOptional = 1048576,
  kPrivate = 2097152,
  kForeign = 4194304,  // of another file
  kValue = kVariable | kLet | kConst | kParameter | kFunctionName | kClass | kEnum | kEnumMember |
           kNamespace | kImport | kProperty | kMethod | kGetter | kSetter,
  kTypeName = kClass | kInterface | kAlias | kEnum | kTypeParameter | kImport | kEnumMember,
};

struct Symbol;
using Table = std::unordered_map<std::string, Symbol*>;

struct Symbol {
  std::string name;
  uint64_t id = 0;
  uint32_t flags = 0;
  Symbol* owner = nullptr;  // of members
  std::vector<const Node*> declarations;
  std::vector<const Node*> values;  // variables: the pattern or name that declares them
  // Filled when first looked at.
  bool members_known = false;
  Table members;                   // of instances
  Table statics;                   // of a class, enum or namespace itself
  std::vector<const Node*> calls;  // call, construct and index signatures
  std::vector<const Node*> constructs;
  std::vector<const Node*> indexes;
  bool params_known = false;
  std::vector<TypeRef> params;
  bool bases_known = false;
  std::vector<TypeRef> bases;
  bool bases_open = false;
  enum class Bases : uint8_t { kUnseen, kOnPath, kDone };
  Bases bases_state = Bases::kUnseen;  // of the search for cycles
  bool bases_cyclic = false;
  TypeRef type = nullptr;
  TypeRef declared = nullptr;  // of aliases, and the constraint of type parameters
  bool resolving = false;
  bool resolving_declared = false;
  std::vector<const Symbol*> overloads;
  Symbol* target = nullptr;  // of imports: what they stand for; nullptr: not known
  bool target_known = false;
  bool finding_target = false;
  const Node* expression = nullptr;  // export default EXPRESSION

  bool is(uint32_t flag) const { return (flags & flag) != 0; }
};

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_TYPES_H_
