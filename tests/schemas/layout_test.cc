// Options that say how a text is written (order, white space, separators, spelling), and what keys
// an object may have where its schema does not say.
#include <gtest/gtest.h>

#include "pawl/compiler.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

using Whitespace = JsonSchemaOptions::Whitespace;

std::shared_ptr<const Vocabulary> Words() {
  return VocabularyOf(AllBytes({", ", ": ", ",  ", "\", \"", "\": ", ": 1", ",", " 1", "\\u00",
                                "e9", "u00e9\"", "\xC3\xA9\""}));
}

bool LayoutAccepts(const Grammar& grammar, const std::string& text) {
  const auto state = grammar.Start().Advance(text);
  return state && state->accepting();
}

Grammar Compiled(const std::string& schema, const JsonSchemaOptions& options) {
  auto grammar = Compiler(Words()).CompileJsonSchema(schema, options);
  EXPECT_TRUE(grammar.ok()) << schema << ": " << grammar.error().ToString();
  return *grammar;
}

// Every token is in the mask if and only if Advance takes it, all along the text.
void ExpectMasksAgree(const Grammar& grammar, const std::string& text) {
  State state = grammar.Start();
  for (size_t i = 0; i <= text.size(); ++i) {
    const auto mask = state.mask();
    for (TokenId token = 0; token < grammar.vocabulary().size() - 1; ++token) {
      EXPECT_EQ(mask->Allows(token), state.Advance(token).has_value())
          << "after " << text.substr(0, i) << ": " << grammar.vocabulary().bytes(token);
    }
    if (i == text.size()) break;
    const auto next = state.Advance(text.substr(i, 1));
    ASSERT_TRUE(next.has_value()) << "after " << text.substr(0, i);
    state = *next;
  }
}

TEST(LayoutTest, OrderWhitespaceAndSpelling) {
  const char* schema = R"({"properties": {"b": {}, "a": {}}, "required": ["b"], "type": "object"})";
  JsonSchemaOptions compact;
  compact.whitespace = Whitespace::kCompact;
  const Grammar strict = Compiled(schema, compact);
  EXPECT_TRUE(LayoutAccepts(strict, R"({"b":1,"a":2,"z":3})"));
  EXPECT_FALSE(LayoutAccepts(strict, R"({"a":2,"b":1})"));
  EXPECT_FALSE(LayoutAccepts(strict, R"({"b": 1})"));
  EXPECT_FALSE(LayoutAccepts(strict, R"({"\u0062":1})"));
  EXPECT_FALSE(LayoutAccepts(strict, R"({"b":1e3})"));
  EXPECT_EQ(strict.Start().forced(), "{\"b\":");
  JsonSchemaOptions bounded;  // the default
  bounded.max_whitespace = 2;
  const Grammar spaced = Compiled(schema, bounded);
  EXPECT_TRUE(LayoutAccepts(spaced, "{  \"b\" :\n 1}"));
  EXPECT_FALSE(LayoutAccepts(spaced, "{   \"b\":1}"));
}

TEST(LayoutTest, SeparatorsAreExact) {
  JsonSchemaOptions options;
  options.whitespace = Whitespace::kCompact;
  options.item_separator = ", ";
  options.key_separator = ": ";
  const Grammar grammar = Compiled(
      R"({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {}},
          "required": ["a", "b"], "additionalProperties": false})",
      options);
  EXPECT_TRUE(LayoutAccepts(grammar, R"({"a": [1, 2], "b": {"x,y:z": ",:"}})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"a": [1,2], "b": 1})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"a":[1, 2], "b": 1})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"a":  [1, 2], "b": 1})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"a": [1,  2], "b": 1})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"a": [ 1], "b": 1})"));
  EXPECT_EQ(grammar.Start().forced(), R"({"a": [)");
  ExpectMasksAgree(grammar, R"({"a": [1, 2], "b": "c, d"})");
  const auto begun = grammar.Start().Advance(R"({"a": [1,)");
  ASSERT_TRUE(begun.has_value());
  EXPECT_EQ(begun->CompletionBytes(), R"( 0], "b": 0})");
  EXPECT_EQ(grammar.Start().CompletionBytes(), R"({"a": [], "b": 0})");
}

TEST(LayoutTest, SeparatorsAreChecked) {
  const Compiler compiler(Words());
  const auto error = [&](const char* item, const char* key, Whitespace whitespace) {
    JsonSchemaOptions options;
    options.whitespace = whitespace;
    options.item_separator = item;
    options.key_separator = key;
    const auto grammar = compiler.CompileJsonSchema("{}", options);
    return grammar.ok() ? std::string("compiled") : grammar.error().place;
  };
  EXPECT_EQ(error(",\n", ": ", Whitespace::kCompact), "compiled");
  EXPECT_EQ(error(";", ":", Whitespace::kCompact), "item_separator");
  EXPECT_EQ(error("", ":", Whitespace::kCompact), "item_separator");
  EXPECT_EQ(error(",", " :", Whitespace::kCompact), "key_separator");
  EXPECT_EQ(error(",", ": x", Whitespace::kCompact), "key_separator");
  EXPECT_EQ(error(",                 ", ":", Whitespace::kCompact), "item_separator");
  EXPECT_EQ(error(", ", ":", Whitespace::kBounded), "item_separator, key_separator");
}

TEST(LayoutTest, AsciiStringsAndKeys) {
  const char* schema =
      R"({"type": "object", "properties": {"é": {"type": "string", "pattern": "^[a-é😀]+$"}}, "required": ["é"]})";
  JsonSchemaOptions options;
  options.whitespace = Whitespace::kCompact;
  options.ascii = true;
  const Grammar grammar = Compiled(schema, options);
  EXPECT_TRUE(LayoutAccepts(grammar, R"({"\u00e9":"a\u00e9\ud83d\ude00"})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"é":"a"})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"\u00e9":"é"})"));
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"\u00E9":"a"})"));       // one spelling only
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"\u00e9":"\u0061"})"));  // ASCII stays as it is
  EXPECT_FALSE(LayoutAccepts(grammar, R"({"\u00e9":"\u00ea"})"));
  EXPECT_EQ(grammar.Start().forced(), R"({"\u00e9":")");
  ExpectMasksAgree(grammar, R"({"\u00e9":"a\u00e9\ud83d\ude00","\u00e8":["\u65e5"]})");
  EXPECT_EQ(Compiled(R"({"const": {"é": "😀"}})", options).Start().CompletionBytes(),
            R"({"\u00e9":"\ud83d\ude00"})");
  options.canonical_spelling = false;
  const Grammar any = Compiled(schema, options);
  EXPECT_TRUE(LayoutAccepts(any, R"({"\u00E9":"\u0061\u00e9"})"));
  EXPECT_FALSE(LayoutAccepts(any, R"({"\u00E9":"é"})"));
}

struct LayoutCase {
  const char* schema;
  std::vector<const char*> accepted, refused;
};

TEST(LayoutTest, ClosedObjects) {
  const std::vector<LayoutCase> cases = {
      {R"({"properties": {"a": {}}})", {R"({"a":1})", "{}", "3"}, {R"({"b":1})"}},
      {R"({"patternProperties": {"^x": {}}})", {R"({"x1":1})"}, {R"({"y":1})"}},
      // Said by the schema itself.
      {R"({"properties": {"a": {}}, "additionalProperties": true})", {R"({"b":1})"}, {}},
      {R"({"properties": {"a": {}}, "unevaluatedProperties": {"type": "null"}})",
       {R"({"b":null})"},
       {R"({"b":1})"}},
      // Nothing is said about it.
      {R"({"type": "object"})", {R"({"b":1})"}, {}},
      {R"({"type": "object", "required": ["b"]})", {R"({"b":1,"c":2})"}, {}},
      // Nested values close for themselves.
      {R"({"properties": {"a": {"properties": {"b": {}}}}})",
       {R"({"a":{"b":1}})"},
       {R"({"a":{"c":1}})"}},
      {R"({"items": {"properties": {"b": {}}}})", {R"([{"b":1}])"}, {R"([{"c":1}])"}},
      // Applied in place: together.
      {R"({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]})",
       {R"({"a":1,"b":2})"},
       {R"({"a":1,"c":2})"}},
      {R"({"$ref": "#/$defs/base", "properties": {"b": {}}, "$defs": {"base": {"properties": {"a": {}}, "required": ["a"]}}})",
       {R"({"a":1,"b":2})"},
       {R"({"b":2})", R"({"a":1,"c":2})"}},
      {R"({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {"const": 1}}, "required": ["b"]}, {"properties": {"c": {}}}]})",
       {R"({"a":1,"b":1})", R"({"a":1,"c":1})"},
       {R"({"d":1})", R"({"b":2})"}},
      // Mere choices and references: each by itself.
      {R"({"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]})",
       {R"({"a":1})", R"({"b":1})"},
       {R"({"a":1,"b":1})", R"({"a":1,"c":1})", "{}"}},
      {R"({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/t",
           "definitions": {"t": {"properties": {"kid": {"$ref": "#/definitions/t"}}}}})",
       {R"({"kid":{"kid":{}}})"},
       {R"({"kid":{"x":1}})", R"({"x":1})"}},
      // A condition is no description.
      {R"({"properties": {"a": {}}, "not": {"properties": {"a": {"const": 1}}, "required": ["a"]}})",
       {R"({"a":2})"},
       {R"({"a":1})", R"({"a":2,"b":1})"}},
      {R"({"properties": {"a": {}, "b": {}}, "if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}})",
       {R"({"a":1,"b":2})", R"({"a":2})"},
       {R"({"a":1})", R"({"a":2,"c":1})"}},
  };
  JsonSchemaOptions open, closed;
  open.order = closed.order = JsonSchemaOptions::Order::kAny;
  closed.additional_properties = false;
  for (const LayoutCase& one : cases) {
    const Grammar grammar = Compiled(one.schema, closed);
    for (const char* text : one.accepted) {
      EXPECT_TRUE(LayoutAccepts(grammar, text)) << one.schema << " " << text;
      EXPECT_TRUE(LayoutAccepts(Compiled(one.schema, open), text)) << one.schema << " " << text;
    }
    for (const char* text : one.refused)
      EXPECT_FALSE(LayoutAccepts(grammar, text)) << one.schema << " " << text;
  }
}

}  // namespace
}  // namespace pawl
