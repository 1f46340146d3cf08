// Random patterns: ParseEcma with derivatives and with the DFA, against RE2 and against the matcher
// of regex_reference.h; and that Boolean combinations mean what they say.
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/grammar/regex_reference.h"
#include "tests/grammar/regex_test_util.h"

namespace pawl {
namespace {

using regex_test::Decode;
using regex_test::MatchesByDerivative;
using regex_test::MatchesByDfa;
using regex_test::RefFinds;
using regex_test::RefGenerator;
using regex_test::RefNode;
using regex_test::RefOptions;
using regex_test::RefPtr;
using regex_test::RefTakesWhole;
using regex_test::Spell;

// Walks from `state` over at most `fuel` states looking for acceptance; true when found or
// undecided.
bool SomethingAccepted(RegexDfa& dfa, uint32_t state, size_t fuel = 5000) {
  std::vector<uint32_t> pending{state}, seen{state};
  for (size_t i = 0; i < pending.size(); ++i) {
    if (dfa.Accepting(pending[i]) || i > fuel) return true;
    for (int cls = 0; cls < dfa.classes(); ++cls) {
      const uint32_t next = dfa.Next(pending[i], cls);
      if (next == RegexDfa::kDead) continue;
      if (std::find(pending.begin(), pending.end(), next) == pending.end()) pending.push_back(next);
    }
  }
  return false;
}

// PAWL_TEST_SCALE=3 compares 100,000 pairs and more.
TEST(RegexRandom, AgreesWithRe2) {
  const char* given = std::getenv("PAWL_TEST_SCALE");
  const int scale = given == nullptr ? 1 : std::max(1, std::atoi(given));
  RefGenerator generator(1);
  RefOptions options;
  options.boundaries = true;
  int pairs = 0, refused = 0, matched = 0;
  for (int round = 0; round < 4000 * scale; ++round) {
    const std::string pattern = Spell(*generator.Pattern(1 + generator.Below(12), options));
    const RE2 re2(pattern, RE2::Quiet);
    if (!re2.ok()) continue;  // RE2 allows no product of counters above 1000
    RegexSyntaxOptions syntax;
    syntax.search = round % 2 == 0;
    auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = ParseEcma(*arena, pattern, syntax);
    if (!id.ok()) {
      ASSERT_NE(id.error().code, ErrorCode::kInvalid) << pattern << id.error().ToString();
      ++refused;
      continue;
    }
    RegexDfa dfa(arena, *id);
    for (int i = 0; i < 10; ++i) {
      const std::string text = generator.Text(9);
      const bool expected =
          syntax.search ? RE2::PartialMatch(text, re2) : RE2::FullMatch(text, re2);
      ASSERT_EQ(MatchesByDfa(dfa, Decode(text)), expected)
          << pattern << " on '" << text << "' search " << syntax.search << " "
          << arena->ToString(*id);
      if (i < 3) {
        ASSERT_EQ(MatchesByDerivative(*arena, *id, Decode(text)), expected) << pattern;
      }
      ++pairs;
      matched += expected;
    }
  }
  EXPECT_GE(pairs, 35000 * scale);
  EXPECT_LT(refused, 10 * scale);
  RecordProperty("pairs", pairs);
  // The comparison is worth something only when both answers occur.
  EXPECT_GT(matched, 3000);
  EXPECT_LT(matched, pairs - 3000);
}

void CompareWithReference(uint32_t seed, const RefOptions& options, int rounds, int max_refused) {
  RefGenerator generator(seed);
  int pairs = 0, refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const RefPtr pattern = generator.Pattern(1 + generator.Below(14), options);
    const std::string spelled = Spell(*pattern);
    RegexSyntaxOptions syntax;
    syntax.search = round % 2 == 0;
    auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = ParseEcma(*arena, spelled, syntax);
    if (!id.ok()) {
      ASSERT_NE(id.error().code, ErrorCode::kInvalid) << spelled << id.error().ToString();
      ++refused;
      continue;
    }
    RegexDfa dfa(arena, *id);
    for (int i = 0; i < 8; ++i) {
      const std::string text = generator.Text(7);
      const bool expected =
          syntax.search ? RefFinds(*pattern, text) : RefTakesWhole(*pattern, text);
      ASSERT_EQ(MatchesByDfa(dfa, Decode(text)), expected)
          << spelled << " on '" << text << "' search " << syntax.search << " "
          << arena->ToString(*id);
      ASSERT_EQ(MatchesByDerivative(*arena, *id, Decode(text)), expected) << spelled;
      ++pairs;
    }
    // What the DFA calls live has an accepted continuation.
    const uint32_t start = dfa.Start();
    if (start != RegexDfa::kDead) {
      ASSERT_TRUE(SomethingAccepted(dfa, start)) << spelled;
    }
    ASSERT_FALSE(dfa.overflow()) << spelled;
  }
  EXPECT_LE(refused, max_refused) << "of " << rounds;
  EXPECT_GT(pairs, rounds * 6);
}

TEST(RegexRandom, LookaheadAgreesWithReference) {
  CompareWithReference(2, {.look_ahead = true}, 3000, 40);
}
TEST(RegexRandom, LookbehindAgreesWithReference) {
  CompareWithReference(3, {.look_behind = true}, 3000, 40);
}
TEST(RegexRandom, AllAssertionsAgreeWithReference) {
  CompareWithReference(4, {.look_ahead = true, .look_behind = true, .boundaries = true}, 3000, 40);
}

// A random Boolean expression over patterns, as a term and as a function.
struct Combination {
  ReId id;
  std::vector<const RefNode*> patterns;
  std::string shape;  // postfix: p pattern, & | !
  bool Holds(std::string_view text) const {
    std::vector<bool> stack;
    size_t next = 0;
    for (const char op : shape) {
      if (op == 'p') {
        stack.push_back(RefTakesWhole(*patterns[next++], text));
        continue;
      }
      const bool last = stack.back();
      stack.pop_back();
      if (op == '!') {
        stack.push_back(!last);
      } else {
        stack.back() = op == '&' ? (stack.back() && last) : (stack.back() || last);
      }
    }
    return stack.back();
  }
};

Combination Combine(RefGenerator& generator, RegexArena& arena, std::vector<RefPtr>& owner,
                    int size) {
  Combination made{};
  if (size <= 1) {
    owner.push_back(generator.Pattern(1 + generator.Below(7), {.anchors = false}));
    RegexSyntaxOptions whole;
    whole.search = false;
    const Result<ReId> id = ParseEcma(arena, Spell(*owner.back()), whole);
    EXPECT_TRUE(id.ok());
    return {id.ok() ? *id : RegexArena::kNothing, {owner.back().get()}, "p"};
  }
  if (generator.Below(4) == 0) {
    made = Combine(generator, arena, owner, size - 1);
    made.id = arena.Not(made.id);
    made.shape += '!';
    return made;
  }
  made = Combine(generator, arena, owner, size / 2);
  const Combination right = Combine(generator, arena, owner, size - size / 2);
  const bool conjunction = generator.Below(2) == 0;
  made.id = conjunction ? arena.And(made.id, right.id) : arena.Or(made.id, right.id);
  made.patterns.insert(made.patterns.end(), right.patterns.begin(), right.patterns.end());
  made.shape += right.shape + (conjunction ? '&' : '|');
  return made;
}

TEST(RegexRandom, BooleanCombinations) {
  RefGenerator generator(5);
  int empty = 0;
  for (int round = 0; round < 4000; ++round) {
    auto arena = std::make_shared<RegexArena>();
    std::vector<RefPtr> owner;
    const Combination c = Combine(generator, *arena, owner, 2 + generator.Below(5));
    RegexDfa dfa(arena, c.id);
    bool any = false;
    for (int i = 0; i < 12; ++i) {
      const std::string text = generator.Text(6);
      const bool expected = c.Holds(text);
      any = any || expected;
      ASSERT_EQ(MatchesByDfa(dfa, Decode(text)), expected) << text << " " << arena->ToString(c.id);
      ASSERT_EQ(MatchesByDerivative(*arena, c.id, Decode(text)), expected);
    }
    const uint32_t start = dfa.Start();
    empty += start == RegexDfa::kDead;
    ASSERT_FALSE(any && start == RegexDfa::kDead);
    if (start != RegexDfa::kDead) {
      ASSERT_TRUE(SomethingAccepted(dfa, start));
    }
  }
  EXPECT_GT(empty, 10);  // emptiness is met
}

// Laws, decided by emptiness of the symmetric difference.
TEST(RegexRandom, BooleanLaws) {
  RefGenerator generator(6);
  for (int round = 0; round < 1000; ++round) {
    auto arena = std::make_shared<RegexArena>();
    std::vector<RefPtr> owner;
    const ReId x = Combine(generator, *arena, owner, 1 + generator.Below(2)).id;
    const ReId y = Combine(generator, *arena, owner, 1).id;
    const ReId z = Combine(generator, *arena, owner, 1).id;
    RegexArena& a = *arena;
    const std::pair<ReId, ReId> equal[] = {
        {a.Not(a.Or(x, y)), a.And(a.Not(x), a.Not(y))},
        {a.Not(a.And(x, y)), a.Or(a.Not(x), a.Not(y))},
        {a.And(x, a.Or(y, z)), a.Or(a.And(x, y), a.And(x, z))},
        {a.Or(x, a.And(y, z)), a.And(a.Or(x, y), a.Or(x, z))},
        {a.Concat(x, a.Or(y, z)), a.Or(a.Concat(x, y), a.Concat(x, z))},
        {a.Concat(a.Or(x, y), z), a.Or(a.Concat(x, z), a.Concat(y, z))},
        {a.Concat(a.Concat(x, y), z), a.Concat(x, a.Concat(y, z))},
        {a.Star(a.Or(x, y)), a.Star(a.Or(a.Star(x), a.Star(y)))},
        {a.Repeat(x, 2, 3), a.Or(a.Concat(x, x), a.Concat({x, x, x}))},
        {a.Star(x), a.Or(RegexArena::kEpsilon, a.Concat(x, a.Star(x)))},
        {a.Or(x, a.Not(x)), RegexArena::kAnything},
        {a.And(x, a.Not(x)), RegexArena::kNothing},
    };
    for (const auto& [left, right] : equal) {
      const ReId differ = a.Or(a.And(left, a.Not(right)), a.And(right, a.Not(left)));
      RegexDfaLimits limits;
      limits.emptiness_fuel = 100000;
      RegexDfa dfa(arena, differ, limits);
      ASSERT_EQ(dfa.Start(), RegexDfa::kDead)
          << arena->ToString(left) << "   " << arena->ToString(right);
    }
    ASSERT_EQ(a.Or(x, y), a.Or(y, x));
    ASSERT_EQ(a.And(x, y), a.And(y, x));
    ASSERT_EQ(a.Or(x, x), x);
    ASSERT_EQ(a.Not(a.Not(x)), x);
  }
}

// A term with large counters and conjunctions of long choices, and texts that often fulfil it.
struct Counted {
  ReId id;
  std::vector<std::string> words;
};

Counted RandomCounted(RefGenerator& generator, RegexArena& arena) {
  Counted made;
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(generator.Below(n)); };
  const auto term = [&](const std::string& pattern) {
    RegexSyntaxOptions whole;
    whole.search = false;
    const Result<ReId> id = ParseEcma(arena, pattern, whole);
    EXPECT_TRUE(id.ok()) << pattern;
    return id.ok() ? *id : RegexArena::kNothing;
  };
  static constexpr const char* kSets[] = {"[ab]", "[0-9a]", "[ab0-9]", ".", "[^b]"};
  const auto counted = [&] {
    const uint32_t min = pick(4);
    return term(std::string(kSets[pick(5)]) + "{" + std::to_string(min) + "," +
                std::to_string(min + 8 + pick(8)) + "}");
  };
  // Some thirty alternatives, so that a product of two has more than a thousand places.
  const auto choice = [&] {
    std::string pattern;
    for (int i = 0; i < 30; ++i) {
      std::string word;
      for (uint32_t left = 2 + pick(5); left > 0; --left) word += "ab01:"[pick(5)];
      if (pick(4) == 0) made.words.push_back(word);
      pattern += (i > 0 ? "|" : "") + word;
    }
    return term(pattern);
  };
  std::vector<ReId> parts;
  for (uint32_t left = 2 + pick(2); left > 0; --left) {
    ReId part = pick(2) == 0 ? counted() : arena.Concat(choice(), arena.Star(choice()));
    if (pick(3) == 0) part = arena.Concat(part, counted());
    if (pick(4) == 0) part = arena.Or(part, choice());
    parts.push_back(part);
  }
  made.id = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    made.id = pick(5) == 0   ? arena.Or(made.id, parts[i])
              : pick(6) == 0 ? arena.And(made.id, arena.Not(parts[i]))
                             : arena.And(made.id, parts[i]);
  }
  if (pick(3) == 0) made.id = arena.Repeat(made.id, 0, 12);
  return made;
}

// kernel, up to its length, within the term within wide: of the term, and of what is left of it
// behind the texts.
TEST(RegexRandom, OutlinesAreAroundTheTerm) {
  RefGenerator generator(7);
  int outlined = 0, in_term = 0, in_kernel = 0, beyond = 0;
  for (int round = 0; round < 400; ++round) {
    RegexArena arena;
    const Counted made = RandomCounted(generator, arena);
    const RegexArena::Outline outline = arena.OutlineOf(made.id);
    outlined += outline.wide != made.id;
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (int left = generator.Below(5); left > 0; --left) {
        if (!made.words.empty() && generator.Below(4) > 0) {
          text +=
              made.words[static_cast<size_t>(generator.Below(static_cast<int>(made.words.size())))];
        } else {
          for (int n = generator.Below(12); n > 0; --n)
            text += "ab01:"[static_cast<size_t>(generator.Below(5))];
        }
      }
      const std::u32string points = Decode(text);
      const bool in = MatchesByDerivative(arena, made.id, points);
      const bool wide = MatchesByDerivative(arena, outline.wide, points);
      const bool kernel = MatchesByDerivative(arena, outline.kernel, points);
      ASSERT_TRUE(wide || !in) << text << " " << arena.ToString(made.id);
      const bool short_enough = points.size() <= outline.length;
      ASSERT_TRUE(in || !kernel || !short_enough) << text << " " << arena.ToString(made.id);
      in_term += in;
      in_kernel += kernel && short_enough;
      beyond += wide && !in;
    }
  }
  // Each of the cases comes up.
  EXPECT_GT(outlined, 100);
  EXPECT_GT(in_term, 100);
  EXPECT_GT(in_kernel, 100);
  EXPECT_GT(beyond, 100);
}

}  // namespace
}  // namespace pawl
