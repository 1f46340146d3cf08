// EBNF by examples: what each construct accepts and refuses, and what errors say and where.
#include "grammar/languages/ebnf.h"

#include <gtest/gtest.h>

#include "tests/grammar/bnf_random.h"
#include "tests/grammar/bnf_test_util.h"

namespace pawl {
namespace {

void EbnfLanguage(std::string_view text, const std::vector<std::string>& accepted,
                  const std::vector<std::string>& refused, const std::string& root = "root") {
  ExpectLanguage(&ReadEbnf, text, accepted, refused, root);
}
void EbnfRefused(std::string_view text, std::string_view error) {
  ExpectRefused(&ReadEbnf, text, error);
}

TEST(EbnfTest, WrongLanguagesAndMarksAreNamed) {
  ExpectRefused(
      &ReadEbnf, "start: \"a\"",
      "1:6: expected \"::=\" after the rule name, found ':' (this looks like Lark; it was "
      "read as EBNF or GBNF)");
  ExpectRefused(&ReadEbnf, "%ignore \" \"\nstart: \"a\"",
                "1:1: expected a rule name, found '%' (this looks like Lark;");
  ExpectRefused(&ReadEbnf, "root ::= TagDispatch((\"\", root))",
                "1:23: expected a tag that is not empty");
  ExpectLanguage(&ReadEbnf, "\xEF\xBB\xBFroot ::= \"a\"", {"a"}, {""});
}

TEST(EbnfTest, RulesReferToEachOther) {
  EbnfLanguage("root ::= pair pair\npair ::= (left | \"y\") \"-\"\nleft ::= \"x\"",
               {"x-x-", "x-y-", "y-y-"}, {"x-", "xy--", "", "z-x-"});
  EbnfLanguage("root ::= root \"a\" | \"b\"", {"b", "ba", "baaa"}, {"", "a", "ab"});
  EbnfLanguage("root ::= \"(\" root \")\" root | \"\"", {"", "()", "(())()"}, {"(", ")(", "(()"});
  EbnfLanguage("# first\r\nroot ::=\r\n  a |\r\n  b # here\r\na ::= \"1\"\rb ::= \"2\"\r",
               {"1", "2"}, {"12"});
  EbnfLanguage("a ::= b b\nb ::= \"x\"", {"x"}, {"xx"}, "b");
  EbnfLanguage("  root ::= a.b-c_1\n\ta.b-c_1 ::= \"q\"", {"q"}, {""});
}

TEST(EbnfTest, CountsRepeat) {
  EbnfLanguage("root ::= item {2, 3}\nitem ::= (\"a\" | [bc] {4,})",
               {"aa", "aaa", "abcbc", "bcbcbcbcbcbc"}, {"a", "aaaa", "abc", "bcb"});
  EbnfLanguage("root ::= (\"ab\"{2} | [c]{0})", {"abab", ""}, {"ab", "c", "ababab"});
  EbnfLanguage("root ::= \"a\"{1, -1}", {"a", "aaa"}, {""});
  EbnfLanguage("root ::= (\"a\"?){3} (\"b\"+)*", {"", "aaa", "aabbb"}, {"aaaa", "ba"});
  EbnfLanguage("root ::= r{2}\nr ::= r \"a\" | \"\"", {"", "a", "aaaaa"}, {"b"});
}

TEST(EbnfTest, StringsAndTheirEscapes) {
  EbnfLanguage(R"(root ::= "\"\\\/\'\?\n\r\t\b\f\a\v\0\e")",
               {std::string("\"\\/'?\n\r\t\b\f\a\v\0\x1B", 14)}, {""});
  EbnfLanguage(R"(root ::= "\x41\u0042\U0001F600\x1F600")", {"AB\U0001F600\U0001F600"}, {"A"});
  EbnfLanguage("root ::= \"中\\u00e9\" [^\"中\"]", {"中éx"}, {"中é中", "中é\""});
  EbnfRefused("root ::= \"a\\q\"", "1:13: expected an escape sequence, found \"q\"");
  EbnfRefused("root ::= \"\\u12\"", "1:15: expected 4 hexadecimal digits after \\u, found '\"'");
  EbnfRefused("root ::= \"\\xZ\"", "1:13: expected a hexadecimal digit, found \"Z\"");
  EbnfRefused("root ::= \"\\ud800\"", "1:11: expected the code point of a Unicode character");
  EbnfRefused("root ::= \"\\x110000\"", "1:11: expected the code point of a Unicode character");
  EbnfRefused(
      "root ::= \"ab\ncd\"",
      "1:13: expected '\"' to end the string that begins at 1:10, found the end of the line");
  EbnfRefused("root ::= \"ab",
              "1:13: expected '\"' to end the string that begins at 1:10, found the end");
  EbnfRefused("root ::= \"\xC3(\"", "1:11: expected UTF-8");
}

TEST(EbnfTest, Classes) {
  EbnfLanguage(R"(root ::= [a-c\-\]^x-])", {"a", "b", "c", "-", "]", "^", "x"},
               {"d", "", "\\", "aa"});
  EbnfLanguage(R"(root ::= [^a-y\n])", {"z", "A", "é"}, {"a", "\n", ""});
  EbnfLanguage("root ::= [^]", {"a", "\n", "\U0010FFFF"}, {"", "ab"});
  EbnfLanguage("root ::= [] | \"a\"", {"a"}, {""});
  EbnfLanguage("root ::= [--/]", {"-", ".", "/"}, {"0", ","});
  EbnfLanguage(R"(root ::= [\u4e00-\u9fff\x1F600])", {"中", "\U0001F600"}, {"a"});
  EbnfLanguage(R"(root ::= [\^\$\.\*\+\?\(\)\[\{\}\|\/])", {"^", "$", "[", "/"}, {"a", "\\"});
  EbnfRefused(R"(root ::= [\d])", "1:11: expected a character, found the shorthand \\d");
  EbnfRefused("root ::= [z-a]", "1:11: expected a range from low to high");
  EbnfRefused("root ::= [ab\n]", "1:13: expected ']' to end the class that begins at 1:10");
}

TEST(EbnfTest, ErrorsSayWhatWasExpectedAndWhere) {
  EbnfRefused("root ::= a", "1:10: rule \"a\" is not defined");
  EbnfRefused("root ::= \"a\"\nb ::= c\nd ::= e", "2:7: rule \"c\" is not defined");
  EbnfRefused("b ::= \"a\"", "1:10: expected a rule named \"root\", found the end of the grammar");
  EbnfRefused("", "1:1: expected a rule named \"root\"");
  EbnfRefused("root ::= \"a\"\n root ::= \"b\"",
              "2:2: rule \"root\" is defined a second time; the first is at 1:1");
  EbnfRefused("root ::= \"a\" b ::= \"c\"",
              "1:14: expected the rule \"b\" at the beginning of a line");
  EbnfRefused("root ::= ",
              "1:10: expected a string, a class, a rule name, a macro or '(', found the end");
  EbnfRefused("root ::= | \"a\"", "1:10: expected a string");
  EbnfRefused("root ::= \"a\" |\nb ::= \"c\"", "2:1: expected a string");
  EbnfRefused("root ::= (\"a\"\nb ::= \"c\"",
              "2:1: expected ')' to end the group that begins at 1:10");
  EbnfRefused("root ::= \"a\")", "1:13: expected a rule name, found ')'");
  EbnfRefused("root = \"a\"", "1:6: expected \"::=\" after the rule name, found '='");
  EbnfRefused("root ::= \"a\"++", "1:14: expected an element, found a second quantifier");
  EbnfRefused("root ::= \"a\"{,3}", "1:14: expected a number, found ','");
  EbnfRefused("root ::= \"a\"{3,2}", "1:13: expected counts from low to high, found 3 to 2");
  EbnfRefused("root ::= \"a\"{99999999999}", "1:14: expected a number up to 1000000000");
  EbnfRefused("root ::= \"a\"{3", "1:15: expected ',' or '}', found the end of the grammar");
  EbnfRefused("root ::= .", "1:10: rule \".\" is not defined");
  EbnfRefused("root ::= é é ;", "1:10: expected a string, a class or a rule name, found 'é'");
  EbnfRefused("::= \"a\"", "1:1: expected a rule name, found ':'");
}

TEST(EbnfTest, LookaheadIsNoPartOfTheLanguage) {
  EbnfLanguage("root ::= a \"c\"\na ::= \"a\" | \"ab\" (=\"c\" root)", {"ac", "abc"}, {"a", "acc"});
  EbnfLanguage("root ::= a\na ::= \"a\" (= [x] | \"y\")\n", {"a"}, {"ax"});
  EbnfRefused("root ::= \"a\" (= b)", "1:17: rule \"b\" is not defined");
  EbnfRefused("root ::= (\"a\" (= \"b\"))", "1:15: expected ')'");
}

TEST(EbnfTest, RegularPartsAreOneTerminal) {
  Result<GrammarIr> ir = ReadEbnf(
      "root ::= [a-z] ([a-z0-9] | \"_\" \"-\"?)* word \"x\"{2} (word | \"\")\nword ::= \"w\"", {});
  ASSERT_TRUE(ir.ok());
  const GrammarIr::Expr& body = ir->expr(ir->rule(ir->root()).body);
  ASSERT_EQ(body.kind, GrammarIr::Kind::kSequence);
  ASSERT_EQ(body.operands.size(), 4u);
  EXPECT_EQ(ir->expr(body.operands[0]).kind, GrammarIr::Kind::kRegex);
  EXPECT_EQ(ir->expr(body.operands[1]).kind, GrammarIr::Kind::kCall);
  EXPECT_EQ(ir->expr(body.operands[2]).kind, GrammarIr::Kind::kRegex);
  EXPECT_EQ(ir->rule(0).place, "1:1");
  EXPECT_EQ(ir->rule(1).place, "2:1");
}

TEST(EbnfTest, RuleOptions) {
  Result<GrammarIr> ir = ReadEbnf(
      "root ::= v w\nv[max_tokens=32, capture, temperature=0.5] ::= [a-z]+\n"
      "w[ capture = \"it\" ] ::= v",
      {});
  ASSERT_TRUE(ir.ok()) << ir.error().ToString();
  EXPECT_EQ(ir->rule(1).attributes.max_tokens, 32u);
  EXPECT_EQ(ir->rule(1).attributes.capture, "v");
  EXPECT_EQ(ir->rule(1).attributes.temperature, 0.5);
  EXPECT_EQ(ir->rule(2).attributes.capture, "it");
  EbnfLanguage("root ::= \"<\" n \">\"\nn[lazy] ::= [ab]+", {"<a>", "<b>"}, {"<ab>", "<>"});
  EbnfLanguage("root ::= n \"b\"\nn[lazy] ::= \"b\"*", {"b"}, {"", "bb"});
  EbnfLanguage("root[max_chars=2] ::= [ab]*", {"", "a", "ab"}, {"aba"});
  EbnfLanguage("root[max_chars=3] ::= (\"aa\")+", {"aa", "aaaa"}, {"", "aaaaaa"});
  EbnfLanguage("root[max_chars=0] ::= \"a\"+", {"a"}, {"", "aa"});
  EbnfLanguage("root ::= x[ab]\nx ::= \"x\"", {"xa"}, {"x"});
  EbnfRefused("root[lazy] ::= x\nx ::= \"a\"", "1:16: a rule with the option lazy must be regular");
  EbnfRefused("root[lazy,lazy] ::= \"a\"", "1:11: rule option lazy stands here twice");
  EbnfRefused("root[speed=1] ::= \"a\"", "1:6: expected a rule option");
  EbnfRefused("root[temperature=-1] ::= \"a\"", "1:18: expected a number that is not negative");
  EbnfRefused("root[max_tokens=0] ::= \"a\"", "1:17: expected a positive number");
  EbnfRefused("root[capture=\"\"] ::= \"a\"", "1:14: expected a name for the capture");
  EbnfRefused("root[stop_capture=\"m\"] ::= \"a\"",
              "1:6: rule option stop_capture is not supported");
}

TEST(EbnfTest, RegexMacro) {
  EbnfLanguage(R"(root ::= "ID-" Regex("[0-9]{3}") x
x ::= "!"?)",
               {"ID-123", "ID-123!"}, {"ID-12", "123"});
  EbnfLanguage(R"(root ::= Regex("a.b", flags="i"))", {"axb", "AxB"}, {"a\nb"});
  EbnfLanguage(R"(root ::= Regex("a.b", flags="is"))", {"A\nB"}, {"ab"});
  EbnfLanguage(R"(root ::= Regex("a.b"))", {"a\nb"}, {"Axb"});
  EbnfLanguage(R"(root ::= Regex("\\S+", json_string=true))", {"abc"}, {"a\"", "\\", ""});
  EbnfRefused(R"(root ::= Regex("a("))", "1:16: in the pattern, byte ");
  EbnfRefused("root ::= Regex(1)", "1:10: expected one string");
  EbnfRefused("root ::= Regex(\"a\", flags=\"x\")", "1:21: expected flags out of");
  EbnfRefused("root ::= Regex(\"a\", json_string=1)",
              "1:21: expected true or false for json_string");
  EbnfRefused("root ::= Regex(\"a\", speed=1)", "1:21: Regex has no argument named speed");
  EbnfRefused("root ::= Regex(\"a\",)", "1:20: expected a string, a number, true, false");
  EbnfRefused("root ::= Regex \"a\"", "1:16: expected '(' after the macro's name");
}

TEST(EbnfTest, SubstringMacro) {
  EbnfLanguage(R"(root ::= Substring("abc", "de", "", "fg"))",
               {"", "abc", "de", "abcde", "defg", "abcdefg"}, {"ab", "cde", "abcfg"});
  EbnfLanguage(R"(root ::= "[" Substring("a", "b", "a", "c") "]")",
               {"[ba]", "[a]", "[ac]", "[abac]"}, {"[bc]", "[aa]"});
  EbnfLanguage("root ::= Substring()", {""}, {"a"});
  EbnfRefused("root ::= Substring(1)", "1:20: expected a string");
}

TEST(EbnfTest, TagDispatchMacro) {
  const std::string rules = "\nb ::= \"(\" [x]* \")\"\nc ::= \"1\"";
  EbnfLanguage("root ::= TagDispatch((\"<b>\", b), (\"<c\", c))" + rules,
               {"", "free text", "ab<b>()", "<c1<b>(x) more", "<b", "<<c1", "<b>()<b>()"},
               {"<b>", "<b>(", "<c", "<b>(y)", "x<c2"});
  EbnfLanguage("root ::= TagDispatch((\"<b>\", b), loop_after_dispatch=false)" + rules,
               {"", "x<b>()", "<b"}, {"<b>()x", "<b>()<b>()"});
  EbnfLanguage("root ::= d \"END\"\nd ::= TagDispatch((\"<b>\", b), excludes=(\"END\",))" + rules,
               {"END", "abcEND", "a<b>(x) END"}, {"ENDEND", "aENDbEND", "x"});
  EbnfLanguage("root ::= TagDispatch()", {"", "anything"}, {});
  // A tag that ends in another one, and one that begins like another.
  EbnfLanguage("root ::= TagDispatch((\"aab\", b), (\"ab\", c))" + rules,
               {"aab()", "aab1", "ab1", "a"}, {"aab", "ab()"});
  EbnfRefused("root ::= TagDispatch((\"ab\", root), excludes=(\"a\"))",
              "1:46: a tag begins with this excluded text");
  EbnfRefused("root ::= TagDispatch((\"ab\", nowhere))", "1:29: rule \"nowhere\" is not defined");
  EbnfRefused("root ::= TagDispatch(loop=true)", "1:22: TagDispatch has no argument named loop");
}

TEST(EbnfTest, TokenMacros) {
  Result<GrammarIr> ir = ReadEbnf(
      "root ::= Token(7, 5, 6, 9) ExcludeToken(3) t\n"
      "t ::= TokenTagDispatch((11, root), excludes=(12, 13))",
      {});
  ASSERT_TRUE(ir.ok()) << ir.error().ToString();
  const GrammarIr::Expr& body = ir->expr(ir->rule(0).body);
  const TokenSet& some = ir->token_set(ir->expr(body.operands[0]).index);
  EXPECT_EQ(some.ranges, (std::vector<std::pair<TokenId, TokenId>>{{5, 7}, {9, 9}}));
  EXPECT_FALSE(some.complement);
  EXPECT_EQ(some.place, "1:10");
  EXPECT_TRUE(ir->token_set(ir->expr(body.operands[1]).index).complement);
  const GrammarIr::Expr& loop = ir->expr(ir->rule(1).body);
  ASSERT_EQ(loop.kind, GrammarIr::Kind::kRepeat);
  const GrammarIr::Expr& ways = ir->expr(loop.operands[0]);
  ASSERT_EQ(ways.operands.size(), 2u);
  const TokenSet& other = ir->token_set(ir->expr(ways.operands[1]).index);
  EXPECT_TRUE(other.complement);
  EXPECT_EQ(other.ranges, (std::vector<std::pair<TokenId, TokenId>>{{11, 13}}));
  EbnfRefused("root ::= Token()", "1:10: expected at least one token id");
  EbnfRefused("root ::= Token(-1)", "1:16: expected the id of a token");
  EbnfRefused("root ::= Token(\"a\")", "1:16: expected the id of a token");
  EbnfRefused("root ::= TokenTagDispatch((1, root), excludes=(1,))",
              "1:48: the excluded token is a trigger");
}

TEST(EbnfTest, HostileTextsEndFast) {
  const std::string deep(1 << 20, '(');
  EbnfRefused("root ::= " + deep, "1:260: groups inside groups more than 250 deep");
  EbnfRefused("root ::= TagDispatch(" + deep, "1:272: tuples inside tuples more than 250 deep");
  EXPECT_FALSE(ReadEbnf(std::string((size_t{4} << 20) + 1, 'a'), {}).ok());
  EXPECT_FALSE(ReadEbnf(std::string(size_t{4} << 20, 'a'), {}).ok());
  EXPECT_TRUE(ReadEbnf("root ::= " + std::string((size_t{4} << 20) - 10, '"'), {}).ok());
  EXPECT_TRUE(ReadEbnf("root ::= \"" + std::string((size_t{4} << 20) - 20, 'a') + "\"", {}).ok());
  EXPECT_TRUE(ReadEbnf("root ::= ((\"a\"{1000000000}){1000000000} [b]?){1000000000}", {}).ok());
  std::string words = "root ::= \"w0\"";
  for (int i = 1; i < 200000; ++i) words += " | \"w" + std::to_string(i * 7919) + "\"";
  EXPECT_TRUE(ReadEbnf(words, {}).ok());
  std::string nested = "\"a\"";
  for (int i = 0; i < 200; ++i) nested = "(" + nested + " [ab]? | [bc]* \"b\"){2,9}";
  EXPECT_TRUE(ReadEbnf("root ::= " + nested, {}).ok());
  std::string references = "root ::= \"a\"";
  for (int i = 0; i < 200000; ++i)
    references += "\nr" + std::to_string(i) + " ::= x" + std::to_string(i);
  EXPECT_FALSE(ReadEbnf(references, {}).ok());
}

TEST(EbnfTest, RandomGrammarsMeanWhatTheySay) {
  const std::vector<std::string> texts = TextsUpTo(4);
  int accepted = 0;
  for (uint64_t seed = 0; seed < 2500; ++seed) {
    RandomBnf random(seed, false);
    const std::string grammar = random.Print();
    Result<GrammarIr> ir = ReadEbnf(grammar, {});
    ASSERT_TRUE(ir.ok()) << grammar << ir.error().ToString();
    CfgReference reference(*ir);
    for (size_t i = seed % 3; i < texts.size(); i += 3) {
      const bool expected = random.Accepts(texts[i]);
      ASSERT_EQ(reference.Accepts(texts[i]), expected) << grammar << texts[i];
      accepted += expected ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace pawl
