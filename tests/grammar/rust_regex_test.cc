// The dialect of patterns in Lark grammars, against RE2.
#include "grammar/languages/rust_regex.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "src/base/utf8.h"
#include "tests/grammar/lark_test_util.h"

namespace pawl {
namespace {

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
      {"[[:^upper:]]", "i", {"1", " "}, {"a", "A"}},
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

}  // namespace
}  // namespace pawl
