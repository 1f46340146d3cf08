// What the arguments of a call would be if all were taken from the request.
#include "src/engine/tool_copies.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "src/base/json.h"

namespace pawl {
namespace {

constexpr const char* kParameters = R"({"type":"object","properties":{
  "dish":{"type":"string"},"vegetarian":{"type":"boolean"},"mode":{"enum":["car","bike","on foot"]},
  "people":{"type":"integer"},"note":{"type":"string"},"level":{"enum":[1,2]}},
  "required":["dish"],"additionalProperties":false})";

// The keys, those that are needed with a !, and the values of `mode`.
std::string Summary(const std::string& request) {
  const std::optional<std::string> text = SchemaAsRequested(kParameters, request);
  if (!text) return "none";
  const Result<json::Value> schema = json::Parse(*text);
  EXPECT_TRUE(schema.ok()) << *text;
  std::string out;
  for (const auto& [name, property] : schema->Find("properties")->members) {
    out += name;
    for (const json::Value& needed : schema->Find("required")->items)
      out += needed.text == name ? "!" : "";
    EXPECT_EQ(property.Find("anyOf")->items[1].Find("type")->text, "null");
    if (const json::Value* values = property.Find("anyOf")->items[0].Find("enum"))
      out += json::Dump(*values);
    out += " ";
  }
  return out;
}

TEST(ToolCopiesTest, KeysThatTheRequestNames) {
  EXPECT_EQ(Summary("A curry, please."), "dish! note level[1,2] ");
  EXPECT_EQ(Summary("A VEGETARIAN curry for 4"), "dish! vegetarian! people note level[1,2] ");
  EXPECT_EQ(Summary("By bikes, or on foot: curry"),
            "dish! mode![\"bike\",\"on foot\"] note level[1,2] ");
  // Words, not parts of them.
  EXPECT_EQ(Summary("An oscar, nonvegetarian"), "dish! note level[1,2] ");
  EXPECT_EQ(Summary(""), "dish! note level[1,2] ");
}

TEST(ToolCopiesTest, OtherSchemasAreNone) {
  for (const char* schema : {"", "{", "true", "[]", R"({"type":"string"})", R"({"properties":1})"})
    EXPECT_FALSE(SchemaAsRequested(schema, "a").has_value()) << schema;
  // A value that is required has all values of its enum where the request names none.
  EXPECT_EQ(
      *SchemaAsRequested(R"({"properties":{"a":{"enum":["x","y"]}},"required":["a"]})", "nothing"),
      R"({"properties":{"a":{"anyOf":[{"enum":["x","y"]},{"type":"null"}]}},"required":["a"]})");
}

}  // namespace
}  // namespace pawl
