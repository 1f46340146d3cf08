// GBNF by examples in the styles of those that use it, hostile texts, and random grammars against a
// slow reader of their own.
#include <gtest/gtest.h>

#include "grammar/languages/ebnf.h"
#include "tests/grammar/bnf_random.h"
#include "tests/grammar/bnf_test_util.h"

namespace pawl {
namespace {

void GbnfLanguage(std::string_view text, const std::vector<std::string>& accepted,
                  const std::vector<std::string>& refused) {
  ExpectLanguage(&ReadGbnf, text, accepted, refused);
}
void GbnfRefused(std::string_view text, std::string_view error) {
  ExpectRefused(&ReadGbnf, text, error);
}

TEST(GbnfTest, RulesEndWithTheirLine) {
  GbnfLanguage("# lists\nroot ::= (\"- \" item)+\nitem ::= [^\\n]+ \"\\n\"\n",
               {"- a\n", "- a b\n- -\n"}, {"", "- \n", "- a"});
  GbnfLanguage("root  ::= (\n  a # one\n  | b\n)\na ::= \"x\"\r\n\r\nb ::=\n  \"y\" |\n  \"z\"",
               {"x", "y", "z"}, {""});
  GbnfLanguage("root ::= a |\n  b\na ::= | \"1\"\nb ::= \"2\"", {"", "1", "2"}, {"12"});
  GbnfLanguage("root ::= 0-rule\n0-rule ::= \"q\"", {"q"}, {""});
  GbnfLanguage("root ::= snake_case\nsnake_case ::= ()", {""}, {"a"});
  GbnfRefused("root ::= \"a\"\n  \"b\"", "2:3: expected a rule name, found '\"'");
  GbnfRefused("root ::= \"a\"\n| \"b\"", "2:1: expected a rule name, found '|'");
  GbnfRefused("root\n::= \"a\"",
              "1:5: expected \"::=\" after the rule name, found the end of the line");
  GbnfRefused("root ::= a b ::= \"c\"",
              "1:14: expected an element or the end of the line, found ':'");
  GbnfRefused("root ::= \"a\"\nroot ::= \"b\"",
              "2:1: rule \"root\" is defined a second time; the first is at 1:1");
  GbnfRefused("root ::= (a\na ::= \"x\"", "2:3: expected ')' to end the group that begins at 1:10");
  GbnfRefused("root ::= x", "1:10: rule \"x\" is not defined");
  GbnfRefused("start ::= \"x\"", "1:14: expected a rule named \"root\"");
}

// In the styles of the grammars that come with llama.cpp: groups over several lines, an alternative
// that is empty, escapes in classes, counts in braces, characters beyond ASCII.
TEST(GbnfTest, StylesOfLlamaCpp) {
  GbnfLanguage(
      "# a sum on each line\nroot  ::= (sum \"=\" ws item \"\\n\")+\nsum   ::= item ([-+*/] "
      "item)*\n"
      "item  ::= word | num | \"(\" ws sum \")\" ws\nword  ::= [a-z] [a-z0-9_]* ws\n"
      "num   ::= [0-9]+ ws\nws    ::= [ \\t\\n]*\n",
      {"a = b\n", "1+(x_2 *3)=4\n", "a=b\nc=d\n"}, {"", "a=b", "=b\n", "(a=b\n"});
  GbnfLanguage(
      "root ::= list\n\nlist ::=\n  \"[\" ws (\n            value\n    (\",\" ws value)*\n  )? "
      "\"]\" ws\n\n"
      "value ::= list | (\"yes\" | \"no\") ws\n\n"
      "# one line end at most, then a few blanks\nws ::= | \" \" | \"\\n\" [ \\t]{0,3}\n",
      {"[]", "[yes,\n  no]", "[[ ]\n, no]"}, {"[yes no]", "[  ]", "[\n    ]"});
  GbnfLanguage(
      "root ::= \"1. \" move \" \" move \"\\n\"\nmove ::= (pawn | castle) [+#]?\n"
      "pawn ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBKQR])?\ncastle ::= \"O-O\" \"-O\"?\n",
      {"1. e4 e5\n", "1. exd5+ O-O-O\n", "1. a8=Q# b1\n"}, {"1. e9 e5\n", "1. e4\n"});
  GbnfLanguage(
      "root ::= char+ ([ \\t\\n] char+)*\nchar ::= [a-zA-Z] | "
      "[!\"#$%&'()*+,-./:;<=>?@[\\\\\\]^_`{|}~]"
      " | [ぁ-ゟ] | [一-鿿]\n",
      {"a] b", "\\", "ひ 字"}, {"", "1", "a  b"});
  GbnfLanguage("root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"\n",
               {"- a\n- é\n"}, {"- \n", "- a\x0b\n", "-a\n"});
}

TEST(GbnfTest, Characters) {
  GbnfLanguage("root ::= . [^a-c] [ぁ-ゟ]", {"xdあ", "\nzん"}, {"xaあ", "xd"});
  GbnfLanguage(R"(root ::= "\x41\u00e9\U0001F600\t\r\n\\\"\[\]\-")", {"Aé\U0001F600\t\r\n\\\"[]-"},
               {"A"});
  GbnfLanguage(R"(root ::= [\]\[\\\"\-a-] ["^])", {"]\"", "-^", "a^"}, {"b^"});
  GbnfLanguage("root ::= [-+*/] [=-]", {"--", "+="}, {"a="});
  GbnfLanguage("root ::= \"\\x4142\"", {"A42"}, {});
  GbnfLanguage("root ::= \"a\nb\"", {"a\nb"}, {});
  GbnfRefused(R"(root ::= "\q")", "1:12: expected an escape sequence");
  GbnfRefused(R"(root ::= "\b")", "1:12: expected an escape sequence");
  GbnfRefused(R"(root ::= "\x4")", "1:14: expected 2 hexadecimal digits after \\x");
  GbnfRefused("root ::= []", "1:11: expected a character, found ']'");
  GbnfRefused("root ::= [^]", "1:12: expected a character, found ']'");
  GbnfRefused("root ::= [b-a]", "1:11: expected a range from low to high");
}

TEST(GbnfTest, Quantifiers) {
  GbnfLanguage("root ::= \"ab\"{2} [c]{1,} \"d\"{0,2} a?\na ::= \"e\"", {"ababc", "ababccdde"},
               {"abab", "ababcddd"});
  GbnfLanguage("root ::= \"a\"{2}{3}", {"aaaaaa"}, {"aaaaa", "aaa"});
  GbnfLanguage("root ::= (\n\"a\"\n* )", {"", "aa"}, {"b"});
  GbnfLanguage("root ::= \"a\" *", {"", "aa"}, {"b"});
  GbnfRefused("root ::= *", "1:10: expected a string, a class or a rule name, found '*'");
  GbnfRefused("root ::= \"a\"{,3}", "1:14: expected a number");
  GbnfRefused("root ::= \"a\"{1,2", "1:17: expected a number or '}'");
  GbnfRefused("root ::= \"a\"{3,1}", "1:13: expected counts from low to high");
}

TEST(GbnfTest, Tokens) {
  Result<GrammarIr> ir = ReadGbnf("root ::= <think> rest <[12]>\nrest ::= !</think>* | !<[3]>", {});
  ASSERT_TRUE(ir.ok()) << ir.error().ToString();
  ASSERT_EQ(ir->token_set_count(), 4u);
  EXPECT_EQ(ir->token_set(0).names, std::vector<std::string>{"<think>"});
  EXPECT_EQ(ir->token_set(0).place, "1:10");
  EXPECT_EQ(ir->token_set(1).ranges, (std::vector<std::pair<TokenId, TokenId>>{{12, 12}}));
  EXPECT_EQ(ir->token_set(2).names, std::vector<std::string>{"</think>"});
  EXPECT_TRUE(ir->token_set(2).complement);
  EXPECT_TRUE(ir->token_set(3).complement);
  GbnfRefused("root ::= <a", "1:12: expected '>' to end the token, found the end of the grammar");
  GbnfRefused("root ::= <[a]>", "1:12: expected a number, found \"a\"");
  GbnfRefused("root ::= <[1>", "1:13: expected \"]>\", found '>'");
  GbnfRefused("root ::= !a", "1:11: expected '<', found \"a\"");
}

TEST(GbnfTest, LeftRecursionAndEmptyRules) {
  GbnfLanguage("root ::= root \"+\" root | [0-9]", {"1", "1+2", "1+2+3"}, {"", "+", "1+"});
  GbnfLanguage("root ::= | e root e \"x\"\ne ::= | e e", {"", "x", "xxx"}, {"y"});
}

TEST(GbnfTest, HostileTextsEndFast) {
  GbnfRefused("root ::= " + std::string(1 << 20, '('),
              "1:260: groups inside groups more than 250 deep");
  std::string tokens = "root ::= ";
  for (int i = 0; i < 20000; ++i) tokens += "<[" + std::to_string(i) + "]>";
  EXPECT_TRUE(ReadGbnf(tokens, {}).ok());
  EXPECT_FALSE(ReadGbnf("root ::= " + std::string(size_t{3} << 20, '|') + "(", {}).ok());
}

TEST(GbnfTest, RandomGrammarsMeanWhatTheySay) {
  const std::vector<std::string> texts = TextsUpTo(4);
  int accepted = 0;
  for (uint64_t seed = 5000; seed < 7500; ++seed) {
    RandomBnf random(seed, true);
    const std::string grammar = random.Print();
    Result<GrammarIr> ir = ReadGbnf(grammar, {});
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
