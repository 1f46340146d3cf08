// CfgMachine against the slow recogniser, masks against trying every token, on random grammars.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "pawl/grammar.h"
#include "tests/grammar/cfg_reference.h"

namespace pawl {
namespace {

using ExprId = GrammarIr::ExprId;
using RuleId = GrammarIr::RuleId;

std::shared_ptr<const Vocabulary> Tokens() {
  static const std::shared_ptr<const Vocabulary> vocabulary = [] {
    VocabularyInit init;
    init.tokens = {"a",      "b",   "c",    "aa",   "ab", "ba",  "bb",  "abc", "cab",  "aab",
                   "aaaa",   "bab", "abab", "ca",   "cc", "ac",  "bca", "x",   "aax",  "<s>",
                   "<tool>", "é",   "\xC3", "\xA9", "aé", "acb", "cba", "bbb", "babc", "aaaaaaaa"};
    init.special = {19, 20};
    init.end_tokens = {19};
    return *Vocabulary::Create(std::move(init));
  }();
  return vocabulary;
}

// A grammar of a few rules that call each other at random: left, right and hidden recursion, empty
// rules, rules without a text, ambiguity.
void MakeRandom(GrammarIr& ir, std::mt19937& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<RuleId> rules;
  const int count = 1 + pick(4);
  for (int i = 0; i < count; ++i) rules.push_back(ir.AddRule("r" + std::to_string(i)));
  const auto expr = [&](auto& self, int depth) -> ExprId {
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
  for (const RuleId rule : rules) ir.Define(rule, expr(expr, 0));
  ir.SetRoot(rules[0]);
}

bool Accepts(const Grammar& grammar, std::string_view text) {
  const auto state = grammar.Start().Advance(text);
  return state && state->accepting();
}

// All texts of up to `length` letters.
std::vector<std::string> Texts(size_t length) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) break;
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

TEST(CfgTest, RandomGrammarsAcceptWhatTheReferenceAccepts) {
  const auto vocabulary = Tokens();
  const std::vector<std::string> texts = Texts(5);
  int accepted = 0, unsatisfiable = 0;
  for (uint32_t seed = 0; seed < 10000; ++seed) {
    std::mt19937 random(seed);
    GrammarIr ir;
    MakeRandom(ir, random);
    auto machine = CfgMachine::Create(ir, *vocabulary);
    CfgReference reference(ir);
    if (!machine.ok()) {
      ASSERT_EQ(machine.error().code, ErrorCode::kUnsatisfiable) << machine.error().ToString();
      ++unsatisfiable;
      for (size_t i = 0; i < 40; ++i) ASSERT_FALSE(reference.Accepts(texts[i])) << "seed " << seed;
      continue;
    }
    const Grammar grammar(*machine, vocabulary);
    for (int i = 0; i < 20; ++i) {
      const std::string& text =
          i < 13 ? texts[static_cast<size_t>(i)] : texts[random() % texts.size()];
      const bool expected = reference.Accepts(text);
      accepted += expected ? 1 : 0;
      ASSERT_EQ(Accepts(grammar, text), expected) << "seed " << seed << " text \"" << text << '"';
    }
  }
  EXPECT_GT(accepted, 10000);
  EXPECT_LT(unsatisfiable, 4000);
}

// Every state has a completion, its mask is what trying every token says, and its forced bytes are
// the only ones.
TEST(CfgTest, RandomWalksMeetTheirMasks) {
  const auto vocabulary = Tokens();
  int states = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed + 77777);
    GrammarIr ir;
    MakeRandom(ir, random);
    auto machine = CfgMachine::Create(ir, *vocabulary);
    if (!machine.ok()) continue;
    const Grammar grammar(*machine, vocabulary);
    State state = grammar.Start();
    std::string text;
    for (int step = 0; step < 12; ++step) {
      const auto mask = state.mask();
      std::vector<TokenId> allowed;
      for (TokenId id = 0; id < vocabulary->size(); ++id) {
        const bool fits =
            vocabulary->is_end(id) ? state.accepting() : state.Advance(id).has_value();
        ASSERT_EQ(mask->Allows(id), fits)
            << "seed " << seed << " after \"" << text << "\" token " << vocabulary->bytes(id);
        if (fits && !vocabulary->is_end(id)) allowed.push_back(id);
      }
      const auto completion = state.ShortestCompletion();
      ASSERT_TRUE(completion) << "seed " << seed << " after \"" << text << '"';
      const auto end = state.Advance(*completion);
      ASSERT_TRUE(end && end->accepting())
          << "seed " << seed << " after \"" << text << "\" then " << *completion;
      ++states;
      if (allowed.empty()) break;
      const TokenId token = allowed[random() % allowed.size()];
      text += vocabulary->bytes(token);
      state = *state.Advance(token);
    }
  }
  EXPECT_GT(states, 5000);
}

// What follows a right-recursive list does not grow with it, and neither does the work.
TEST(CfgTest, RightRecursionStaysSmall) {
  const auto vocabulary = Tokens();
  GrammarIr ir;
  const RuleId list = ir.AddRule("list");
  const RuleId item = ir.AddRule("item");
  ir.Define(item, ir.Choice({ir.Literal("a"), ir.Sequence({ir.Literal("b"), ir.Call(item)})}));
  ir.Define(list, ir.Choice({ir.Call(item), ir.Sequence({ir.Call(item), ir.Call(list)})}));
  ir.SetRoot(list);
  auto machine = CfgMachine::Create(ir, *vocabulary);
  ASSERT_TRUE(machine.ok());
  const Grammar grammar(*machine, vocabulary);
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "abba";
  const auto state = grammar.Start().Advance(text);
  ASSERT_TRUE(state);
  EXPECT_FALSE(grammar.Start().Advance(text + "x"));
  EXPECT_LT((*machine)->state_count(), 40u);
}

TEST(CfgTest, EverySegmentationIsFollowed) {
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  ir.Define(root, ir.Sequence({ir.Choice({ir.Literal("list"), ir.Literal("listen")}),
                               ir.Choice({ir.Literal("ed"), ir.Call(root)})}));
  ir.SetRoot(root);
  auto machine = CfgMachine::Create(ir, *Tokens());
  ASSERT_TRUE(machine.ok());
  const Grammar grammar(*machine, Tokens());
  EXPECT_TRUE(Accepts(grammar, "listed"));
  EXPECT_TRUE(Accepts(grammar, "listened"));
  EXPECT_TRUE(Accepts(grammar, "listlistenlisted"));
  EXPECT_FALSE(Accepts(grammar, "listen"));
}

TEST(CfgTest, SpecialTokensAndRangesAreTakenWhole) {
  const auto vocabulary = Tokens();
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  ir.Define(root, ir.Sequence({ir.Literal("a"), ir.Tokens({.names = {"<tool>"}}),
                               ir.Tokens({.ranges = {{0, 2}, {7, 7}}}),
                               ir.Tokens({.ranges = {{0, 20}}, .complement = true})}));
  ir.SetRoot(root);
  auto machine = CfgMachine::Create(ir, *vocabulary);
  ASSERT_TRUE(machine.ok());
  const Grammar grammar(*machine, vocabulary);
  const State a = *grammar.Start().Advance(TokenId{0});
  EXPECT_EQ(a.mask()->Tokens(), std::vector<TokenId>{20});
  EXPECT_FALSE(a.Advance("<tool>"));
  const State tool = *a.Advance(TokenId{20});
  EXPECT_EQ(tool.mask()->Tokens(), (std::vector<TokenId>{0, 1, 2, 7}));
  const State abc = *tool.Advance(TokenId{7});
  EXPECT_FALSE(abc.mask()->Allows(20));
  EXPECT_TRUE(abc.mask()->Allows(21));
  EXPECT_TRUE(abc.Advance(TokenId{21})->accepting());
  EXPECT_FALSE(abc.ShortestCompletion());
}

TEST(CfgTest, TokensMissingInTheVocabularyAreNamed) {
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  ir.Define(root, ir.Tokens({.names = {"<none>"}, .place = "3:7"}));
  ir.SetRoot(root);
  const auto machine = CfgMachine::Create(ir, *Tokens());
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().ToString(), "3:7: the vocabulary has no special token \"<none>\"");
}

TEST(CfgTest, MaxTokensEndTheLexeme) {
  const auto vocabulary = Tokens();
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  const RuleId word = ir.AddRule("word");
  RegexArena& arena = ir.arena();
  ir.Define(word, ir.Regex(arena.Concat(arena.Star(arena.Char(U'a')), arena.Char(U'b'))));
  ir.SetAttributes(word, {.max_tokens = 2});
  ir.Define(root, ir.Sequence({ir.Call(word), ir.Literal("c")}));
  ir.SetRoot(root);
  auto machine = CfgMachine::Create(ir, *vocabulary);
  ASSERT_TRUE(machine.ok());
  const Grammar grammar(*machine, vocabulary);
  const State a = *grammar.Start().Advance(TokenId{0});
  EXPECT_FALSE(a.mask()->Allows(0));  // the second token has to bring the b
  EXPECT_FALSE(a.Advance(TokenId{0}));
  EXPECT_TRUE(a.mask()->Allows(4));  // ab
  EXPECT_TRUE(a.mask()->Allows(7));  // abc
  EXPECT_TRUE(a.Advance(TokenId{4})->Advance(TokenId{2})->accepting());
  EXPECT_TRUE(a.Advance(TokenId{7})->accepting());
}

}  // namespace
}  // namespace pawl
