// A JSON string as bytes over a StringSearch, which knows code points only: UTF-8, escapes, the
// closing quote.
#ifndef PAWL_SCHEMAS_SCALAR_JSON_STRING_H_
#define PAWL_SCHEMAS_SCALAR_JSON_STRING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "schemas/scalar/string_search.h"

namespace pawl::schema {

// Between the quotes: the program's state after the last whole code point, and what of the next one
// has been read.
struct StringPosition {
  StringSearch::StateId state = 0;
  uint64_t part = 0;  // 0: at a boundary; else packed, see json_string.cc
};

// How the code points of a string may be written.
struct StringSpelling {
  bool canonical =
      true;  // each in one way: that of json::Quote, or of EscapeBeyondAscii where `ascii`
  bool ascii = false;  // what is not ASCII as \uXXXX
};

enum class StringStep { kDead, kInside, kEnd };

// Reads one byte. kInside: `position` has moved and is live. kEnd: it was the closing quote and the
// string is accepted.
StringStep StepString(StringSearch& search, StringPosition& position, uint8_t byte,
                      StringSpelling spelling);

// Bytes that complete the string, closing quote included; nullopt when none are known.
std::optional<std::string> CompleteString(StringSearch& search, StringPosition position,
                                          size_t max_length, StringSpelling spelling);

// JSON texts with the characters beyond ASCII as escapes; nothing else is changed.
PAWL_EXPORT std::string EscapeBeyondAscii(std::string_view json);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_JSON_STRING_H_
