// RegexArena, CodepointSet, RegexDfa and the Unicode tables: simplifications, classes, liveness,
// limits.
#include "grammar/regex/regex_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "grammar/regex/regex_machine.h"
#include "src/base/utf8.h"
#include "tests/allowed_time.h"
#include "tests/grammar/regex_test_util.h"

namespace pawl {
namespace {

using regex_test::Decode;
using regex_test::Finds;
using regex_test::MatchesByDfa;

TEST(Unicode, Properties) {
  const auto has = [](const char* name, char32_t c) {
    return CodepointSet::FromRanges(UnicodeProperty(name)).Contains(c);
  };
  EXPECT_TRUE(has("Lu", 'A'));
  EXPECT_FALSE(has("Lu", 'a'));
  EXPECT_TRUE(has("uppercase letter", 0x0410));
  EXPECT_TRUE(has("General_Category=Decimal_Number", 0x0661));
  EXPECT_TRUE(has("Script=Greek", 0x03B1));
  EXPECT_TRUE(has("sc=Grek", 0x03B1));
  EXPECT_TRUE(has("scx=Hira", 0x30FC));
  EXPECT_FALSE(has("sc=Hira", 0x30FC));
  EXPECT_TRUE(has("White_Space", 0x3000));
  EXPECT_TRUE(has("Emoji", 0x1F600));
  EXPECT_TRUE(has("ID_Start", 0x4E2D));
  EXPECT_TRUE(has("Cn", 0x10FFFF));
  EXPECT_TRUE(has("Cs", 0xD800));
  EXPECT_TRUE(UnicodeProperty("NoSuchThing").empty());
  EXPECT_TRUE(UnicodeProperty("").empty());
  EXPECT_TRUE(UnicodeProperty(std::string(1000, 'L')).empty());
}

// The two-letter categories split the code points: each lies in exactly one; the unions are unions.
TEST(Unicode, CategoriesAreAPartition) {
  size_t total = 0;
  CodepointSet all;
  for (const char* name :
       {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
        "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"}) {
    const auto ranges = UnicodeProperty(name);
    ASSERT_FALSE(ranges.empty()) << name;
    for (size_t i = 1; i < ranges.size(); ++i) ASSERT_GT(ranges[i].lo, ranges[i - 1].hi + 1);
    const CodepointSet set = CodepointSet::FromRanges(ranges);
    total += set.size();
    all = all.Union(set);
  }
  EXPECT_EQ(total, 0x110000u);
  EXPECT_EQ(all, CodepointSet::All());
}

TEST(Unicode, CaseFolding) {
  EXPECT_EQ(SimpleFold('A'), U'a');
  EXPECT_EQ(SimpleFold('a'), U'a');
  EXPECT_EQ(SimpleFold(0x03A3), 0x03C3u);
  EXPECT_EQ(SimpleFold(0x03C2), 0x03C3u);
  EXPECT_EQ(SimpleFold('1'), U'1');
  for (const CaseFold& fold : SimpleCaseFolds()) EXPECT_EQ(SimpleFold(fold.to), fold.to);
}

TEST(CodepointSet, AgreesWithBits) {
  uint32_t random = 7;
  const auto below = [&](uint32_t n) {
    return (random = random * 1664525 + 1013904223) / 65536 % n;
  };
  for (int round = 0; round < 500; ++round) {
    bool a_bits[64] = {}, b_bits[64] = {};
    std::vector<CodepointRange> a, b;
    for (auto [ranges, bits] : {std::pair{&a, a_bits}, std::pair{&b, b_bits}}) {
      for (uint32_t i = below(5); i > 0; --i) {
        const char32_t lo = 2 + below(58), hi = lo + below(10) - 2;
        ranges->push_back({lo, hi});
        for (char32_t c = lo; c <= hi && c < 64 && lo <= hi; ++c) bits[c] = true;
      }
    }
    const CodepointSet x = CodepointSet::FromRanges(a), y = CodepointSet::FromRanges(b);
    size_t count = 0;
    for (char32_t c = 0; c < 64; ++c) {
      ASSERT_EQ(x.Contains(c), a_bits[c]);
      ASSERT_EQ(x.Union(y).Contains(c), a_bits[c] || b_bits[c]);
      ASSERT_EQ(x.Intersect(y).Contains(c), a_bits[c] && b_bits[c]);
      ASSERT_EQ(x.Complement().Contains(c), !a_bits[c]);
      count += a_bits[c];
    }
    size_t beyond = 0;
    for (char32_t c = 64; c < 80; ++c) beyond += x.Contains(c);
    ASSERT_EQ(x.size(), count + beyond);
    ASSERT_EQ(x.Complement().Complement(), x);
  }
}

TEST(RegexArena, Simplifies) {
  RegexArena a;
  const ReId x = a.Literal(U"xy"), y = a.Literal(U"z"), b = a.Char('b');
  EXPECT_EQ(a.Or(x, RegexArena::kNothing), x);
  EXPECT_EQ(a.Or(x, RegexArena::kAnything), RegexArena::kAnything);
  EXPECT_EQ(a.And(x, RegexArena::kAnything), x);
  EXPECT_EQ(a.And(x, RegexArena::kNothing), RegexArena::kNothing);
  EXPECT_EQ(a.Concat(x, RegexArena::kNothing), RegexArena::kNothing);
  EXPECT_EQ(a.Concat(a.Concat(x, y), b), a.Concat(x, a.Concat(y, b)));
  EXPECT_EQ(a.Star(a.Star(x)), a.Star(x));
  EXPECT_EQ(a.Star(a.Optional(x)), a.Star(x));
  EXPECT_EQ(a.Star(a.Concat(a.Star(x), a.Star(y))), a.Star(a.Or(x, y)));
  EXPECT_EQ(a.Concat(a.Star(x), a.Star(x)), a.Star(x));
  EXPECT_EQ(a.Concat({b, a.Star(b), b}), a.Repeat(b, 2, std::nullopt));
  EXPECT_EQ(a.Repeat(a.Repeat(x, 2, 3), 4, 4), a.Repeat(x, 8, 12));
  EXPECT_EQ(a.Repeat(a.Repeat(x, 1, 1000), 1, 1000), a.Repeat(x, 1, 1000000));
  EXPECT_NE(a.Repeat(a.Repeat(x, 2, 2), 1, 3), a.Repeat(x, 2, 6));
  EXPECT_EQ(a.Or(a.Literal(U"a"), a.Literal(U"b")), a.Set(CodepointSet::Of('a', 'b')));
  EXPECT_EQ(a.Or(a.Literal(U"ab"), a.Literal(U"ac")),
            a.Concat(a.Char('a'), a.Set(CodepointSet::Of('b', 'c'))));
  EXPECT_EQ(a.Or(a.Repeat(x, 1, 3), a.Repeat(x, 2, 9)), a.Repeat(x, 1, 9));
  EXPECT_EQ(a.And(a.Repeat(RegexArena::kAnyChar, 2, 9), a.Repeat(RegexArena::kAnyChar, 4, 12)),
            a.Repeat(RegexArena::kAnyChar, 4, 9));
  EXPECT_EQ(a.And(a.Literal(U"abc"), a.Repeat(RegexArena::kAnyChar, 4, 12)), RegexArena::kNothing);
  EXPECT_EQ(a.And(a.Literal(U"abc"), a.Repeat(RegexArena::kAnyChar, 0, 12)), a.Literal(U"abc"));
  EXPECT_EQ(a.And(a.Not(x), a.Not(y)), a.Not(a.Or(x, y)));
  EXPECT_EQ(a.Set(CodepointSet::Of(0xD800, 0xDFFF)), RegexArena::kNothing);
  EXPECT_EQ(a.Set(CodepointSet::All()), RegexArena::kAnyChar);
  EXPECT_EQ(a.Star(RegexArena::kAnyChar), RegexArena::kAnything);
  EXPECT_EQ(a.Repeat(x, 3, 2), RegexArena::kNothing);
  EXPECT_EQ(a.Derive(RegexArena::kAnything, 0xD800), RegexArena::kNothing);
  EXPECT_EQ(a.Derive(RegexArena::kAnything, 'x'), RegexArena::kAnything);
}

TEST(RegexDfa, ClassesSplitTheCodepoints) {
  auto arena = std::make_shared<RegexArena>();
  const Result<ReId> id = ParseEcma(*arena, "^[a-m]+(?:foo|\\p{Lu})\\d?$");
  ASSERT_TRUE(id.ok());
  RegexDfa dfa(arena, *id);
  ASSERT_EQ(dfa.boundaries()[0], 0u);
  ASSERT_EQ(dfa.boundaries().size(), dfa.interval_class().size());
  for (size_t i = 0; i < dfa.boundaries().size(); ++i) {
    EXPECT_EQ(dfa.ClassOf(dfa.boundaries()[i]), dfa.interval_class()[i]);
    if (i > 0) {
      EXPECT_EQ(dfa.ClassOf(dfa.boundaries()[i] - 1), dfa.interval_class()[i - 1]);
    }
  }
  for (int cls = 0; cls < dfa.classes(); ++cls) {
    EXPECT_EQ(dfa.ClassOf(dfa.Representative(cls)), cls);
  }
  EXPECT_EQ(dfa.ClassOf('a'), dfa.ClassOf('b'));
  EXPECT_NE(dfa.ClassOf('a'), dfa.ClassOf('f'));
  EXPECT_EQ(dfa.ClassOf('B'), dfa.ClassOf(0x0410));
  EXPECT_EQ(dfa.Next(dfa.Start(), dfa.ClassOf(0xD800)), RegexDfa::kDead);
}

TEST(RegexDfa, EmptinessIsSeen) {
  auto arena = std::make_shared<RegexArena>();
  const auto parse = [&](const char* pattern) { return *ParseEcma(*arena, pattern); };
  // Even length and odd length; a multiple of 2 and of 3 below 6 that is not 0.
  EXPECT_EQ(RegexDfa(arena, arena->And(parse("^(aa)*$"), parse("^a(aa)*$"))).Start(),
            RegexDfa::kDead);
  const ReId six[] = {parse("^(aa)+$"), parse("^(aaa)+$"), parse("^a{1,5}$")};
  EXPECT_EQ(RegexDfa(arena, arena->And(six)).Start(), RegexDfa::kDead);
  // Dead ends are seen at the first character that leads there.
  RegexDfa dfa(arena, arena->And(parse("^(ab|ac)d*$"), arena->Not(parse("^ac"))));
  const uint32_t after_a = dfa.Next(dfa.Start(), dfa.ClassOf('a'));
  ASSERT_NE(after_a, RegexDfa::kDead);
  EXPECT_EQ(dfa.Next(after_a, dfa.ClassOf('c')), RegexDfa::kDead);
  EXPECT_NE(dfa.Next(after_a, dfa.ClassOf('b')), RegexDfa::kDead);
}

TEST(RegexDfa, StateLimitIsReported) {
  auto arena = std::make_shared<RegexArena>();
  RegexDfa dfa(arena, *ParseEcma(*arena, "^a{100}$"));
  dfa.SetStateLimit(50);
  uint32_t state = dfa.Start();
  int steps = 0;
  while (state != RegexDfa::kDead) state = dfa.Next(state, dfa.ClassOf('a')), ++steps;
  EXPECT_TRUE(dfa.overflow());
  EXPECT_LE(dfa.StateCount(), 50);
  EXPECT_LE(steps, 51);
}

TEST(RegexDfa, LongCountersUnderConjunction) {
  auto arena = std::make_shared<RegexArena>();
  const ReId pattern = *ParseEcma(*arena, "^[a-z]+@[a-z]+\\.[a-z]+$");
  RegexDfa dfa(arena, arena->And(pattern, arena->Repeat(RegexArena::kAnyChar, 3000, 5000)));
  EXPECT_TRUE(MatchesByDfa(dfa, Decode(std::string(3000, 'a') + "@b.c")));
  EXPECT_FALSE(MatchesByDfa(dfa, Decode(std::string(2000, 'a') + "@b.c")));
  EXPECT_FALSE(MatchesByDfa(dfa, Decode(std::string(5000, 'a') + "@b.c")));
  EXPECT_FALSE(dfa.overflow());
}

// Patterns that hurt other engines. Each must end, with an answer or with an error, within a number
// of steps; and where it has an answer the answer is right.
struct Hostile {
  std::string pattern;
  std::string found;
  std::string not_found;
  bool may_be_refused;
};

TEST(RegexHostile, EndsQuickly) {
  std::string words;
  for (int i = 0; i < 20000; ++i) {
    words.append(i > 0 ? "|w" : "w");
    words.append(std::to_string(i * 7919));
  }
  const auto repeated = [](const std::string& text, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += text;
    return out;
  };
  const std::vector<Hostile> cases = {
      {"^(a{1,1000}){1,1000}$", "aaaa", "", false},
      {"^((a{0,100}){0,100}){0,100}$", "aaaa", "b", false},
      {"^(a{1,1000}b?){1,1000}$", "aabaa", "bb", false},
      {"^(a|a)*b$", std::string(200, 'a') + "b", std::string(200, 'a'), false},
      {"^(a*)*$", std::string(200, 'a'), "b", false},
      {"^(a|b|ab)*c$", repeated("ab", 100) + "c", repeated("ab", 100), false},
      {"^(x+x+)+y$", std::string(200, 'x') + "y", std::string(200, 'x'), false},
      {"^(([a-z])+.)+[A-Z]([a-z])+$", std::string(60, 'a') + "Bc", std::string(60, 'a'), false},
      {"(.*a){12}", repeated("xa", 12), repeated("xa", 11), false},
      {"a.{30}$", std::string("a") + std::string(30, 'b'), std::string(31, 'b'), false},
      {std::string("^(") + words + ")$", "w7919", "w7920", false},
      {std::string(100000, '(') + std::string(100000, ')'), "", "", true},
      {std::string(100000, '('), "", "", true},
      {std::string("^") + std::string(1000000, 'a') + "$", std::string(1000000, 'a'),
       std::string(999999, 'a'), false},
      {std::string("^") + repeated("a?", 20000) + "$", std::string(50, 'a'), "b", true},
      {std::string("^") + repeated("(a|b)?", 5000) + "$", "abab", "c", true},
      {std::string("^") + repeated("[a-z]{1,9}", 1000) + "$", std::string(1000, 'q'),
       std::string(999, 'q'), false},
      {std::string("^") + repeated("(?=a", 200) + repeated(")", 200), std::string(200, 'a'), "aa",
       false},
      {std::string("^") + repeated("(?!", 100) + "a" + repeated(")", 100), "a", "b", false},
      {"^(?:(?=a*b)[ab]){1,1000000}$", "ab", "a", false},
      {std::string("^(?:(?!") + words + ")\\w)+$", "abc", "xw7919", true},
      {"(\\b\\w{1,1000}\\b ?){1,1000}$", "ab cd", " ", true},
      {"(?<=a.{1,20}b)c", "aXbc", "abc", true},
      {"^([a-z0-9]+([-.][a-z0-9]+)*\\.){1,100}[a-z]{2,}$", "a-b.c.de", "a..b", false},
      {"[^\\x00-\\u{10FFFF}]", "", "", true},
      {repeated("(?:a|b", 200) + repeated("){1,3}", 200), "a", "", true},
      {repeated("(?:(?:a|\\b)", 30) + repeated("){2,6}", 30), "a", "", true},
      {repeated("\\p{L}*\\P{Lu}?", 50), "", "", true},
  };
  for (const Hostile& c : cases) {
    auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = ParseEcma(*arena, c.pattern);
    const std::string shown = c.pattern.substr(0, 60);
    bool refused = !id.ok();
    if (id.ok()) {
      RegexDfa dfa(arena, *id);
      const bool found = MatchesByDfa(dfa, Decode(c.found));
      const bool not_found = MatchesByDfa(dfa, Decode(c.not_found));
      refused = dfa.overflow();
      if (!refused && c.found != c.not_found) {
        EXPECT_TRUE(found) << shown;
        EXPECT_FALSE(not_found) << shown;
      }
    } else {
      EXPECT_FALSE(id.error().message.empty());
    }
    EXPECT_TRUE(!refused || c.may_be_refused)
        << shown << (id.ok() ? " overflow" : id.error().ToString());
    EXPECT_LT(arena->work(), 40'000'000u) << shown;
    if (std::getenv("PAWL_REGEX_VERBOSE") != nullptr) {
      std::printf("%10llu steps %8zu terms %s %s\n", static_cast<unsigned long long>(arena->work()),
                  arena->size(), shown.c_str(),
                  id.ok() ? (refused ? "overflow" : "") : id.error().ToString().c_str());
    }
  }
}

// What each part of a conjunction needs says little here of what both need: the search for a
// shortest completion saw every text up to its length, and derived by it.
TEST(RegexArena, CompletionsOfHostileConjunctionsTakeFewSteps) {
  auto arena = std::make_shared<RegexArena>();
  const Result<ReId> id = ParseEcma(*arena, "^(?=(a|b)*a(a|b){20}$)(a|b)*b(a|b){16}$");
  ASSERT_TRUE(id.ok()) << id.error().ToString();
  RegexMachine machine(arena, *id);
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::string text;
    Machine::Key key = machine.Start();
    // Where the letters repeat after four, an end is far.
    const int repeats = 2 * round;
    for (int i = 0; i < 40; ++i) {
      const bool repeat = i >= std::max(4, 40 - repeats);
      text += repeat ? text[text.size() - 4] : random() % 2 == 0 ? 'b' : 'a';
      key = machine.Step(key, static_cast<uint8_t>(text.back()));
      ASSERT_NE(key, Machine::kDead);
    }
    // Of what follows, nothing counts but how long it is, as long as both letters stand in `text`.
    size_t least = 1;
    const auto fits = [&](size_t more) {
      return text[text.size() - 21 + more] == 'a' && text[text.size() - 17 + more] == 'b';
    };
    while (least < 17 && !fits(least)) ++least;
    const auto rest = machine.CompletionBytes(key);
    ASSERT_TRUE(rest.has_value()) << text;
    if (fits(0)) {
      EXPECT_EQ(*rest, "") << text;
    } else if (least <= 8) {
      EXPECT_EQ(rest->size(), least) << text;
    }
    for (const char c : *rest) key = machine.Step(key, static_cast<uint8_t>(c));
    EXPECT_TRUE(machine.Accepting(key)) << text << " and " << *rest;
  }
  EXPECT_LT(arena->work(), 30'000'000u);
}

// The oracle: a search in breadth over the DFA.
TEST(RegexArena, ShortestTextsAreReadOffTheStructure) {
  std::mt19937 random(11);
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    const auto arena = std::make_shared<RegexArena>();
    const std::function<ReId(int)> make = [&](int depth) -> ReId {
      switch (depth == 0 ? pick(2) : pick(6)) {
        case 0:
          return arena->Literal(std::u32string(1 + pick(3), static_cast<char32_t>(U'a' + pick(3))));
        case 1:
          return arena->Set(CodepointSet::FromRanges(
              std::vector<CodepointRange>{{U'b', U'b' + pick(4)}, {0x4E00, 0x4E00 + pick(9)}}));
        case 2:
          return arena->Or(make(depth - 1), make(depth - 1));
        case 3: {
          const uint32_t min = pick(4);
          const bool open = pick(2) == 0;
          return arena->Repeat(make(depth - 1), min,
                               open ? std::nullopt : std::optional(min + pick(3)));
        }
        default:
          return arena->Concat(make(depth - 1), make(depth - 1));
      }
    };
    const ReId id = make(3);
    const auto text = arena->ShortestText(id, 1000);
    ASSERT_TRUE(text) << arena->ToString(id);
    ASSERT_TRUE(regex_test::MatchesByDerivative(*arena, id, *text)) << arena->ToString(id);
    EXPECT_EQ(text->size(), arena->MinLength(id));
    RegexDfa dfa(arena, id);
    std::vector<uint32_t> states = {dfa.Start()};
    size_t length = 0;
    std::set<uint32_t> seen(states.begin(), states.end());
    while (std::ranges::none_of(states, [&](uint32_t s) { return dfa.Accepting(s); })) {
      std::vector<uint32_t> next;
      for (const uint32_t state : states) {
        for (int cls = 0; cls < dfa.classes(); ++cls) {
          const uint32_t to = dfa.Next(state, cls);
          if (to != RegexDfa::kDead && seen.insert(to).second) next.push_back(to);
        }
      }
      states = std::move(next);
      ++length;
      ASSERT_LT(length, 1000u);
    }
    ASSERT_EQ(text->size(), length) << arena->ToString(id);
    EXPECT_EQ(arena->ShortestText(id, length), text);
    if (length > 0) {
      EXPECT_FALSE(arena->ShortestText(id, length - 1));
    }
  }
  RegexArena arena;
  EXPECT_FALSE(arena.ShortestText(arena.Not(arena.Literal(U"a")), 10));
  EXPECT_FALSE(arena.ShortestText(RegexArena::kNothing, 10));
}

// As many steps as characters, not their square.
TEST(RegexArena, CompletionsWithoutBooleansTakeFewSteps) {
  const auto arena = std::make_shared<RegexArena>();
  const Result<ReId> id = ParseEcma(*arena, "^(a|b)*a(a|b){20000}$", {});
  ASSERT_TRUE(id.ok());
  RegexMachine machine(arena, *id);
  const Machine::Key start = machine.Start();
  const uint64_t before = arena->work();
  const auto text = machine.CompletionBytes(start);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->size(), 20'001u);
  EXPECT_LT(arena->work() - before, 1000u);
}

// Bug: of twenty lookaheads that each count, every state that does not lead to the end was searched
// for an end of its own: 20 seconds.
TEST(RegexArena, CompletionsOfCountedConjunctionsHaveALimit) {
  const auto work = [](int n, bool& found) {
    std::string pattern = "^";
    for (int i = 0; i < n; ++i) {
      pattern += "(?=.*" + std::string(1, static_cast<char>('A' + i)) + ".{" +
                 std::to_string(10 + 3 * i) + "})";
    }
    const auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = ParseEcma(*arena, pattern + ".{200}$", {});
    EXPECT_TRUE(id.ok());
    RegexMachine machine(arena, *id);
    const Machine::Key start = machine.Start();
    const uint64_t before = arena->work();
    const auto text = machine.CompletionBytes(start);
    found = text && text->size() == 200;
    return arena->work() - before;
  };
  bool found = false;
  EXPECT_LT(work(5, found), 1u << 22);
  EXPECT_TRUE(found);
  EXPECT_LT(work(20, found), 1u << 25);
}

// The searches for emptiness have a limit of their own.
TEST(RegexArena, SearchesForEmptinessHaveALimit) {
  const auto arena = std::make_shared<RegexArena>();
  const Result<ReId> id = ParseEcma(*arena, "^(?=.*a.{40}$)(?=.*b.{41}$)(?!.*c.{42}d).*$", {});
  ASSERT_TRUE(id.ok());
  RegexDfa dfa(arena, *id, {.max_emptiness_work = 10'000});
  std::mt19937 random(5);
  uint32_t state = dfa.Start();
  uint64_t asked = 0;
  const uint64_t begin = arena->work();
  for (int i = 0; i < 300 && state != RegexDfa::kDead; ++i) {
    for (int cls = 0; cls < dfa.classes(); ++cls) (void)dfa.Next(state, cls);
    asked += static_cast<uint64_t>(dfa.WorkAt(state));
    state = dfa.Next(state, dfa.ClassOf(static_cast<char32_t>('a' + random() % 5)));
  }
  // What is asked from outside, twice that, and the search at the limit.
  EXPECT_LT(arena->work() - begin, 10'000 + 3 * asked + (1u << 20));
}

// Bug: (a|b)?(c|d)?... of 30,000 parts took 3 seconds and 2 GB for each character: from each part
// all that follow were looked at.
TEST(RegexArena, ChainsOfOptionalParts) {
  RegexArena arena;
  std::vector<ReId> parts;
  for (char32_t i = 0; i < 30'000; ++i) {
    const ReId part =
        arena.Or(arena.Literal(std::u32string{U'a', 0x10000 + i}),
                 arena.Concat(arena.Repeat(RegexArena::kAnyChar, 3, 9), arena.Char(U'b')));
    parts.push_back(arena.Optional(part));
  }
  const ReId chain = arena.Concat(std::span<const ReId>(parts));
  const double begin = ProcessorSeconds();
  EXPECT_NE(arena.Derive(chain, U'x'), RegexArena::kNothing);
  EXPECT_LE(ProcessorSeconds() - begin, AllowedSeconds(1.0));
}

}  // namespace
}  // namespace pawl
