// The "format" keyword of JSON Schema as regular languages over code points.
//
//   Result<ReId> date = FormatRegex(arena, "date");   // exactly the dates of RFC 3339, leap years
//   included
//
// docs/regex.md says for each format which text defines it and where the language is wider or
// narrower. Thread safety: as the arena's.
#ifndef PAWL_GRAMMAR_REGEX_FORMATS_H_
#define PAWL_GRAMMAR_REGEX_FORMATS_H_

#include <span>
#include <string_view>

#include "grammar/regex/regex_arena.h"
#include "pawl/result.h"

namespace pawl {

// date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference
// iri iri-reference uri-template uuid json-pointer relative-json-pointer regex byte binary
std::span<const std::string_view> KnownFormats();
bool IsKnownFormat(std::string_view format);

// The term for the whole string. Errors: kUnsupported for an unknown name, kLimit from the arena.
Result<ReId> FormatRegex(RegexArena& arena, std::string_view format);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_FORMATS_H_
