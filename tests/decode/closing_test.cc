// Closing in few tokens: what is found leads to the end, and long tokens are found where the
// shortest completion has none.
#include "src/decode/closing.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grammar/machine.h"
#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "src/decode/constraint.h"
#include "tests/allowed_time.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

std::shared_ptr<const Vocabulary> LetterTokens() {
  return VocabularyOf(Letters('a', 'z', {"nation", "international", "ing", "<end>"}), {"<call>"});
}

bool Closes(State state, const std::vector<TokenId>& tokens) {
  for (const TokenId token : tokens) {
    const std::optional<State> next = state.Advance(token);
    if (!next) return false;
    state = *next;
  }
  return state.accepting();
}

TEST(ClosingTest, LongTokensAreFoundWhereTheyAreNeeded) {
  const Compiler compiler(LetterTokens());
  const auto grammar = compiler.CompileRegex("[a-z]{30}");
  ASSERT_TRUE(grammar.ok());
  const State start = grammar->Start();
  EXPECT_EQ(start.completion_length(), 30);
  EXPECT_EQ(CloseWithin(start, 30)->size(), 30u);
  for (int most = 6; most <= 29; ++most) {  // 13 + 13 + four letters
    const auto tokens = CloseWithin(start, most);
    ASSERT_TRUE(tokens) << most;
    EXPECT_LE(tokens->size(), static_cast<size_t>(most));
    EXPECT_TRUE(Closes(start, *tokens)) << most;
  }
  EXPECT_FALSE(CloseWithin(start, 2));
  EXPECT_FALSE(CloseWithin(start, 0));
  const auto constraint = MakeConstraint(*grammar);
  EXPECT_EQ(constraint->Completion(100)->size(), 30u);
  EXPECT_LE(constraint->Completion(10)->size(), 10u);
  // An accepting state is closed already.
  const auto done = start.Advance(std::string(30, 'q'));
  ASSERT_TRUE(done);
  EXPECT_TRUE(CloseWithin(*done, 0)->empty());
}

// Regression: a completion was looked for after every token, 32 times.
TEST(ClosingTest, LongTextsTakeTimeInProportion) {
  const Compiler compiler(LetterTokens());
  const auto grammar = compiler.CompileRegex("[a-z]{4000}");
  ASSERT_TRUE(grammar.ok());
  const State start = grammar->Start();
  const double begin = ProcessorSeconds();
  const auto tokens = CloseWithin(start, 400);  // 13 letters a token, and some over
  ASSERT_TRUE(tokens);
  EXPECT_LE(tokens->size(), 400u);
  EXPECT_TRUE(Closes(start, *tokens));
  EXPECT_FALSE(CloseWithin(start, 300));
  EXPECT_LT(ProcessorSeconds() - begin, AllowedSeconds(1.0));
}

// Regression: where nothing shorter is there, every token was tried with a completion for each.
TEST(ClosingTest, WhatCannotBeShorterIsGivenUpSoon) {
  std::string schema = R"({"minProperties":60,"propertyNames":{"enum":["k0")";
  for (int key = 1; key < 600; ++key) schema += ",\"k" + std::to_string(key) + "\"";
  schema += R"(]},"type":"object","additionalProperties":{"type":"null"}})";
  const auto grammar = Compiler(VocabularyOf(AllBytes())).CompileJsonSchema(schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const State start = grammar->Start();
  const int shortest = start.completion_length();
  EXPECT_GT(shortest, 500);
  const double begin = ProcessorSeconds();
  EXPECT_FALSE(CloseWithin(start, 500));
  EXPECT_LT(ProcessorSeconds() - begin, AllowedSeconds(2.0));
  EXPECT_EQ(CloseWithin(start, shortest)->size(), static_cast<size_t>(shortest));
}

TEST(ClosingTest, TokensTakenByNumberAreAmongThem) {
  const Compiler compiler(LetterTokens());
  const auto grammar =
      compiler.CompileGrammar("start: <call> /[a-z]{13}/ <call>", GrammarLanguage::kLark);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const State start = grammar->Start();
  EXPECT_EQ(start.completion_length(), 15);
  const auto tokens = CloseWithin(start, 3);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(*tokens, (std::vector<TokenId>{30, 27, 30}));
}

// Regression: a search derived a term of up to 20,000 alternatives for each character, 18 s each
// time that it was asked.
TEST(ClosingTest, LongRegexesAreReadOffTheirStructure) {
  const Compiler compiler(LetterTokens());
  const double begin = ProcessorSeconds();
  const auto grammar = compiler.CompileRegex("(a|b)*a(a|b){20000}");
  ASSERT_TRUE(grammar.ok());
  const State start = grammar->Start();
  EXPECT_EQ(start.completion_length(), 20'001);
  EXPECT_FALSE(CloseWithin(start, 50));
  EXPECT_LT(ProcessorSeconds() - begin, AllowedSeconds(0.5));
}

// Regression: 64 completions of 3,000 members were looked for, each time that it was asked.
TEST(ClosingTest, WhatNoTokensReachIsNotLookedFor) {
  std::string schema = R"({"type":"object","required":["prefix_0")";
  for (int key = 1; key < 3000; ++key) schema += ",\"prefix_" + std::to_string(key) + "\"";
  schema += "]}";
  const Compiler compiler(VocabularyOf(AllBytes({"prefix_", "{\"", "\":"})));
  const auto grammar = compiler.CompileJsonSchema(schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const double begin = ProcessorSeconds();
  EXPECT_GT(grammar->Start().completion_length(), 20'000);
  EXPECT_FALSE(CloseWithin(grammar->Start(), 200));
  EXPECT_LT(ProcessorSeconds() - begin, AllowedSeconds(1.0));
}

// Exactly `length` letters; counts the completions that it is asked for.
class Counting : public Machine {
 public:
  explicit Counting(uint32_t length) : length_(length) {}
  Key Start() override { return MakeKey(1, 1); }
  uint32_t StepLexeme(uint32_t lexeme, uint8_t) override {
    return lexeme <= length_ ? lexeme + 1 : kDeadLexeme;
  }
  Key StepFrame(Key, uint8_t) override { return kDead; }
  bool Accepting(Key state) override { return LexemeOf(state) == length_ + 1; }
  std::optional<std::string> CompletionBytes(Key state) override {
    ++asked;
    return std::string(length_ + 1 - LexemeOf(state), 'a');
  }
  int asked = 0;

 private:
  const uint32_t length_;
};

TEST(ClosingTest, WhatWasFoundIsKeptWithTheGrammar) {
  const auto machine = std::make_shared<Counting>(300);
  const Grammar grammar(machine, LetterTokens());
  const auto first = CloseWithin(grammar.Start(), 30);
  ASSERT_TRUE(first);
  const auto nothing = CloseWithin(grammar.Start(), 20);
  EXPECT_FALSE(nothing);
  EXPECT_EQ(grammar.Start().completion_length(), 300);
  const int asked = machine->asked;
  EXPECT_GT(asked, 0);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(CloseWithin(grammar.Start(), 30), first);
    EXPECT_EQ(CloseWithin(grammar.Start(), 20), nothing);
    EXPECT_EQ(grammar.Start().CompletionTokens()->size(), 300u);
  }
  EXPECT_EQ(machine->asked, asked);
}

}  // namespace
}  // namespace pawl
