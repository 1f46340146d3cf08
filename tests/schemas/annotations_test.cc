// Grammar::notes(): what is noted always, and what JsonSchemaOptions::list_annotations adds.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "grammar/languages/option_fields.h"
#include "pawl/compiler.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

using Notes = std::vector<std::string>;

Notes NotesOf(const std::string& schema, JsonSchemaOptions options, bool list = true) {
  options.list_annotations = list;
  auto grammar = Compiler(Bytes()).CompileJsonSchema(schema, options);
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  if (!grammar.ok()) return {};
  Notes notes = grammar->notes();
  std::sort(notes.begin(), notes.end());
  return notes;
}

Notes Dialect(const std::string& name, const std::string& schema, bool list = true) {
  JsonSchemaOptions options;
  options.default_dialect = name;
  return NotesOf(schema, options, list);
}

TEST(AnnotationsTest, ListsWhatDemandsNothing) {
  const std::string schema = R"({
    "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://x/y",
    "$comment": "c", "title": "t", "description": "d", "deprecated": true, "readOnly": true,
    "writeOnly": false, "default": {"title": "data"}, "examples": [{"title": "data"}],
    "type": "object",
    "properties": {
      "title": {"type": "string", "contentEncoding": "base64", "contentMediaType": "x/y",
                "contentSchema": {"title": "not read"}},
      "a/b": {"titel": 1, "format": "colour", "enum": [{"title": "data"}]},
      "f": {"format": "float"}, "g": {"format": "date"}},
    "$defs": {"unused": {"title": "not read"}}})";
  const std::string why = "an annotation by the specification";
  const Notes always = {
      "#/properties/a~1b/format: format: unknown format \"colour\", taken as an annotation",
      "#/properties/a~1b/titel: titel: not a keyword of this dialect, taken as an annotation"};
  EXPECT_EQ(Dialect("2020-12", schema, false), always);
  Notes all = {"#/$comment: $comment: " + why,
               "#/default: default: " + why,
               "#/deprecated: deprecated: " + why,
               "#/description: description: " + why,
               "#/examples: examples: " + why,
               "#/properties/f/format: format: \"float\" allows every number",
               "#/properties/title/contentEncoding: contentEncoding: " + why,
               "#/properties/title/contentMediaType: contentMediaType: " + why,
               "#/properties/title/contentSchema: contentSchema: " + why,
               "#/readOnly: readOnly: " + why,
               "#/title: title: " + why,
               "#/writeOnly: writeOnly: " + why};
  all.insert(all.end(), always.begin(), always.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(Dialect("2020-12", schema), all);
}

TEST(AnnotationsTest, FormatsWhenTheyAreNotAsserted) {
  JsonSchemaOptions options;
  options.assert_formats = false;
  EXPECT_EQ(NotesOf(R"({"format": "date"})", options),
            Notes{"#/format: format: formats are annotations by option"});
  EXPECT_EQ(NotesOf(R"({"format": "date"})", {}), Notes{});
}

TEST(AnnotationsTest, KeywordsOfOtherDialects) {
  const std::string other = ": not a keyword of this dialect";
  EXPECT_EQ(Dialect("draft4", R"({"$id": "x", "id": "http://x/y", "const": 1})"),
            (Notes{"#/$id: $id" + other, "#/const: const" + other + ", taken as an annotation"}));
  EXPECT_EQ(Dialect("2020-12", R"({"$id": "http://x/y", "id": "x", "$recursiveAnchor": true})"),
            (Notes{"#/$recursiveAnchor: $recursiveAnchor" + other, "#/id: id" + other}));
  EXPECT_EQ(Dialect("draft7", R"({"$anchor": "x"})"), Notes{"#/$anchor: $anchor" + other});
  EXPECT_EQ(Dialect("2019-09", R"({"$anchor": "x", "$recursiveAnchor": true})"), Notes{});
}

TEST(AnnotationsTest, BesideAReferenceUpToDraft7) {
  const std::string schema =
      R"({"$ref": "#/definitions/a", "minLength": 3, "title": "t", "definitions": {"a": {}}})";
  const std::string why = ": beside $ref, where nothing counts up to draft 7";
  EXPECT_EQ(Dialect("draft7", schema),
            (Notes{"#/minLength: minLength" + why, "#/title: title" + why}));
  EXPECT_EQ(Dialect("draft7", schema, false), Notes{});
  EXPECT_EQ(Dialect("2019-09", schema),
            Notes{"#/title: title: an annotation by the specification"});
}

TEST(AnnotationsTest, KeywordsThatNeedAnother) {
  EXPECT_EQ(
      Dialect("2019-09", R"({"then": {}, "minContains": 1, "additionalItems": false})"),
      (Notes{"#/additionalItems: additionalItems: without an array under items it has no effect",
             "#/minContains: minContains: without contains it has no effect",
             "#/then: then: without if it has no effect"}));
  EXPECT_EQ(Dialect("2019-09", R"({"if": {"type": "null"}})"),
            Notes{"#/if: if: without then and else it has no effect"});
  EXPECT_EQ(Dialect("draft4", R"({"exclusiveMinimum": true, "exclusiveMaximum": true,
                                 "maximum": 3})"),
            Notes{"#/exclusiveMinimum: exclusiveMinimum: in draft 4 it has no effect without its "
                  "bound"});
  EXPECT_EQ(Dialect("2019-09", R"({"if": {}, "else": {}, "contains": {}, "maxContains": 2,
                                  "items": [{}], "additionalItems": false})"),
            Notes{});
}

TEST(AnnotationsTest, VocabulariesSwitchedOff) {
  JsonSchemaOptions options;
  options.resolve_document = [](std::string_view uri) -> Result<std::string> {
    if (uri != "http://x/meta") return Error{ErrorCode::kIo, "none", ""};
    return std::string(R"({"$schema": "https://json-schema.org/draft/2020-12/schema",
        "$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/core": true,
                        "https://json-schema.org/draft/2020-12/vocab/applicator": true}})");
  };
  EXPECT_EQ(
      NotesOf(R"({"$schema": "http://x/meta", "minimum": 3, "properties": {}})", options),
      Notes{"#/minimum: minimum: the $vocabulary of the metaschema leaves it without meaning"});
}

// A schema that is reached in two dynamic scopes is read twice.
TEST(AnnotationsTest, EachPlaceOnce) {
  const char* schema = R"({
    "$id": "http://x/root", "properties": {"a": {"$ref": "numbers"}, "b": {"$ref": "strings"}},
    "$defs": {
      "n": {"$id": "numbers", "$ref": "list",
            "$defs": {"item": {"$dynamicAnchor": "item", "type": "number"}}},
      "s": {"$id": "strings", "$ref": "list",
            "$defs": {"item": {"$dynamicAnchor": "item", "type": "string"}}},
      "l": {"$id": "list", "items": {"$dynamicRef": "#item"}, "title": "t", "titel": "t",
            "$defs": {"item": {"$dynamicAnchor": "item"}}}}})";
  EXPECT_EQ(NotesOf(schema, {}),
            (Notes{"#/$defs/l/titel: titel: not a keyword of this dialect, taken as an "
                   "annotation",
                   "#/$defs/l/title: title: an annotation by the specification"}));
}

TEST(AnnotationsTest, ManyAreCounted) {
  std::string schema = R"({"typo": 1, "anyOf": [)";
  for (int i = 0; i < 1234; ++i) schema += R"({"const": 1, "title": "t"},)";
  schema += R"({"const": 2}]})";
  JsonSchemaOptions options;
  options.list_annotations = true;
  const auto grammar = Compiler(Bytes()).CompileJsonSchema(schema, options);
  ASSERT_TRUE(grammar.ok());
  ASSERT_EQ(grammar->notes().size(), 1002u);  // and the typo, which is no matter of the limit
  EXPECT_EQ(grammar->notes().back(), "and 234 more annotations");
}

TEST(AnnotationsTest, ArePartOfTheCachesKey) {
  const Compiler compiler(Bytes(), {.cached_grammars = 4});
  JsonSchemaOptions list;
  list.list_annotations = true;
  EXPECT_EQ(compiler.CompileJsonSchema(R"({"title": "t"})")->notes().size(), 0u);
  EXPECT_EQ(compiler.CompileJsonSchema(R"({"title": "t"})", list)->notes().size(), 1u);
  EXPECT_EQ(compiler.CompileJsonSchema(R"({"title": "t"})")->notes().size(), 0u);
}

// A setting that the key forgot would serve a grammar of other options.
TEST(OptionsTest, EachIsPartOfTheKey) {
  JsonSchemaOptions options;
  std::set<std::string> keys = {KeyOf(options)};
  size_t fields = 0;
  VisitOptions(options, [&]<typename Field>(const char* name, Field& field) {
    const Field before = field;
    if constexpr (std::is_same_v<Field, std::string>) {
      field += "x";
    } else {
      field = static_cast<Field>(static_cast<int64_t>(field) == 0 ? 1 : 0);
    }
    EXPECT_TRUE(keys.insert(KeyOf(options)).second) << name;
    field = before;
    ++fields;
  });
  EXPECT_EQ(keys.size(), fields + 1);
  // Where one text ends and the next begins is part of it too.
  JsonSchemaOptions one, two;
  one.item_separator = ", ";
  one.key_separator = ":";
  two.item_separator = ",";
  two.key_separator = " :";
  EXPECT_NE(KeyOf(one), KeyOf(two));
}

}  // namespace
}  // namespace pawl
