// Names and what they stand for: declarations gathered scope by scope, when a scope is first asked
// for a name.
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_SYMBOLS_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_SYMBOLS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plugins/monitors/typescript/types.h"

namespace pawl::monitors::ts {

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
  kStaticMember = 4194304,
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

  bool is(uint32_t flag) const { return (flags & flag) != 0; }
};

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_SYMBOLS_H_
