// Finite sets of numbers against the definition: a text is accepted when its value is in the set.
#include "grammar/number/number_set.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pawl
