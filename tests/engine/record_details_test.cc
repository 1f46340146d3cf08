// Places of values in JSON texts, choices of schemas, and the figures of tokens as those of values.
#include "src/engine/record_details.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/engine/record_values.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

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
  const PlannedDetails plan = PlanDetails(request, *vocabulary, output);
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
  const PlannedDetails closed = PlanDetails(request, *vocabulary, output);
  EXPECT_FALSE(closed.values[1].probability.has_value());
  EXPECT_EQ(closed.questions.size(), 1u);
  EXPECT_NE(DetailsJson(closed.values).find(R"("/n":null)"), std::string::npos);
  // A text that is no JSON has no values.
  output.tokens = {'n', 'o'};
  output.figures.resize(2);
  EXPECT_TRUE(PlanDetails(request, *vocabulary, output).values.empty());
}

}  // namespace
}  // namespace pawl
