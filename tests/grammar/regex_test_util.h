// What the regex tests share: parsing or failing loudly, and three independent matchers.
#ifndef PAWL_TESTS_GRAMMAR_REGEX_TEST_UTIL_H_
#define PAWL_TESTS_GRAMMAR_REGEX_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "grammar/regex/ecma_parser.h"
#include "grammar/regex/regex_arena.h"
#include "grammar/regex/regex_dfa.h"
#include "src/base/utf8.h"

namespace pawl::regex_test {

inline std::u32string Decode(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    const DecodedCodepoint c = DecodeUtf8(text);
    out.push_back(c.codepoint);
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return out;
}

inline bool MatchesByDerivative(RegexArena& arena, ReId id, std::u32string_view text) {
  for (const char32_t c : text) id = arena.Derive(id, c);
  return arena.Nullable(id);
}

inline bool MatchesByDfa(RegexDfa& dfa, std::u32string_view text) {
  uint32_t state = dfa.Start();
  for (const char32_t c : text) state = dfa.Next(state, dfa.ClassOf(c));
  return state != RegexDfa::kDead && dfa.Accepting(state);
}

// Whether the pattern is found in `text`, by derivatives and by the DFA, which must agree.
inline bool Finds(std::string_view pattern, std::string_view text,
                  const RegexSyntaxOptions& options = {}) {
  auto arena = std::make_shared<RegexArena>();
  const Result<ReId> id = ParseEcma(*arena, pattern, options);
  if (!id.ok()) {
    ADD_FAILURE() << pattern << ": " << id.error().ToString();
    return false;
  }
  const std::u32string characters = Decode(text);
  const bool derived = MatchesByDerivative(*arena, *id, characters);
  RegexDfa dfa(arena, *id);
  EXPECT_EQ(MatchesByDfa(dfa, characters), derived) << pattern << " on " << text;
  EXPECT_FALSE(dfa.overflow()) << pattern;
  return derived;
}

}  // namespace pawl::regex_test

#endif  // PAWL_TESTS_GRAMMAR_REGEX_TEST_UTIL_H_
