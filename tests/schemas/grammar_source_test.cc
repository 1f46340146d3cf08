// Sources of grammars: one table of kinds, the same grammar as the compiler's own methods make, and
// bytes that hold all of it.
#include "schemas/grammar_source.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

const std::vector<GrammarSource>& Sources() {
  static const std::vector<GrammarSource> sources = {
      {.kind = "json_schema", .texts = {R"({"type":"integer","minimum":3})"}},
      {.kind = "regex", .texts = {"[a-c]{2,3}"}},
      {.kind = "choice", .texts = {"yes", "no"}},
      {.kind = "ebnf", .texts = {"root ::= \"a\" | \"b\" root"}},
      {.kind = "gbnf", .texts = {"root ::= \"a\" | \"b\" root"}},
      {.kind = "lark", .texts = {"start: \"a\" | \"b\" start"}},
      {.kind = "lark_xgrammar", .texts = {"start: \"a\" | \"b\" start"}},
      {.kind = "llguidance", .texts = {R"({"grammars":[{"lark_grammar":"start: \"a\""}]})"}},
      {.kind = "substring", .texts = {"a text"}},
      {.kind = "structural_tag",
       .texts = {R"({"type":"structural_tag","format":{"type":"const_string","value":"x"}})"}},
  };
  return sources;
}

TEST(GrammarSourceTest, EveryKindCompilesAndComesBackFromItsBytes) {
  const auto vocabulary = Bytes();
  const Compiler compiler(vocabulary);
  const Fingerprint fingerprint = FingerprintOf(*vocabulary);
  std::vector<std::string_view> kinds;
  for (const GrammarSource& source : Sources()) {
    SCOPED_TRACE(source.kind);
    kinds.push_back(source.kind);
    GrammarOptions options;
    options.json_schema = source.options;
    const auto grammar = CompileSource(compiler, source, options);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    const auto read = Deserialize(Serialize(source, fingerprint), fingerprint);
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    EXPECT_EQ(read->kind, source.kind);
    EXPECT_EQ(read->texts, source.texts);
    const auto again = CompileKept(compiler, *read, fingerprint, 0);
    ASSERT_TRUE(again.ok()) << again.error().ToString();
    EXPECT_EQ(again->Start().mask()->Tokens(), grammar->Start().mask()->Tokens());
    EXPECT_EQ(again->Start().CompletionBytes(), grammar->Start().CompletionBytes());
  }
  EXPECT_EQ(kinds, GrammarKinds()) << "every kind stands in this test, in the table's order";
}

TEST(GrammarSourceTest, AnUnknownKindNamesTheKnownOnes) {
  const Compiler compiler(Bytes());
  const auto grammar = CompileSource(compiler, {.kind = "yaml", .texts = {"x"}}, {});
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(grammar.error().message.find("structural_tag"), std::string::npos);
}

TEST(GrammarSourceTest, LanguagesAreKinds) {
  for (const char* name : {"ebnf", "gbnf", "lark", "lark_xgrammar", "llguidance"}) {
    EXPECT_EQ(KindOf(*GrammarLanguageOf(name)), name);
  }
}

}  // namespace
}  // namespace pawl
