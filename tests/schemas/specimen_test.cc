// Masks found beforehand: how many, for which texts, and that they are the same as those that are
// found when they are asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar_access.h"
#include "pawl/compiler.h"
#include "pawl/matcher.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr const char* kRecord = R"({"type":"object","properties":{
    "name":{"type":"string"},"age":{"type":"integer","minimum":0},"kind":{"enum":["big","small"]},
    "tags":{"type":"array","items":{"type":"string"}},
    "home":{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string"}},
            "required":["city"]},
    "ok":{"type":"boolean"}},"required":["name","ok"],"additionalProperties":false})";
constexpr const char* kTree = R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{
    "left":{"$ref":"#/$defs/t"},"right":{"$ref":"#/$defs/t"},"v":{"type":"number"}}}}})";

std::shared_ptr<const Vocabulary> PreparedTokens() {
  static const auto vocabulary = VocabularyOf(
      AllBytes({"{\"",  "\":",  " \"",   "\",", "\"}",  ", ",    "name", "age",  "kind", "tags",
                "home", "city", "zip",   "ok",  "true", "false", " [\"", "\"],", " {\"", "\"},",
                "12",   "big",  "small", "Ann", "left", "right", "ab",   " a"}));
  return vocabulary;
}

Grammar GrammarOf(const char* schema) {
  auto grammar = Compiler(PreparedTokens()).CompileJsonSchema(schema);
  EXPECT_TRUE(grammar.ok());
  return *grammar;
}

std::vector<TokenId> LongestTokensOf(std::string_view text) {
  std::vector<TokenId> tokens;
  for (; !text.empty(); text.remove_prefix(PreparedTokens()->bytes(tokens.back()).size()))
    tokens.push_back(PreparedTokens()->LongestPrefix(text));
  return tokens;
}

size_t PrepareAll(const Grammar& grammar, size_t bytes) {
  size_t found = 0;
  for (const std::string& text : grammar.SampleTexts(bytes))
    found += grammar.PrepareMasks(LongestTokensOf(text));
  return found;
}

// Masks that were made while the text was read.
uint64_t MasksMadeAlong(const Grammar& grammar, std::string_view text) {
  const uint64_t before = GrammarAccess::MasksMadeBy(grammar.Start()).count;
  const std::vector<TokenId> tokens = LongestTokensOf(text);
  EXPECT_EQ(grammar.PrepareMasks(tokens), tokens.size() + 1);
  return GrammarAccess::MasksMadeBy(grammar.Start()).count - before;
}

TEST(SpecimenTest, HasEachPropertyOnceAndFits) {
  using Texts = std::vector<std::string>;
  const Texts record = {R"({"name": "a", "age": 12, "kind": "big", "tags": ["a", "a"], )"
                        R"("home": {"city": "a", "zip": "a"}, "ok": true})"};
  EXPECT_EQ(GrammarOf(kRecord).SampleTexts(1000), record);
  const Texts tree = GrammarOf(kTree).SampleTexts(1000);
  const Texts expected = {
      R"({"left": {"left": {}, "right": {}, "v": 12.5}, "right": {}, "v": 12.5})"};
  EXPECT_EQ(tree, expected);
  const Texts regex = {"aaa-0"};
  EXPECT_EQ(Compiler(PreparedTokens()).CompileRegex("[a-c]{3}-[0-9]+")->SampleTexts(100), regex);
}

TEST(SpecimenTest, GoesIntoEachBranchOfAChoice) {
  const std::vector<std::string> expected = {R"({"square": {"side": 12}})",
                                             R"({"disc": {"r": 12.5}})"};
  EXPECT_EQ(GrammarOf(R"({"anyOf":[
      {"type":"object","properties":{"square":{"type":"object","properties":{"side":{"type":"integer"}},
       "required":["side"]}},"required":["square"],"additionalProperties":false},
      {"type":"object","properties":{"disc":{"type":"object","properties":{"r":{"type":"number"}},
       "required":["r"]}},"required":["disc"],"additionalProperties":false}]})")
                .SampleTexts(1000),
            expected);
}

TEST(SpecimenTest, GoesOnBehindKeysThatHaveNoName) {
  const std::vector<std::string> texts =
      GrammarOf(R"({"type":"object","properties":{"a":{"type":"integer"}},
      "patternProperties":{"^x":{"const":7}},"additionalProperties":false,"minProperties":2})")
          .SampleTexts(1000);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(texts[0].starts_with(R"({"a": 12,)")) << texts[0];
  EXPECT_TRUE(texts[0].ends_with("}")) << texts[0];
}

TEST(SpecimenTest, EndsWhereItIsToldTo) {
  EXPECT_TRUE(GrammarOf(kRecord).SampleTexts(0).empty());
  const std::string whole = GrammarOf(kRecord).SampleTexts(1000)[0];
  for (const size_t bytes : {1u, 7u, 40u, 90u}) {
    const std::string text = GrammarOf(kRecord).SampleTexts(bytes)[0];
    EXPECT_GE(text.size(), bytes);
    EXPECT_LE(text.size(), bytes + 16);  // of the longest piece
    EXPECT_TRUE(whole.starts_with(text));
  }
}

TEST(SpecimenTest, MasksAlongLikelyTextsAreKnown) {
  // In the order of the schema, with other values and with keys left out.
  constexpr const char* kText =
      R"({"name": "Ann", "age": 12, "tags": ["ab", "Ann", "a"], "home": {"city": "ab"}, "ok": false})";
  const Grammar cold = GrammarOf(kRecord), warm = GrammarOf(kRecord);
  EXPECT_EQ(PrepareAll(warm, 1000), 49u);
  EXPECT_EQ(GrammarAccess::MasksMadeBy(warm.Start()).count, 43u);  // some places are the same
  EXPECT_EQ(MasksMadeAlong(cold, kText), 32u);
  EXPECT_EQ(MasksMadeAlong(warm, kText), 4u);
  // What is known is not found a second time.
  const uint64_t before = GrammarAccess::MasksMadeBy(warm.Start()).count;
  PrepareAll(warm, 1000);
  EXPECT_EQ(GrammarAccess::MasksMadeBy(warm.Start()).count, before);
}

TEST(SpecimenTest, TokensThatDoNotFitEndThePreparing) {
  const Grammar grammar = GrammarOf(kRecord);
  EXPECT_EQ(grammar.PrepareMasks({}), 1u);
  EXPECT_EQ(grammar.PrepareMasks(LongestTokensOf(R"({"name": 12)")), 5u);
  EXPECT_EQ(grammar.PrepareMasks(std::vector<TokenId>{-1, 100000}), 1u);
}

TEST(SpecimenTest, MasksAreTheSame) {
  std::mt19937 random(5);
  for (const char* schema : {kRecord, kTree}) {
    const Grammar cold = GrammarOf(schema), warm = GrammarOf(schema);
    PrepareAll(warm, 400);
    for (int walk = 0; walk < 60; ++walk) {
      State a = cold.Start(), b = warm.Start();
      for (int step = 0; step < 60; ++step) {
        ASSERT_TRUE(std::ranges::equal(a.mask()->words(), b.mask()->words()));
        const std::vector<TokenId> tokens = a.mask()->Tokens();
        const TokenId token = tokens[random() % tokens.size()];
        const auto next = a.Advance(token);
        if (!next) break;  // an end token
        a = *next;
        b = *b.Advance(token);
      }
    }
  }
}

}  // namespace
}  // namespace pawl
