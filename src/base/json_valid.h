// ParseValid: the tree of a text that is JSON, without a word about one that is not.
//
//   Value tree;
//   if (!ParseValid(text, limits, tree)) ...   // json::Parse knows why
//
// What is accepted, and the tree, are those of json::Parse, at several times its speed.
#ifndef PAWL_SRC_BASE_JSON_VALID_H_
#define PAWL_SRC_BASE_JSON_VALID_H_

#include <string_view>

#include "src/base/json.h"

namespace pawl::json {

// false: the text is no JSON, exceeds a limit, or is one of the rare texts (a byte order mark, a
// number of a thousand digits) that are left to the other parser. No recursion.
bool ParseValid(std::string_view text, const ParseLimits& limits, Value& tree);

// The other parser. REQUIRES: the text is not larger than the limit.
Result<Value> ParseWithReasons(std::string_view text, const ParseLimits& limits);

}  // namespace pawl::json

#endif  // PAWL_SRC_BASE_JSON_VALID_H_
