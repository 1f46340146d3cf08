// Places of values in JSON texts, choices of schemas, and the figures of tokens as those of values.
#include "src/engine/record_details.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/utf8.h"
#include "src/engine/copied_text.h"
#include "src/engine/record_values.h"
#include "src/text/tokenizer.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// A token for each byte, as ByteLevel writes them.
std::shared_ptr<const Tokenizer> ByteTokenizer(const std::string& normalizer) {
  std::string vocabulary;
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool shown = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    const std::string name = EncodeCodepoints(std::u32string(1, shown ? byte : next++));
    vocabulary += (byte > 0 ? "," : "") + json::Quote(name) + ":" + std::to_string(byte);
  }
  const auto made = Tokenizer::FromJson(
      R"({"version":"1.0","added_tokens":[],"normalizer":)" + normalizer +
      R"(,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":false},)"
      R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)" +
      vocabulary + R"(},"merges":[]}})");
  EXPECT_TRUE(made.ok()) << made.error().ToString();
  return made.ok() ? *made : nullptr;
}

// Bug: the model sees composed letters, and a text with marks of their own refused what it wrote.
TEST(RecordDetailsTest, CopiedTextsAreAsTheModelSeesThem) {
  const std::string text = "für Zoe\u0308, 7 \u1112\u1161\u11ab";
  const CopiedText plain(*ByteTokenizer("null"), text);
  EXPECT_EQ(plain.text(), text);
  const CopiedText composed(*ByteTokenizer(R"({"type":"NFC"})"), text);
  EXPECT_EQ(composed.text(), "für Zoë, 7 한");
  const std::vector<Span> spans =
      composed.Spans(*json::Parse(R"({"who":"Zoë","n":7,"last":"한"})"));
  ASSERT_EQ(spans.size(), 3u);
  const auto slice = [&](const Span& span) {
    return text.substr(span.begin_byte, span.end_byte - span.begin_byte);
  };
  EXPECT_EQ(slice(spans[0]), "Zoe\u0308");
  EXPECT_EQ(spans[0].end, 8u);
  EXPECT_EQ(slice(spans[1]), "7");
  EXPECT_EQ(slice(spans[2]), "\u1112\u1161\u11ab");
  EXPECT_EQ(spans[2].begin, 12u);
}

// Bug: a value of a field with "chars" that stands inside a word had no place.
TEST(RecordDetailsTest, SpansOfCharactersHaveTheirPlaces) {
  const json::Value record = *json::Parse(R"({"a":"234","b":"Ann","c":"zz"})");
  const std::string text = "No. 12345 of Anna, Ann";
  const auto places = [&](const char* schema) {
    std::string out;
    for (const Span& span : FindSpans(record, text, SpanKindOf(*json::Parse(schema)))) {
      out += span.pointer + ":" + std::to_string(span.begin) + "-" + std::to_string(span.end) + " ";
    }
    return out;
  };
  EXPECT_EQ(places(R"({"items":{"x-pawl-source":"span"}})"), "/b:19-22 ");
  EXPECT_EQ(places(R"({"items":[{"x-pawl-source":"chars"}]})"), "/a:5-8 /b:19-22 ");
}

TEST(RecordDetailsTest, ValuesHaveTheirPlaces) {
  const std::string text =
      R"({ "a\"" : [ 1, {}, [true ,null] ],"b/c":"x}\\", "\u00e4": -2.5e3 } <end>)";
  size_t end = 0;
  const auto places = ValuesIn(text, &end);
  ASSERT_TRUE(places.has_value());
  EXPECT_EQ(text.substr(end), " <end>");
  std::string all;
  for (const ValuePlace& place : *places) {
    all += place.pointer + "=" + text.substr(place.begin, place.end - place.begin) + ";";
    EXPECT_NE(std::string(":[,").find(text[place.from - 1]), std::string::npos) << place.pointer;
  }
  EXPECT_EQ(all, R"(/a"/0=1;/a"/1={};/a"/2/0=true;/a"/2/1=null;/b~1c="x}\\";/ä=-2.5e3;)");
  for (const char* bad :
       {"", "{", R"({"a")", R"({"a":})", "[1", "[1,", R"({"a":1)", R"("\)", "{1:2}"})
    EXPECT_FALSE(ValuesIn(bad).has_value()) << bad;
  EXPECT_FALSE(ValuesIn(std::string(5000, '[')).has_value());
}

TEST(RecordDetailsTest, ChoicesAreFollowedThroughSchemas) {
  const json::Value schema = *json::Parse(R"({"$defs":{"kind":{"enum":["a","b"]},"self":{"$ref":
    "#/$defs/self"}},"properties":{"kind":{"$ref":"#/$defs/kind"},"on":{"type":["boolean","null"]},
    "or":{"anyOf":[{"$ref":"#/$defs/kind"},{"const":7},{"type":"null"}]},"open":{"anyOf":[{"enum":
    [1]},{"type":"string"}]},"list":{"items":{"properties":{"k":{"enum":[1,2.0]}}}},"pair":{
    "prefixItems":[{"const":"x"}],"items":{"type":"boolean"}},"loop":{"$ref":"#/$defs/self"},
    "free":{"type":"string"}},"additionalProperties":{"type":"boolean"}})");
  const auto at = [&](const char* pointer) {
    std::string out;
    const auto found = ChoicesAt(schema, pointer);
    if (!found) return std::string("none");
    for (const std::string& one : *found) out += one + " ";
    return out;
  };
  EXPECT_EQ(at("/kind"), R"("a" "b" )");
  EXPECT_EQ(at("/on"), "true false null ");
  EXPECT_EQ(at("/or"), R"("a" "b" 7 null )");
  EXPECT_EQ(at("/open"), "none");
  EXPECT_EQ(at("/list/12/k"), "1 2.0 ");
  EXPECT_EQ(at("/pair/0"), "\"x\" ");
  EXPECT_EQ(at("/pair/1"), "true false ");
  EXPECT_EQ(at("/loop"), "none");
  EXPECT_EQ(at("/free"), "none");
  EXPECT_EQ(at("/other"), "true false ");
  EXPECT_EQ(at(""), "none");
}

// Tokens that cross the ends of values belong to both; the mark behind a value to none.
TEST(RecordDetailsTest, FiguresAreThoseOfTheTokensOfAValue) {
  const auto vocabulary =
      VocabularyOf(AllBytes({R"({"k":)", R"("ré)", R"(d","n")", "12", ":", "think"}));
  const auto tokenizer = ByteTokenizer("null");
  const Compiler compiler(vocabulary);
  DetailsRequest request;
  request.schema = R"({"type":"object","properties":{"k":{"enum":["red","réd","ré\"d"]},
    "n":{"enum":[1,12,7]}},"required":["k","n"],"additionalProperties":false})";
  const Result<Grammar> grammar = compiler.CompileJsonSchema(request.schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  request.grammar = *grammar;
  request.text = "Die Zahl: 12, réd";
  request.prompt = {3, 4};
  Generation output;
  output.tokens = {261, 256, 257, 258, 260, 259, '}'};
  output.figures = {{-0.1f, 1, false}, {-0.2f, 2, false},  {-0.4f, 4, false},
                    {-0.8f, 8, false}, {-1.6f, 16, false}, {-3.2f, 32, false}};
  const PlannedDetails plan = PlanDetails(request, *tokenizer, *vocabulary, output);
  ASSERT_EQ(plan.values.size(), 2u);
  EXPECT_EQ(plan.values[0].pointer, "/k");
  EXPECT_NEAR(*plan.values[0].probability, std::exp(-0.6), 1e-6);
  EXPECT_EQ(plan.values[0].surprise, 6);
  ASSERT_TRUE(plan.values[0].span.has_value());
  EXPECT_EQ(plan.values[0].span->begin, 14);
  EXPECT_EQ(plan.values[0].span->end_byte, 18);
  EXPECT_NEAR(*plan.values[1].probability, std::exp(-1.6), 1e-6);
  EXPECT_EQ(plan.values[1].surprise, 16);
  ASSERT_EQ(plan.questions.size(), 2u);
  EXPECT_EQ(plan.questions[0].prompt, (std::vector<TokenId>{3, 4, 261, 256}));
  EXPECT_EQ(plan.questions[0].texts,
            (std::vector<std::string>{R"("red")", R"("réd")", R"("ré\"d")"}));
  EXPECT_EQ(plan.questions[1].prompt, (std::vector<TokenId>{3, 4, 261, 256, 257, 258, 260}));
  EXPECT_EQ(plan.questions[1].texts, (std::vector<std::string>{"1}", "12}", "7}"}));
  EXPECT_EQ(plan.questions[1].values, (std::vector<std::string>{"1", "12", "7"}));
  // What the completion wrote has no probability, and nothing is asked.
  output.figures[4].closing = true;
  const PlannedDetails closed = PlanDetails(request, *tokenizer, *vocabulary, output);
  EXPECT_FALSE(closed.values[1].probability.has_value());
  EXPECT_EQ(closed.questions.size(), 1u);
  EXPECT_NE(DetailsJson(closed.values).find(R"("/n":null)"), std::string::npos);
  // A text that is no JSON has no values.
  output.tokens = {'n', 'o'};
  output.figures.resize(2);
  EXPECT_TRUE(PlanDetails(request, *tokenizer, *vocabulary, output).values.empty());
}

}  // namespace
}  // namespace pawl
