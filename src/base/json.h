// JSON text -> tree, keeping what a schema needs and nlohmann's tree drops: the raw text of
// numbers, the order of members, duplicate keys as errors, and no recursion on the depth of the
// input.
//
// Parsing is nlohmann/json's SAX parser; this is its handler and the tree it builds.
#ifndef PAWL_SRC_BASE_JSON_H_
#define PAWL_SRC_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"

namespace pawl::json {

enum class Type { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

struct Member;

struct Value {
  Type type = Type::kNull;
  std::string text;             // kString: the decoded UTF-8; kNumber: the number as written
  std::vector<Value> items;     // kArray
  std::vector<Member> members;  // kObject, in the order of the text

  bool is_bool() const { return type == Type::kTrue || type == Type::kFalse; }
  // The member called `key`, nullptr when absent or when this is no object. O(members).
  const Value* Find(std::string_view key) const;
  // Number of members or items.
  size_t size() const;
};

// Not a std::pair: a vector of pairs of an incomplete type is more than Clang takes.
struct Member {
  Member(std::string name, Value value) : first(std::move(name)), second(std::move(value)) {}
  std::string first;  // the key
  Value second;
};

inline size_t Value::size() const { return type == Type::kObject ? members.size() : items.size(); }

struct ParseLimits {
  size_t max_bytes = size_t{64} << 20;
  int max_depth = 512;
  // Of any type, those inside of others and empty ones as well. A value takes a hundred bytes where
  // its text may take two.
  size_t max_values = SIZE_MAX;
  bool allow_duplicate_keys = false;
};

// Errors: kInvalid with place "LINE:COLUMN (byte N)" for bad syntax, bad UTF-8 and duplicate keys;
// kLimit. A StopScope of the calling thread ends it (stop_scope.h).
Result<Value> Parse(std::string_view text, const ParseLimits& limits = {});

// Compact JSON text, members in their order, numbers as they were written.
std::string Dump(const Value& value);
// `text` as a JSON string with quotes; only what must be escaped is.
std::string Quote(std::string_view text);
// Appends "/token" to a JSON Pointer (RFC 6901 escaping of ~ and /).
std::string PointerJoin(std::string_view pointer, std::string_view token);
// The tokens of a JSON Pointer: of "/a/b~1c" these are "a" and "b/c", of "" there are none.
// REQUIRES: it is empty or begins with '/'.
std::vector<std::string> PointerTokens(std::string_view pointer);
// The item of an array that a token of a JSON Pointer names; nullptr where there is none.
const Value* ItemAt(const Value& array, std::string_view token);

// "null", "boolean", "number", ...
const char* TypeName(Type type);

// The two parsers behind Parse. ParseValid is several times as fast, and says nothing about a text
// that is not JSON.

// false: the text is no JSON, exceeds a limit, or is one of the rare texts (a byte order mark, a
// number of a thousand digits) that are left to the other parser. No recursion.
bool ParseValid(std::string_view text, const ParseLimits& limits, Value& tree);

// The other parser. REQUIRES: the text is not larger than the limit.
Result<Value> ParseWithReasons(std::string_view text, const ParseLimits& limits);

}  // namespace pawl::json

#endif  // PAWL_SRC_BASE_JSON_H_
