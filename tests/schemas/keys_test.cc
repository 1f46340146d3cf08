// JsonSchemaOptions::Keys::kAll and Nulls::kDrop: what is written, and what becomes of it. Records
// of random texts are judged by the independent validator, for the schema as it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "grammar/grammar_access.h"
#include "grammar/languages/option_fields.h"
#include "grammar/record_filter.h"
#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/oracle/json_schema_validator.h"
#include "tests/schemas/property_checks.h"
#include "tests/schemas/property_generators.h"

namespace pawl {
namespace {

using Keys = JsonSchemaOptions::Keys;
using Nulls = JsonSchemaOptions::Nulls;

JsonSchemaOptions Options(Keys keys = Keys::kAll, Nulls nulls = Nulls::kKeep) {
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  options.additional_properties = false;
  options.keys = keys;
  options.nulls = nulls;
  return options;
}

Grammar Compiled(const std::string& schema, const JsonSchemaOptions& options) {
  property::Dice dice(1);
  const Compiler compiler(property::RandomVocabulary(dice, 20));
  Result<Grammar> grammar = compiler.CompileJsonSchema(schema, options);
  EXPECT_TRUE(grammar.ok()) << schema << grammar.error().ToString();
  return *grammar;
}

bool Takes(const Grammar& grammar, std::string_view text) {
  const auto state = grammar.Start().Advance(text);
  return state && state->accepting();
}

constexpr const char* kOrder = R"({"type": "object", "properties": {
  "id": {"type": "string"}, "city": {"type": "string"}, "n": {"type": ["integer", "null"]},
  "x": {"type": "object", "properties": {"y": {"type": "number"}}}}, "required": ["id"]})";

TEST(KeysTest, EachKeyIsWritten) {
  const Grammar grammar = Compiled(kOrder, Options());
  EXPECT_FALSE(Takes(grammar, R"({"id":"a"})"));
  const std::string text = R"({"id":"a","city":null,"n":null,"x":{"y":null}})";
  ASSERT_TRUE(Takes(grammar, text));
  // A null that the schema takes stays; the others say that the key is not there.
  EXPECT_EQ(grammar.Record(text), R"({"id":"a","n":null,"x":{}})");
  EXPECT_EQ(grammar.Record(R"({"id":"a","city":"b","n":3,"x":null})"),
            R"({"id":"a","city":"b","n":3})");
  EXPECT_FALSE(Takes(grammar, R"({"id":null,"city":null,"n":null,"x":null})"));
}

TEST(KeysTest, AnObjectThatStaysOpenIsNamed) {
  const std::string note = ": no key is named, so the object stays open";
  const auto notes = [](const char* schema, bool open = false) {
    JsonSchemaOptions options = Options();
    options.additional_properties = open;
    return Compiled(schema, options).notes();
  };
  constexpr const char* kMap =
      R"({"type": "object", "properties": {"a": {"type": ["object", "null"]},
    "b": {"$ref": "#/$defs/c"}}, "$defs": {"c": {"type": "object", "properties": {}}}})";
  EXPECT_EQ(notes(kMap), (std::vector<std::string>{"#/properties/a" + note, "#/$defs/c" + note}));
  EXPECT_TRUE(notes(kMap, true).empty());
  EXPECT_TRUE(Takes(Compiled(kMap, Options()), R"({"a":{"x":1},"b":{"y":2}})"));
  // Named keys, values of the key's choice, and a schema that says something of other keys.
  for (const char* schema :
       {kOrder, R"({"type": "object", "patternProperties": {"^a": {}}})", R"({"enum": [{}]})",
        R"({"type": "object", "additionalProperties": {"type": "string"}})", "true"})
    EXPECT_TRUE(notes(schema).empty()) << schema;
  // A schema of keys alone takes a string, too.
  constexpr const char* kNoType = R"({"properties": {"a": {}}})";
  EXPECT_EQ(notes(kNoType),
            (std::vector<std::string>{
                "#: properties: the schema has no type, so it takes values of any type"}));
  EXPECT_TRUE(notes(kNoType, true).empty());
}

TEST(KeysTest, AsGivenByDefault) {
  const Grammar grammar = Compiled(kOrder, Options(Keys::kRequired));
  EXPECT_TRUE(Takes(grammar, R"({"id":"a"})"));
  EXPECT_FALSE(Takes(grammar, R"({"id":"a","city":null})"));
  EXPECT_EQ(grammar.Record(R"({"id":"a"})"), R"({"id":"a"})");
}

TEST(KeysTest, NullsAreDropped) {
  const Grammar grammar = Compiled(kOrder, Options(Keys::kAll, Nulls::kDrop));
  EXPECT_EQ(grammar.Record(R"({"id":"a","city":null,"n":null,"x":{"y":null}})"),
            R"({"id":"a","x":{}})");
  const Grammar required =
      Compiled(R"({"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]})",
               Options(Keys::kAll, Nulls::kDrop));
  EXPECT_EQ(required.Record(R"({"a":null})"), R"({"a":null})");
  const Grammar given = Compiled(kOrder, Options(Keys::kRequired, Nulls::kDrop));
  EXPECT_TRUE(Takes(given, R"({"id":"a","n":1})"));
  EXPECT_FALSE(Takes(given, R"({"id":"a","n":null})"));
}

TEST(KeysTest, TheFirstKeyIsLeftOutWithItsComma) {
  JsonSchemaOptions options = Options();
  const std::string schema = R"({"properties": {"a": {"type": "string"}, "b": {"type": "string"},
    "c": {"type": "string"}}})";
  EXPECT_EQ(Compiled(schema, options).Record(R"({"a":null,"b":null,"c":"x"})"), R"({"c":"x"})");
  EXPECT_EQ(Compiled(schema, options).Record(R"({"a":null,"b":null,"c":null})"), "{}");
  options.item_separator = ", ";
  options.key_separator = ": ";
  EXPECT_EQ(Compiled(schema, options).Record(R"({"a": null, "b": "y", "c": null})"),
            R"({"b": "y"})");
  options = Options();
  options.whitespace = JsonSchemaOptions::Whitespace::kBounded;
  EXPECT_EQ(Compiled(schema, options).Record("{\n \"a\": null,\n \"b\": \"n\" ,\n \"c\": null\n}"),
            "{\n \"b\": \"n\" }");
}

TEST(KeysTest, TextsThatLookLikeNullsStay) {
  const Grammar grammar = Compiled(
      R"({"properties": {"a": {"type": "string"}, "l": {"items": {"type": "null"}}}})", Options());
  const std::string text = R"({"a":"{\"b\":null,\"c\":null}","l":[null,null]})";
  ASSERT_TRUE(Takes(grammar, text));
  EXPECT_EQ(grammar.Record(text), text);
}

TEST(KeysTest, KeysOfABranchAreAskedForThere) {
  const Grammar grammar = Compiled(R"({"anyOf": [
    {"properties": {"k": {"const": "a"}, "x": {"type": "string"}}, "required": ["k"]},
    {"properties": {"k": {"const": "b"}, "x": {"type": ["string", "null"]},
                    "y": {"type": "integer"}}, "required": ["k"]}]})",
                                   Options());
  EXPECT_FALSE(Takes(grammar, R"({"k":"a"})"));
  EXPECT_EQ(grammar.Record(R"({"k":"a","x":null})"), R"({"k":"a"})");
  EXPECT_EQ(grammar.Record(R"({"k":"b","x":null,"y":null})"), R"({"k":"b","x":null})");
  // The same null is one of the record or not, which only what follows tells.
  const Grammar later = Compiled(R"({"anyOf": [
    {"properties": {"x": {"type": "string"}, "k": {"const": "a"}}, "required": ["k"]},
    {"properties": {"x": {"type": ["string", "null"]}, "k": {"const": "b"}}, "required": ["k"]}]})",
                                 Options());
  EXPECT_EQ(later.Record(R"({"x":null,"k":"a"})"), R"({"k":"a"})");
  EXPECT_EQ(later.Record(R"({"x":null,"k":"b"})"), R"({"x":null,"k":"b"})");
}

TEST(KeysTest, OneOfIsAskedWhereAKeyTellsItsBranchesApart) {
  const auto schema = [](const char* tag) {
    return R"({"oneOf": [{"properties": {"k": {"const": "a"}, "x": {"type": "string"}})" +
           std::string(tag) +
           R"(}, {"properties": {"k": {"const": "b"}, "y": {"type": "string"}})" + tag + "}]}";
  };
  const Grammar tagged = Compiled(schema(R"(, "required": ["k"])"), Options());
  EXPECT_FALSE(Takes(tagged, R"({"k":"a"})"));
  // Without k both branches would take the empty object.
  const Grammar other = Compiled(schema(""), Options());
  EXPECT_TRUE(Takes(other, R"({"x":"1"})"));
  EXPECT_FALSE(other.notes().empty());
}

TEST(KeysTest, KeysStayOptionalUnderWhatJudgesThem) {
  for (const char* beside : {R"("minProperties": 1)", R"("not": {"required": ["b"]})",
                             R"("dependentRequired": {"a": ["b"]})",
                             R"("if": {"required": ["a"]}, "then": {"required": ["b"]})",
                             R"("allOf": [{"properties": {"a": {"minLength": 2}}}, {}])",
                             R"("patternProperties": {"^a": {"minLength": 1}})"}) {
    const std::string schema =
        R"({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, )" +
        std::string(beside) + "}";
    const Grammar grammar = Compiled(schema, Options());
    EXPECT_FALSE(Takes(grammar, R"({"a":null,"b":"bb"})")) << schema;
    ASSERT_FALSE(grammar.notes().empty()) << schema;
    EXPECT_NE(grammar.notes().front().find("keys: "), std::string::npos) << grammar.notes().front();
  }
}

TEST(KeysTest, ManyKeysStayOptional) {
  for (const int count : {64, 65}) {
    std::string properties, nulls;
    for (int i = 0; i < count; ++i) {
      properties += (i == 0 ? "" : ",") + ("\"k" + std::to_string(i)) + R"(":{"type":"string"})";
      nulls += (i == 0 ? "" : ",") + ("\"k" + std::to_string(i)) + "\":null";
    }
    const Grammar grammar =
        Compiled(R"({"type": "object", "properties": {)" + properties + "}}", Options());
    EXPECT_EQ(Takes(grammar, "{" + nulls + "}"), count == 64);
    EXPECT_EQ(Takes(grammar, "{}"), count == 65);
    EXPECT_EQ(grammar.notes().size(), count == 65 ? 1u : 0u);
  }
}

TEST(KeysTest, SchemasInsideAGrammarAreRefused) {
  property::Dice dice(1);
  const Compiler compiler(property::RandomVocabulary(dice, 20));
  GrammarOptions options;
  options.json_schema = Options();
  const auto grammar = compiler.CompileGrammar("start: %json {\"type\": \"object\"}",
                                               GrammarLanguage::kLark, options);
  ASSERT_FALSE(grammar.ok());
  EXPECT_NE(grammar.error().ToString().find("keys"), std::string::npos);
}

TEST(KeysTest, AStreamHoldsAKeyBackUntilItsValueBegins) {
  const Grammar grammar = Compiled(kOrder, Options());
  RecordFilter filter(GrammarAccess::RecordKeysOf(grammar));
  EXPECT_EQ(filter.Feed(R"({"id":"a","city":)"), R"({"id":"a")");
  EXPECT_EQ(filter.Feed("\""), R"(,"city":")");
  EXPECT_EQ(filter.Feed(R"(b","n":nul)"), R"(b")");
  EXPECT_EQ(filter.Feed("l,"), R"(,"n":null)");
  EXPECT_EQ(filter.Feed(R"("x":null)"), "");
  EXPECT_EQ(filter.Feed("}"), "}");
  EXPECT_EQ(filter.Finish(), "");
}

// A text of the grammar, made of allowed tokens; its shortest end where it grows long.
std::string RandomText(property::Dice& dice, const Grammar& grammar) {
  State state = grammar.Start();
  std::string text;
  for (int step = 0; step < 80 && !state.accepting(); ++step) {
    const std::vector<TokenId> allowed = state.mask()->Tokens();
    if (allowed.empty()) return "";
    const TokenId token = allowed[dice.Below(allowed.size())];
    const auto next = state.Advance(token);
    if (!next) return "";
    text += grammar.vocabulary().bytes(token);
    state = *next;
  }
  const auto end = state.CompletionBytes();
  return end ? text + *end : "";
}

// Random schemas, and objects of random properties, which the former have too rarely.
json::Value RandomRecordSchema(property::Dice& dice) {
  json::Value properties;
  properties.type = json::Type::kObject;
  std::string required;
  for (const char* key : {"a", "b", "c", "d"}) {
    if (dice.Percent(25)) continue;
    json::Value member = property::RandomSchema(dice);
    if (dice.Percent(40)) {
      member = *json::Parse(dice.Percent(50) ? R"({"type": ["string", "null"], "maxLength": 2})"
                                             : R"({"type": "integer"})");
    }
    properties.members.emplace_back(key, std::move(member));
    if (dice.Percent(30)) required += std::string(required.empty() ? "" : ",") + "\"" + key + "\"";
  }
  return *json::Parse(R"({"type":"object","properties":)" + json::Dump(properties) +
                      R"(,"required":[)" + required + "]}");
}

TEST(KeysTest, RecordsOfRandomTextsAreValidForTheSchemaAsGiven) {
  property::Dice vocabulary_dice(1);
  const auto vocabulary = property::RandomVocabulary(vocabulary_dice, 60);
  const Compiler compiler(vocabulary);
  int records = 0, shorter = 0, asked = 0;
  for (uint64_t seed = 1; seed <= 900; ++seed) {
    property::Dice dice(seed);
    json::Value schema = dice.Percent(40) ? property::RandomSchema(dice) : RandomRecordSchema(dice);
    if (dice.Percent(25)) {
      const std::string name = dice.Percent(50) ? "anyOf" : "oneOf";
      schema = *json::Parse("{\"" + name + "\":[" + json::Dump(schema) + "," +
                            json::Dump(RandomRecordSchema(dice)) + "]}");
    }
    JsonSchemaOptions options = property::RandomOptions(dice);
    options.keys = Keys::kAll;
    options.nulls = dice.Percent(50) ? Nulls::kKeep : Nulls::kDrop;
    // Closed objects say more than the schema. Under not, if and oneOf a value may then fit that
    // does not fit the schema as it was given, with any keys.
    const std::string text_of_schema = json::Dump(schema);
    const bool negates = std::ranges::any_of(
        std::array{"\"oneOf\"", "\"not\"", "\"if\"", "\"dependentSchemas\"", "\"contains\""},
        [&](const char* word) { return text_of_schema.find(word) != std::string::npos; });
    options.additional_properties = negates || dice.Percent(50);
    const Result<Grammar> grammar = compiler.CompileJsonSchema(json::Dump(schema), options);
    if (!grammar.ok()) continue;
    const auto keys = GrammarAccess::RecordKeysOf(*grammar);
    asked += keys != nullptr;
    auto validator = oracle::Validator::Create(json::Dump(schema), {});
    ASSERT_TRUE(validator.ok());
    for (int i = 0; i < 4; ++i) {
      const std::string text = RandomText(dice, *grammar);
      if (text.empty()) continue;
      const std::string record = grammar->Record(text);
      ++records;
      shorter += record.size() < text.size();
      const auto verdict = (*validator)->Validate(record);
      ASSERT_NE(verdict, oracle::Verdict::kInvalid)
          << "seed " << seed << "\nschema: " << json::Dump(schema) << "\ntext:   " << text
          << "\nrecord: " << record << "\n"
          << (*validator)->reason();
      if (keys == nullptr) continue;
      ASSERT_TRUE(Takes(keys->given, record))
          << "seed " << seed << "\nschema: " << json::Dump(schema) << "\ntext:   " << text
          << "\nrecord: " << json::Quote(record) << "\nrefused at "
          << keys->given.Start().MatchedPrefix(record) << "\noptions: " << KeyOf(options);
      // In pieces it is the same.
      RecordFilter filter(keys);
      std::string pieces;
      for (size_t begin = 0; begin < text.size();) {
        const size_t length = 1 + dice.Below(3);
        pieces += filter.Feed(std::string_view(text).substr(begin, length));
        begin += length;
      }
      pieces += filter.Finish();
      ASSERT_EQ(pieces, record);
      EXPECT_FALSE(filter.failed());
    }
  }
  std::cout << records << " records, " << shorter << " without a key, " << asked << " schemas\n";
  EXPECT_GE(records, 1500);
  EXPECT_GE(shorter, 200);
}

}  // namespace
}  // namespace pawl
