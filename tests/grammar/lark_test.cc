#include "grammar/languages/lark.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "grammar/languages/rust_regex.h"
#include "grammar/languages/substring_regex.h"
#include "src/base/utf8.h"
#include "tests/grammar/cfg_reference.h"

namespace pawl {
namespace {

// A machine for one text: %json stands for it in these tests.
class OneText : public Machine {
 public:
  explicit OneText(std::string text) : text_(std::move(text)) {}
  Key Start() override { return MakeKey(1, 1); }
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override {
    const bool fits = lexeme <= text_.size() && static_cast<uint8_t>(text_[lexeme - 1]) == byte;
    return fits ? lexeme + 1 : kDeadLexeme;
  }
  Key StepFrame(Key, uint8_t) override { return kDead; }
  bool Accepting(Key state) override { return LexemeOf(state) == text_.size() + 1; }
  std::optional<std::string> ShortestCompletion(Key state) override {
    return text_.substr(LexemeOf(state) - 1);
  }

 private:
  std::string text_;
};

LanguageOptions WithJson(std::vector<std::string>* schemas = nullptr) {
  LanguageOptions options;
  options.json_schema = [schemas](std::string_view text) -> Result<GrammarIr::Automaton> {
    if (schemas != nullptr) schemas->emplace_back(text);
    if (text.starts_with('[')) return Error{ErrorCode::kInvalid, "must be an object", "#"};
    return GrammarIr::Automaton{std::make_shared<OneText>("{}"), "%json " + std::string(text)};
  };
  return options;
}

GrammarIr Read(std::string_view text, const LanguageOptions& options = WithJson()) {
  Result<GrammarIr> ir = ReadLark(text, options);
  if (ir.ok()) return std::move(*ir);
  ADD_FAILURE() << text << "\n" << ir.error().ToString();
  return GrammarIr();
}

std::string ErrorOf(std::string_view text, const LanguageOptions& options = WithJson()) {
  const Result<GrammarIr> ir = ReadLark(text, options);
  return ir.ok() ? "" : ir.error().ToString();
}

void Check(std::string_view grammar, const std::vector<std::string>& accepted,
           const std::vector<std::string>& refused) {
  GrammarIr ir = Read(grammar);
  if (ir.root() == GrammarIr::kNoRule) return;
  CfgReference reference(ir);
  for (const std::string& text : accepted) {
    EXPECT_TRUE(reference.Accepts(text)) << grammar << "\n" << text;
  }
  for (const std::string& text : refused) {
    EXPECT_FALSE(reference.Accepts(text)) << grammar << "\n" << text;
  }
}

// The first expression of a kind that the grammar uses, in any rule.
std::vector<const GrammarIr::Expr*> Find(const GrammarIr& ir, GrammarIr::Kind kind) {
  std::vector<const GrammarIr::Expr*> found;
  for (GrammarIr::ExprId id = 0; id < ir.expr_count(); ++id) {
    if (ir.expr(id).kind == kind) found.push_back(&ir.expr(id));
  }
  return found;
}

const GrammarIr::Rule* FindRule(const GrammarIr& ir, std::string_view name) {
  for (GrammarIr::RuleId id = 0; id < ir.rule_count(); ++id) {
    if (ir.rule(id).name == name) return &ir.rule(id);
  }
  return nullptr;
}

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

TEST(Lark, LazyAndSuffix) {
  Check("start: foo /[a-z]+/\nfoo[lazy]: /.*<end>/", {"foo<end>bar"}, {"foo<end>bar<end>"});
  Check("start: foo\nfoo[suffix=\"<end>\"]: /.*/", {"foo<end>", "<end>"}, {"foo", "a<end>b<end>"});
  Check("start: foo\nfoo[suffix=END]: /.*/\nEND: /[xy]/", {"ax", "y"}, {"axy", "a"});
  Check("start: foo\nfoo[lazy]: /.*/", {""}, {"a"});
  Check("start: foo \"x\"\nfoo[lazy]: /[0-9]+/", {"1x"}, {"12x", "x"});
}

// Where a lazy rule matches, everything that began with it ends.
TEST(Lark, LazyRulesEndWhatStandsBesideThem) {
  const char* const tools = R"(
    start: ( f_foo | f_bar | f_baz )* f_end
    f_end: TEXT
    f_foo_hd[lazy]: TEXT "<function"
    f_foo: f_foo_hd "=foo>" /[a-z]+/ "</function>"
    f_bar_hd[lazy]: TEXT "<function"
    f_bar: f_bar_hd "=bar>" /[A-Z]+/ "</function>"
    f_baz_hd[suffix="<tool"]: TEXT
    f_baz: f_baz_hd "=baz>" /[0-9]+/ "</tool>"
    TEXT: /(\n|.)*/
  )";
  Check(
      tools,
      {"", "text", "a<function=foo>abc</function>b<tool=baz>12</tool><function=bar>AB</function>"},
      {"<function", "a<function=baz>1</function>", "<tool=foo>abc</function>",
       "<tool=baz>1</tool><tool", "x<tool=baz>1<function=foo>a</function></tool>"});
  Check("start: WORD* end\nWORD: /[a-z.]/+ \" \"\nend[suffix=\".\"]: /[a-z]+/", {"ab cd e.", "e."},
        {"a. b.", "a.b ", "a b"});
  Check("start: \"(\" TEXT \")\" | TEXT \"!\" | hd\nhd[lazy]: TEXT \"x\"\nTEXT: /[a-z]*/",
        {"(axb)", "ax", "ab!"}, {"axb!", "x!"});
}

TEST(Lark, StopIsNotPartOfTheText) {
  const char* const outer = "start: text \"<end>\"\ntext[stop=\"<end>\"]: /.*/";
  Check(outer, {"foo<end>", "<end>"}, {"foo", "foo<end><end>", "a<end>b<end>"});
  Check("start: text \"b\"\ntext[stop=\"<end>\"]: /.*/", {"foob"}, {"foo<end>b"});
  Check("start: text \"!\"\ntext[stop=\"\"]: /[a-z]*/", {"ab!"}, {"ab"});
  Check("start: name \"\\n\"\nname[stop=STOP]: /E[a-z]+/\nSTOP: /[a-b]/ | /[x-z]/", {"Emil\n"},
        {"Emily\n"});
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

TEST(Lark, SubstringsOfRandomChunks) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::u32string> chunks(random() % 8);
    for (std::u32string& chunk : chunks) {
      chunk.resize(random() % 3);
      for (char32_t& c : chunk) c = U'a' + random() % 2;
    }
    std::set<std::u32string> runs = {U""};
    for (size_t i = 0; i < chunks.size(); ++i) {
      std::u32string run;
      for (size_t k = i; k < chunks.size(); ++k) runs.insert(run += chunks[k]);
    }
    RegexArena arena;
    const ReId id = SubstringRegex(arena, chunks);
    std::vector<std::u32string> texts = {U""};
    for (size_t i = 0; i < texts.size(); ++i) {
      ReId rest = id;
      for (const char32_t c : texts[i]) rest = arena.Derive(rest, c);
      EXPECT_EQ(arena.Nullable(rest), runs.contains(texts[i])) << EncodeCodepoints(texts[i]);
      if (texts[i].size() < 6) {
        texts.push_back(texts[i] + U'a');
        texts.push_back(texts[i] + U'b');
      }
    }
  }
}

TEST(Lark, LongSubstring) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 200'000) {
    for (size_t i = 1 + random() % 9; i > 0; --i) text += static_cast<char>('a' + random() % 26);
    text += random() % 7 == 0 ? ", " : " ";
  }
  GrammarIr ir = Read("start: %regex { \"substring_words\": \"" + text + "\" }");
  ReId rest = ir.expr(ir.rule(ir.root()).body).index;
  const size_t begin = text.find(' ', 1000) + 1;
  for (const char c : text.substr(begin, text.find(' ', begin + 500) - begin)) {
    rest = ir.arena().Derive(rest, static_cast<char32_t>(c));
  }
  EXPECT_TRUE(ir.arena().Nullable(rest));
  for (const char c : std::string_view("XXX")) {
    rest = ir.arena().Derive(rest, static_cast<char32_t>(c));
  }
  EXPECT_EQ(rest, RegexArena::kNothing);
}

TEST(Lark, ParametricRules) {
  Check(R"(
    start    :  perm::0x0 "X"
    perm::_  :  ae::_ be::_              %if is_zeros([10:12])
             |  "a" perm::set_bit(0)     %if bit_clear(0)
             |  "b" perm::set_bit(1)     %if bit_clear(1)
             |  "c" perm::set_bit(2)     %if bit_clear(2)
    ae::_ : ""    %if is_ones([0:1])
    be::_ : ce::_ %if is_ones([1:2])
    ce::_ : ""    %if is_ones([2:3])
  )",
        {"abcX", "bcaX", "cbaX"}, {"X", "aX", "abX", "aaX", "abccX"});
  Check(R"(
    start  : aa::0
    aa::_  : "a" aa::incr(_)    %if lt(_, 6)
           | bb::_
    bb::_  : "b" bb::incr(_)    %if lt(_, 6)
           | ""
  )",
        {"", "aaabbb", "bbbbbb"}, {"ba", "aaaaaaa", "aaabbbb"});
  Check(R"(
    start    :  pick::0
    pick::_  :  ""                      %if and(bit_count_ge(_, 1), not(eq([0:2], 3)))
             |  "a" pick::bit_or(0x1)   %if and(bit_clear(0), bit_count_lt(_, 3))
             |  "b" pick::set_bit(1)    -> b %if bit_clear(1)
             |  "c" pick::set_bit(2)    %if or(bit_clear(2), eq(_, 7))
  )",
        {"a", "b", "c", "ac", "bc", "cb"}, {"", "ab", "abc", "aa", "acb"});
}

TEST(Lark, ParameterFunctions) {
  Check(R"(
    start: n::5
    n::_: "x" n::decr([0:3])      %if gt(_, 2)
        | "y" m::bit_and(0x1)     %if or(eq(_, 2), is_zeros([1:3]))
    m::_: "0"                     %if eq(_, 0)
        | "1"                     %if true()
        | "2" k::clear_bit(0)     %if le(_, 1)
    k::_: ("z"                    %if bit_count_eq(_, 0)
        | "w"                     %if bit_count_ne(_, 0))
  )",
        {"xxxy0", "xxxy1", "xxxy2z"}, {"xxy0", "xxxxy0", "xxxy2w", "y1"});
  // Counters stay where they are full.
  Check("start: n::0\nn::_: \"x\" n::incr([0:1]) | \"y\" %if is_ones([0:1])", {"xy", "xxxy"},
        {"y", "x"});
}

TEST(Lark, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"root: \"abc\"", "1:1: expected a rule 'start', found none"},
      {"start: foo{7,6}\nfoo: \"a\"",
       "1:11: expected a largest count that is not below the smallest"},
      {"start: foo{-1,}\nfoo: \"a\"", "1:11: expected a smallest count of 0 or more"},
      {"start: FOO\nFOO: \"a\" | BAR\nBAR: \"b\" FOO",
       "3:10: the terminal 'FOO' uses itself; terminals cannot be recursive, rules can"},
      {"start: FOO\nBAR: \"b\"", "1:8: the name 'FOO' is not defined"},
      {"start: FOO\nFOO: foo\nfoo: \"a\"", "2:6: the rule 'foo' cannot be used in a terminal"},
      {"start: /[abc/", "1:9: in this regular expression: expected ']' to end the class"},
      {"start: /a/l", "1:8: the flag 'l' is not supported in regular expressions (i m s u x are)"},
      {"start: FOO\nFOO: <[1234]>", "2:6: special tokens cannot be used in terminals"},
      {"start: FOO\nFOO: %json {}", "2:12: %json cannot be used in terminals"},
      {"start: FOO\nFOO: @x", "2:6: other grammars ('@x') cannot be used in terminals"},
      {"start: \"ab\"..\"c\"", "1:8: expected one character as the range's start"},
      {"start: \"a\"..\"cd\"", "1:13: expected one character as the range's end"},
      {"start: \"d\"..\"a\"", "1:8: expected a range whose end is not before its start"},
      {"start: <[1-2-3]>", "1:8: expected a token's id or a range such as 5-10, found '1-2-3'"},
      {"start: <[,]>", "1:8: expected ids of tokens, found none"},
      {"start: <[2 - 3]>",
       "1:11: expected '>' to end the special token, without white space or '<' before it"},
      {"start: <[^*]>", "1:8: expected a token's id or a range such as 5-10, found '*'"},
      {"start: a\na: \"a\"\na: \"b\"", "3:1: the rule 'a' is already defined at 2:1"},
      {"start: A\nA: \"a\"\n A: \"b\"", "3:2: the terminal 'A' is already defined at 2:1"},
      {"start: \"test\nblah: \"x\"",
       "1:8: expected '\"' to end the string before the end of the line"},
      {"start: / \"test\"", "1:8: expected '/' to end the regular expression"},
      {"start: %json {", "1:14: expected '}' to end this JSON, found the end of the text"},
      {"%llguidance {\"no_forcing\": 1}\nstart: \"a\"",
       "1:13: expected true or false for \"no_forcing\""},
      {"%llguidance {\"nothing\": true}\nstart: \"a\"",
       "1:13: the option \"nothing\" is not supported"},
      {"start: A & B\nA: /a/\nB: /b/",
       "1:8: '&' is for terminals; expected it in the definition of a name in capital letters"},
      {"start: (\"a\"",
       "1:12: expected ')' to close the bracket at 1:8, found the end of the text"},
      {"start \"a\"", "1:7: expected ':', found '\"a\"'"},
      {"start: \"a\" :",
       "1:12: expected a name, a string, a regular expression or another value, "
       "found ':'"},
      {"start: fooBar",
       "1:8: expected a name in small letters (a rule) or in capital letters (a terminal), found "
       "'fooBar'"},
      {"start: 'a'",
       "1:8: expected a rule, a terminal or a sign of Lark, found ''' (strings stand "
       "in double quotes)"},
      {"start: \"\\q\"", "1:9: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uHHHH \\xHH"},
      {"start: \"\\xZZ\"", "1:9: expected hexadecimal digits"},
      {"start.2: \"a\"", "1:6: priorities are not supported: every derivation counts"},
      {"start{a}: \"a\"", "1:6: templates are not supported"},
      {"%declare A\nstart: \"a\"", "1:1: '%declare' is not supported"},
      {"é: \"a\"", "1:1: expected a rule, a terminal or a sign of Lark, found 'é'"},
      {"start: foo\nfoo[bar=1]: /a/",
       "2:5: expected one of capture lazy stop suffix stop_capture max_tokens temperature, found "
       "'bar'"},
      {"start: foo\nfoo[max_tokens=\"a\"]: /a/",
       "2:16: expected a number of tokens, found '\"a\"'"},
      {"start: foo\nfoo[stop=\"a\",suffix=\"b\"]: /a/",
       "2:14: expected one 'stop' or 'suffix', found another"},
      {"start: foo\nfoo[max_tokens=3]: start",
       "2:20: the rule 'start' cannot be used in a terminal (max_tokens and temperature need a "
       "rule that is one terminal)"},
      {"start: foo\nfoo:: \"a\"", "2:7: expected '_', found '\"a\"'"},
      {"start: foo\nfoo: a::1\na: \"a\"", "2:6: the rule 'a' has no parameter"},
      {"start: foo\nfoo: bar\nbar::_: bar::_",
       "2:6: expected a parameter, as in 'bar::0': this rule has one"},
      {"start: foo\nfoo: bar::_\nbar::_: bar::_",
       "2:1: the rule 'foo' has no parameter, but uses one"},
      {"start: foo::1\nfoo::_: bar\nbar: \"a\"",
       "2:1: the rule 'foo' has a parameter, but does not use it"},
      {"start: foo::1\nfoo::_: \"a\" %if eq([3:3], 0)",
       "2:21: expected an end bit above the first one"},
      {"start: foo::1\nfoo::_: \"a\" %if eq([64:65], 0)",
       "2:21: expected a bit between 0 and 63, found '64'"},
      {"start: foo::1\nfoo::_: \"a\" %if eq(0, 0)",
       "2:20: expected '_' or '[first:end]', found '0'"},
      {"start: BAR\nBAR: \"b\" %if true", "2:10: '%if' cannot be used in terminals"},
      {"start: BAZ\nBAZ: qux::0\nqux::_: \"a\" %if eq(_, 0)",
       "2:6: rules with parameters cannot be used in terminals"},
      {"%import common.BLAH\nstart: BLAH", nullptr},
      {"%import other.INT\nstart: INT", nullptr},
      {"start: %regex { \"substring_words\": true }", nullptr},
      {"start: %regex { \"foobar\": true }", nullptr},
      {"start: %regex { \"substring_words\": \"a\", \"substring_chars\": \"b\" }", nullptr},
      {"start: %regex {}", nullptr},
      {"start: %json { foo }", nullptr},
      {"start: %lark { start: \"a\"", nullptr},
      {"start: %lark { foo: \"a\" }", nullptr},
      {"start: foo\nfoo[max_tokens=3]: %json {}", nullptr},
      {"start: foo\nfoo[stop_capture=\"x\",suffix=\"b\"]: /a/", nullptr},
      {"start: \xff", nullptr},
      {"", nullptr},
  };
  for (const auto& [grammar, message] : cases) {
    const std::string error = ErrorOf(grammar);
    EXPECT_NE(error, "") << grammar;
    if (message != nullptr) {
      EXPECT_EQ(error, message) << grammar;
    }
  }
}

TEST(Lark, HostileInputEndsSoon) {
  const auto repeated = [](std::string_view what, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += what;
    return text;
  };
  for (const std::string& grammar : std::vector<std::string>{
           "start: " + repeated("(", 100'000),
           "start: " + repeated("[", 200) + "\"a\"" + repeated("]", 200),
           "start: " + repeated("~(", 100'000) + "/a/",
           "start: " + repeated("%lark { start: ", 10'000),
           "start: %json " + repeated("[", 1'000'000),
           "start: a::0 %if " + repeated("not(", 100'000),
           "start: /" + repeated("(", 100'000) + "/",
           "start: /(?i)" + repeated("\\w[\\W\\w]", 100'000) + "/",
           "start: " + repeated("\"ab\"i ", 100'000),
           "start: " + repeated("<a>", 100'000),
           "start: " + repeated("\"kſ\"i", 100'000),
           "start: " + repeated("(\"a\"|\"a\")", 100'000),
           "start: a::0\na::_: \"a\" a::incr(_) | \"b\" %if ge(_, 1)",
           "start: a::0\na::_: a::set_bit(0) %if true",
           "start: " + repeated("(", 200) + "\"a\"" + repeated(")~2..3", 200) + "\n%ignore \" \"",
           "start: A\nA: " + repeated("(", 200) + "/a|b/" + repeated("){1,1000}", 200),
       }) {
    const Result<GrammarIr> ir = ReadLark(grammar, WithJson());
    if (ir.ok()) continue;
    EXPECT_NE(ir.error().place, "") << ir.error().message;
    EXPECT_NE(ir.error().code, ErrorCode::kInternal);
  }
  std::string chain = "start: A0\n";
  for (int i = 0; i < 5'000; ++i) {
    chain += "A" + std::to_string(i) + ": A" + std::to_string(i + 1) + " \"x\"\n";
  }
  EXPECT_NE(ErrorOf(chain).find("the name 'A5000' is not defined"), std::string::npos);
  chain += "A5000: \"y\"\n";
  EXPECT_EQ(ErrorOf(chain), "");
  std::string many = "start: a::0\na::_: \"x\" a::incr([0:40]) %if lt([0:40], 1000000000)\n";
  many += "    | \"y\" a::incr([40:60])";
  EXPECT_NE(ErrorOf(many).find("counting each rule once for each value"), std::string::npos);
}

// Random grammars without terminals that overlap in odd ways are written in Lark and read back: the
// language must be that of the tree they were made from.
class RandomGrammar {
 public:
  explicit RandomGrammar(uint32_t seed) : random_(seed) {}

  std::string Make(GrammarIr& expected) {
    std::string text;
    const uint32_t rules = 1 + random_() % 3;
    for (uint32_t i = 0; i < rules; ++i) ids_.push_back(expected.AddRule("r"));
    for (uint32_t i = 0; i < rules; ++i) {
      std::string body;
      const GrammarIr::ExprId expr = Choice(expected, 3, body);
      expected.Define(ids_[i], expr);
      text += (i == 0 ? std::string("start") : "r" + std::to_string(i)) + ": " + body + "\n";
    }
    expected.SetRoot(ids_[0]);
    return text;
  }

 private:
  GrammarIr::ExprId Choice(GrammarIr& ir, int depth, std::string& text) {
    std::vector<GrammarIr::ExprId> alternatives;
    const uint32_t count = 1 + random_() % 3;
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) text += random_() % 2 == 0 ? " | " : "\n  | ";
      std::vector<GrammarIr::ExprId> parts;
      for (uint32_t k = random_() % 4; k > 0; --k) parts.push_back(Part(ir, depth, text));
      alternatives.push_back(ir.Sequence(parts));
    }
    return ir.Choice(alternatives);
  }
  GrammarIr::ExprId Part(GrammarIr& ir, int depth, std::string& text) {
    GrammarIr::ExprId atom = GrammarIr::kEmpty;
    const uint32_t kind = random_() % 6;
    if (kind == 0 && depth > 0) {
      text += "(";
      atom = Choice(ir, depth - 1, text);
      text += ")";
    } else if (kind == 1 && depth > 0) {
      text += "[";
      atom = ir.Optional(Choice(ir, depth - 1, text));
      text += "]";
    } else if (kind == 2) {
      const uint32_t rule = random_() % ids_.size();
      text += rule == 0 ? "start" : "r" + std::to_string(rule);
      atom = ir.Call(ids_[rule]);
    } else if (kind == 3) {
      text += "/[ab]c?/";
      RegexArena& arena = ir.arena();
      atom = ir.Regex(
          arena.Concat(arena.Set(CodepointSet::Of('a', 'b')), arena.Optional(arena.Char('c'))));
    } else {
      const std::string letter(1, static_cast<char>('a' + random_() % 3));
      text += "\"" + letter + "\"";
      atom = ir.Literal(letter);
    }
    switch (random_() % 8) {
      case 0:
        text += "*";
        atom = ir.Repeat(atom, 0, GrammarIr::kUnbounded);
        break;
      case 1:
        text += "+";
        atom = ir.Repeat(atom, 1, GrammarIr::kUnbounded);
        break;
      case 2:
        text += "?";
        atom = ir.Optional(atom);
        break;
      case 3:
        text += "{1,2}";
        atom = ir.Repeat(atom, 1, 2);
        break;
      case 4:
        text += "~2";
        atom = ir.Repeat(atom, 2, 2);
        break;
      default:
        break;
    }
    text += " ";
    return atom;
  }

  std::mt19937 random_;
  std::vector<GrammarIr::RuleId> ids_;
};

std::vector<std::string> TextsUpTo(size_t length, std::string_view letters) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) continue;
    for (const char c : letters) texts.push_back(texts[i] + c);
  }
  return texts;
}

TEST(Lark, RandomGrammars) {
  const std::vector<std::string> texts = TextsUpTo(4, "abc");
  int accepted = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    GrammarIr expected;
    const std::string grammar = RandomGrammar(seed).Make(expected);
    GrammarIr actual = Read(grammar);
    ASSERT_NE(actual.root(), GrammarIr::kNoRule) << grammar;
    CfgReference want(expected), have(actual);
    for (const std::string& text : texts) {
      const bool in = want.Accepts(text);
      accepted += in ? 1 : 0;
      ASSERT_EQ(have.Accepts(text), in) << grammar << "\n" << text;
    }
  }
  EXPECT_GT(accepted, 1000);
}

// With %ignore, a text fits exactly when it does without its blanks, as long as no blank stands
// first, and none behind what cannot go on.
TEST(Lark, RandomGrammarsWithIgnoredText) {
  const std::vector<std::string> texts = TextsUpTo(4, "ab ");
  for (uint32_t seed = 0; seed < 100; ++seed) {
    GrammarIr expected;
    std::string grammar = RandomGrammar(seed).Make(expected);
    // One character a terminal, so that blanks may stand between any two characters.
    for (size_t at; (at = grammar.find("/[ab]c?/")) != std::string::npos;) {
      grammar.replace(at, 8, "/[ab]/");
    }
    GrammarIr plain = Read(grammar);
    GrammarIr ignoring = Read(grammar + "%ignore \" \"\n");
    GrammarIr initial = Read(grammar + "%ignore \" \"\n%llguidance {\"allow_initial_skip\":true}");
    CfgReference want(plain), have(ignoring), leading(initial);
    for (const std::string& text : texts) {
      std::string bare;
      for (const char c : text) {
        if (c != ' ') bare += c;
      }
      const bool in = want.Accepts(bare);
      const bool have_it = have.Accepts(text);
      if (!in) {
        ASSERT_FALSE(have_it) << grammar << "\n'" << text << "'";
        ASSERT_FALSE(leading.Accepts(text)) << grammar << "\n'" << text << "'";
      } else if (!text.starts_with(' ')) {
        if (!text.ends_with(' ')) {
          ASSERT_TRUE(have_it) << grammar << "\n'" << text << "'";
        }
        ASSERT_EQ(have_it, leading.Accepts(text)) << grammar << "\n'" << text << "'";
      } else {
        ASSERT_FALSE(have_it) << grammar << "\n'" << text << "'";
        if (!text.ends_with(' ')) {
          ASSERT_TRUE(leading.Accepts(text)) << grammar << "\n'" << text << "'";
        }
      }
    }
  }
}

bool Matches(std::string_view pattern, std::string_view text, std::string_view flags = "") {
  RegexArena arena;
  const Result<ReId> id = ParseRustRegex(arena, pattern, flags);
  EXPECT_TRUE(id.ok()) << pattern << ": " << id.error().ToString();
  if (!id.ok()) return false;
  ReId rest = *id;
  for (const char32_t c : DecodeCodepoints(text)) rest = arena.Derive(rest, c);
  return arena.Nullable(rest);
}

TEST(RustRegex, Language) {
  struct Case {
    const char* pattern;
    const char* flags;
    std::vector<std::string> accepted, refused;
  };
  const Case cases[] = {
      {"a.c", "", {"abc", "a\rc", "a😀c"}, {"a\nc", "ac", "xabc"}},
      {"a.c", "s", {"a\nc"}, {"ac"}},
      {"(?s:.)x.", "", {"\nxy"}, {"\nx\n"}},
      {"(?x) a b # remark\n c [ d e ]", "", {"abcd"}, {"a b"}},
      {" a", "x", {"a"}, {" a"}},
      {"(?i)ab(?-i)c", "", {"ABc", "abc"}, {"abC"}},
      {"[a-c]k", "i", {"AK", "bK"}, {"dk"}},
      {"[a-z&&[^aeiou]]+", "", {"xyz"}, {"a", "xa"}},
      {"[a-z--[aeiou]]", "", {"b"}, {"a"}},
      {"[a-g~~c-k]", "", {"a", "k"}, {"d", "g"}},
      {"[[:alpha:]&&[^a-m]]", "", {"n", "Z"}, {"a", "1"}},
      {"[[:^digit:]]", "", {"x"}, {"1"}},
      {"[]a]", "", {"]", "a"}, {"b"}},
      {"[^]a]", "", {"b"}, {"]", "a"}},
      {"[-a]|[a-]", "", {"-", "a"}, {"b"}},
      {"[a\\-z]", "", {"-", "z"}, {"b"}},
      {"\\d\\w\\s", "", {"১ł\u0085"}, {"aaa"}},
      {"\\D\\W\\S", "", {"a!b"}, {"1!b"}},
      {"\\p{Greek}\\pL\\P{L}", "", {"αa1"}, {"aa1"}},
      {"\\x41\\x{1F600}\\u0042\\u{43}\\U00000044", "", {"A😀BCD"}, {"A"}},
      {"\\a\\t\\v\\f\\/\\-\\#\\&", "", {"\a\t\v\f/-#&"}, {}},
      {"a**|b+?", "", {"", "aaa", "bb"}, {"ab"}},
      {"a{2}|b{1,2}|c{2,}|d{,2}", "", {"aa", "b", "cccc", "d", ""}, {"a", "bbb", "c", "ddd"}},
      {"(?P<x>a)(?<y>b)", "", {"ab"}, {"a"}},
      {"\\Aab\\z|^c$", "", {"ab", "c"}, {"abc"}},
      {"(?:a\\n?^|b)+", "m", {"a\nbb", "bb"}, {"ab"}},
      {"a$\\nb", "m", {"a\nb"}, {"ab"}},
      {"\\bfoo\\b bar\\b{end}", "", {"foo bar"}, {"foobar"}},
      {"a|", "", {"a", ""}, {"b"}},
      {"{", "", {}, {}},
  };
  for (const Case& c : cases) {
    if (std::string_view(c.pattern) == "{") continue;
    for (const std::string& text : c.accepted) {
      EXPECT_TRUE(Matches(c.pattern, text, c.flags)) << c.pattern << " " << text;
    }
    for (const std::string& text : c.refused) {
      EXPECT_FALSE(Matches(c.pattern, text, c.flags)) << c.pattern << " " << text;
    }
  }
}

// RE2 reads the same dialect, but for set operations in classes and Unicode's \\w \\d \\s.
TEST(RustRegex, AgreesWithRe2) {
  std::mt19937 random(11);
  const std::vector<std::string> texts = TextsUpTo(4, "aB\n");
  const std::vector<std::string> atoms = {
      "a",      "B",   "b",           ".",       "[aB]",  "[^a]", "(?i:b)",
      "(?s:.)", "\\n", "[[:upper:]]", "[a\\n-]", "^",     "$",    "\\bB",
      "\\A",    "\\z", "(?m:^)",      "(?m:$)",  "\\x41", "(?:)", "[^\\x{61}]"};
  int matches = 0;
  for (int round = 0; round < 400; ++round) {
    std::string pattern;
    int open = 0;
    for (uint32_t i = 1 + random() % 6; i > 0; --i) {
      if (random() % 4 == 0) {
        pattern += "(";
        ++open;
      }
      const std::string& atom = atoms[random() % atoms.size()];
      pattern += atom;
      const bool assertion = atom == "^" || atom == "$" || atom == "\\A" || atom == "\\z";
      const std::string_view counts[] = {"*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "??"};
      if (!assertion && random() % 3 == 0) pattern += counts[random() % std::size(counts)];
      if (open > 0 && random() % 3 == 0) {
        pattern += random() % 2 == 0 ? ")" : ")?";
        --open;
      }
      if (random() % 5 == 0) pattern += "|";
    }
    for (; open > 0; --open) pattern += ")";
    const RE2 oracle(pattern, RE2::Quiet);
    ASSERT_TRUE(oracle.ok()) << pattern;
    RegexArena arena;
    const Result<ReId> id = ParseRustRegex(arena, pattern);
    ASSERT_TRUE(id.ok()) << pattern << ": " << id.error().ToString();
    for (const std::string& text : texts) {
      ReId rest = *id;
      for (const char c : text) rest = arena.Derive(rest, static_cast<char32_t>(c));
      const bool expected = RE2::FullMatch(text, oracle);
      matches += expected ? 1 : 0;
      ASSERT_EQ(arena.Nullable(rest), expected) << pattern << "\n" << text;
    }
  }
  EXPECT_GT(matches, 500);
}

TEST(RustRegex, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"a)", "byte 1"},     {"(a", "byte 0"},        {"ab[c", "byte 2"},
      {"\\q", "byte 0"},    {"a\\1", "byte 1"},      {"*a", "byte 0"},
      {"a{2,1}", "byte 1"}, {"a{x}", "byte 1"},      {"{", "byte 0"},
      {"(?R)a", "byte 2"},  {"(?-u)a", "byte 3"},    {"\\p{Nope}", "byte 0"},
      {"[b-a]", "byte 1"},  {"(?<>a)", "byte 3"},    {"x\\u{110000}", "byte 1"},
      {"\xff", "byte 0"},   {"a{1,2}{3}", "byte 6"}, {"[\\d-z", "byte 0"},
      {"\\", "byte 0"},     {"(?y)", "byte 2"}};
  for (const auto& [pattern, place] : cases) {
    RegexArena arena;
    const Result<ReId> id = ParseRustRegex(arena, pattern);
    ASSERT_FALSE(id.ok()) << pattern;
    EXPECT_EQ(id.error().place, place) << pattern << ": " << id.error().ToString();
  }
}

// grammar/examples/NAME.lark with NAME.samples beside it: lines "+ text" that it accepts and
// "- text" that it refuses; \n and \\ stand for themselves.
TEST(Lark, Examples) {
  int grammars = 0;
  for (const auto& file : std::filesystem::directory_iterator(
           std::filesystem::path(PAWL_SOURCE_DIR) / "grammar" / "examples")) {
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
