// ParseRustRegex: regular expressions as Rust's `regex` crate writes them, which Lark grammars in
// llguidance's dialect use, to terms of a RegexArena.
//
//   auto id = ParseRustRegex(arena, R"([a-z&&[^aeiou]]+)", "i");
//
// The pattern takes the whole text. Characters and classes are Unicode's, `.` is anything but \n.
// docs/lark.md lists what is read and what is refused.
#ifndef PAWL_GRAMMAR_LANGUAGES_RUST_REGEX_H_
#define PAWL_GRAMMAR_LANGUAGES_RUST_REGEX_H_

#include <string_view>

#include "grammar/regex/regex_arena.h"
#include "pawl/result.h"

namespace pawl {

// `flags`: letters out of "imsxuU", as if the pattern began with them. Errors have the place
// "byte N" in the pattern.
Result<ReId> ParseRustRegex(RegexArena& arena, std::string_view pattern,
                            std::string_view flags = "");

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_RUST_REGEX_H_
