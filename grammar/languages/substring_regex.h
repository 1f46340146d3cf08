// SubstringRegex: the texts that are a run of consecutive chunks of a given list.
//
//   SubstringRegex(arena, {U"foo", U" ", U"bar"})     // "", "foo", "foo ", " bar", "foo bar", ...
//
// Chunks are characters when any span of a text may come, words when words must stay whole. The
// size is linear in the list. The empty run is always among the texts.
#ifndef PAWL_GRAMMAR_LANGUAGES_SUBSTRING_REGEX_H_
#define PAWL_GRAMMAR_LANGUAGES_SUBSTRING_REGEX_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/regex_arena.h"

namespace pawl {

// More take longer than a few seconds; callers refuse them.
constexpr size_t kMaxSubstringChunks = 1'000'000;

// `borders`: whether a run may begin and end with a chunk; nullptr: with each. When the arena
// overflows or its budget is exhausted, the answer means nothing.
ReId SubstringRegex(RegexArena& arena, std::span<const std::u32string> chunks,
                    const std::function<bool(const std::u32string&)>& borders = nullptr);

// A text as its characters, and as maximal runs of white space, of word characters (letters,
// numbers, '_') and of anything else.
std::vector<std::u32string> ChunkCharacters(std::string_view text);
std::vector<std::u32string> ChunkWords(std::string_view text);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_SUBSTRING_REGEX_H_
