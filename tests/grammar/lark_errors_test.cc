// Grammars that are refused, and hostile ones.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/grammar/lark_test_util.h"

namespace pawl {
namespace {

TEST(Lark, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"root: \"abc\"", "1:1: expected a rule 'start', found none"},
      {"start: foo{7,6}\nfoo: \"a\"",
       "1:11: expected a largest count that is not below the smallest"},
      {"start: foo{-1,}\nfoo: \"a\"",
       "1:12: expected a count between 0 and 2147483647, found '-1'"},
      {"start: FOO\nFOO: \"a\" | BAR\nBAR: \"b\" FOO",
       "3:10: the terminal 'FOO' uses itself; terminals cannot be recursive, rules can"},
      {"start: FOO\nBAR: \"b\"", "1:8: the name 'FOO' is not defined"},
      {"start: x\n!!x: \"a\"", "2:1: expected a name, found '!!'"},
      {"start: x\n?\?x: \"a\"", "2:1: expected a name, found '?\?'"},
      {"start: x\n!?!x: \"a\"", "2:1: expected a name, found '!?!'"},
      {"start: X\n!X: \"a\"", "2:1: expected a name, found '!'"},
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
      {"%llguidance {\"nothing\": true}\nstart: \"a\"", "1:13: there is no option \"nothing\""},
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
       "2:5: expected one of capture lazy stop suffix stop_capture max_tokens max_chars "
       "temperature, found 'bar'"},
      {"start: foo\nfoo[max_tokens=\"a\"]: /a/",
       "2:16: expected a number of tokens, found '\"a\"'"},
      {"start: foo\nfoo[stop=\"a\",suffix=\"b\"]: /a/",
       "2:14: expected one 'stop' or 'suffix', found another"},
      {"start: foo\nfoo[max_chars=3]: start",
       "1:8: the rule 'foo' cannot be used in a terminal (max_chars and temperature need a "
       "rule that is one terminal)"},
      {"start: foo\nfoo[max_tokens=3]: start", "2:4: no text fits: \"foo\" can never end"},
      {"start: foo\nfoo[max_tokens=3]: bar \"a\"\nbar[capture]: \"b\" bar?",
       "2:4: max_tokens is not supported around captures"},
      {"start: A\nA[capture]: /a/",
       "2:2: attributes are for rules; a rule whose body is a terminal takes them"},
      {"start: a\na[temperature=1e39]: /a/",
       "2:15: expected a temperature of 0 or more that a float can hold, found '1e39'"},
      {"start: foo\nfoo[stop_capture=\"x\"]: /a/",
       "2:5: expected stop or suffix next to stop_capture"},
      {"root ::= \"a\"",
       "1:6: expected ':', found '::=' (this looks like EBNF or GBNF, which write \"::=\"; it was "
       "read as Lark)"},
      {"start: foo\nfoo:: \"a\"", "2:7: expected '_', found '\"a\"'"},
      {"start: foo\nfoo: a::1\na: \"a\"", "2:6: the rule 'a' has no parameter"},
      {"start: foo\nfoo: bar\nbar::_: bar::_",
       "2:6: expected a parameter, as in 'bar::0': this rule has one"},
      {"start: foo\nfoo: bar::_\nbar::_: bar::_",
       "2:6: the rule 'foo' has no parameter, but uses one"},
      {"start: \"a\" | \"b\" %if eq(_,1)", "1:18: the rule 'start' has no parameter, but uses one"},
      {"start: \"a\"{99999999999}",
       "1:12: expected a count between 0 and 2147483647, found '99999999999'"},
      {"%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"",
       "1:13: the option \"allow_invalid_utf8\" is not supported"},
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
  EXPECT_NE(ErrorOf(many).find(" values"), std::string::npos);
}

}  // namespace
}  // namespace pawl
