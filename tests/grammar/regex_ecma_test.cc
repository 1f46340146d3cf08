// Tables for ParseEcma: what each construct finds and does not find, and what is refused and where.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/grammar/regex_test_util.h"

namespace pawl {
namespace {

using regex_test::Finds;

struct EcmaCase {
  const char* pattern;
  std::vector<std::string> found;
  std::vector<std::string> not_found;
};

void Check(const std::vector<EcmaCase>& cases, const RegexSyntaxOptions& options = {}) {
  for (const EcmaCase& c : cases) {
    for (const std::string& text : c.found) {
      EXPECT_TRUE(Finds(c.pattern, text, options)) << c.pattern << " must find " << text;
    }
    for (const std::string& text : c.not_found) {
      EXPECT_FALSE(Finds(c.pattern, text, options)) << c.pattern << " must not find " << text;
    }
  }
}

TEST(EcmaRegex, SearchAndAnchors) {
  Check({
      {"", {"", "x"}, {}},
      {"b", {"b", "abc"}, {"", "ac"}},
      {"^b", {"b", "bc"}, {"ab", ""}},
      {"b$", {"b", "ab"}, {"ba", "b\n"}},
      {"^a*$", {"", "aaa"}, {"b", "aab"}},
      {"^a|b$", {"ax", "xb", "a", "b"}, {"xa", "bx", "xax"}},
      {"(^|,)x(,|$)", {"x", "a,x", "x,b", "a,x,b"}, {"ax", "xb", "a,xb"}},
      {"a^b", {}, {"ab", "a^b", "b"}},
      {"a$b", {}, {"ab", "a$b"}},
      {"a$|^b", {"xa", "bx"}, {"ax", "xb"}},
      {"(a|^)b", {"b", "ab", "xab"}, {"xb", ""}},
      {"(?:^a)+$", {"a"}, {"aa", ""}},
      {"(?:a$)*", {"", "a", "aa", "x"}, {}},
      {"^(?:a|b$)+c?$", {"a", "b", "aab", "aac", "ac"}, {"bc", "ba", "c", ""}},
      {"$^", {""}, {"x"}},
      {"^^a$$", {"a"}, {"aa"}},
      {"\\Aab\\z", {"ab"}, {"xab", "abx"}},
      {"\\Aab\\Z", {"ab"}, {"ab\n"}},
      {"(?m)^b$", {"b", "a\nb\nc", "b\rx"}, {"ab", "a\nbc"}},
      {"(?m:^)a(?-m:$)", {"x\na", "a"}, {"a\n", "xa"}},
      {"^(a{2}){3,4}$", {"aaaaaa", "aaaaaaaa"}, {"aaaa", "aaaaaaa", "aaaaaaaaa"}},
  });
}

TEST(EcmaRegex, EscapesAndClasses) {
  Check({
      {"^\\d\\D$", {"1a"}, {"11", "aa"}},
      {"^\\w+$", {"aZ_9"}, {"", "a-b", "\xC3\xA9"}},
      {"^\\s$",
       {" ", "\t", "\xC2\xA0", "\xEF\xBB\xBF", "\xE2\x80\xA8", "\xE3\x80\x80"},
       {"x", "\xE2\x80\x8B"}},
      {"^\\S$", {"x"}, {" ", "\xC2\xA0"}},
      {"^.$",
       {"x", "\xF0\x9F\x98\x80", "\x0B"},
       {"\n", "\r", "\xE2\x80\xA8", "\xE2\x80\xA9", "xx"}},
      {"^[^]$", {"\n", "x"}, {"", "xx"}},
      {"[]", {}, {"", "x", "]"}},
      {"^[^a]$", {"b", "\n"}, {"a"}},
      {"^[a-c-]+$", {"a-c"}, {"d"}},
      {"^[\\w-.]+$", {"a-.b"}, {"/"}},
      {"^[a\\-z]+$", {"a-z"}, {"b"}},
      {"^[\\]\\\\^]+$", {"]\\^"}, {"["}},
      {"^[[]+$", {"[["}, {"]"}},
      {"^[\\b]$", {"\b"}, {"b"}},
      {"^\\x41\\u0042\\u{43}\\x{44}$", {"ABCD"}, {"ABC"}},
      {"^\\u{1F600}$", {"\xF0\x9F\x98\x80"}, {"x"}},
      {"^\\uD83D\\uDE00$", {"\xF0\x9F\x98\x80"}, {"x", ""}},
      {"^[\\uD83D\\uDE00-\\uD83D\\uDE02]$", {"\xF0\x9F\x98\x81"}, {"\xF0\x9F\x98\x83"}},
      {"^[\\uD800-\\uDBFF][\\uDC00-\\uDFFF]$", {"\xF0\x9F\x98\x80"}, {"x", "\xEF\xBF\xBD"}},
      {"^\\cJ\\cj$", {"\n\n"}, {"J"}},
      {"^\\0$", {std::string(1, '\0')}, {"0", ""}},
      {"^\\t\\n\\v\\f\\r$", {"\t\n\v\f\r"}, {"tnvfr"}},
      {"^\\/\\-\\.\\@\\#\\%\\_\\ $", {"/-.@#%_ "}, {"/"}},
      {"^\\p{Lu}\\p{Ll}$", {"Ab", "\xC3\x89\xC3\xA9"}, {"ab", "AB"}},
      {"^\\p{L}+$", {"\xD0\x94\xE4\xB8\xAD"}, {"1"}},
      {"^\\pL\\PL$", {"a1"}, {"1a"}},
      {"^\\p{Script=Greek}+$", {"\xCE\xB1\xCE\xB2"}, {"ab"}},
      {"^\\P{Lu}$", {"a", "1"}, {"A"}},
      {"^\\p{^Lu}$", {"a"}, {"A"}},
      {"^[\\p{Nd}_]$", {"1", "\xD9\xA1", "_"}, {"a"}},
      {"^[[:alpha:]_[:^space:]]$", {"a", "_", "1"}, {" "}},
      {"(?i)^[[:^upper:]]$", {"1", " "}, {"a", "A"}},
      {"^[[:digit:]]+$", {"12"}, {"a", "]"}},
      {"^\\Qa.b*\\E+$", {"a.b*", "a.b**"}, {"a.b", "axb"}},
      {"^\\h\\R$", {" \r\n", "\t\n"}, {"\n\n", " x"}},
      {"^a(?#remark)b$", {"ab"}, {"a"}},
      {"^(?<year>\\d{4})-(?P<m>\\d\\d)$", {"2020-12"}, {"202-12"}},
  });
}

TEST(EcmaRegex, Quantifiers) {
  Check({
      {"^a{2}$", {"aa"}, {"a", "aaa"}},
      {"^a{2,}$", {"aa", "aaaa"}, {"a"}},
      {"^a{0}$", {""}, {"a"}},
      {"^a{1,3}?b*?c+?d??$", {"aac", "abbccd"}, {"c", "aaaac"}},
      {"^{$", {"{"}, {""}},
      {"^a{,5}$", {"a{,5}"}, {"a", "aaaaa"}},
      {"^a{x}$", {"a{x}"}, {"a"}},
      {"^{a}$", {"{a}"}, {"a"}},
      {"^a{1$", {"a{1"}, {"a"}},
      {"^}]$", {"}]"}, {""}},
      {"^(a|b|ab)*c$", {"c", "ababc"}, {"abab"}},
      {"^(|a)b$", {"b", "ab"}, {"aab"}},
      {"^(a?){3}$", {"", "a", "aaa"}, {"aaaa"}},
      {"^()*$", {""}, {"a"}},
  });
}

TEST(EcmaRegex, Flags) {
  Check({
      {"^(?i)aB$", {"ab", "AB", "Ab"}, {"a"}},
      {"^a(?i:b)c$", {"abc", "aBc"}, {"Abc", "abC"}},
      {"^(?i:[a-c]+)$", {"aBC"}, {"d"}},
      {"^(?i:[^a])$", {"b"}, {"a", "A"}},
      {"^(?i:\xCF\x83)$", {"\xCF\x83", "\xCF\x82", "\xCE\xA3"}, {"s"}},
      {"^(?i:k)$", {"k", "K", "\xE2\x84\xAA"}, {"c"}},
      {"^(?s).$", {"\n"}, {""}},
      {"^(?s:.).$", {"\nx"}, {"\n\n"}},
      {"^(a(?i)b|c)d$", {"abd", "aBd", "Cd"}, {"Abd", "abD"}},
      {"^(?i)a(?-i)b$", {"Ab"}, {"AB"}},
  });
}

TEST(EcmaRegex, Lookahead) {
  Check({
      {"^(?=.*\\d)(?=.*[a-z]).{4,6}$", {"abc1", "1bcdef"}, {"abcd", "1234", "a1", "abcdef1"}},
      {"^(?!foo)\\w+$", {"fo", "bar", "xfoo"}, {"foo", "foobar", ""}},
      {"^(?!.*foo).*$", {"", "fo"}, {"foo", "xfoox"}},
      {"^(?!foo$).*$", {"fo", "foox"}, {"foo"}},
      {"^((?!ab).)*$", {"", "a", "ba", "acb"}, {"ab", "xabx", "aab"}},
      {"^((?!mode)(?!Mode).)*$", {"mod", "Modx"}, {"xmode", "Mode"}},
      {"^a(?=b)", {"ab", "abc"}, {"a", "ac"}},
      {"^a(?=b)b$", {"ab"}, {"a", "abb"}},
      {"^a(?!b)", {"a", "ac"}, {"ab", "abc"}},
      {"x(?=y)", {"xy", "axyb"}, {"x", "xa"}},
      {"^(?:(?=a)[ab]|(?=c)[cd])*$", {"", "ac", "aacc"}, {"b", "ad"}},
      {"^(?:a(?=b|$)|b(?=a|$))+$", {"abab", "a", "ba"}, {"aa", "abb", ""}},
      {"^(?:(?=(ab)*$)[ab]{2}){1,9}$", {"ab", "abab"}, {"", "ba", "abba", "aba"}},
      {"^(?=a)*b$", {"b"}, {"ab"}},
      {"^(?=a)?[ab]$", {"a", "b"}, {"c"}},
      {"(?=a)(?=b)", {}, {"", "a", "b", "ab"}},
      {"^(?:(?!-)[a-z-]{1,5}(?<!-)(?:\\.|$))+$",
       {"ab.c", "a-b.cd"},
       {"-a", "a-.b", "a.b-", "abcdef"}},
      {"^(?!(?!a))", {"a", "ab"}, {"", "b"}},
      {"^(?!aliases|date)(?:[a-z]+)$", {"alias", "dat", "title"}, {"date", "dates", "aliases"}},
      {"^(https?://|/?.?-?(?!\\w+://)\\w).+\\.ya?ml$",
       {"http://x.yml", "ab.yaml", "/ab.yml"},
       {"://.yml", "x.json"}},
  });
}

TEST(EcmaRegex, Lookbehind) {
  Check({
      {"(?<=a)b", {"ab", "xabx"}, {"b", "cb"}},
      {"(?<!a)b", {"b", "cb", "abb"}, {"ab", "a"}},
      {"^.*(?<!foo)$", {"", "fo", "foox"}, {"foo", "xfoo"}},
      {"^.*(?<=foo)bar$", {"foobar"}, {"bar", "fobar"}},
      {"(?<=^|,)x", {"x", "a,x"}, {"ax"}},
      {"^(?:a|(?<=a)b)*$", {"", "ab", "aab", "aba"}, {"b", "abb"}},
      {"^(?:[ab]{2}(?<!bb))+$", {"ab", "aaba"}, {"bb", "abbb", "a"}},
      {"(?<=(?<!x)a)b", {"ab", "yab"}, {"xab", "b"}},
      {"(?<=\\d{3})x$", {"123x", "a0000x"}, {"12x", "x"}},
      {"(?<=a.*)b$", {"ab", "aXb"}, {"b", "ba"}},
  });
}

// What a lookbehind asks about what follows may reach beyond it.
TEST(EcmaRegex, LookaheadInLookbehind) {
  Check({{"(?<=\\bfoo)bar", {"foobar", "a foobar"}, {"afoobar", "foo", "foo bar"}},
         {"(?<=a$)", {"a", "ba"}, {"", "ab"}},
         {"^.(?<=a(?=b))", {"ab", "abc"}, {"a", "ac", "b"}},
         {"^..(?<!(?=ab|cd).)", {"xy", "xa"}, {"aab", "xcd", "x"}},
         {"^..(?<!(?=ab).)x", {"aax"}, {"xa", "ab"}},
         {"^a(?<=(?=a+b).)", {"ab", "aaab", "aab!"}, {"a", "aa", "b"}},
         {"^a(?<=(?=a+b).)a", {"aab", "aaab"}, {"ab", "aa", "aac"}},
         {"^.{3}(?<=^(?=.*z$)...)", {"xyz", "abcz"}, {"abc", "abzc"}},
         {"^a(?<=\\b)", {"a", "a b"}, {"ab", "b"}},
         {"^a(?<=a\\b)", {"a", "a b", "a-"}, {"ab", "b"}},
         {"^ab(?<=(?:a(?!bc)|x)b)", {"ab", "abd"}, {"abc", "abcd"}},
         {"^aab(?<=(?:a(?=[ab]*c)){2}b)", {"aabc", "aabbac"}, {"aab", "aabd"}},
         {"^ab(?<!(?<=(?=..c)a)b)", {"ab", "abd"}, {"abc"}}});
}

TEST(EcmaRegex, WordBoundaries) {
  Check({
      {"\\bfoo\\b", {"foo", "a foo b", "foo-bar"}, {"food", "xfoo", "foo_"}},
      {"\\Bo", {"foo"}, {"o", "a o"}},
      {"^\\b", {"a"}, {"", "-"}},
      {"^\\B", {"", "-"}, {"a"}},
      {"^(\\b\\w+\\b ?)+$", {"ab cd", "a"}, {"", " a", "a  b"}},
      {"^(?:\\b|-)a$", {"a", "-a"}, {"--a"}},
      {"^(?:a\\b ?){2,3}$", {"a a", "a a a"}, {"a", "aa", "a a a a"}},
      {"^https?:\\/\\/(www\\.)?[-a-zA-Z0-9@:%._\\+~#=]{1,256}\\.[a-zA-Z0-9()]{1,6}\\b"
       "([-a-zA-Z0-9()@:%_\\+.~#?&//=]*)$",
       {"http://www.example.com", "https://a.b/c?d=e", "http://a.co(m)x"},
       {"ftp://a.b", "http://ab", "http://a."}},
      {"^\\w{3,5}\\b.*$", {"abc", "abc d"}, {"ab", "abcdef"}},
  });
}

TEST(EcmaRegex, UnicodeClasses) {
  RegexSyntaxOptions unicode;
  unicode.unicode_classes = true;
  Check({{"^\\w\\d$", {"\xC3\xA9\xD9\xA1", "a1"}, {"-1"}},
         {"\\b\xC3\xA9\\b", {"\xC3\xA9"}, {"a\xC3\xA9"}}},
        unicode);
  RegexSyntaxOptions whole;
  whole.search = false;
  Check({{"a|b", {"a", "b"}, {"xa", "ab", ""}}, {"^a", {"a"}, {"ab"}}, {"a(?=b)", {}, {"a", "ab"}}},
        whole);
}

TEST(EcmaRegex, RefusesWithPlace) {
  struct Bad {
    std::string pattern;
    ErrorCode code;
    std::string place;
  };
  const std::vector<Bad> cases = {
      {"(", ErrorCode::kInvalid, "byte 1"},
      {"a)", ErrorCode::kInvalid, "byte 1"},
      {"ab[c", ErrorCode::kInvalid, "byte 2"},
      {"[z-a]", ErrorCode::kInvalid, "byte 1"},
      {"*a", ErrorCode::kInvalid, "byte 0"},
      {"a**", ErrorCode::kInvalid, "byte 2"},
      {"a{2}{3}", ErrorCode::kInvalid, "byte 4"},
      {"a{3,2}", ErrorCode::kInvalid, "byte 1"},
      {"^*", ErrorCode::kInvalid, "byte 1"},
      {"(?<=a)*", ErrorCode::kInvalid, "byte 6"},
      {"ab\\", ErrorCode::kInvalid, "byte 2"},
      {"\\u12", ErrorCode::kInvalid, "byte 0"},
      {"\\xZZ", ErrorCode::kInvalid, "byte 0"},
      {"\\u{110000}", ErrorCode::kInvalid, "byte 0"},
      {"\\p{Nope}", ErrorCode::kInvalid, "byte 0"},
      {"\\a", ErrorCode::kInvalid, "byte 0"},
      {"a\xFF", ErrorCode::kInvalid, "byte 1"},
      {"(?y)a", ErrorCode::kUnsupported, "byte 2"},
      {"(a)\\2", ErrorCode::kInvalid, "byte 3"},
      {"b(?<n>a*)\\k<n>", ErrorCode::kUnsupported, "byte 1"},
      {"a++", ErrorCode::kUnsupported, "byte 2"},
      {R"((?:\b|a|(?<=x)y){100})", ErrorCode::kUnsupported, "byte 16"},
      {"(?>a)", ErrorCode::kUnsupported, "byte 0"},
      {"ab(?<=x)c(?<=c.{12})d", ErrorCode::kUnsupported, "byte 9"},
      {"a{9999999999}", ErrorCode::kLimit, "byte 1"},
      {std::string(300, '(') + std::string(300, ')'), ErrorCode::kLimit, "byte 250"},
  };
  for (const Bad& bad : cases) {
    RegexArena arena;
    const Result<ReId> id = ParseEcma(arena, bad.pattern);
    ASSERT_FALSE(id.ok()) << bad.pattern;
    EXPECT_EQ(id.error().code, bad.code) << bad.pattern << ": " << id.error().ToString();
    EXPECT_EQ(id.error().place, bad.place) << bad.pattern << ": " << id.error().ToString();
  }
}

TEST(EcmaRegex, OrdinaryPatternsStayFreeOfBooleans) {
  for (const char* pattern : {"^[a-z]+$", "a|^b|c$", "(^|,)x(,|$)", "x{3}", "^(a|b$)c?"}) {
    RegexArena arena;
    const Result<ReId> id = ParseEcma(arena, pattern);
    ASSERT_TRUE(id.ok());
    EXPECT_FALSE(arena.HasBoolean(*id)) << pattern << " -> " << arena.ToString(*id);
  }
}

}  // namespace
}  // namespace pawl
