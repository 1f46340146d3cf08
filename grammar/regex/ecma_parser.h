// ParseEcma: ECMA-262 patterns, as JSON Schema uses them, to terms of a RegexArena.
//
//   auto id = ParseEcma(arena, "^[a-z]+(?!foo)");      // the texts in which the pattern is found
//
// Syntax: ECMA-262 with the "u" flag's meaning (code points, not UTF-16 units), and beyond it what
// schemas in the wild hold: see docs/regex.md for the list. Lookahead, lookbehind, anchors and word
// boundaries work wherever they stand. Captures are plain groups; lazy quantifiers are the eager
// ones, the language is the same.
#ifndef PAWL_GRAMMAR_REGEX_ECMA_PARSER_H_
#define PAWL_GRAMMAR_REGEX_ECMA_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "grammar/regex/regex_arena.h"
#include "pawl/result.h"

namespace pawl {

struct RegexSyntaxOptions {
  // The pattern may be found anywhere in the text; false: it must take the whole text.
  bool search = true;
  // \w, \d and \b by Unicode properties (UTS #18) instead of ASCII.
  bool unicode_classes = false;
  // As if the pattern began with (?i), (?s), (?m).
  bool ignore_case = false;
  bool dot_all = false;
  bool multi_line = false;

  size_t max_pattern_bytes = size_t{4} << 20;
  // Groups inside groups.
  int max_nesting = 250;
  // Largest number in {m,n}.
  uint32_t max_repeat = 1'000'000'000;
  // Steps of the arena (RegexArena::work, about 200 ns each), and as many more for each byte.
  uint64_t max_work = 2'000'000;
  uint64_t max_work_per_byte = 16;
};

// The term of all texts (whole strings) that the pattern accepts. Errors, with place "byte N":
//   kInvalid      not a pattern, or not valid UTF-8
//   kUnsupported  a back reference to a group of many texts, an atomic group, a possessive
//                 quantifier, and assertions that would need
//                 more memory of the past than is reasonable (docs/regex.md)
//   kLimit        a limit of the options or of the arena
Result<ReId> ParseEcma(RegexArena& arena, std::string_view pattern,
                       const RegexSyntaxOptions& options = {});

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_ECMA_PARSER_H_
