// Grammar::notes(): what is noted always, and what JsonSchemaOptions::list_annotations adds.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "grammar/languages/option_fields.h"
#include "pawl/compiler.h"
#include "schemas/read/near_keyword.h"
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

TEST(AnnotationsTest, MisspeltKeywords) {
  const std::pair<const char*, const char*> cases[] = {
      {"propertis", "properties"},
      {"max_length", "maxLength"},
      {"minlength", "minLength"},
      {"item", "items"},
      {"aditionalProperites", "additionalProperties"},
      {"enums", "enum"},
      {"allof", "allOf"},
      {"requried", "required"},
      {"mixItems", ""},
      {"x-order", ""},
      {"nullable", ""},
      {"nto", ""},
      {"typ", ""},
      {"discriminator", ""}};
  for (const auto& [name, meant] : cases) {
    const Notes notes =
        Dialect("2020-12", R"({"type":"object",")" + std::string(name) + R"(":true})", false);
    const std::string end =
        *meant == 0 ? "taken as an annotation" : "; is " + std::string(meant) + " meant?";
    ASSERT_EQ(notes.size(), 1u) << name;
    EXPECT_TRUE(notes[0].ends_with(end)) << notes[0];
  }
  // What the dialect does not have is not meant.
  const Notes old = Dialect("draft4", R"({"contain":1,"const":2})", false);
  ASSERT_EQ(old.size(), 2u);
  for (const std::string& note : old) EXPECT_TRUE(note.ends_with("taken as an annotation")) << note;
}

// Optimal string alignment, each edit tried.
size_t SlowDistance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string_view c = a.substr(1), d = b.substr(1);
  size_t best = std::min({SlowDistance(c, b) + 1, SlowDistance(a, d) + 1,
                          SlowDistance(c, d) + (a[0] == b[0] ? 0 : 1)});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    best = std::min(best, SlowDistance(a.substr(2), b.substr(2)) + 1);
  }
  return best;
}

TEST(AnnotationsTest, NearKeywordsAgainstTryingEachEdit) {
  std::mt19937 random(5);
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto name = [&] {
      std::string out;
      for (size_t i = 4 + random() % 5; i > 0; --i) out += static_cast<char>('a' + random() % 2);
      return out;
    };
    const std::string given = name(), one = name(), two = name();
    const size_t first = SlowDistance(given, one), second = SlowDistance(given, two);
    const size_t most = given.size() < 8 ? 1 : 2;
    const std::string nearest = first < second ? one : first > second ? two : "";
    const std::string wanted = std::min(first, second) <= most ? nearest : "";
    const std::string_view keywords[] = {one, two};
    EXPECT_EQ(schema::NearKeyword(given, keywords), wanted) << given << " " << one << " " << two;
    found += wanted.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 200);
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
