// Outputs under a grammar that reaches its limit: closed in the shortest form, with a note.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/languages/ebnf.h"
#include "pawl/grammar.h"
#include "tests/support/session.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

Result<Generation> Output(const CfgLimits& limits, const GenerateOptions& options) {
  const auto vocabulary = VocabularyOf({"a", "b", "aa", "ba"});
  auto ir = ReadEbnf("root ::= s\ns ::= \"a\" s \"a\" | \"b\" s \"b\" | \"a\"\n", {});
  EXPECT_TRUE(ir.ok());
  auto machine = CfgMachine::Create(*ir, *vocabulary, limits);
  EXPECT_TRUE(machine.ok());
  const Grammar grammar(*machine, vocabulary);
  // Likes the letter a best, and the end least.
  ToyModel model({.vocabulary_size = 5, .context_length = 4000, .reads = false},
                 [](const ToyModel::Place&, std::span<float> out) {
                   for (size_t i = 0; i < 5; ++i) out[i] = static_cast<float>(5 - i);
                 });
  Session session(model, vocabulary);
  const TokenId prompt[] = {0};
  return session.Generate(prompt, MakeConstraint(grammar), options);
}

TEST(LimitTest, AnOutputIsClosedAndSaysWhy) {
  GenerateOptions options;
  options.max_tokens = 1000;
  const CfgLimits limits = {.mask_steps = 400, .crowd = 0};
  for (const bool skip_forced : {true, false}) {
    options.skip_forced = skip_forced;
    const Result<Generation> output = Output(limits, options);
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    EXPECT_EQ(output->stop, StopReason::kClosed) << output->text;
    ASSERT_EQ(output->notes.size(), 1u);
    EXPECT_TRUE(output->notes[0].starts_with("rule \"s\" can be read in too many ways"))
        << output->notes[0];
    EXPECT_GT(output->tokens.size(), 3u);
    EXPECT_LT(output->tokens.size(), 900u);
    EXPECT_LE(output->stats.closing_tokens, 1);
    EXPECT_EQ(output->text, std::string(output->text.size(), 'a'));
    EXPECT_EQ(output->text.size() % 2, 1u);
  }
}

// Where an output is cut at its budget, the mask leads to the end.
TEST(LimitTest, AnOutputThatIsNotClosedFollowsTheMask) {
  GenerateOptions options;
  options.max_tokens = 1000;
  options.at_budget = AtBudget::kCut;
  const Result<Generation> output = Output({.mask_steps = 400, .crowd = 0}, options);
  ASSERT_TRUE(output.ok()) << output.error().ToString();
  EXPECT_EQ(output->stop, StopReason::kEnd);
  EXPECT_EQ(output->notes.size(), 1u);
  EXPECT_LT(output->tokens.size(), 900u);
}

TEST(LimitTest, OutputsWithinTheLimitHaveNoNotes) {
  GenerateOptions options;
  options.max_tokens = 100;
  const Result<Generation> output = Output({}, options);
  ASSERT_TRUE(output.ok()) << output.error().ToString();
  EXPECT_EQ(output->stop, StopReason::kClosed);
  EXPECT_TRUE(output->notes.empty());
  EXPECT_GT(output->tokens.size(), 50u);
  EXPECT_EQ(output->text.size() % 2, 1u);
}

}  // namespace
}  // namespace pawl
