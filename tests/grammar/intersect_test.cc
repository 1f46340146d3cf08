// Intersections with words that must occur, against trying every text with the slow recogniser.
#include "grammar/cfg/intersect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "tests/grammar/cfg_random.h"
#include "tests/grammar/cfg_reference.h"
#include "tests/grammar/mask_oracle.h"

namespace pawl {
namespace {

std::vector<std::string> RandomWords(std::mt19937& random) {
  std::vector<std::string> words(1 + random() % 3);
  for (std::string& word : words) {
    for (size_t i = 1 + random() % 3; i > 0; --i) word += static_cast<char>('a' + random() % 3);
  }
  return words;
}

bool HasAll(std::string_view text, const std::vector<std::string>& words) {
  return std::ranges::all_of(words,
                             [&](const std::string& word) { return text.find(word) != text.npos; });
}

TEST(IntersectTest, OccurrenceAutomatonFindsWords) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::vector<std::string> words = RandomWords(random);
    const auto automaton = OccurrenceAutomaton(words);
    ASSERT_TRUE(automaton.ok());
    for (const std::string& text : TextsOfLetters(6)) {
      uint32_t at = 0;
      for (const char c : text) at = (*automaton)->Step(at, static_cast<uint8_t>(c));
      ASSERT_EQ((*automaton)->state(at).accepting, HasAll(text, words)) << text;
    }
  }
}

TEST(IntersectTest, RandomGrammarsWithWords) {
  const auto vocabulary = Tokens();
  int accepted = 0, states = 0;
  for (uint32_t seed = 0; seed < 250; ++seed) {
    std::mt19937 random(seed + 5'000'000);
    GrammarIr ir;
    MakeRandom(ir, random);
    const std::vector<std::string> words = RandomWords(random);
    CfgReference reference(ir);
    std::vector<std::string> expected;
    for (const std::string& text : TextsOfLetters(4)) {
      if (HasAll(text, words) && reference.Accepts(text)) expected.push_back(text);
    }
    Result<GrammarIr> both = Intersect(ir, **OccurrenceAutomaton(words), *vocabulary);
    if (!both.ok()) {
      ASSERT_EQ(both.error().code, ErrorCode::kUnsatisfiable) << both.error().ToString();
      ASSERT_TRUE(expected.empty()) << "seed " << seed;
      continue;
    }
    auto machine = CfgMachine::Create(*both, *vocabulary);
    ASSERT_TRUE(machine.ok()) << "seed " << seed << ' ' << machine.error().ToString();
    const Grammar grammar(*machine, vocabulary);
    for (const std::string& text : TextsOfLetters(4)) {
      ASSERT_EQ(Accepts(grammar, text),
                std::ranges::binary_search(expected, text,
                                           [](auto& a, auto& b) {
                                             return std::pair(a.size(), std::string_view(a)) <
                                                    std::pair(b.size(), std::string_view(b));
                                           }))
          << "seed " << seed << " text \"" << text << '"';
    }
    accepted += static_cast<int>(expected.size());
    // Ambiguous grammars make large products, whose masks cost more than they teach.
    constexpr uint32_t kMostRules = 300;
    if (both->rule_count() > kMostRules) continue;
    State state = grammar.Start();
    std::string text;
    for (int step = 0; step < 4; ++step) {
      const std::vector<TokenId> allowed = AllowedTokens(
          state, *vocabulary, "seed " + std::to_string(seed) + " after \"" + text + '"');
      const auto completion = state.CompletionBytes();
      ASSERT_TRUE(completion) << "seed " << seed << " after \"" << text << '"';
      ASSERT_TRUE(HasAll(text + *completion, words)) << "seed " << seed;
      ASSERT_TRUE(reference.Accepts(text + *completion)) << "seed " << seed;
      ++states;
      if (allowed.empty()) break;
      const TokenId token = allowed[random() % allowed.size()];
      text += vocabulary->bytes(token);
      state = *state.Advance(token);
    }
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(states, 250);
}

TEST(IntersectTest, TooLargeIsRefused) {
  GrammarIr ir;
  const GrammarIr::RuleId root = ir.AddRule("root");
  ir.Define(root, ir.Regex(ir.arena().Repeat(RegexArena::kAnyChar, 0, 40'000)));
  ir.SetRoot(root);
  const std::vector<std::string> words = {"abc"};
  const auto both = Intersect(ir, **OccurrenceAutomaton(words), *Tokens());
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().code, ErrorCode::kLimit);
  const std::vector<std::string> many(13, "a");
  EXPECT_EQ(OccurrenceAutomaton(many).error().code, ErrorCode::kLimit);
  const std::vector<std::string> empty = {""};
  EXPECT_EQ(OccurrenceAutomaton(empty).error().ToString(), "word 1: is empty");
}

}  // namespace
}  // namespace pawl
