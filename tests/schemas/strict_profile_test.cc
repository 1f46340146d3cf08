// The strict profile: each rule by a schema that breaks nothing else, and by its repair.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "schemas/read/schema_reader.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

JsonSchemaOptions Strict() {
  JsonSchemaOptions options;
  options.profile = JsonSchemaOptions::Profile::kStrict;
  return options;
}

// A closed object with one property "p", whose schema is `p`; `more` are further keywords of it.
std::string With(const std::string& p, const std::string& more = "") {
  return R"({"type":"object","properties":{"p":)" + p +
         R"(},"required":["p"],"additionalProperties":false)" + more + "}";
}

// The complaint about `schema`, "" when it keeps the rules.
std::string Complaint(const std::string& schema, const JsonSchemaOptions& options = {}) {
  auto document = json::Parse(schema);
  if (!document.ok()) return "not JSON: " + document.error().ToString();
  const Status status = schema::CheckStrictProfile(*document, options);
  if (status.ok()) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
  return status.error().ToString();
}

struct Rule {
  std::string broken, place, advice;
  std::string repaired;
};

TEST(StrictProfileTest, EachRuleNamesThePlaceAndWhatToWrite) {
  const Compiler compiler(Bytes());
  const std::vector<Rule> rules = {
      // The root.
      {R"({"type":"string"})", "#", "must be an object", With(R"({"type":"string"})")},
      {R"({"type":["object","null"],"properties":{},"additionalProperties":false})", "#",
       "must be an object", R"({"type":"object","properties":{},"additionalProperties":false})"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":)" + With(R"({"type":"null"})") + "}}", "#",
       "must be an object", With(R"({"type":"null"})")},
      {With(R"({"type":"null"})", R"(,"anyOf":[{"enum":[{"p":null}]}])"), "#/anyOf",
       "under a property", With(R"({"anyOf":[{"enum":[{"p":null}]}]})")},
      // Objects.
      {R"({"type":"object","properties":{}})", "#", R"("additionalProperties": false)",
       R"({"type":"object","properties":{},"additionalProperties":false})"},
      {R"({"type":"object","additionalProperties":{"type":"string"}})", "#/additionalProperties",
       "name every key", R"({"type":"object","additionalProperties":false})"},
      {R"({"type":"object","properties":{"a/b":{"type":"null"}},"additionalProperties":false})",
       "#/properties/a~1b", "add it to required",
       R"({"type":"object","properties":{"a/b":{"type":"null"}},"required":["a/b"],)"
       R"("additionalProperties":false})"},
      {With(R"({"type":["object","null"]})"), "#/properties/p", R"("additionalProperties": false)",
       With(R"({"type":["object","null"],"additionalProperties":false})")},
      {With(R"({"anyOf":[{"type":"null"},{"type":"object"}]})"), "#/properties/p/anyOf/1",
       R"("additionalProperties": false)",
       With(R"({"anyOf":[{"type":"null"},{"type":"object","additionalProperties":false}]})")},
      {With(R"({"type":"array","items":{"type":"object"}})"), "#/properties/p/items",
       R"("additionalProperties": false)",
       With(R"({"type":"array","items":{"type":"object","additionalProperties":false}})")},
      // Schemas say what the value is.
      {With("true"), "#/properties/p", "write a schema with its type", With(R"({"type":"null"})")},
      {With("{}"), "#/properties/p", "write its type", With(R"({"enum":["x"]})")},
      {With(R"({"description":"any"})"), "#/properties/p", "write its type",
       With(R"({"description":"any","const":1})")},
      {With(R"({"type":"array"})"), "#/properties/p", "write items",
       With(R"({"type":"array","items":{"type":"null"}})")},
      {With(R"({"type":"array","items":[{"type":"null"}]})"), "#/properties/p/items",
       "an object with a property for each place",
       With(R"({"type":"array","items":{"type":"null"}})")},
      // Keywords.
      {With(R"({"type":"string","allOf":[{"pattern":"a"}]})"), "#/properties/p/allOf",
       "into one schema", With(R"({"type":"string","pattern":"a"})")},
      {With(R"({"oneOf":[{"type":"null"}]})"), "#/properties/p/oneOf", "write anyOf",
       With(R"({"anyOf":[{"type":"null"}]})")},
      {With(R"({"type":"integer","not":{"const":1}})"), "#/properties/p/not",
       "write what is allowed", With(R"({"type":"integer","minimum":2})")},
      {With(R"({"type":"null"})", R"(,"if":{})"), "#/if", "a branch for each case",
       With(R"({"type":"null"})")},
      {With(R"({"type":"null"})", R"(,"dependentRequired":{})"), "#/dependentRequired",
       "a branch for each case", With(R"({"type":"null"})")},
      {With(R"({"type":"null"})", R"(,"patternProperties":{})"), "#/patternProperties",
       "name every key", With(R"({"type":"null"})")},
      {With(R"({"type":"string","minLength":2})"), "#/properties/p/minLength", "write a pattern",
       With(R"({"type":"string","pattern":"^[\\s\\S]{2,}$"})")},
      {With(R"({"type":"string","format":"uri"})"), "#/properties/p/format", "\"uri\"",
       With(R"({"type":"string","format":"uuid"})")},
      {With(R"({"type":"array","items":{"type":"null"},"uniqueItems":true})"),
       "#/properties/p/uniqueItems", "leave it out",
       With(R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":2})")},
      {With(R"({"type":"null","titel":"x"})"), "#/properties/p/titel", "leave it out",
       With(R"({"type":"null","title":"x"})")},
      {With(R"({"type":"null","$id":"http://x/y"})"), "#/properties/p/$id", "#/$defs/NAME",
       With(R"({"type":"null"})", R"(,"$id":"http://x/y")")},
      // References, definitions, dialects.
      {With(R"({"$ref":"#/$defs/a","pattern":"x"})", R"(,"$defs":{"a":{"type":"string"}})"),
       "#/properties/p/pattern", "beside $ref",
       With(R"({"$ref":"#/$defs/a","description":"x"})", R"(,"$defs":{"a":{"type":"string"}})")},
      {With(R"({"$ref":"#/examples/0"})", R"(,"examples":[{}])"), "#/properties/p/$ref",
       "into $defs", With(R"({"$ref":"#/$defs/0"})", R"(,"$defs":{"0":{"type":"string"}})")},
      {With(R"({"type":"null"})", R"(,"$defs":{"a":{"type":"object"}})"), "#/$defs/a",
       R"("additionalProperties": false)",
       With(R"({"type":"null"})",
            R"(,"$defs":{"a":{"type":"object","additionalProperties":false}})")},
      {With(R"({"type":"null"})", R"(,"definitions":{"a":{"items":{"not":{}}}})"),
       "#/definitions/a", "write its type",
       With(R"({"type":"null"})", R"(,"definitions":{"a":{"type":"null"}})")},
      {With(R"({"type":"null"})", R"(,"$schema":"http://x/unknown")"), "#/$schema", "leave it out",
       With(R"({"type":"null"})", R"(,"$schema":"http://json-schema.org/draft-07/schema#")")},
      {With(R"({"const":1})", R"(,"$schema":"http://json-schema.org/draft-04/schema#")"),
       "#/properties/p/const", "write an enum",
       With(R"({"enum":[1]})", R"(,"$schema":"http://json-schema.org/draft-04/schema#")")},
  };
  for (const Rule& rule : rules) {
    EXPECT_EQ(Complaint(rule.broken).find(rule.place + ": strict profile: "), 0u)
        << rule.broken << "\n"
        << Complaint(rule.broken);
    EXPECT_NE(Complaint(rule.broken).find(rule.advice), std::string::npos)
        << rule.broken << "\n"
        << Complaint(rule.broken);
    EXPECT_EQ(Complaint(rule.repaired), "") << rule.repaired;
    // The compiler asks, and only when the profile is strict.
    EXPECT_TRUE(compiler.CompileJsonSchema(rule.broken).ok()) << rule.broken;
    const auto broken = compiler.CompileJsonSchema(rule.broken, Strict());
    ASSERT_FALSE(broken.ok()) << rule.broken;
    EXPECT_EQ(broken.error().ToString(), Complaint(rule.broken));
    const auto repaired = compiler.CompileJsonSchema(rule.repaired, Strict());
    EXPECT_TRUE(repaired.ok()) << repaired.error().ToString();
  }
}

TEST(StrictProfileTest, NamesAndDataAreNoKeywords) {
  EXPECT_EQ(Complaint(R"({"type":"object","properties":{
      "allOf":{"type":"string"},"$ref":{"type":"null"},
      "additionalProperties":{"enum":[{"allOf":[{}],"additionalProperties":true}]},
      "not":{"const":{"not":{},"type":"object"}},
      "type":{"type":"integer","default":{"oneOf":[]},"examples":[{"patternProperties":{}}]}},
      "$defs":{"if":{"type":"string"}},
      "required":["allOf","$ref","additionalProperties","not","type"],
      "additionalProperties":false})"),
            "");
}

TEST(StrictProfileTest, ReferencesMayRecurse) {
  const std::string tree = R"({"type":"object","properties":{"label":{"type":"string"},)"
                           R"("kids":{"type":"array","items":{"$ref":"#"}},)"
                           R"("next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},)"
                           R"("required":["kids","label","next"],"additionalProperties":false,)"
                           R"("$defs":{"node":{"type":"object","properties":{"next":{"anyOf":[)"
                           R"({"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["next"],)"
                           R"("additionalProperties":false}}})";
  EXPECT_EQ(Complaint(tree), "");
  const auto grammar = Compiler(Bytes()).CompileJsonSchema(tree, Strict());
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const auto state = grammar->Start().Advance(
      R"({"label":"a","kids":[{"label":"b","kids":[],"next":null}],"next":{"next":null}})");
  EXPECT_TRUE(state && state->accepting());
  const std::string away = With(R"({"$ref":"http://localhost:1234/a.json"})");
  EXPECT_EQ(Complaint(away).find("#/properties/p/$ref: strict profile: "), 0u);
  // A place that does not exist is the reader's to report.
  const auto nowhere =
      Compiler(Bytes()).CompileJsonSchema(With(R"({"$ref":"#/$defs/a"})"), Strict());
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, ErrorCode::kInvalid);
}

std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// A JSON array or the members of an object: `count` of them, made by `one`.
template <typename One>
std::string List(int count, One one) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + one(i);
  return out;
}

std::string Wide(int properties) {
  const auto quoted = [](int i) { return "\"p" + std::to_string(i) + "\""; };
  return R"({"type":"object","properties":{)" +
         List(properties, [&](int i) { return quoted(i) + R"(:{"type":"null"})"; }) +
         R"(},"required":[)" + List(properties, quoted) + R"(],"additionalProperties":false})";
}

std::string EnumOf(int values, int length) {
  return R"({"enum":[)" +
         List(values,
              [&](int i) {
                const std::string number = std::to_string(i);
                return "\"" + std::string(static_cast<size_t>(length) - number.size(), 'x') +
                       number + "\"";
              }) +
         "]}";
}

// Both sides of each limit.
TEST(StrictProfileTest, Limits) {
  EXPECT_EQ(Complaint(Wide(5000)), "");
  EXPECT_EQ(Complaint(Wide(5001)).find("#/properties: strict profile: "), 0u);
  EXPECT_NE(Complaint(Wide(5001)).find("5000 properties"), std::string::npos);
  // In all: those of definitions count as well.
  EXPECT_EQ(Complaint(With(R"({"type":"null"})", R"(,"$defs":{"a":)" + Wide(4999) + "}")), "");
  EXPECT_EQ(Complaint(With(R"({"type":"null"})", R"(,"$defs":{"a":)" + Wide(5000) + "}"))
                .find("#/$defs/a/properties: "),
            0u);

  const auto deep = [](int levels) {
    std::string schema = R"({"type":"null"})";
    for (int i = 0; i < levels; ++i) schema = With(schema);
    return schema;
  };
  EXPECT_EQ(Complaint(deep(10)), "");
  EXPECT_EQ(Complaint(deep(11)).find("#" + Repeat("/properties/p", 10) + ": strict profile: "), 0u);
  // Arrays are no levels, and definitions start again.
  EXPECT_EQ(Complaint(With(R"({"type":"array","items":)" + deep(9) + "}")), "");
  EXPECT_NE(Complaint(With(R"({"type":"array","items":)" + deep(10) + "}")), "");
  EXPECT_EQ(Complaint(With(R"({"$ref":"#/$defs/a"})", R"(,"$defs":{"a":)" + deep(10) + "}")), "");

  EXPECT_EQ(Complaint(With(EnumOf(1000, 4))), "");
  EXPECT_EQ(Complaint(With(EnumOf(1001, 4))).find("#/properties/p/enum: strict profile: "), 0u);
  EXPECT_NE(Complaint(With(R"({"anyOf":[)" + EnumOf(600, 4) + "," + EnumOf(401, 4) + "]}")), "");
  EXPECT_EQ(Complaint(With(R"({"anyOf":[)" + EnumOf(600, 4) + "," + EnumOf(400, 4) + "]}")), "");

  EXPECT_EQ(Complaint(With(EnumOf(250, 100))), "");
  EXPECT_EQ(Complaint(With(EnumOf(300, 50))), "");
  EXPECT_NE(Complaint(With(EnumOf(300, 51))).find("15000 characters"), std::string::npos);

  // Characters, not bytes; the name "p" is one of them.
  const std::string value = Repeat("\xC3\xA9", 119'999);
  EXPECT_EQ(Complaint(With(R"({"const":")" + value + "\"}")), "");
  EXPECT_EQ(Complaint(With(R"({"const":")" + value + "x\"}")).find("#/properties/p"), 0u);
  EXPECT_EQ(Complaint(With(R"({"const":")" + value + "\"}", R"(,"$defs":{"d":{"type":"null"}})"))
                .find("#/$defs/d: strict profile: "),
            0u);
}

TEST(StrictProfileTest, IsPartOfTheCachesKey) {
  const Compiler compiler(Bytes(), {.cached_grammars = 4});
  const char* schema = R"({"type":"string"})";
  ASSERT_TRUE(compiler.CompileJsonSchema(schema).ok());
  EXPECT_FALSE(compiler.CompileJsonSchema(schema, Strict()).ok());
  EXPECT_TRUE(compiler.CompileJsonSchema(schema).ok());
}

}  // namespace
}  // namespace pawl
