// Random GrammarIrs: a few rules that call each other at random, with left, right and hidden
// recursion, empty rules, rules without a text, ambiguity. And the vocabulary of their letters.
#ifndef PAWL_TESTS_GRAMMAR_CFG_RANDOM_H_
#define PAWL_TESTS_GRAMMAR_CFG_RANDOM_H_

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "pawl/grammar.h"
#include "pawl/vocabulary.h"
#include "tests/support/vocabularies.h"

namespace pawl {

inline std::shared_ptr<const Vocabulary> Tokens() {
  static const auto vocabulary =
      VocabularyOf({"a",      "b",   "c",    "aa",   "ab", "ba",  "bb",  "abc", "cab",  "aab",
                    "aaaa",   "bab", "abab", "ca",   "cc", "ac",  "bca", "x",   "aax",  "<s>",
                    "<tool>", "é",   "\xC3", "\xA9", "aé", "acb", "cba", "bbb", "babc", "aaaaaaaa"},
                   {"<tool>"}, {"<s>"});
  return vocabulary;
}

inline void MakeRandom(GrammarIr& ir, std::mt19937& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<GrammarIr::RuleId> rules;
  const int count = 1 + pick(4);
  for (int i = 0; i < count; ++i) rules.push_back(ir.AddRule("r" + std::to_string(i)));
  const auto expr = [&](auto& self, int depth) -> GrammarIr::ExprId {
    switch (pick(depth > 3 ? 5 : 12)) {
      case 0:
      case 1:
        return ir.Literal(std::string(1, static_cast<char>('a' + pick(3))));
      case 2:
        return ir.Call(rules[static_cast<size_t>(pick(count))]);
      case 3: {
        RegexArena& arena = ir.arena();
        const ReId letter = arena.Set(CodepointSet::Of('a', static_cast<char32_t>('a' + pick(3))));
        const bool lazy = pick(4) == 0;
        const ReId word = pick(2) == 0 ? arena.Repeat(letter, 1, std::nullopt)
                                       : arena.Concat(arena.Star(letter), arena.Char(U'c'));
        return ir.Regex(word, lazy);
      }
      case 4:
        return pick(6) == 0 ? ir.Literal("é") : ir.Literal(pick(3) == 0 ? "" : "ab");
      case 5:
      case 6:
      case 7:
        return ir.Sequence({self(self, depth + 1), self(self, depth + 1)});
      case 8:
      case 9:
        return ir.Choice({self(self, depth + 1), self(self, depth + 1), self(self, depth + 1)});
      case 10:
        return ir.Repeat(self(self, depth + 1), static_cast<uint32_t>(pick(2)),
                         pick(2) == 0 ? GrammarIr::kUnbounded : 1);
      default: {
        const auto min = static_cast<uint32_t>(pick(4));
        return ir.Repeat(
            self(self, depth + 1), min,
            pick(3) == 0 ? GrammarIr::kUnbounded : min + static_cast<uint32_t>(pick(3)));
      }
    }
  };
  for (const GrammarIr::RuleId rule : rules) ir.Define(rule, expr(expr, 0));
  ir.SetRoot(rules[0]);
}

inline bool Accepts(const Grammar& grammar, std::string_view text) {
  const auto state = grammar.Start().Advance(text);
  return state && state->accepting();
}

// All texts of up to `length` letters.
inline std::vector<std::string> TextsOfLetters(size_t length) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) break;
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

}  // namespace pawl

#endif  // PAWL_TESTS_GRAMMAR_CFG_RANDOM_H_
