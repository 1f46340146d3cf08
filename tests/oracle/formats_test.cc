// The tests' own checkers of formats and patterns, which judge the automata, have to be right
// themselves: by examples, and against the automata on random texts.
#include "tests/oracle/formats.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/regex/formats.h"
#include "grammar/regex/regex_dfa.h"
#include "src/base/utf8.h"
#include "tests/oracle/ecma_pattern.h"
#include "tests/oracle/uri.h"

namespace pawl::oracle {
namespace {

TEST(OracleFormatsTest, EachTellsGoodFromBad) {
  const struct {
    const char *format, *good, *bad;
  } cases[] = {
      {"date-time", "1998-12-31T15:59:60.123-08:00", "1998-12-31T22:59:60Z"},
      {"date", "2024-02-29", "2023-02-29"},
      {"time", "08:30:06.283185Z", "24:00:00Z"},
      {"duration", "P1DT2H3M", "P1Y2D"},
      {"email", "\"a b\"@example.com", "a..b@example.com"},
      {"hostname", "www.example.com", "-a.example"},
      {"ipv4", "192.168.0.1", "192.168.00.1"},
      {"ipv6", "::ffff:192.168.0.1", "1::2::3"},
      {"uri", "http://[::1]:80/a?b#c", "//a/b"},
      {"uri-reference", "../a?x=%41", "\\\\a"},
      {"iri", "http://\xC6\x92/\xC3\xB8", "http://2001:0db8:85a3::7334"},
      {"uri-template", "http://a/{b}{?c*}", "http://a/{b"},
      {"uuid", "2EB8AA08-aa98-11ea-b4aa-73b441d16380", "2eb8aa08-aa98-11ea-b4aa73b441d16380"},
      {"json-pointer", "/a~0b/c~1", "/a~2"},
      {"relative-json-pointer", "1/a", "-1/a"},
      {"byte", "YWI=", "YWI"},
      {"byte", "-----BEGIN CMS-----\nYQ==\n-----END CMS-----\n",
       "-----BEGIN CMS-----\nYQ==\n-----END PKCS7-----\n"},
      {"regex", "^a+$", "^(abc]"}};
  for (const auto& c : cases) {
    EXPECT_TRUE(IsKnownFormat(c.format));
    EXPECT_EQ(HasFormat(c.format, c.good), true) << c.format << " " << c.good;
    EXPECT_EQ(HasFormat(c.format, c.bad), false) << c.format << " " << c.bad;
  }
  EXPECT_EQ(HasFormat("no such format", "x"), true);
}

// Walks over the automaton of each format that both know in full, and what is one mistake away from
// them.
TEST(OracleFormatsTest, AgreesWithTheAutomata) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  for (const char* format :
       {"date-time", "date", "time", "duration", "ipv4", "ipv6", "uri-template", "uuid",
        "json-pointer", "relative-json-pointer", "byte"}) {
    auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = FormatRegex(*arena, format);
    ASSERT_TRUE(id.ok());
    RegexDfa dfa(arena, *id);
    const auto matches = [&](const std::u32string& text) {
      uint32_t state = dfa.Start();
      for (const char32_t c : text) state = dfa.Next(state, dfa.ClassOf(c));
      return state != RegexDfa::kDead && dfa.Accepting(state);
    };
    int accepted = 0;
    for (int round = 0; round < 400; ++round) {
      std::u32string text;
      uint32_t state = dfa.Start();
      for (int i = 0; i < 120 && !(dfa.Accepting(state) && below(10) == 0); ++i) {
        std::vector<int> ways;
        for (int c = 0; c < dfa.classes(); ++c) {
          if (dfa.Next(state, c) != RegexDfa::kDead) ways.push_back(c);
        }
        if (ways.empty()) break;
        const int way = ways[below(ways.size())];
        text.push_back(dfa.Representative(way));
        state = dfa.Next(state, way);
      }
      for (int mistake = 0; mistake < 8; ++mistake) {
        std::u32string changed = text;
        if (mistake > 0) {
          const size_t at = below(changed.size() + 1);
          const char32_t other =
              dfa.Representative(static_cast<int>(below(static_cast<size_t>(dfa.classes()))));
          if (other >= 0xD800 && other < 0xE000) continue;  // no text has it
          if (mistake % 3 == 0 || at == changed.size()) {
            changed.insert(at, 1, other);
          } else if (mistake % 3 == 1) {
            changed.erase(at, 1);
          } else {
            changed[at] = other;
          }
        }
        std::string bytes;
        for (const char32_t c : changed) AppendUtf8(c, bytes);
        const auto verdict = HasFormat(format, bytes);
        if (!verdict.has_value()) continue;
        EXPECT_EQ(*verdict, matches(changed)) << format << ": " << bytes;
        accepted += static_cast<int>(*verdict);
      }
    }
    EXPECT_GT(accepted, 50) << format;
  }
}

TEST(OraclePatternTest, MeansWhatEcmaMeans) {
  EXPECT_EQ(EcmaSearch("^\\S+$", "a\xC2\xA0"), false);  // \s has U+00A0
  EXPECT_EQ(EcmaSearch("^.$", "\xE2\x80\xA8"), false);  // '.' has no U+2028
  EXPECT_EQ(EcmaSearch("^[\\w-.]+$", "a-b."), true);
  EXPECT_EQ(EcmaSearch("^[a[]$", "["), true);
  EXPECT_EQ(EcmaSearch("^[^]$", "\n"), true);
  EXPECT_EQ(EcmaSearch("[]", "a"), false);
  EXPECT_EQ(EcmaSearch("^\\ud83d\\udc32$", "\xF0\x9F\x90\xB2"), true);
  EXPECT_EQ(EcmaSearch("^\\/\\@\\-$", "/@-"), true);
  EXPECT_EQ(EcmaSearch("^\\p{Letter}$", "\xC3\xA9"), true);
  EXPECT_EQ(EcmaSearch("a$", "a\n"), false);
  EXPECT_EQ(EcmaSearch("(?=a)a", "a"), std::nullopt);
  EXPECT_EQ(EcmaSearch("(a)\\1", "aa"), std::nullopt);
}

TEST(OracleUriTest, ResolvesAsRfc3986Section54) {
  const std::string base = "http://a/b/c/d;p?q";
  EXPECT_EQ(ResolveUri(base, "g:h"), "g:h");
  EXPECT_EQ(ResolveUri(base, "./g"), "http://a/b/c/g");
  EXPECT_EQ(ResolveUri(base, "//g"), "http://g");
  EXPECT_EQ(ResolveUri(base, "?y"), "http://a/b/c/d;p?y");
  EXPECT_EQ(ResolveUri(base, "#s"), "http://a/b/c/d;p?q#s");
  EXPECT_EQ(ResolveUri(base, ""), "http://a/b/c/d;p?q");
  EXPECT_EQ(ResolveUri(base, "../.."), "http://a/");
  EXPECT_EQ(ResolveUri(base, "../../../g"), "http://a/g");
  EXPECT_EQ(ResolveUri("urn:uuid:1", "#/a"), "urn:uuid:1#/a");
  EXPECT_EQ(ResolveUri("", "#/a"), "#/a");
}

}  // namespace
}  // namespace pawl::oracle
