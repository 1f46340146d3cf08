// Tokens that a grammar names by number or name, or by "any but": what the mask says is what a
// matcher takes, nothing is forced where such a token may come, and a set without any token is a
// dead end. Every state that can be reached by a few tokens is asked about every token.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/matcher.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr TokenId kA = 0, kB = 1, kEnd = 2;

std::shared_ptr<const Vocabulary> Small() { return VocabularyOf({"a", "b"}, {}, {"</s>"}); }

struct TokenSetCase {
  GrammarLanguage language;
  std::string text;
};

Result<Grammar> CompileCase(const TokenSetCase& c) {
  return Compiler(Small()).CompileGrammar(c.text, c.language);
}

uint32_t MaskOf(const Matcher& matcher) {
  uint32_t row = 0;
  matcher.FillMask({&row, 1});
  return row;
}

// The mask against Accept, here and after each token that is taken.
void ExpectAgreement(const Matcher& matcher, int depth, const std::string& after) {
  const uint32_t mask = MaskOf(matcher);
  bool forced_fits = matcher.ForcedBytes().empty();
  for (TokenId token = 0; token < 3; ++token) {
    Matcher next = matcher;
    const bool taken = next.Accept(token);
    EXPECT_EQ(taken, (mask >> token & 1) != 0) << "token " << token << " after " << after;
    if (!taken) continue;
    if (!matcher.ForcedBytes().empty()) {
      EXPECT_EQ(matcher.ForcedBytes()[0], token == kA ? 'a' : 'b') << "after " << after;
      forced_fits = true;
    }
    if (depth > 0) ExpectAgreement(next, depth - 1, after + std::to_string(token));
  }
  EXPECT_TRUE(forced_fits) << "after " << after;
}

const std::vector<TokenSetCase> kTokenSetCases = {
    {GrammarLanguage::kLark, "start: <[*]> \"b\""},
    {GrammarLanguage::kLark, "start: <[*]>* \"b\""},
    {GrammarLanguage::kLark, "start: <[^0]> \"b\""},
    {GrammarLanguage::kLark, "start: \"a\" </s> \"b\""},
    {GrammarLanguage::kLark, "start: \"a\" (</s> \"b\")?"},
    {GrammarLanguage::kLark, "start: </s>* \"b\""},
    {GrammarLanguage::kLark, "start: (<[0]> | \"b\") \"a\""},
    {GrammarLanguage::kLark, "start: \"a\" (<[2]> | \"b\")* \"b\""},
    {GrammarLanguage::kEbnf, "root ::= ExcludeToken(0) \"b\""},
    {GrammarLanguage::kEbnf, "root ::= Token(2, 0) \"b\""},
    {GrammarLanguage::kGbnf, "root ::= !<[0]> \"b\""},
    {GrammarLanguage::kGbnf, "root ::= \"a\" (!<[0]>)* \"a\""},
    {GrammarLanguage::kGbnf, "root ::= \"a\" !</s>* \"bb\""},
};

TEST(TokenSet, TheMaskSaysWhatAMatcherTakes) {
  for (const TokenSetCase& c : kTokenSetCases) {
    SCOPED_TRACE(c.text);
    auto grammar = CompileCase(c);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    ExpectAgreement(Matcher(*grammar), 4, "");
    for (const std::vector<TokenId>& ends :
         {std::vector<TokenId>{kEnd}, {kB}, {kA, kEnd}, {kA, kB}}) {
      SCOPED_TRACE(testing::PrintToString(ends));
      auto matcher = Matcher::Create(*grammar, {.end_tokens = ends});
      ASSERT_TRUE(matcher.ok());
      const uint32_t mask = MaskOf(*matcher);
      for (TokenId token = 0; token < 3; ++token)
        EXPECT_EQ(Matcher(*matcher).Accept(token), (mask >> token & 1) != 0) << token;
    }
    auto without =
        Matcher::Create(*grammar, {.end_tokens = {}, .terminate_without_end_token = true});
    ASSERT_TRUE(without.ok());
    ExpectAgreement(*without, 4, "");
  }
}

TEST(TokenSet, AnyTokenIsNoneThatEndsTheOutput) {
  for (const char* text : {"start: <[*]> \"b\"", "start: <[^0]> \"b\""}) {
    const Grammar grammar = *CompileCase({GrammarLanguage::kLark, text});
    EXPECT_EQ(MaskOf(Matcher(grammar)) & 4u, 0u) << text;
    EXPECT_FALSE(grammar.Start().Advance(kEnd).has_value()) << text;
  }
  const Grammar tag = *Compiler(Small()).CompileStructuralTag(
      R"({"type":"structural_tag","format":{"type":"sequence","elements":[
          {"type":"exclude_token","exclude_tokens":[0]},
          {"type":"const_string","value":"b"}]}})");
  EXPECT_EQ(MaskOf(Matcher(tag)), 2u);
  EXPECT_FALSE(tag.Start().Advance(kEnd).has_value());
}

TEST(TokenSet, AnEndTokenThatIsNamedGoesOn) {
  Matcher matcher(*CompileCase({GrammarLanguage::kLark, "start: \"a\" </s> \"b\""}));
  ASSERT_TRUE(matcher.Accept(kA));
  EXPECT_EQ(MaskOf(matcher), 4u);
  ASSERT_TRUE(matcher.Accept(kEnd));
  EXPECT_FALSE(matcher.terminated());
  EXPECT_EQ(MaskOf(matcher), 2u);
  ASSERT_TRUE(matcher.Accept(kB));
  EXPECT_TRUE(matcher.accepting());
  EXPECT_EQ(MaskOf(matcher), 4u);
  ASSERT_TRUE(matcher.Accept(kEnd));
  EXPECT_TRUE(matcher.terminated());
}

// Where the text is complete the same token ends it, although the grammar could go on with it.
TEST(TokenSet, AnEndTokenEndsACompleteText) {
  const Grammar grammar = *CompileCase({GrammarLanguage::kLark, "start: \"a\" (</s> \"b\")?"});
  Matcher matcher(grammar);
  ASSERT_TRUE(matcher.Accept(kA));
  ASSERT_TRUE(matcher.Accept(kEnd));
  EXPECT_TRUE(matcher.terminated());
  // Without end tokens it can only go on.
  Matcher other =
      *Matcher::Create(grammar, {.end_tokens = {}, .terminate_without_end_token = true});
  ASSERT_TRUE(other.Accept(kA));
  EXPECT_FALSE(other.terminated());
  EXPECT_EQ(MaskOf(other), 4u);
  ASSERT_TRUE(other.Accept(kEnd));
  ASSERT_TRUE(other.Accept(kB));
  EXPECT_TRUE(other.terminated());
}

TEST(TokenSet, NothingIsForcedWhereATokenMayCome) {
  const std::vector<std::pair<TokenSetCase, std::string>> cases = {
      {{GrammarLanguage::kGbnf, "root ::= \"a\" (!<[1]>)* \"bb\""}, "a"},
      {{GrammarLanguage::kLark, "start: (<[0]> | \"b\") \"b\""}, ""},
      {{GrammarLanguage::kLark, "start: </s>* \"b\""}, ""},
  };
  for (const auto& [c, before] : cases) {
    Matcher matcher(*CompileCase(c));
    ASSERT_TRUE(matcher.AcceptBytes(before));
    EXPECT_EQ(matcher.ForcedBytes(), "") << c.text;
    EXPECT_TRUE(matcher.ForcedTokens().empty()) << c.text;
  }
  // What stands before such a place still is.
  EXPECT_EQ(
      Matcher(*CompileCase({GrammarLanguage::kLark, "start: \"ab\" </s>? \"b\""})).ForcedBytes(),
      "ab");
  const Matcher tag(*Compiler(Small()).CompileStructuralTag(
      R"({"type":"structural_tag","format":{"type":"sequence","elements":[
          {"type":"any_tokens"},{"type":"const_string","value":"bb"}]}})"));
  EXPECT_EQ(tag.ForcedBytes(), "");
}

TEST(TokenSet, ASetWithoutTokensIsADeadEnd) {
  for (const TokenSetCase& c :
       {TokenSetCase{GrammarLanguage::kLark, "start: <[^0-2]> \"b\""},
        TokenSetCase{GrammarLanguage::kLark, "start: \"a\" <[^0-1]>"},
        TokenSetCase{GrammarLanguage::kEbnf, "root ::= \"a\" ExcludeToken(0, 1, 2)"}}) {
    const auto grammar = CompileCase(c);
    ASSERT_FALSE(grammar.ok()) << c.text;
    EXPECT_EQ(grammar.error().code, ErrorCode::kUnsatisfiable) << c.text;
  }
  const Grammar grammar =
      *CompileCase({GrammarLanguage::kLark, "start: \"a\" (\"a\" <[^0-1]> | \"b\")"});
  Matcher matcher(grammar);
  ASSERT_TRUE(matcher.Accept(kA));
  EXPECT_EQ(MaskOf(matcher), 2u);
  EXPECT_FALSE(matcher.AcceptBytes("a"));
}

}  // namespace
}  // namespace pawl
