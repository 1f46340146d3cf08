// A JSON string as bytes over a StringSearch, which knows code points only: UTF-8, escapes, the
// closing quote.
#ifndef PAWL_SCHEMAS_JSON_STRING_H_
#define PAWL_SCHEMAS_JSON_STRING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "schemas/string_search.h"

namespace pawl::schema {

// Between the quotes: the program's state after the last whole code point, and what of the next one
// has been read.
struct StringPosition {
  StringSearch::StateId state = 0;
  uint64_t part = 0;  // 0: at a boundary; else packed, see json_string.cc
};

enum class StringStep { kDead, kInside, kEnd };

// Reads one byte. kInside: `position` has moved and is live. kEnd: it was the closing quote and the
// string is accepted. `canonical`: each code point in the spelling of json::Quote alone.
StringStep StepString(StringSearch& search, StringPosition& position, uint8_t byte, bool canonical);

// Bytes that complete the string, closing quote included; nullopt when none are known.
std::optional<std::string> CompleteString(StringSearch& search, StringPosition position,
                                          size_t max_length, bool canonical);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_JSON_STRING_H_
