// Schemas that are proposed for records, and what is said of schemas.
#include "src/engine/schema_infer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

std::string Inferred(const std::vector<std::string>& records, const std::string& text = "") {
  SchemaInference seen;
  for (const std::string& record : records) seen.Add(*json::Parse(record), text);
  const Result<json::Value> schema = json::Parse(seen.Schema());
  EXPECT_TRUE(schema.ok());
  return json::Dump(*schema);
}

TEST(SchemaInferTest, WhatRecordsHaveInCommon) {
  EXPECT_EQ(
      Inferred({R"({"a":1,"b":"x"})", R"({"a":2.5,"c":[true,null]})", R"({"a":3,"b":null})"}),
      R"({"type":"object","properties":{"a":{"type":"number"},"b":{"type":["string","null"]},)"
      R"("c":{"type":"array","items":{"type":["boolean","null"]}}},"required":["a"],)"
      R"("additionalProperties":false})");
  EXPECT_EQ(Inferred({"[]", "[]"}), R"({"type":"array"})");
  EXPECT_EQ(
      Inferred({R"("red")", R"("blue")", R"("red")", "null", R"("blue")", R"("red")", R"("red")"}),
      R"({"enum":["blue","red",null]})");
  EXPECT_EQ(Inferred({R"("2024-03-05")", R"("2023-12-31")"}),
            R"({"type":"string","format":"date"})");
  EXPECT_EQ(Inferred({R"("14:05:00Z")", R"("00:00:00.5+02:00")"}),
            R"({"type":"string","format":"time"})");
  EXPECT_EQ(Inferred({R"("2024-03-05T14:05:00Z")"}), R"({"type":"string","format":"date-time"})");
  EXPECT_EQ(Inferred({R"("ann@mail.example")", R"("b.c@d.org")"}),
            R"({"type":"string","format":"email"})");
  EXPECT_EQ(Inferred({R"("https://a.example/x")"}), R"({"type":"string","format":"uri"})");
  EXPECT_EQ(Inferred({R"("2024-03-05")", R"("soon")"}), R"({"type":"string"})");
}

TEST(SchemaInferTest, StringsThatStandInTheirTextsAreCopied) {
  const std::string text = "Ann, Bo and Cy";
  EXPECT_EQ(Inferred({R"("Ann")", R"("Bo")", R"("Cy")"}, text),
            R"({"type":"string","x-pawl-source":"span"})");
  EXPECT_EQ(Inferred({R"("Ann")", R"("Bo")", R"("Di")"}, text), R"({"type":"string"})");
  EXPECT_EQ(Inferred({R"("Ann")", R"("Bo")"}, text), R"({"type":"string"})");  // too few to tell
}

// Each record is valid for what was inferred of all.
TEST(SchemaInferTest, TheRecordsFitTheirSchema) {
  const std::vector<std::string> records = {
      R"({"n":1,"list":[{"k":"a"},{"k":"b","z":null}],"s":"2024-03-05","o":{}})",
      R"({"n":null,"list":[],"s":"2024-13-05","o":{"deep":[[1],[2.5]]},"more":"x"})",
      R"({"n":-7,"list":[{"k":"a"}],"s":"","o":{},"more":false})"};
  SchemaInference seen;
  for (const std::string& record : records) seen.Add(*json::Parse(record), "");
  const Compiler compiler(VocabularyOf(AllBytes()));
  JsonSchemaOptions options;
  options.order = JsonSchemaOptions::Order::kAny;
  const Result<Grammar> grammar = compiler.CompileJsonSchema(seen.Schema(), options);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString() << seen.Schema();
  for (const std::string& record : records) {
    const auto end = grammar->Start().Advance(record);
    EXPECT_TRUE(end && end->accepting()) << record << seen.Schema();
  }
}

TEST(SchemaInferTest, RemarksNameThePlace) {
  const std::vector<std::string> remarks = SchemaRemarks(*json::Parse(
      R"({"properties":{"a":{"type":"string"},"b":{"type":"string","maxLength":3},"c":{"oneOf":[
      {"type":"array"},true]}},"$defs":{"d/e":{"uniqueItems":true}}})"));
  const auto says = [&](const std::string& begin) {
    return std::ranges::any_of(remarks,
                               [&](const std::string& one) { return one.starts_with(begin); });
  };
  EXPECT_TRUE(says("#: more keys are allowed"));
  EXPECT_TRUE(says("#/properties/a: the string has no end"));
  EXPECT_FALSE(says("#/properties/b"));
  EXPECT_TRUE(says("#/properties/c: oneOf"));
  EXPECT_TRUE(says("#/properties/c/oneOf/0: the list has no end"));
  EXPECT_TRUE(says("#/$defs/d~1e: uniqueItems"));
  EXPECT_EQ(PrettyJson(*json::Parse(R"({"a":[1,2],"b":{},"c":[{"d":1}]})")),
            "{\n  \"a\": [1,2],\n  \"b\": {},\n  \"c\": [\n    {\n      \"d\": 1\n    }\n  ]\n}");
}

}  // namespace
}  // namespace pawl
