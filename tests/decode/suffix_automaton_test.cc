// The suffix automaton against all substrings of small texts, its invariants on larger ones, and
// its memory.
#include "src/decode/draft/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace pawl {
namespace {

using Tokens = std::vector<TokenId>;

bool Ends(const Tokens& text, const Tokens& piece, size_t end) {
  return piece.size() <= end &&
         std::equal(piece.begin(), piece.end(),
                    text.begin() + static_cast<ptrdiff_t>(end - piece.size()));
}

TEST(SuffixAutomatonTest, FollowsEverySubstring) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int alphabet = 1 + static_cast<int>(random() % 4);
    const size_t size = random() % 40;
    Tokens text;
    SuffixAutomaton automaton;
    for (size_t i = 0; i < size; ++i) {
      text.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(alphabet)));
      automaton.Append(text.back());
      ASSERT_EQ(automaton.Check(), "") << "round " << round << ", token " << i;
      // The longest end that stands before, by the slow method.
      size_t longest = 0;
      for (size_t n = 1; n <= i; ++n) {
        const Tokens piece(text.end() - static_cast<ptrdiff_t>(n), text.end());
        for (size_t end = n; end <= i; ++end) {
          if (Ends(text, piece, end)) longest = n;
        }
      }
      ASSERT_EQ(automaton.Longest().length, longest);
    }
    // Any tokens read: the match is the longest end that the text has, and what may follow is what
    // does.
    SuffixAutomaton::Match at;
    Tokens read;
    for (int i = 0; i < 60; ++i) {
      read.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(alphabet + 1)));
      at = automaton.Next(at, read.back());
      size_t longest = 0;
      std::set<TokenId> after;
      for (size_t n = 1; n <= read.size(); ++n) {
        const Tokens piece(read.end() - static_cast<ptrdiff_t>(n), read.end());
        for (size_t end = n; end <= text.size(); ++end) {
          if (Ends(text, piece, end)) longest = n;
        }
      }
      ASSERT_EQ(at.length, longest);
      const Tokens piece(read.end() - static_cast<ptrdiff_t>(longest), read.end());
      for (size_t end = longest; end < text.size(); ++end) {
        if (Ends(text, piece, end)) after.insert(text[end]);
      }
      std::set<TokenId> listed;
      automaton.ForEachNext(at.state, [&](TokenId token, uint32_t count) {
        EXPECT_GT(count, 0u);
        EXPECT_TRUE(listed.insert(token).second);
        return true;
      });
      ASSERT_EQ(listed, after);
    }
  }
}

// A text like records: keys that repeat, values that sometimes do.
Tokens Records(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Tokens text;
  while (text.size() < size) {
    const auto kind = static_cast<TokenId>(random() % 50);
    for (TokenId key = 0; key < 8; ++key) {
      text.push_back(1000 + kind * 8 + key);
      text.push_back(1);
      const auto words = random() % 6;
      for (unsigned w = 0; w < words; ++w) {
        const unsigned r = static_cast<unsigned>(random());
        text.push_back(static_cast<TokenId>(2000 + (r % 3 == 0 ? r % 30000 : r % 300)));
      }
      text.push_back(2);
    }
  }
  text.resize(size);
  return text;
}

TEST(SuffixAutomatonTest, TakesUpToAHundredBytesAToken) {
  SuffixAutomaton automaton;
  const Tokens text = Records(300'000, 3);
  int64_t most = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    automaton.Append(text[i]);
    // Just after it grew it is largest.
    if (i > 20'000 && i % 1000 == 0) {
      most = std::max(most, automaton.bytes() * 1000 / static_cast<int64_t>(i));
    }
  }
  EXPECT_LE(most, 100'000);
  EXPECT_EQ(automaton.Check(), "");
}

TEST(SuffixAutomatonTest, OneTokenOverAndOver) {
  SuffixAutomaton automaton;
  for (int i = 0; i < 5000; ++i) automaton.Append(7);
  EXPECT_EQ(automaton.Check(), "");
  EXPECT_EQ(automaton.Longest().length, 4999u);
}

}  // namespace
}  // namespace pawl
