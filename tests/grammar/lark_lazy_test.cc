// Lazy rules, suffixes and stops.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/grammar/lark_test_util.h"

namespace pawl {
namespace {

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

// XGrammar writes the text of a stop, takes ignored text behind the last terminal, and lets any
// text up to a fixed string go on without it to the end.
TEST(Lark, AsXgrammarReadsIt) {
  LanguageOptions options = WithJson();
  options.lark_as_xgrammar = true;
  const auto check = [&](std::string_view grammar, const std::vector<std::string>& accepted,
                         const std::vector<std::string>& refused) {
    GrammarIr ir = Read(grammar, options);
    ASSERT_NE(ir.root(), GrammarIr::kNoRule);
    CfgReference reference(ir);
    for (const std::string& text : accepted) EXPECT_TRUE(reference.Accepts(text)) << text;
    for (const std::string& text : refused) EXPECT_FALSE(reference.Accepts(text)) << text;
  };
  check("start: \"a\" B\nB: \"b\"\n%ignore / +/", {"ab", "a b  "}, {" ab"});
  check("start: r \"c\"\nr[stop=\"b\"]: /[a-z]*/", {"aabc", "bc"}, {"aac", "abbc"});
  check("start: r\nr[suffix=\"<e>\"]: TEXT\nTEXT: /(.|\\n)*/", {"a<e>", "plain", "<e"}, {"<e>a"});
  check(
      "start: call* tail\ntail: TEXT\nhead[suffix=\"<e>\"]: TEXT\ncall: head \"x\"\nTEXT: "
      "/(.|\\n)*/",
      {"a<e>xb", "plain"}, {"<e>", "a<e>b", "<e>x<e>"});
  check("start: b | c\nb[lazy]: \"x\"\nc: \"xy\"", {"x", "xy"}, {"xyx"});
  check("start: /a{0}b/ \"c\"{0}", {"b"}, {"bc", "ab"});
  check("start: o \">\"\no[max_chars=3]: \"x\" i\ni[max_chars=5]: /[a-z]*/", {"xab>", "x>"},
        {"xabc>"});
  check("start: r \"!\"\nr[max_chars=2, suffix=\">\"]: /[a-z]*/", {"aa!", "a>!"}, {"aa>!", "a!"});
  EXPECT_EQ(ReadLark("start: a\na[max_tokens=0]: /b/", options).error().ToString(),
            "2:14: expected a number of tokens between 1 and 2147483647, found '0'");
}

}  // namespace
}  // namespace pawl
