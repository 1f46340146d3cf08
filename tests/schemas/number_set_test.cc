// Finite sets of numbers against the definition: a text is accepted when its value is in the set,
// and its beginnings are live.
#include "schemas/number/number_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace pawl {
namespace {

bool IsNumber(const std::string& text) {
  size_t i = text.starts_with("-") ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - begin;
  };
  const bool zero = i < text.size() && text[i] == '0';
  const size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (i == text.size()) return true;
  if (text[i++] != '.') return false;
  return digits() > 0 && i == text.size();
}

TEST(NumberSetTest, AcceptsTheValuesAndTellsWhichOne) {
  std::mt19937 random(7);
  const std::vector<std::string> pool = {"0",  "5",    "50",  "0.5",  "0.05", "0.50", "2.5",
                                         "25", "2.51", "-5",  "-0.5", "2.05", "1",    "1.1",
                                         "10", "1.01", "100", "-1.1", "2.501"};
  for (int round = 0; round < 300; ++round) {
    std::vector<Decimal> values;
    for (const std::string& text : pool) {
      if (random() % 3 == 0) values.push_back(*Decimal::Parse(text));
    }
    const auto set = NumberSet::Create(values);
    ASSERT_TRUE(set.ok());
    for (int i = 0; i < 200; ++i) {
      std::string text = pool[random() % pool.size()];
      if (text.find('.') == std::string::npos && random() % 2 == 0) text += '.';
      if (text.find('.') != std::string::npos) text.append(random() % 4, '0');
      if (random() % 8 == 0) text += "0123456789.-"[random() % 12];
      uint32_t state = set->Start();
      for (const char c : text) state = set->Step(state, c);
      const bool accepted = state != NumberSet::kDead && set->Accepting(state);
      bool wanted = false;
      size_t index = 0;
      for (size_t v = 0; v < values.size() && IsNumber(text); ++v) {
        if (values[v] != *Decimal::Parse(text)) continue;
        wanted = true;
        index = v;
        break;
      }
      ASSERT_EQ(accepted, wanted) << text;
      if (accepted) {
        EXPECT_TRUE(values[set->Index(state)] == values[index]) << text;
      } else if (state != NumberSet::kDead) {
        const std::string end = set->ShortestAccepting(state);
        for (const char c : end) state = set->Step(state, c);
        EXPECT_TRUE(set->Accepting(state)) << text << " " << end;
      }
    }
  }
}

TEST(ExponentSetTest, AcceptsEverySpellingOfTheValues) {
  std::mt19937 random(11);
  const std::vector<std::string> pool = {
      "0", "5",   "50", "0.5",  "0.05", "2.5",  "-25", "2.51", "-5", "-0.5", "105", "1005",
      "1", "1.1", "10", "1.01", "1e30", "3e-9", "100", "-1.1", "25", "2501", "1e5"};
  const std::vector<std::string> exponents = {"",    "e0",  "E1",   "e+1", "e-1",  "e2",
                                              "e-2", "e00", "e-02", "e30", "e-30", "e+05"};
  int accepted_texts = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<Decimal> values;
    for (const std::string& text : pool) {
      if (random() % 4 == 0) values.push_back(*Decimal::Parse(text));
    }
    ExponentSet set(values);
    for (int i = 0; i < 150; ++i) {
      std::string text = random() % 6 == 0 ? "-" : "";
      const std::string digits = std::to_string(random() % 4 == 0 ? 0 : random() % 3000);
      text += digits;
      if (random() % 2 == 0)
        text += "." + std::to_string(random() % 60) + (random() % 2 ? "0" : "");
      if (random() % 5 == 0) text = pool[random() % pool.size()];
      if (text.find('e') == std::string::npos) text += exponents[random() % exponents.size()];
      const auto value = Decimal::Parse(text);
      ASSERT_TRUE(value.ok()) << text;
      const bool wanted =
          std::any_of(values.begin(), values.end(), [&](const Decimal& v) { return v == *value; });
      accepted_texts += wanted ? 1 : 0;
      uint32_t state = set.Start();
      std::string read;
      for (const char c : text) {
        read += c;
        state = set.Step(state, c);
        if (state == ExponentSet::kDead) break;
        uint32_t end = state;
        const std::string rest = set.ShortestAccepting(state);
        for (const char r : rest) end = set.Step(end, r);
        ASSERT_TRUE(set.Accepting(end)) << read << " then " << rest;
      }
      ASSERT_EQ(state != ExponentSet::kDead && set.Accepting(state), wanted) << text;
    }
  }
  EXPECT_GT(accepted_texts, 300);
}

}  // namespace
}  // namespace pawl
