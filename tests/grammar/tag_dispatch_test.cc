// TagDispatch against a scan of the text from left to right: where a tag or an excluded text ends
// first, a rule has to follow, or nothing may.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/cfg/stop_reach.h"
#include "grammar/languages/ebnf.h"
#include "pawl/vocabulary.h"
#include "tests/grammar/cfg_reference.h"

namespace pawl {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return random_() % n; }

 private:
  std::mt19937_64 random_;
};

struct Dispatch {
  std::vector<std::string> tags;  // those with an even place are followed by "1", others by "2"
  std::vector<std::string> excludes;
  bool loop = true;

  std::string Grammar() const {
    std::string out = "root ::= TagDispatch(";
    for (size_t i = 0; i < tags.size(); ++i)
      out += "(\"" + tags[i] + "\", r" + std::to_string(i % 2 + 1) + "), ";
    if (!excludes.empty()) out += "excludes=(\"" + excludes[0] + "\",), ";
    return out + "loop_after_dispatch=" + (loop ? "true" : "false") +
           ")\nr1 ::= \"1\"\nr2 ::= \"2\"\n";
  }

  bool Accepts(const std::string& text) const {
    for (size_t begin = 0; begin < text.size();) {
      // The first place at which a stop ends that begins behind `begin`.
      const auto ends = [&](const std::string& stop, size_t end) {
        return end >= begin + stop.size() &&
               text.compare(end - stop.size(), stop.size(), stop) == 0;
      };
      std::optional<size_t> next;
      for (size_t end = begin + 1; end <= text.size() && !next; ++end) {
        bool stopped = false;  // here
        for (const std::string& stop : excludes) stopped = stopped || ends(stop, end);
        for (size_t i = 0; i < tags.size(); ++i) {
          if (!ends(tags[i], end)) continue;
          stopped = true;
          if (end < text.size() && text[end] == (i % 2 == 0 ? '1' : '2')) next = end + 1;
        }
        if (stopped && !next) return false;
      }
      if (!next) return true;
      if (!loop) return *next == text.size();
      begin = *next;
    }
    return true;
  }
};

TEST(TagDispatchTest, AsAScanHasIt) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size() && texts[i].size() < 5; ++i) {
    for (const char c : std::string("ab1")) texts.push_back(texts[i] + c);
  }
  for (size_t i = 0; i < texts.size(); i += 5) std::ranges::replace(texts[i], '1', '2');
  Dice random(7);
  int accepted = 0;
  for (int round = 0; round < 80; ++round) {
    Dispatch dispatch;
    const auto text = [&] {
      std::string out;
      for (uint64_t n = 1 + random.Below(4); n > 0; --n) out += random.Below(2) == 0 ? 'a' : 'b';
      return out;
    };
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) dispatch.tags.push_back(text());
    dispatch.loop = random.Below(3) != 0;
    if (random.Below(3) == 0) {
      const std::string other = text();
      if (std::ranges::none_of(dispatch.tags,
                               [&](const std::string& tag) { return tag.starts_with(other); }))
        dispatch.excludes.push_back(other);
    }
    Result<GrammarIr> ir = ReadEbnf(dispatch.Grammar(), {});
    ASSERT_TRUE(ir.ok()) << dispatch.Grammar() << ir.error().ToString();
    CfgReference reference(*ir);
    for (const std::string& one : texts) {
      EXPECT_EQ(reference.Accepts(one), dispatch.Accepts(one)) << dispatch.Grammar() << one;
      accepted += dispatch.Accepts(one) ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 2000);
}

// Bug: each tag was a regex that knew all tags, and all of them ran side by side: with 699 tags no
// answer came within 12 seconds.
TEST(TagDispatchTest, ManyTagsCostWhatTheirLengthSays) {
  const auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  ASSERT_TRUE(vocabulary.ok());
  const auto bytes = [&](int n) {
    Dice random(3);
    std::string grammar = "root ::= TagDispatch(", rules;
    for (int i = 0; i < n; ++i) {
      std::string tag = "<";
      for (int k = 0; k < 8; ++k) tag += static_cast<char>('a' + random.Below(26));
      const std::string rule = "r" + std::to_string(i);
      grammar += (i > 0 ? ", (\"" : "(\"") + tag + "\", " + rule + ")";
      rules += rule + " ::= \"" + std::to_string(i) + "\"\n";
    }
    Result<GrammarIr> ir = ReadEbnf(grammar + ")\n" + rules, {});
    EXPECT_TRUE(ir.ok()) << ir.error().ToString();
    auto machine = CfgMachine::Create(*ir, **vocabulary);
    EXPECT_TRUE(machine.ok());
    Machine::Key key = (*machine)->Start();
    for (int i = 0; i < 300 && key != Machine::kDead; ++i)
      key = (*machine)->Step(key, static_cast<uint8_t>('a' + random.Below(26)));
    return (*machine)->MemoryBytes();
  };
  const size_t some = bytes(200), twice = bytes(400);
  EXPECT_LT(twice, 5 * some / 2) << some;
  EXPECT_LT(twice, size_t{16} << 20);
}

// Each free text of its own is one more automaton that runs next to the others.
TEST(TagDispatchTest, TagsThatReachIntoEachOtherInTooManyWaysAreRefused) {
  std::string grammar = "root ::= TagDispatch(";
  for (int i = 0; i < 699; ++i) {
    const std::string k = std::to_string(i);
    grammar += std::string(i > 0 ? ", " : "") + "(\"" + k + "x" + k + "\", r)";
  }
  const Result<GrammarIr> ir = ReadEbnf(grammar + ")\nr ::= \"x\"\n", {});
  ASSERT_FALSE(ir.ok());
  EXPECT_EQ(ir.error().code, ErrorCode::kLimit);
  EXPECT_NE(ir.error().message.find(" ways, more than 128"), std::string::npos)
      << ir.error().message;
  EXPECT_EQ(ir.error().place, "1:10");
}

TEST(StopReachTest, WhatReachesIntoAText) {
  const std::vector<std::u32string> stops = {U"ab", U"xa", U"yxa", U"bb", U"abcb", U"cxab"};
  const StopReach reach(stops);
  using Texts = std::vector<std::u32string>;
  EXPECT_EQ(reach.Beginnings(reach.IntoText(U"ab"), 100), (Texts{U"x", U"yx"}));
  EXPECT_EQ(reach.Beginnings(reach.IntoText(U"ab"), 2), std::nullopt);
  EXPECT_EQ(reach.Beginnings(reach.IntoText(U"bb"), 100), (Texts{U"a", U"abc", U"b", U"cxa"}));
  EXPECT_FALSE(reach.IntoText(U"xa").never);
  EXPECT_TRUE(reach.IntoText(U"abcb").never);
  EXPECT_TRUE(reach.IntoText(U"cxab").never);
  EXPECT_FALSE(reach.IntoText(U"yxa").never);
  EXPECT_EQ(reach.IntoText(U"yxa").nodes, std::vector<uint32_t>{});
}

}  // namespace
}  // namespace pawl
