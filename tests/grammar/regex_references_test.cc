// Back references, against a backtracking matcher written from ECMA-262 22.2.2 rule by rule.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/grammar/regex_test_util.h"

namespace pawl::regex_test {
namespace {

constexpr int kGroups = 3, kNoEnd = -1;

struct Pattern {
  enum Kind { kSet, kConcat, kOr, kRepeat, kGroup, kReference, kLook };
  Kind kind = kConcat;
  std::string set;        // kSet
  int min = 0, max = 0;   // kRepeat; max kNoEnd: any
  int group = 0;          // kGroup, kReference
  bool negative = false;  // kLook
  std::vector<Pattern> children;

  std::string Text() const {
    const auto body = [&] { return children[0].Text(); };
    switch (kind) {
      case kSet:
        return set.size() == 1 ? set : "[" + set + "]";
      case kConcat: {
        std::string out;
        for (const Pattern& child : children) out += child.Text();
        return "(?:" + out + ")";
      }
      case kOr:
        return "(?:" + children[0].Text() + "|" + children[1].Text() + ")";
      case kRepeat:
        return "(?:" + body() + "){" + std::to_string(min) + "," +
               (max == kNoEnd ? "" : std::to_string(max)) + "}";
      case kGroup:
        return "(" + body() + ")";
      case kReference:
        return "(?:\\" + std::to_string(group) + ")";
      case kLook:
        return std::string("(?") + (negative ? "!" : "=") + body() + ")";
    }
    return "";
  }
};

// Groups are numbered as they are written, and made once each.
Pattern Random(std::mt19937& random, int depth, int& groups) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Pattern out;
  const int what = depth == 0 ? pick(4) : pick(12);
  if (what < 3) {
    out.kind = Pattern::kSet;
    out.set = what == 0 ? "a" : what == 1 ? "b" : "ab";
  } else if (what == 3 || what == 4) {
    out.kind = Pattern::kReference;
    out.group = 1 + pick(kGroups);
  } else if (what < 7) {
    for (int i = pick(3) + 1; i > 0; --i) out.children.push_back(Random(random, depth - 1, groups));
  } else if (what == 7) {
    out.kind = Pattern::kOr;
    out.children.push_back(Random(random, depth - 1, groups));
    out.children.push_back(Random(random, depth - 1, groups));
  } else if (what == 8) {
    out.kind = Pattern::kRepeat;
    out.min = pick(3);
    out.max = pick(3) == 0 ? kNoEnd : out.min + pick(2);
    out.children.push_back(Random(random, depth - 1, groups));
  } else if (what == 9) {
    out.kind = Pattern::kLook;
    out.negative = pick(2) == 0;
    out.children.push_back(Random(random, depth - 1, groups));
  } else if (groups < kGroups) {
    out.kind = Pattern::kGroup;
    out.group = ++groups;
    out.children.push_back(Random(random, depth - 1, groups));
  }
  return out;
}

struct Captures {
  bool set[kGroups + 1] = {};
  std::string text[kGroups + 1];
};
using Then = std::function<bool(size_t, const Captures&)>;

void Groups(const Pattern& pattern, std::vector<int>& out) {
  if (pattern.kind == Pattern::kGroup) out.push_back(pattern.group);
  for (const Pattern& child : pattern.children) Groups(child, out);
}

bool Match(const Pattern& p, std::string_view text, size_t at, const Captures& captures,
           const Then& then);

bool MatchConcat(const std::vector<Pattern>& parts, size_t index, std::string_view text, size_t at,
                 const Captures& captures, const Then& then) {
  if (index == parts.size()) return then(at, captures);
  return Match(parts[index], text, at, captures, [&](size_t end, const Captures& c) {
    return MatchConcat(parts, index + 1, text, end, c, then);
  });
}

// RepeatMatcher.
bool MatchRepeat(const Pattern& p, int min, int max, std::string_view text, size_t at,
                 const Captures& captures, const Then& then) {
  if (max == 0) return then(at, captures);
  Captures inside = captures;
  std::vector<int> groups;
  Groups(p.children[0], groups);
  for (const int group : groups) inside.set[group] = false;
  const bool more = Match(p.children[0], text, at, inside, [&](size_t end, const Captures& c) {
    if (min == 0 && end == at) return false;
    return MatchRepeat(p, std::max(min - 1, 0), max == kNoEnd ? kNoEnd : max - 1, text, end, c,
                       then);
  });
  return more || (min == 0 && then(at, captures));
}

bool Match(const Pattern& p, std::string_view text, size_t at, const Captures& captures,
           const Then& then) {
  switch (p.kind) {
    case Pattern::kSet:
      return at < text.size() && p.set.find(text[at]) != std::string::npos &&
             then(at + 1, captures);
    case Pattern::kConcat:
      return MatchConcat(p.children, 0, text, at, captures, then);
    case Pattern::kOr:
      return Match(p.children[0], text, at, captures, then) ||
             Match(p.children[1], text, at, captures, then);
    case Pattern::kRepeat:
      return MatchRepeat(p, p.min, p.max, text, at, captures, then);
    case Pattern::kGroup:
      return Match(p.children[0], text, at, captures, [&](size_t end, const Captures& c) {
        Captures with = c;
        with.set[p.group] = true;
        with.text[p.group] = text.substr(at, end - at);
        return then(end, with);
      });
    case Pattern::kReference: {
      const std::string taken = captures.set[p.group] ? captures.text[p.group] : "";
      return text.substr(at).starts_with(taken) && then(at + taken.size(), captures);
    }
    case Pattern::kLook: {
      Captures found;
      const bool matches = Match(p.children[0], text, at, captures, [&](size_t, const Captures& c) {
        found = c;
        return true;
      });
      if (p.negative) return !matches && then(at, captures);
      return matches && then(at, found);
    }
  }
  return false;
}

TEST(RegexReferences, RandomPatternsAgreeWithBacktracking) {
  std::vector<std::string> texts{""};
  for (size_t i = 0; texts.size() < 63; ++i) {
    texts.push_back(texts[i] + "a");
    texts.push_back(texts[i] + "b");
  }
  int read = 0, refused = 0, accepted = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    int groups = 0;
    Pattern pattern;
    for (int i = 0; i < 3; ++i) pattern.children.push_back(Random(random, 3, groups));
    if (groups < kGroups) {  // references to groups that there are not are another test's
      for (; groups < kGroups; ++groups) {
        Pattern group;
        group.kind = Pattern::kGroup;
        group.group = groups + 1;
        int none = kGroups;
        group.children.push_back(Random(random, 0, none));
        pattern.children.push_back(std::move(group));
      }
    }
    const std::string written = "^" + pattern.Text() + "$";
    if (written.find('\\') == std::string::npos) continue;
    RegexArena arena;
    const Result<ReId> id = ParseEcma(arena, written, {});
    if (!id.ok()) {
      ASSERT_EQ(id.error().code, ErrorCode::kUnsupported) << written << id.error().ToString();
      ++refused;
      continue;
    }
    ++read;
    for (const std::string& text : texts) {
      const bool expected = Match(pattern, text, 0, {},
                                  [&](size_t end, const Captures&) { return end == text.size(); });
      accepted += expected ? 1 : 0;
      ASSERT_EQ(MatchesByDerivative(arena, *id, Decode(text)), expected)
          << "seed " << seed << ": " << written << " on '" << text << "'";
    }
  }
  EXPECT_GT(read, 1500);
  EXPECT_GT(refused, 10);
  EXPECT_GT(accepted, 3000);
}

TEST(RegexReferences, WhatPatternsSay) {
  EXPECT_TRUE(Finds(R"(^(["'])[a-z]*\1$)", "'abc'"));
  EXPECT_FALSE(Finds(R"(^(["'])[a-z]*\1$)", "'abc\""));
  EXPECT_TRUE(Finds(R"(^(?<d>[0-9])\k<d>{2}$)", "777"));
  EXPECT_FALSE(Finds(R"(^(?<d>[0-9])\k<d>{2}$)", "778"));
  EXPECT_TRUE(Finds(R"(^(?P<d>[-/])x(?P=d)$)", "/x/"));
  EXPECT_TRUE(Finds(R"(^\d{4}([-/.])\d\d\1\d\d$)", "2024.01.31"));
  EXPECT_FALSE(Finds(R"(^\d{4}([-/.])\d\d\1\d\d$)", "2024.01-31"));
  EXPECT_TRUE(Finds(R"((?i)^(ab|cd)-\1$)", "aB-Ab"));
  EXPECT_FALSE(Finds(R"(^(?!.*([0-9])\1)[0-9]+$)", "1223"));
  EXPECT_TRUE(Finds(R"(^(?!.*([0-9])\1)[0-9]+$)", "12321"));
  EXPECT_TRUE(Finds(R"(^(?:([ab])\1)+$)", "aabb"));
  EXPECT_TRUE(Finds(R"(^(?:(a)|b)\1$)", "b"));
  EXPECT_TRUE(Finds(R"(^\1(a)$)", "a"));
}

TEST(RegexReferences, WhatIsRefusedSaysWhere) {
  const auto error = [](std::string_view pattern) {
    RegexArena arena;
    const Result<ReId> id = ParseEcma(arena, pattern, {});
    return id.ok() ? "" : id.error().ToString();
  };
  EXPECT_NE(error(R"(^([a-z]+)-\1$)").find("byte 1"), std::string::npos);
  EXPECT_NE(error(R"(^([a-z]+)-\1$)").find("at most 1000 texts"), std::string::npos);
  EXPECT_NE(error(R"(^(a)\2$)").find("there is no group 2"), std::string::npos);
  EXPECT_NE(error(R"(^(a)\k<b>$)").find("there is no group 'b'"), std::string::npos);
  EXPECT_NE(error(R"(^(?=(a|ab))\1$)").find("in a lookaround"), std::string::npos);
  EXPECT_NE(error(R"(^([0-9][0-9][0-9])([0-9][0-9][0-9])\1\2$)").find("too many"),
            std::string::npos);
}

}  // namespace
}  // namespace pawl::regex_test
