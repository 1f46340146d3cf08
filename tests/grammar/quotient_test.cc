// Quotients against trying every text with the slow recogniser: what may stand between a prefix and
// a suffix, with and without gaps after it.
#include "grammar/cfg/quotient.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "tests/grammar/cfg_random.h"
#include "tests/grammar/cfg_reference.h"
#include "tests/grammar/mask_oracle.h"

namespace pawl {
namespace {

std::string RandomText(std::mt19937& random, size_t most) {
  std::string text;
  for (size_t i = random() % (most + 1); i > 0; --i) text += static_cast<char>('a' + random() % 3);
  return text;
}

// The texts of up to `length` letters that the grammar has, by the slow recogniser.
std::vector<std::string> Sentences(GrammarIr& ir, size_t length) {
  CfgReference reference(ir);
  std::vector<std::string> out;
  for (const std::string& text : TextsOfLetters(length)) {
    if (reference.Accepts(text)) out.push_back(text);
  }
  return out;
}

// Whether the grammar allows exactly these of all texts of up to `length` letters.
void ExpectAllows(Result<GrammarIr>& gap, const std::set<std::string>& expected, size_t length,
                  const std::string& what) {
  if (!gap.ok()) {
    ASSERT_EQ(gap.error().code, ErrorCode::kUnsatisfiable) << what << gap.error().ToString();
    ASSERT_TRUE(expected.empty()) << what << " refuses " << *expected.begin();
    return;
  }
  auto machine = CfgMachine::Create(*gap, *Tokens());
  if (!machine.ok()) {
    ASSERT_EQ(machine.error().code, ErrorCode::kUnsatisfiable) << machine.error().ToString();
    ASSERT_TRUE(expected.empty()) << what << " refuses " << *expected.begin();
    return;
  }
  const Grammar grammar(*machine, Tokens());
  for (const std::string& text : TextsOfLetters(length))
    ASSERT_EQ(Accepts(grammar, text), expected.contains(text)) << what << " on \"" << text << '"';
}

TEST(QuotientTest, PrefixAndSuffixAgreeWithTryingEveryText) {
  int some = 0, all = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed + 1'000'000);
    GrammarIr ir;
    MakeRandom(ir, random);
    const std::string prefix = random() % 3 == 0 ? "" : RandomText(random, 2);
    const std::string suffix = RandomText(random, 3);
    CfgReference reference(ir);
    std::set<std::string> expected;
    for (const std::string& text : TextsOfLetters(3)) {
      if (reference.Accepts(prefix + text + suffix)) expected.insert(text);
    }
    const std::vector<std::string> after = {suffix};
    Result<GrammarIr> gap = FillGap(ir, prefix, after, *Tokens());
    ExpectAllows(gap, expected, 3,
                 "seed " + std::to_string(seed) + " \"" + prefix + "\" _ \"" + suffix + '"');
    if (HasFatalFailure()) return;
    ++all;
    some += expected.empty() ? 0 : 1;
  }
  EXPECT_EQ(all, 3000);
  EXPECT_GT(some, 800);
}

// Later gaps: some text of the language, cut at the given texts, fits. Texts longer than what is
// listed could fit as well, so a grammar is only taken when its words tell: for every text that
// should not fit, no listed word says so, and for every one that does, one does.
TEST(QuotientTest, LaterGapsMayBeAnything) {
  int fitting = 0;
  for (uint32_t seed = 0; seed < 250; ++seed) {
    std::mt19937 random(seed + 2'000'000);
    GrammarIr ir;
    MakeRandom(ir, random);
    const std::vector<std::string> words = Sentences(ir, 5);
    const std::string prefix = RandomText(random, 1), middle = RandomText(random, 2),
                      last = RandomText(random, 1);
    const std::vector<std::string> after = {middle, last};
    const Result<GrammarIr> gap = FillGap(ir, prefix, after, *Tokens());
    std::shared_ptr<CfgMachine> machine;
    if (gap.ok()) {
      GrammarIr copy = *gap;
      auto made = CfgMachine::Create(copy, *Tokens());
      if (made.ok()) machine = *made;
    } else {
      ASSERT_EQ(gap.error().code, ErrorCode::kUnsatisfiable) << gap.error().ToString();
    }
    for (const std::string& text : TextsOfLetters(2)) {
      const std::string head = prefix + text + middle;
      bool expected = false;
      for (const std::string& word : words) {
        expected = expected || (word.starts_with(head) && word.ends_with(last) &&
                                word.size() >= head.size() + last.size());
      }
      const bool allowed = machine != nullptr && Accepts(Grammar(machine, Tokens()), text);
      if (expected) {
        ASSERT_TRUE(allowed) << "seed " << seed << " \"" << prefix << '|' << text << '|' << middle
                             << "|*|" << last << '"';
        ++fitting;
        continue;
      }
      if (!allowed) continue;
      // A longer text must show it: fill the next gap too, and check the whole.
      const std::vector<std::string> then = {last};
      Result<GrammarIr> next = FillGap(ir, head, then, *Tokens());
      ASSERT_TRUE(next.ok()) << "seed " << seed << " \"" << head << "|*|" << last << '"';
      auto second = CfgMachine::Create(*next, *Tokens());
      ASSERT_TRUE(second.ok()) << "seed " << seed;
      const auto completion = (*second)->CompletionBytes((*second)->Start());
      ASSERT_TRUE(completion);
      ASSERT_TRUE(CfgReference(ir).Accepts(head + *completion + last)) << "seed " << seed;
    }
  }
  EXPECT_GT(fitting, 280);
}

// Every state has a completion that makes the whole text one of the language; the mask is what
// trying every token says.
TEST(QuotientTest, RandomWalksInGapsMeetTheirMasks) {
  const auto vocabulary = Tokens();
  int states = 0;
  for (uint32_t seed = 0; seed < 1200; ++seed) {
    std::mt19937 random(seed + 3'000'000);
    GrammarIr ir;
    MakeRandom(ir, random);
    const std::string prefix = random() % 2 == 0 ? "" : RandomText(random, 2);
    const std::vector<std::string> after = {RandomText(random, 3)};
    Result<GrammarIr> gap = FillGap(ir, prefix, after, *vocabulary);
    if (!gap.ok()) continue;
    auto machine = CfgMachine::Create(*gap, *vocabulary);
    if (!machine.ok()) continue;
    CfgReference reference(ir);
    const Grammar grammar(*machine, vocabulary);
    State state = grammar.Start();
    std::string text;
    for (int step = 0; step < 6; ++step) {
      const std::vector<TokenId> allowed = AllowedTokens(
          state, *vocabulary, "seed " + std::to_string(seed) + " after \"" + text + '"');
      const auto completion = state.CompletionBytes();
      ASSERT_TRUE(completion) << "seed " << seed << " after \"" << text << '"';
      ASSERT_TRUE(reference.Accepts(prefix + text + *completion + after[0]))
          << "seed " << seed << ' ' << prefix << '|' << text << '|' << *completion << '|'
          << after[0];
      ++states;
      if (allowed.empty()) break;
      const TokenId token = allowed[random() % allowed.size()];
      text += vocabulary->bytes(token);
      state = *state.Advance(token);
    }
  }
  EXPECT_GT(states, 1500);
}

// With 50 gaps that took half a minute and longer.
TEST(QuotientTest, ManyGapsAreRefusedInTime) {
  GrammarIr ir;  // sums, with parentheses
  const GrammarIr::RuleId sum = ir.AddRule("sum"), term = ir.AddRule("term");
  const GrammarIr::ExprId more = ir.Sequence({ir.Literal("a"), ir.Call(term)});
  ir.Define(sum, ir.Sequence({ir.Call(term), ir.Repeat(more, 0, GrammarIr::kUnbounded)}));
  ir.Define(term, ir.Choice({ir.Literal("b"),
                             ir.Sequence({ir.Literal("c"), ir.Call(sum), ir.Literal("a")})}));
  ir.SetRoot(sum);
  const std::vector<std::string> few(8, "a"), many(1000, "a");
  EXPECT_TRUE(FillGap(ir, "", few, *Tokens()).ok());
  const Result<GrammarIr> gap = FillGap(ir, "", many, *Tokens());
  ASSERT_FALSE(gap.ok());
  EXPECT_EQ(gap.error().code, ErrorCode::kLimit);
  EXPECT_EQ(gap.error().message, "the gaps from here on fit in too many ways");
  EXPECT_TRUE(gap.error().place.starts_with("after ")) << gap.error().place;
}

}  // namespace
}  // namespace pawl
