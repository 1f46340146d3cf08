// CfgMachine against the slow recogniser, masks against trying every token, on random grammars.
#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "pawl/grammar.h"
#include "tests/grammar/cfg_random.h"
#include "tests/grammar/cfg_reference.h"
#include "tests/grammar/mask_oracle.h"

namespace pawl {
namespace {

using RuleId = GrammarIr::RuleId;

TEST(CfgTest, RandomGrammarsAcceptWhatTheReferenceAccepts) {
  const auto vocabulary = Tokens();
  const std::vector<std::string> texts = TextsOfLetters(5);
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
      const std::vector<TokenId> allowed = AllowedTokens(
          state, *vocabulary, "seed " + std::to_string(seed) + " after \"" + text + '"');
      const auto completion = state.CompletionBytes();
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

// r_i ::= r_{i+1} | "x_i", which at one place are all begun.
TEST(CfgTest, ChainsOfRulesTakeLinearTime) {
  const auto work = [](uint32_t length) {
    GrammarIr ir;
    std::vector<GrammarIr::RuleId> rules;
    for (uint32_t i = 0; i <= length; ++i) rules.push_back(ir.AddRule("r" + std::to_string(i)));
    for (uint32_t i = 0; i < length; ++i) {
      // A call of itself keeps each rule a routine of its own.
      ir.Define(rules[i],
                ir.Choice({ir.Call(rules[i + 1]), ir.Literal("x" + std::to_string(i)),
                           ir.Sequence({ir.Literal("("), ir.Call(rules[i]), ir.Literal(")")})}));
    }
    ir.Define(rules[length], ir.Literal("end"));
    ir.SetRoot(rules[0]);
    const auto vocabulary = Tokens();
    auto machine = CfgMachine::Create(ir, *vocabulary);
    EXPECT_TRUE(machine.ok());
    Continuations& continuations = (*machine)->continuations();
    continuations.Expand(continuations.Start());
    const Grammar grammar(*machine, vocabulary);
    const auto end = grammar.Start().Advance("x" + std::to_string(length / 2));
    EXPECT_TRUE(end && end->accepting());
    return continuations.work();
  };
  const uint64_t once = work(200);
  EXPECT_GT(once, 200u);
  EXPECT_LT(work(800), 6 * once);
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
  EXPECT_FALSE(abc.CompletionBytes());
}

TEST(CfgTest, TokensMissingInTheVocabularyAreNamed) {
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  ir.Define(root, ir.Tokens({.names = {"<none>"}, .place = "3:7"}));
  ir.SetRoot(root);
  const auto machine = CfgMachine::Create(ir, *Tokens());
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().ToString(), "3:7: the vocabulary has no special token \"<none>\"");
  GrammarIr other;
  other.SetRoot(other.AddRule("root"));
  other.Define(other.root(), other.Tokens({.ranges = {{99999, 99999}}, .place = "3:7"}));
  EXPECT_EQ(CfgMachine::Create(other, *Tokens()).error().ToString(),
            "3:7: token id 99999 is not among the " + std::to_string(Tokens()->size()) +
                " of the vocabulary");
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

// Two tokens more were given where one was left, and refused.
TEST(CfgTest, CompletionTokensKeepToMaxTokens) {
  const auto vocabulary = Tokens();
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  ir.Define(root, ir.Literal("xxx"));
  ir.SetAttributes(root, {.max_tokens = 2});
  ir.SetRoot(root);
  auto machine = CfgMachine::Create(ir, *vocabulary);
  ASSERT_TRUE(machine.ok());
  const Grammar grammar(*machine, vocabulary);
  const State start = grammar.Start();
  EXPECT_EQ(start.CompletionBytes(), "xxx");
  EXPECT_FALSE(start.CompletionTokens());
  EXPECT_EQ(start.completion_length(), -1);
  ir.SetAttributes(root, {.max_tokens = 3});
  machine = CfgMachine::Create(ir, *vocabulary);
  ASSERT_TRUE(machine.ok());
  const Grammar enough(*machine, vocabulary);
  EXPECT_EQ(enough.Start().completion_length(), 3);
}

// States on the way out of nested brackets: each closing byte took longer than the one before it.
TEST(CfgTest, ClosingBytesCostWhatOpeningBytesCost) {
  const auto vocabulary = Tokens();
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  ir.Define(root, ir.Choice({ir.Sequence({ir.Literal("("), ir.Call(root), ir.Literal(")")}),
                             ir.Literal("x")}));
  ir.SetRoot(root);
  auto machine = CfgMachine::Create(ir, *vocabulary);
  ASSERT_TRUE(machine.ok());
  constexpr int kDepth = 50'000;
  Machine::Key state = (*machine)->Start();
  const std::clock_t begin = std::clock();  // of this process: the machine may be busy
  for (int i = 0; i < kDepth; ++i) state = (*machine)->Step(state, '(');
  const std::clock_t opened = std::clock();
  const std::clock_t limit = opened + 10 * (opened - begin) + CLOCKS_PER_SEC;
  state = (*machine)->Step(state, 'x');
  for (int i = 0; i < kDepth; ++i) {
    state = (*machine)->Step(state, ')');
    ASSERT_NE(state, Machine::kDead);
    ASSERT_LT(std::clock(), limit) << "after " << i << " of " << kDepth << " closing bytes";
  }
  EXPECT_TRUE((*machine)->Accepting(state));
}

}  // namespace
}  // namespace pawl
