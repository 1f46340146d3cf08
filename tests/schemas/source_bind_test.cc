// When the text of copied fields comes: grammars that wait for it, what is made of them, a second
// text, and several texts at once, whose spans are those of each text by itself.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "pawl/combine.h"
#include "pawl/compiler.h"
#include "pawl/matcher.h"
#include "schemas/read/source_values.h"
#include "src/base/source_text.h"
#include "src/base/utf8.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr const char* kRecord =
    R"({"type":"object","properties":{"a":{"type":"string","x-pawl-source":"span"}},)"
    R"("required":["a"],"additionalProperties":false})";
constexpr const char* kPlace = "#/properties/a/x-pawl-source";

class SourceBindTest : public testing::Test {
 protected:
  SourceBindTest() {
    options_.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    options_.bind_source = true;
  }
  Grammar Waits(const std::string& schema) const {
    Result<Grammar> grammar = compiler_.CompileJsonSchema(schema, options_);
    EXPECT_TRUE(grammar.ok()) << schema;
    return *std::move(grammar);
  }
  static bool Takes(const Grammar& grammar, const std::string& text) {
    const auto end = grammar.Start().Advance(text);
    return end && end->accepting();
  }

  const Compiler compiler_{Bytes()};
  JsonSchemaOptions options_;
};

TEST_F(SourceBindTest, WhatIsMadeOfAGrammarThatWaitsWaits) {
  const Grammar waits = Waits(kRecord);
  const std::vector<std::string> words = {"Lee"};
  const Grammar upper = *compiler_.CompileRegex(R"(\{"a":"[A-Z][^"]*"\})");
  const auto bound = [](const Result<Grammar>& made) {
    EXPECT_TRUE(made.ok()) << made.error().ToString();
    EXPECT_EQ(made->unbound(), kPlace);
    Result<Grammar> with = made->Bind("Ann Lee and bob");
    EXPECT_TRUE(with.ok()) << with.error().ToString();
    EXPECT_EQ(with->unbound(), "");
    EXPECT_EQ(with->Bind("other").error().place, kPlace);
    return *with;
  };
  const Grammar gap = bound(Infill(waits, {.prefix = R"({"a":")", .after = {" and bob\"}"}}));
  EXPECT_TRUE(Takes(gap, "Ann Lee"));
  EXPECT_TRUE(Takes(gap, "Lee"));
  EXPECT_FALSE(Takes(gap, "Eve"));
  EXPECT_FALSE(Takes(gap, "nn Lee"));
  const Grammar with = bound(RequireWords(waits, words));
  EXPECT_TRUE(Takes(with, R"({"a":"Lee and"})"));
  EXPECT_FALSE(Takes(with, R"({"a":"bob"})"));
  EXPECT_FALSE(Takes(with, R"({"a":"Lee"}x)"));
  EXPECT_FALSE(Takes(with, R"({"a":"Lee Lee"})"));
  for (const bool left : {true, false}) {
    const Grammar both = bound(left ? Intersect(waits, upper) : Intersect(upper, waits));
    EXPECT_TRUE(Takes(both, R"({"a":"Lee and"})"));
    EXPECT_FALSE(Takes(both, R"({"a":"bob"})"));
    EXPECT_FALSE(Takes(both, R"({"a":"Eve"})"));
  }
  const Grammar end = bound(Endings(waits, R"({"a":")"));
  const Grammar same = *Endings(*waits.Bind("Ann Lee and bob"), R"({"a":")");
  for (const char* text : {"bob\"}", "Ann Lee and bob\"}", "\"}", "}"})
    EXPECT_EQ(Takes(end, text), Takes(same, text)) << text;
  EXPECT_FALSE(Takes(end, "eve\"}"));
}

// Schemas inside grammars and structural tags wait as well.
TEST_F(SourceBindTest, SchemasInsideGrammarsWait) {
  GrammarOptions inside;
  inside.json_schema = options_;
  const std::string schema = kRecord;
  const std::vector<Result<Grammar>> made = {
      compiler_.CompileGrammar("start: \"x\" %json " + schema, GrammarLanguage::kLark, inside),
      compiler_.CompileStructuralTag(
          R"({"type":"structural_tag","format":{"type":"sequence","elements":[)"
          R"({"type":"const_string","value":"x"},{"type":"json_schema","json_schema":)" +
              schema + "}]}}",
          inside)};
  for (const Result<Grammar>& waits : made) {
    ASSERT_TRUE(waits.ok()) << waits.error().ToString();
    EXPECT_NE(waits->unbound().find("x-pawl-source"), std::string::npos);
    for (const char* name : {"Ann", "Bob"}) {
      const Result<Grammar> bound = waits->Bind(std::string("It is ") + name);
      ASSERT_TRUE(bound.ok()) << bound.error().ToString();
      EXPECT_EQ(Takes(*bound, R"(x{"a":"Ann"})"), std::string(name) == "Ann");
      EXPECT_EQ(Takes(*bound, R"(x{"a":"Bob"})"), std::string(name) == "Bob");
      EXPECT_FALSE(bound->Bind("Eve").ok());
    }
    EXPECT_EQ(waits->Bind(" ").error().code, ErrorCode::kUnsatisfiable);
    const Result<Grammar> gap = Infill(*waits, {.prefix = "x{\"a\":\"", .after = {"\"}"}});
    ASSERT_TRUE(gap.ok()) << gap.error().ToString();
    EXPECT_TRUE(Takes(*gap->Bind("Ann"), "Ann"));
    EXPECT_FALSE(Takes(*gap->Bind("Ann"), "Bob"));
  }
}

// The bug: a second Bind answered with the grammar of the first text.
TEST_F(SourceBindTest, ASecondTextIsAnError) {
  const auto refused = [](const Result<Grammar>& again, const std::string& place) {
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(again.error().place, place);
  };
  const Grammar waits = Waits(kRecord);
  refused(waits.Bind("Ann")->Bind("Bob"), kPlace);
  EXPECT_TRUE(Takes(*waits.Bind("Bob"), R"({"a":"Bob"})"));
  JsonSchemaOptions given = options_;
  given.bind_source = false;
  given.source = "Ann";
  refused(compiler_.CompileJsonSchema(kRecord, given)->Bind("Bob"), kPlace);
  options_.keys = given.keys = JsonSchemaOptions::Keys::kAll;
  refused(Waits(kRecord).Bind("Ann")->Bind("Bob"), kPlace);
  given.keys = JsonSchemaOptions::Keys::kRequired;
  GrammarOptions inside;
  inside.json_schema = given;
  refused(
      compiler_
          .CompileGrammar(std::string("start: %json ") + kRecord, GrammarLanguage::kLark, inside)
          ->Bind("Bob"),
      kPlace);
  // Without such a field there is nothing to bind.
  EXPECT_TRUE(compiler_.CompileJsonSchema("{}", given)->Bind("Bob").ok());
}

TEST_F(SourceBindTest, NothingTakesAGrammarThatWaits) {
  const Grammar waits = Waits(kRecord);
  const Result<Matcher> made = Matcher::Create(waits, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().place, kPlace);
  Matcher matcher(waits);
  std::vector<uint32_t> row(waits.vocabulary().mask_words());
  EXPECT_FALSE(matcher.FillMask(row));
  EXPECT_FALSE(matcher.AcceptBytes("{"));
  EXPECT_FALSE(matcher.accepting());
  matcher.Reset();
  EXPECT_FALSE(matcher.AcceptBytes("{"));
  EXPECT_TRUE(Matcher(*waits.Bind("Ann")).AcceptBytes(R"({"a":"Ann"})"));
}

TEST_F(SourceBindTest, ATextThatIsNoUtf8IsRefused) {
  for (const char* text : {"a\x80", "ok\xff\xc3", "\xed\xa0\x80"}) {
    const Result<Grammar> bound = Waits(kRecord).Bind(text);
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().place, kPlace);
  }
}

// Several texts: the values are those of each of them.
TEST_F(SourceBindTest, NoSpanCrossesTheBorderOfTexts) {
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {"a", "b", " ",      "\n",     "1",      ".",
                                           ",", "'", "\u00e9", "\u4e2d", "\ufe0f", "-"};
  for (const char* kind : {"span", "chars"}) {
    const Grammar waits =
        Waits(R"({"type":["string","null"],"x-pawl-source":")" + std::string(kind) + "\"}");
    const SpanKind of = kind == std::string("span") ? SpanKind::kSpan : SpanKind::kChars;
    for (int round = 0; round < 60; ++round) {
      std::vector<std::string> texts(1 + random() % 3);
      std::string joined, plain;
      for (std::string& text : texts) {
        for (size_t n = random() % 5; n > 0; --n) text += pieces[random() % pieces.size()];
        joined += (&text == texts.data() ? std::string() : std::string(1, kTextBorder)) + text;
        plain += text;
      }
      const Grammar all = *waits.Bind(joined);
      std::vector<Grammar> each;
      for (const std::string& text : texts) each.push_back(*waits.Bind(text));
      const std::u32string whole(SourceText(plain, SourceText::Spaces::kAsGiven).text());
      std::set<std::u32string> values;
      for (size_t i = 0; i < whole.size(); ++i) {
        for (size_t n = 1; i + n <= whole.size(); ++n) values.insert(whole.substr(i, n));
      }
      SourceText source(joined);
      for (const std::u32string& value : values) {
        const std::string written = "\"" + EncodeCodepoints(value) + "\"";
        bool some = false;
        for (const Grammar& one : each) some = some || Takes(one, written);
        EXPECT_EQ(Takes(all, written), some) << written << " in " << joined;
        EXPECT_EQ(!source.Find(of, value).empty(), some) << written << " in " << joined;
        // No dead end on the way.
        for (size_t n = 1; n < written.size(); ++n) {
          const auto at = all.Start().Advance(written.substr(0, n));
          EXPECT_TRUE(!at || Takes(all, written.substr(0, n) + at->CompletionBytes().value_or("x")))
              << written.substr(0, n) << " in " << joined;
        }
      }
    }
  }
  // Numbers and times do not cross it either, and end there.
  SourceText source("1\xff 240 at noon\xff, 5 March\xff 2024");
  std::set<std::string> numbers, times;
  for (const auto& one : schema::NumbersIn(source.text())) numbers.insert(one.value.ToString());
  for (const auto& one : schema::DatesIn(source.text(), "time")) times.insert(one.value);
  EXPECT_EQ(numbers, (std::set<std::string>{"1", "240", "5", "2024"}));
  EXPECT_EQ(times, std::set<std::string>{"12:00:00Z"});
  EXPECT_TRUE(schema::DatesIn(source.text(), "date").empty());
}

}  // namespace
}  // namespace pawl
