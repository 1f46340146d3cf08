// References to the metaschemas of the drafts, which are built in: each takes schemas of its draft
// (itself among them) and refuses what is none.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "schemas/read/references.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

JsonSchemaOptions Options() {
  JsonSchemaOptions options;
  options.order = JsonSchemaOptions::Order::kAny;
  options.whitespace = JsonSchemaOptions::Whitespace::kAny;
  return options;
}

bool Fits(const std::string& uri, const std::string& text) {
  static std::map<std::string, Grammar> compiled;
  auto it = compiled.find(uri);
  if (it == compiled.end()) {
    auto grammar = Compiler(Bytes()).CompileJsonSchema(R"({"$ref":")" + uri + R"("})", Options());
    EXPECT_TRUE(grammar.ok()) << uri << ": " << grammar.error().ToString();
    if (!grammar.ok()) return false;
    it = compiled.emplace(uri, *std::move(grammar)).first;
  }
  const std::optional<State> end = it->second.Start().Advance(text);
  return end && end->accepting();
}

const std::string k4 = "http://json-schema.org/draft-04/schema#";
const std::string k6 = "http://json-schema.org/draft-06/schema#";
const std::string k7 = "http://json-schema.org/draft-07/schema#";
const std::string k2019 = "https://json-schema.org/draft/2019-09/schema";
const std::string k2020 = "https://json-schema.org/draft/2020-12/schema";
const std::vector<std::string> kAll = {k4, k6, k7, k2019, k2020};

TEST(MetaschemaTest, EachFitsItself) {
  for (const std::string& uri : kAll) {
    const auto text = schema::Metaschema(uri.substr(0, uri.find('#')));
    ASSERT_TRUE(text.has_value()) << uri;
    EXPECT_TRUE(Fits(uri, *text)) << uri << ' ' << *text;
  }
}

TEST(MetaschemaTest, KeywordsOfEveryDraft) {
  for (const std::string& uri : kAll) {
    EXPECT_TRUE(Fits(uri, R"({"properties":{"a":{"type":["string","null"],"minLength":0}}})"));
    EXPECT_TRUE(Fits(uri, R"({"unknown":[1],"enum":[1,"a"],"required":["a"],"format":"x"})"));
    for (const char* bad :
         {R"({"type":"text"})", R"({"type":[]})", R"({"type":["null","null"]})",
          R"({"minLength":-1})", R"({"maxItems":1.5})", R"({"required":[1]})",
          R"({"required":["a","a"]})", R"({"multipleOf":0})", R"({"allOf":[]})",
          R"({"properties":{"a":{"not":{"maximum":"1"}}}})", R"({"pattern":7})", R"([])", "null",
          R"({"dependencies":{"a":[1]}})", R"({"uniqueItems":0})"}) {
      EXPECT_FALSE(Fits(uri, bad)) << uri << ' ' << bad;
    }
  }
}

TEST(MetaschemaTest, WhatDraftsDifferIn) {
  struct Case {
    const char* text;
    const char* fits;  // a letter for each of kAll
  };
  for (const Case& it : {
           Case{"true", "-++++"},
           Case{R"({"not":false})", "-++++"},
           Case{R"({"additionalProperties":false})", "+++++"},
           Case{R"({"exclusiveMinimum":true,"minimum":1})", "+----"},
           Case{R"({"exclusiveMinimum":true})", "-----"},
           Case{R"({"exclusiveMinimum":1})", "-++++"},
           Case{R"({"required":[]})", "-++++"},
           Case{R"({"enum":[]})", "-++++"},
           Case{R"({"const":null,"contains":1})", "+----"},
           Case{R"({"if":1})", "++---"},
           Case{R"({"items":[true]})", "-+++-"},
           Case{R"({"prefixItems":[]})", "++++-"},
           Case{R"({"$id":"a#b"})", "+++--"},
           Case{R"({"$id":1})", "+----"},
           Case{R"({"id":1})", "-++++"},
           Case{R"({"$anchor":"1"})", "+++--"},
           Case{R"({"$dynamicAnchor":"1"})", "++++-"},
           Case{R"({"$defs":{"a":{"unevaluatedItems":{"type":0}}}})", "+++--"},
           Case{R"({"contentSchema":0})", "+++--"},
       }) {
    for (size_t i = 0; i < kAll.size(); ++i)
      EXPECT_EQ(Fits(kAll[i], it.text), it.fits[i] == '+') << kAll[i] << ' ' << it.text;
  }
}

TEST(MetaschemaTest, PartsAndVocabularies) {
  EXPECT_TRUE(Fits(k7 + "/definitions/nonNegativeInteger", "3"));
  EXPECT_FALSE(Fits(k7 + "/definitions/nonNegativeInteger", "-3"));
  EXPECT_TRUE(Fits(k4 + "/properties/title", R"("a")"));
  EXPECT_FALSE(Fits(k4 + "/properties/title", "1"));
  EXPECT_TRUE(Fits("https://json-schema.org/draft/2020-12/meta/validation", R"({"type":"null"})"));
  EXPECT_FALSE(Fits("https://json-schema.org/draft/2020-12/meta/validation", R"({"type":1})"));
  EXPECT_TRUE(Fits("https://json-schema.org/draft/2020-12/meta/core", R"({"type":1})"));
  EXPECT_TRUE(Fits("https://json-schema.org/draft/2020-12/meta/format-assertion", "{}"));
  EXPECT_TRUE(Fits("https://json-schema.org/draft/2019-09/meta/applicator", R"({"if":true})"));
  for (const char* absent :
       {"https://json-schema.org/draft/2019-09/meta/unevaluated", "http://json-schema.org/schema",
        "https://json-schema.org/draft/2020-12/", "http://json-schema.org/draft-03/schema"}) {
    EXPECT_FALSE(schema::Metaschema(absent).has_value()) << absent;
  }
}

TEST(MetaschemaTest, TheCallersDocumentComesFirst) {
  JsonSchemaOptions options = Options();
  options.resolve_document = [](std::string_view) -> Result<std::string> {
    return std::string(R"({"const":1})");
  };
  auto grammar = Compiler(Bytes()).CompileJsonSchema(R"({"$ref":")" + k7 + R"("})", options);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  EXPECT_TRUE(grammar->Start().Advance("1").has_value());
  EXPECT_FALSE(grammar->Start().Advance("{").has_value());
}

}  // namespace
}  // namespace pawl
