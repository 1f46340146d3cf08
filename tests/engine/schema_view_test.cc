// What prompts show of schemas, templates as schemas, and records as grammars write them.
#include "src/engine/schema_view.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

json::Value Tree(const std::string& text) {
  Result<json::Value> value = json::Parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *std::move(value) : json::Value();
}

constexpr const char* kInvoice = R"({"type": "object", "properties": {
  "id": {"type": "string", "pattern": "^[0-9]+$"}, "day": {"type": "string", "format": "date"},
  "kind": {"enum": ["new", "paid", null]}, "total": {"anyOf": [{"type": "number"}, {"type": "null"}]},
  "never": false, "fixed": {"const": 7},
  "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
  "$defs": {"line": {"type": "object", "properties": {"name": {"type": ["string", "null"]},
                                                       "tags": {"items": {"type": "string"}}}}}})";

TEST(SchemaViewTest, TemplatesHaveTheTypesOfKeys) {
  EXPECT_EQ(SchemaTemplate(Tree(kInvoice)),
            R"({"id": "string", "day": "date", "kind": "new|paid", "total": "number", "fixed": 7, )"
            R"("lines": [{"name": "string", "tags": ["string"]}]})");
  EXPECT_EQ(SchemaTemplate(Tree(R"({"type": "integer"})")), std::nullopt);
  // A schema that contains itself has no end.
  EXPECT_EQ(SchemaTemplate(Tree(R"({"properties": {"a": {"$ref": "#"}}})")), std::nullopt);
}

TEST(SchemaViewTest, FieldsAreKeysAndTypesInShort) {
  EXPECT_EQ(SchemaFields(Tree(kInvoice)),
            "id:pattern;day:date;kind:new|paid;total:number;fixed:7;lines[{name;tags[]}]");
  EXPECT_EQ(SchemaFields(Tree(R"({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {
                "n": {"type": "integer", "description": "how many"}, "o": {"properties": {"b": {}}},
                "s": {"type": ["null", "boolean"]}}}}})")),
            "n:integer(how many);o{b};s:boolean");
  EXPECT_EQ(SchemaFields(Tree(R"({"type": "array", "items": {"properties": {"a": {}}}})")),
            "[{a}]");
  EXPECT_EQ(SchemaFields(Tree("true")), "");
  EXPECT_EQ(SchemaFields(Tree(R"({"properties": {"a": {"$ref": "#"}}})")), "");
  const std::string note(61, 'x');
  EXPECT_EQ(SchemaFields(Tree(R"({"properties": {"a": {"description": ")" + note + "\"}}}")), "a");
}

TEST(SchemaViewTest, KeysOfObjectsAndOfLists) {
  const std::vector<std::string> keys = {"id", "day", "kind", "total", "never", "fixed", "lines"};
  EXPECT_EQ(SchemaKeys(Tree(kInvoice)), keys);
  EXPECT_EQ(SchemaKeys(Tree(R"({"type": "array", "items": {"properties": {"a": {}}}})")),
            std::vector<std::string>{"a"});
  EXPECT_TRUE(IsListSchema(Tree(R"({"$ref": "#/$defs/l", "$defs": {"l": {"type": "array"}}})")));
  EXPECT_FALSE(IsFlatSchema(Tree(kInvoice)));
  EXPECT_TRUE(IsFlatSchema(Tree(
      R"({"properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"enum": [1]}}}})")));
  EXPECT_FALSE(IsFlatSchema(Tree(R"({"type": "string"})")));
}

TEST(SchemaViewTest, TemplatesOfNuExtractAreSchemas) {
  const auto schema = SchemaOfTemplate(
      Tree(R"({"a": "verbatim-string", "b": ["x", "y"], "c": [{"d": "integer"}], "e": "date"})"));
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(
      *schema,
      R"({"type":"object","properties":{"a":{"type":"string","x-pawl-source":"span"},)"
      R"("b":{"type":"string","enum":["x","y"]},)"
      R"("c":{"type":"array","items":{"type":"object","properties":{"d":{"type":"integer"}}}},)"
      R"("e":{"type":"string","format":"date"}}})");
  for (const auto& [given, place] :
       {std::pair(R"({"a": {"b/c": 3}})", "#/a/b~1c"), std::pair(R"({"a": []})", "#/a"),
        std::pair(R"({"a": ["x", 2]})", "#/a"), std::pair(R"({"a": "float"})", "#/a")}) {
    const auto wrong = SchemaOfTemplate(Tree(given));
    ASSERT_FALSE(wrong.ok()) << given;
    EXPECT_EQ(wrong.error().place, place);
  }
}

// Bug: the merged record of a long document was refused from its 3,333rd item on.
TEST(SchemaViewTest, LongRecordsAreWritten) {
  const auto vocabulary = VocabularyOf(AllBytes({}));
  const std::string schema = R"({"type": "array", "items": {"type": "integer"}})";
  const Result<Grammar> grammar = Compiler(vocabulary).CompileJsonSchema(schema);
  ASSERT_TRUE(grammar.ok());
  std::string record = "[0";
  for (int i = 0; i < 30'000; ++i) record += ",7";
  record += "]";
  const Result<std::string> text = WriteRecord(*grammar, Tree(schema), Tree(record));
  ASSERT_TRUE(text.ok()) << text.error().ToString();
  EXPECT_EQ(json::Dump(Tree(*text)), record);
}

TEST(SchemaViewTest, RecordsAreWrittenAsTheGrammarWritesThem) {
  const auto vocabulary = VocabularyOf(AllBytes({}));
  const Compiler compiler(vocabulary);
  const std::string schema = R"({"type": "object", "properties": {"a": {"type": "string"},
    "b": {"type": "integer"}, "c": {"type": "object", "properties": {"d": {"type": "number"}}}}})";
  const auto written = [&](const JsonSchemaOptions& options, const std::string& record) {
    const Result<Grammar> grammar = compiler.CompileJsonSchema(schema, options);
    EXPECT_TRUE(grammar.ok());
    const Result<std::string> text = WriteRecord(*grammar, Tree(schema), Tree(record));
    return text.ok() ? *text : text.error().ToString();
  };
  JsonSchemaOptions options;
  options.additional_properties = false;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  EXPECT_EQ(written(options, R"({"c": {"d": 1.5}, "a": "x", "b": null})"),
            R"({"a":"x","c":{"d":1.5}})");
  // The place that does not fit is told, wherever it stands.
  EXPECT_EQ(written(options, R"({"a": 3})"), "#/a: does not fit the schema");
  EXPECT_EQ(written(options, R"({"c": {"d": "x"}, "a": "x"})"), "#/c/d: does not fit the schema");
  EXPECT_EQ(written(options, R"({"a": "x", "z": 1})"), "#/z: does not fit the schema");
  options.keys = JsonSchemaOptions::Keys::kAll;
  EXPECT_EQ(written(options, R"({"c": {}, "a": "x"})"), R"({"a":"x","b":null,"c":{"d":null}})");
  options.item_separator = ", ";
  options.key_separator = ": ";
  EXPECT_EQ(written(options, R"({"b": 2})"), R"({"a": null, "b": 2, "c": null})");
  options = {};
  options.additional_properties = false;
  options.keys = JsonSchemaOptions::Keys::kAll;
  EXPECT_EQ(written(options, R"({"b": 2})"), R"({"a": null, "b": 2, "c": null})");
}

TEST(SchemaViewTest, ExamplesHaveTheirPlaces) {
  EXPECT_EQ(ReadExamples("{\"text\": \"a\", \"record\": {}}\n\n{\"text\": \"b\"}").error().place,
            "line 3");
  std::vector<int> lines;
  const std::string one = "{\"text\": \"a\", \"record\": {}}\n";
  ASSERT_TRUE(ReadExamples(one + "\n" + one, &lines).ok());
  EXPECT_EQ(lines, (std::vector<int>{1, 3}));
  EXPECT_EQ(ExamplesFromJson(R"([{"text": "a", "record": 1}, {"text": 2}])").error().place, "#/1");
  EXPECT_EQ(ExamplesFromJson("{}").error().place, "#");
  const auto examples = ExamplesFromJson(R"([{"text": "a", "record": {"b": 1}}])");
  ASSERT_TRUE(examples.ok());
  EXPECT_EQ(examples->at(0).record, R"({"b":1})");
}

TEST(SchemaViewTest, NamesOfChoices) {
  EXPECT_EQ(SchemaViewNamed("auto"), SchemaView::kAuto);
  EXPECT_EQ(SchemaViewNamed("keys"), SchemaView::kKeys);
  EXPECT_EQ(SchemaViewNamed("json"), std::nullopt);
  EXPECT_STREQ(NameOf(ClosedBy::kBudget), "budget");
  EXPECT_STREQ(NameOf(ClosedBy::kSteps), "steps");
  EXPECT_STREQ(NameOf(ClosedBy::kRepetition), "repetition");
}

}  // namespace
}  // namespace pawl
