// The matcher of Split patterns: against PCRE2 on random texts, and its own limits.
#include "src/text/split_regex.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "src/base/utf8.h"
#ifdef PAWL_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

namespace pawl {
namespace {

using Match = SplitRegex::Match;

std::vector<Match> FindAll(const SplitRegex& regex, std::string_view text) {
  std::vector<char32_t> units;
  DecodeUnits(text, units);
  std::vector<Match> out;
  regex.FindAll(units, out);
  return out;
}

// The matches as text, with a '|' behind each.
std::string Found(std::string_view pattern, std::string_view text) {
  const auto regex = SplitRegex::Compile(pattern);
  if (!regex.ok()) return regex.error().ToString();
  std::vector<char32_t> units;
  DecodeUnits(text, units);
  std::string out;
  for (const Match& match : FindAll(*regex, text)) {
    for (size_t i = match.begin; i < match.end; ++i) AppendUtf8(units[i], out);
    out += "|";
  }
  return out;
}

TEST(SplitRegexTest, Basics) {
  EXPECT_EQ(Found("a|ab", "abab"), "a|a|");  // the order of alternatives counts, not length
  EXPECT_EQ(Found("(?:ab|a)(?:bc|c)?", "abc"), "abc|");
  EXPECT_EQ(Found("a{2,3}", "aaaaaaa"), "aaa|aaa|");
  EXPECT_EQ(Found("a{,2}b", "aaab"), "aab|");
  EXPECT_EQ(Found("a+?", "aaa"), "a|a|a|");
  EXPECT_EQ(Found("a+?b", "aaab"), "aaab|");
}

TEST(SplitRegexTest, LookaheadAndAtomicGroups) {
  EXPECT_EQ(Found(R"(\s+(?!\S)|\s+)", "a   b  "), "  | |  |");
  EXPECT_EQ(Found("a(?=b)", "abac"), "a|");
  EXPECT_EQ(Found("(?>a+)ab", "aaab"), "");
  EXPECT_EQ(Found("a++ab", "aaab"), "");
  EXPECT_EQ(Found("(?:ab)++c", "ababc"), "ababc|");
  EXPECT_EQ(Found("(?:a|ab)*+c", "abcac"), "c|ac|");  // possessive: "ab" is never tried again
}

TEST(SplitRegexTest, AssertionsAndEmptyMatches) {
  EXPECT_EQ(Found("^a", "a\na"), "a|a|");
  EXPECT_EQ(Found("a$", "a\nab"), "a|");
  EXPECT_EQ(Found(R"(\Aa)", "aa"), "a|");
  EXPECT_EQ(Found(R"(a\z)", "aa"), "a|");
  EXPECT_EQ(Found("(?=[A-Z])", "aBcD"), "||");
  EXPECT_EQ(Found("b*", "abb"), "|bb|");
}

TEST(SplitRegexTest, Classes) {
  EXPECT_EQ(Found("[a-c]+", "abcd"), "abc|");
  EXPECT_EQ(Found("[^a-c]+", "abxyc"), "xy|");
  EXPECT_EQ(Found("[a-]+", "a-b"), "a-|");
  EXPECT_EQ(Found(R"([\]\-x]+)", "]-x"), "]-x|");
  EXPECT_EQ(Found(R"([[:x]+)", "x"), "byte 1: a POSIX bracket");
  EXPECT_EQ(Found(R"([a[^\S]]+)", "a b"), "a |");
  EXPECT_EQ(Found(R"(\p{Lu}\p{Ll}*)", "ÉclairÜber"), "Éclair|Über|");
  EXPECT_EQ(Found(R"(\P{L}+|\p{^N})", "a1"), "a|1|");
  EXPECT_EQ(Found(R"(\x{4E00}|\u4e8c|\x41)", "一二A"), "一|二|A|");
}

TEST(SplitRegexTest, IgnoringCase) {
  EXPECT_EQ(Found("(?i:'s|'k)", "'S'\u017F'\u212A"), "'S|'\u017F|'\u212A|");
  EXPECT_EQ(Found("(?i:[a-k]+(?-i:x))", "AKxAKX"), "AKx|");
  EXPECT_EQ(Found("(?i:x)y", "XyXY"), "Xy|");
}

TEST(SplitRegexTest, BytesThatAreNotUtf8MatchComplementsOnly) {
  const auto regex = SplitRegex::Compile(R"(\p{L}+|[^\s\p{L}\p{N}]+)");
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(FindAll(*regex, "a\xFF\xC3z"), (std::vector<Match>{{0, 1}, {1, 3}, {3, 4}}));
  EXPECT_EQ(FindAll(*SplitRegex::Compile(R"(\x{FF}|\p{Any})"), "\xFF"), std::vector<Match>{});
}

TEST(SplitRegexTest, IntersectsClasses) {
  const auto all = [](const char* pattern, const char* text) {
    const auto regex = SplitRegex::Compile(pattern);
    EXPECT_TRUE(regex.ok()) << pattern;
    return FindAll(*regex, text);
  };
  EXPECT_EQ(all("[a-z&&[^m-p]]+", "almond"), (std::vector<Match>{{0, 2}, {5, 6}}));
  EXPECT_EQ(all("[^a-z&&b-d]+", "abce"), (std::vector<Match>{{0, 1}, {3, 4}}));
  EXPECT_EQ(all("[a-f&&c-z&&e-g]+", "cdefg"), (std::vector<Match>{{2, 4}}));
  EXPECT_EQ(all("[a&b]+", "a&b"), (std::vector<Match>{{0, 3}}));
}

TEST(SplitRegexTest, WordBoundaries) {
  const auto all = [](const char* pattern, const char* text) {
    const auto regex = SplitRegex::Compile(pattern);
    EXPECT_TRUE(regex.ok()) << pattern;
    return FindAll(*regex, text);
  };
  EXPECT_EQ(all("\\b", "ab c"), (std::vector<Match>{{0, 0}, {2, 2}, {3, 3}, {4, 4}}));
  EXPECT_EQ(all("\\B", "ab c"), (std::vector<Match>{{1, 1}}));
  EXPECT_EQ(all("\\d{1,3}(?=(?:\\d{3})*\\b)", "1234567"),
            (std::vector<Match>{{0, 1}, {1, 4}, {4, 7}}));
  EXPECT_EQ(all("\\ba\\b", "a \u00E9a a"), (std::vector<Match>{{0, 1}, {5, 6}}));
}

TEST(SplitRegexTest, ErrorsNameTheirPlace) {
  const std::pair<const char*, const char*> kCases[] = {
      {"(a", "byte 0: '(' without ')'"},
      {"a)", "byte 1: ')' without '('"},
      {"x[a", "byte 1: '[' without ']'"},
      {"a**", "byte 2: a repetition of a repetition"},
      {"*a", "byte 0: nothing to repeat"},
      {"ab\\p{Nope}", "byte 2: unknown property \\p{Nope}"},
      {"(?<=a)b", "byte 0: a group of this kind"},
      {"(?<n>a)", "byte 0: a group of this kind"},
      {"(a)\\1", "byte 3: the escape \\1"},
      {"\\Ga", "byte 0: the escape \\G"},
      {"a\\", "byte 1: the pattern ends with '\\'"},
      {"[b-a]", "byte 1: a range that runs backwards"},
      {"[a&&]", "byte 2: '&&' of nothing"},
      {"[&&a]", "byte 1: '&&' of nothing"},
      {"(?i:[a&&b])", "byte 6: '&&' where case is ignored"},
      {"a{3,2}", "byte 1: the least number of repetitions is above the greatest"},
      {"a{200000}", "byte 1: more repetitions than the limit of 100,000"},
      {"a{1,2}?b", "byte 6: a lazy or possessive counted repetition"},
      {"a{x}", "byte 1: '{' that repeats nothing"},
      {"(?:a*)*", "byte 0: an unbounded repetition of what may be empty"},
      {"(?i:ss)", "byte 5: these letters have a ligature when case is ignored"},
      {"(?i:\xC3\xA4)", "byte 4: a letter outside ASCII where case is ignored"},
      {"\\x4", "byte 0: an unfinished hexadecimal escape"},
      {"a\xFF", "byte 1: the pattern is not UTF-8"},
      {"(?:(?:ab){1000}){1000}", "byte 0: the pattern is too large"},
      {"(?:(?:(?:){100000}){100000}){100000}", "byte 0: the pattern is too large"},
  };
  for (const auto& [pattern, message] : kCases) {
    const auto regex = SplitRegex::Compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.error().ToString(), message) << pattern;
  }
  const std::string deep(100'000, '(');
  EXPECT_FALSE(SplitRegex::Compile(deep.substr(0, 15'000)).ok());
  EXPECT_FALSE(SplitRegex::Compile(deep).ok());
  EXPECT_FALSE(SplitRegex::Compile("[" + std::string(15'000, '[')).ok());
}

// A pattern that takes exponential time gives up after its steps instead of hanging.
TEST(SplitRegexTest, StepsAreLimited) {
  const auto regex = SplitRegex::Compile("(?:a|aa)+b|c");
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(FindAll(*regex, "caab").size(), 2u);
  EXPECT_EQ(FindAll(*regex, "c" + std::string(300, 'a')).size(), 1u);
}

constexpr const char* kPatterns[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?:ab?)+?c|a{2,3}(?=b)|[^a-c\s]{1,2}|(?>a+)b|\n$|^ )",
    R"((?:a|b(?:c|\d))*x|\p{L}++1|[^\S\n]+|(?:')?[\p{L}\p{N}_]+)",
};

TEST(SplitRegexTest, AgreesWithPcre2) {
#ifndef PAWL_HAVE_PCRE2
  GTEST_SKIP() << "PCRE2 was not found";
#else
  const std::string_view kPieces[] = {
      "a",  "b", "c",  "x", " ",      " ",   "\n",     "\r",     "\t",     "1",      "12",
      "'s", "'", "'S", "/", "é",      "É",   "\u01C5", "\u02B0", "\u0301", "\u0663", "\u00BD",
      "語", "…", "👍",  "_", "\u2028", "'ll", "\u00A0", "'R",     "e",      "-",      "\u017F"};
  std::mt19937 random(3);
  for (const char* pattern : kPatterns) {
    const auto regex = SplitRegex::Compile(pattern);
    ASSERT_TRUE(regex.ok()) << pattern << ": " << regex.error().ToString();
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* oracle =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &code, &offset, nullptr);
    ASSERT_NE(oracle, nullptr) << pattern << " at " << offset;
    pcre2_match_data* data = pcre2_match_data_create_from_pattern(oracle, nullptr);
    for (int round = 0; round < 3000; ++round) {
      std::string text;
      for (size_t n = random() % 24; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
      std::vector<Match> expected;  // in bytes
      for (size_t at = 0; at <= text.size();) {
        const int found = pcre2_match(oracle, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                      text.size(), at, 0, data, nullptr);
        if (found < 0) break;
        const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
        ASSERT_LT(range[0], range[1]) << "none of the patterns matches nothing";
        expected.push_back({range[0], range[1]});
        at = range[1];
      }
      std::vector<char32_t> units;
      DecodeUnits(text, units);
      std::vector<size_t> offsets = {0};
      for (const char32_t unit : units) offsets.push_back(offsets.back() + UnitLength(unit));
      std::vector<Match> ours = FindAll(*regex, text);
      for (Match& match : ours) match = {offsets[match.begin], offsets[match.end]};
      ASSERT_EQ(ours, expected) << pattern << " on " << text;
    }
    pcre2_match_data_free(data);
    pcre2_code_free(oracle);
  }
#endif
}

TEST(CodepointSetTest, AgreesWithItsRanges) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<CodepointRange> ranges;
    for (int i = 0; i < 12; ++i) {
      const char32_t lo = random() % (i % 2 ? 400u : 0x110100u);
      ranges.push_back({lo, std::min<char32_t>(kMaxUnit, lo + random() % 600)});
    }
    const UnitSet set(ranges), complement(ComplementRanges(ranges));
    for (int i = 0; i < 2000; ++i) {
      const char32_t c = random() % (i % 2 ? 1200u : 0x110100u);
      const bool expected = std::any_of(ranges.begin(), ranges.end(), [c](const CodepointRange& r) {
        return r.lo <= c && c <= r.hi;
      });
      ASSERT_EQ(set.Contains(c), expected) << static_cast<uint32_t>(c);
      ASSERT_EQ(complement.Contains(c), !expected) << static_cast<uint32_t>(c);
    }
  }
}

}  // namespace
}  // namespace pawl
