// What Lark grammars mean, by examples.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "grammar/languages/substring_regex.h"
#include "tests/grammar/lark_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

TEST(Lark, Strings) {
  Check(R"(start: "a\x42\u0043\n\t\"\\\/")", {"aBC\n\t\"\\/"}, {"aBC", ""});
  Check(R"(start: "\ud83d\ude00" "é")", {"😀é"}, {"😀", "é"});
  Check(R"(start: "Straße"i "k")", {"Straßek", "STRAßEk", "straẞek"}, {"straßeK", "strasek"});
  Check(R"(start: "")", {""}, {"a"});
  Check(R"(start: "\\x41")", {"\\x41"}, {"A"});
}

TEST(Lark, RulesAndOperators) {
  Check("start: \"a\"? \"b\"* \"c\"+\n", {"c", "abbc", "bccc"}, {"", "ab", "aac"});
  Check("start: ab{3,5}\nab: \"a\" | \"b\"", {"aba", "aabaa"}, {"aa", "ababab"});
  Check("start: \"a\"~2 \"b\"~1..2 \"c\"{2,} \"d\"{,2} \"e\"{1}", {"aabcce", "aabbcccdde"},
        {"abcce", "aabce", "aabccddde", "aabcc"});
  Check("start: (\"a\" | \"b\" \"c\") [\"d\"]", {"a", "bcd", "ad"}, {"b", "ac", "d"});
  Check("start: \"x\"\n     | \"y\"\n\n  // a remark\n     | \"z\"\n", {"x", "y", "z"}, {"", "xy"});
  Check("start: \"a\" |\n", {"", "a"}, {"aa"});
  Check("start: (\n  \"a\"\n  | \"b\"\n)\n", {"a", "b"}, {"ab"});
  Check("?start: x -> name\n!x: \"a\" -> one | \"b\" -> two\n", {"a", "b"}, {"c"});
  for (const char* marks : {"", "!", "?", "!?", "?!"}) {
    Check(std::string(marks) + "start: x\n" + marks + "x: \"a\"", {"a"}, {"", "aa"});
  }
  Check("start: \"a\"..\"c\" \"À\"..\"Ö\"", {"aÀ", "cÖ"}, {"dÀ", "a", "a×"});
  Check("start: \"if\"\"then\"", {"ifthen"}, {"if"});
  Check("start: list\nlist: list \",\" item | item\nitem: \"x\" | \"(\" list \")\"",
        {"x", "x,x,(x,(x))"}, {"", "x,", "(x"});
  Check("start: my-rule\nmy-rule: MY-NAME\nMY-NAME: \"a\"", {"a"}, {"b"});
  Check("start: a->b\na: \"x\"", {"x"}, {"xx"});
}

TEST(Lark, EverySegmentationCounts) {
  Check("start: (\"list\"|\"listen\") \"ed\"", {"listed", "listened"}, {"list", "listen"});
  Check("start: A A\nA: /a+/", {"aa", "aaaa"}, {"a"});
}

TEST(Lark, Terminals) {
  Check("start: INT\nINT: \"-\"? UINT\nUINT: DIGIT+\nDIGIT: /[0-9]/", {"1", "-120"}, {"-", "1-"});
  Check("start: ST\nST: /[ab]+/ | /[cd]+/ & /[def]+/", {"ab", "dd"}, {"c", "e"});
  Check("start: ST\nST: ( /[abf]+/ | /[cd]+/ ) & /[def]+/", {"d", "f"}, {"a", "b"});
  Check("start: ST\nST: /[abcd]+/ & ~/(.*)[ab](.*)/", {"cd", "c"}, {"x", "ca", "b"});
  Check("start: ~\"a\"", {"", "b", "aa"}, {"a"});
  Check("start: ST\nST: ~/a/+", {"", "aa", "b"}, {});
  Check("start: ST\nST: /(?s:.)+/ & ~(/(?s:.*)/ \"--\" /(?s:.*)/)", {"a-b", "-"}, {"a--b", ""});
  Check("start: ST\nST: \"ab\"i{2} | \"x\"..\"z\"", {"abAB", "y"}, {"ab", "w"});
}

TEST(Lark, Ignore) {
  const char* const grammar = "start: \"a\" \"b\"*\n%ignore / +/\n%ignore \"#\" /[^\\n]*\\n/";
  Check(grammar, {"a", "ab", "a b", "a #x\n  b b", "a ", "a b "}, {" a", "ab#", ""});
  // Nothing can follow, so nothing is ignored behind it; and what is one terminal stays one.
  Check("start: \"a\" \"b\"\n%ignore \" \"", {"ab", "a  b"}, {"ab ", " ab"});
  Check("start: AB\nAB: \"a\" \"b\"\n%ignore \" \"", {"ab"}, {"a b", "ab "});
  Check("start: \"a\"~2 | \"b\"~1..3\n%ignore \" \"", {"aa", "a a", "b ", "b b ", "b b b"},
        {"a a ", "bbb ", " b"});
  Check("start: x x\nx: \"a\" [\"b\"]\n%ignore \" \"", {"aa", "ab a ", "a a", "a b a b"},
        {"a b a b ", " aa"});
  // A list may end in ignored text as long as it can go on.
  Check("start: \"[\" list \"]\" | list\nlist: list \",\" \"x\" | \"x\"\n%ignore \" \"",
        {"x", "x , x", "[ x, x ]"}, {"[x] ", "x x"});
  Check("%llguidance {\"allow_initial_skip\": true}\nstart: \"a\"*\n%ignore \"b\"",
        {"", "bb", "bba", "abba"}, {"c"});
  Check("%llguidance {\"ignore_once\": true}\nstart: \"A\" \"!\"\n%ignore /[ \\t]{1,2}/",
        {"A!", "A !", "A  !"}, {"A   !"});
}

TEST(Lark, IgnoredTextIsNotCaptured) {
  GrammarIr ir = Read("start: x \"b\"\nx[capture]: \"a\"\n%ignore \" \"");
  const GrammarIr::Rule* x = FindRule(ir, "x.end");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->attributes.capture, "x");
  CfgReference whole(ir);
  EXPECT_TRUE(whole.Accepts("a b"));
  for (GrammarIr::RuleId id = 0; id < ir.rule_count(); ++id) {
    if (&ir.rule(id) == x) ir.SetRoot(id);
  }
  CfgReference captured(ir);
  EXPECT_TRUE(captured.Accepts("a"));
  EXPECT_FALSE(captured.Accepts("a "));
}

TEST(Lark, Common) {
  Check("%import common.NUMBER\nstart: NUMBER", {"1", "1.", ".5", "1e5", "1.5E-3"}, {"", ".", "e"});
  Check("%import common.NUMBER -> N\n%import common (WORD, WS)\nstart: N WS WORD", {"1 \nab"},
        {"1ab"});
  Check("%import common.ESCAPED_STRING -> S\nstart: S", {"\"\"", "\"a\\\"b\""}, {"\"a\\\"", "\""});
  Check("%import common.C_COMMENT\nstart: C_COMMENT", {"/**/", "/* a * / */", "/***/"},
        {"/* */ */", "/*/"});
  Check("%import common.FLOAT\nstart: FLOAT", {"1.", "1e1", ".5e+2"}, {"1", "1e"});
  Check("%import common.SIGNED_INT\nstart: SIGNED_INT", {"1", "-1", "+12"}, {"--1", "-"});
  Check("%import common.CNAME\nstart: CNAME", {"_a1"}, {"1a"});
}

TEST(Lark, Attributes) {
  const GrammarIr ir = Read(R"(
    start: one two three four
    one[capture]: "a"
    two[capture="zwei", max_tokens=5, temperature=0.5]: /b+/
    three[temperature=1]: %json {"type": "object"}
    four[max_tokens=0]: /c+/
  )");
  EXPECT_EQ(FindRule(ir, "one")->attributes.capture, "one");
  EXPECT_EQ(FindRule(ir, "one")->place, "3:5");
  EXPECT_EQ(FindRule(ir, "two")->attributes.capture, "zwei");
  EXPECT_EQ(FindRule(ir, "two")->attributes.max_tokens, 5u);
  EXPECT_EQ(FindRule(ir, "two")->attributes.temperature, 0.5);
  EXPECT_EQ(FindRule(ir, "three")->attributes.temperature, 1.0);
  EXPECT_EQ(FindRule(ir, "four")->body, GrammarIr::kEmpty);
  EXPECT_EQ(FindRule(ir, "four")->attributes, GrammarIr::Attributes());
}

TEST(Lark, SpecialTokens) {
  const GrammarIr ir = Read("start: <|eot_id|> <[1,5-10]> <[*]> <[^3,7-8]> <think> <|eot_id|>");
  ASSERT_EQ(ir.token_set_count(), 5u);
  EXPECT_EQ(ir.token_set(0), (TokenSet{{"<|eot_id|>"}, {}, false, "1:8"}));
  EXPECT_EQ(ir.token_set(1), (TokenSet{{}, {{1, 1}, {5, 10}}, false, "1:19"}));
  EXPECT_EQ(ir.token_set(2), (TokenSet{{}, {}, true, "1:30"}));
  EXPECT_EQ(ir.token_set(3), (TokenSet{{}, {{3, 3}, {7, 8}}, true, "1:36"}));
  EXPECT_EQ(ir.token_set(4).names, std::vector<std::string>{"<think>"});
}

TEST(Lark, Json) {
  std::vector<std::string> schemas;
  const GrammarIr ir = Read(
      "start: \"x\" %json { \"a}\\\"\": [1, {\"b\": \"]\"}] } \"y\" // z\n  | other\n"
      "other: %json{\n  \"type\": \"object\"\n}\n",
      WithJson(&schemas));
  EXPECT_EQ(schemas, (std::vector<std::string>{"{ \"a}\\\"\": [1, {\"b\": \"]\"}] }",
                                               "{\n  \"type\": \"object\"\n}"}));
  EXPECT_EQ(Find(ir, GrammarIr::Kind::kAutomaton).size(), 2u);
  EXPECT_EQ(ir.automaton(0).description, "%json " + schemas[0]);
  EXPECT_EQ(ErrorOf("start: %json {}", LanguageOptions()),
            "1:14: JSON Schemas are not supported here");
  EXPECT_EQ(ErrorOf("start: \"\"\n  | %json []"),
            "2:11: in this JSON Schema: #: must be an object");
}

TEST(Lark, NestedGrammars) {
  Check("start: /[ab]+/ foobar\nfoobar: %lark {\n start: \"foo\" | \"Bar\" }\n",
        {"afoo", "abfoo", "aaaaaaBar"}, {"a", "afooa"});
  // A scope has its own names and its own ignored text.
  Check(
      "start: X inner X\nX: \"x\"\ninner: %lark {\n  start: X X\n  X: \"y\"\n  %ignore \" \"\n}\n",
      {"xyyx", "xy yx"}, {"x yyx", "xyy x", "xxxx"});
  Check("start: X inner X\nX: \"x\"\ninner: %lark { start: X X\n X: \"y\" }\n%ignore \" \"\n",
        {"xyyx", "x yy x"}, {"xy yx"});
  Check("start: a\na: %lark { start: %lark { start: \"q\" } | \"r\" }", {"q", "r"}, {""});
}

TEST(Lark, SeveralGrammars) {
  const std::vector<LarkGrammar> grammars = {{"", "start: \"a\" @sub | @json"},
                                             {"sub", "start: \"b\" @sub | \"c\""},
                                             {"json", "{}", true}};
  Result<GrammarIr> ir = ReadLark(grammars, WithJson());
  ASSERT_TRUE(ir.ok()) << ir.error().ToString();
  CfgReference reference(*ir);
  EXPECT_TRUE(reference.Accepts("abbc"));
  EXPECT_FALSE(reference.Accepts("ab"));
  Result<GrammarIr> json = ReadLlguidance(
      R"({"grammars": [{"lark_grammar": "start: @s"}, {"name": "s", "lark_grammar": "start: \"x\""}]})",
      WithJson());
  ASSERT_TRUE(json.ok()) << json.error().ToString();
  EXPECT_TRUE(CfgReference(*json).Accepts("x"));
  EXPECT_EQ(ErrorOf("start: @nobody"), "1:8: there is no grammar of the name 'nobody'");
  const LarkGrammar broken[] = {{"", "start: @sub"}, {"sub", "start: foo"}};
  EXPECT_EQ(ReadLark(broken, {}).error().ToString(), "@sub 1:8: the name 'foo' is not defined");
}

TEST(Lark, Substrings) {
  const char* const words =
      "start: SUB\nSUB: \"A\" %regex { \"substring_words\": \"foo bar baz\" } \"B\"";
  Check(words, {"AfooB", "Abar bazB", "A bar bazB", "Afoo bar B", "AB"}, {"Afoo bar baz", "AfoB"});
  Check("start: %regex { \"substring_chunks\": [\"foo\", \" bar\", \" baz\"] }",
        {"", "foo", " bar", "foo bar baz"}, {"bar", "foo baz"});
  Check("start: %regex { \"substring_chars\": \"여우가 게으른\" }", {"여우", "가 게", ""},
        {"여가"});
}

// grammar/examples/NAME.lark with NAME.samples next to it: lines "+ text" that it accepts and
// "- text" that it refuses; \n and \\ stand for themselves.
TEST(Lark, Examples) {
  int grammars = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(SourceDir()) /
                                                              "grammar" / "examples")) {
    if (file.path().extension() != ".lark") continue;
    ++grammars;
    std::stringstream grammar;
    grammar << std::ifstream(file.path()).rdbuf();
    GrammarIr ir = Read(grammar.str());
    ASSERT_NE(ir.root(), GrammarIr::kNoRule) << file.path();
    std::ifstream samples(std::filesystem::path(file.path()).replace_extension(".samples"));
    ASSERT_TRUE(samples.good()) << file.path();
    CfgReference reference(ir);
    bool good = false, bad = false;
    for (std::string line; std::getline(samples, line);) {
      if (line.size() < 2) continue;
      std::string text;
      for (size_t i = 2; i < line.size(); ++i) {
        if (line[i] == '\\' && i + 1 < line.size()) {
          ++i;
          text += line[i] == 'n' ? '\n' : line[i];
        } else {
          text += line[i];
        }
      }
      EXPECT_EQ(reference.Accepts(text), line[0] == '+') << file.path() << ": " << line;
      (line[0] == '+' ? good : bad) = true;
    }
    EXPECT_TRUE(good && bad) << file.path();
  }
  EXPECT_GE(grammars, 2);
}

}  // namespace
}  // namespace pawl
