// The law of a step and its order, against sorting everything.
#include "src/decode/sampling/step_law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace pawl {
namespace {

TEST(StepLawTest, LogProbabilitiesAndMass) {
  std::mt19937 random(3);
  for (int n = 0; n < 50; ++n) {
    const size_t width = 1 + random() % 90;
    std::vector<float> logits(width);
    for (float& l : logits) l = std::normal_distribution<float>(0, 6)(random);
    const double temperature = 0.2 + 0.1 * static_cast<double>(random() % 20);
    std::vector<uint32_t> words((width + 31) / 32);
    for (size_t i = 0; i < width; ++i) words[i / 32] |= (random() % 3 == 0 ? 1u : 0u) << i % 32;
    const Mask mask(0, words);
    const int known = static_cast<int>(width - random() % std::min<size_t>(width, 3));
    const Result<StepLaw> law = MakeStepLaw(logits, temperature, &mask, known);
    ASSERT_TRUE(law.ok());
    long double sum = 0, allowed = 0;
    for (size_t i = 0; i < width; ++i)
      sum += std::exp(static_cast<long double>(logits[i]) / temperature);
    size_t at = 0;
    for (TokenId t = 0; t < known; ++t) {
      if (!mask.Allows(t)) continue;
      const long double p =
          std::exp(static_cast<long double>(logits[static_cast<size_t>(t)]) / temperature) / sum;
      allowed += p;
      ASSERT_LT(at, law->allowed.size());
      EXPECT_EQ(law->allowed[at].token, t);
      EXPECT_NEAR(law->allowed[at].log_mass, static_cast<double>(std::log(p)), 1e-9);
      EXPECT_NEAR(law->LogProbability(logits, t), static_cast<double>(std::log(p)), 1e-9);
      ++at;
    }
    EXPECT_EQ(at, law->allowed.size());
    if (at > 0) {
      EXPECT_NEAR(law->log_allowed, static_cast<double>(std::log(allowed)), 1e-9);
    }
    if (at == 0) {
      EXPECT_EQ(law->log_allowed, kNoMass);
    }
  }
}

// What is allowed has a mass of 1e-40: far below what a sum next to 1 keeps.
TEST(StepLawTest, TinyAllowedMass) {
  std::vector<float> logits(1000, 0);
  logits[7] = -92;
  std::vector<uint32_t> words(32);
  words[0] = 1u << 7;
  const Mask mask(0, words);
  const Result<StepLaw> law = MakeStepLaw(logits, 1, &mask, 1000);
  ASSERT_TRUE(law.ok());
  EXPECT_NEAR(law->log_allowed, -92 - std::log(999.0), 1e-9);
}

TEST(StepLawTest, BrokenLogits) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> logits = {0, bad};
    EXPECT_FALSE(MakeStepLaw(logits, 1, nullptr, 2).ok());
  }
  const std::vector<float> nothing = {-inf, -inf};
  EXPECT_FALSE(MakeStepLaw(nothing, 1, nullptr, 2).ok());
  const std::vector<float> some = {-inf, 1, -inf};
  const Result<StepLaw> law = MakeStepLaw(some, 1, nullptr, 3);
  ASSERT_TRUE(law.ok());
  ASSERT_EQ(law->allowed.size(), 1u);
  EXPECT_EQ(law->allowed[0].token, 1);
  EXPECT_NEAR(law->log_allowed, 0, 1e-12);
}

// Whatever the size of the head, the order is that of all keys sorted.
TEST(GumbelOrderTest, HeadAndRestAreOneOrder) {
  std::mt19937 random(4);
  for (int n = 0; n < 100; ++n) {
    std::vector<Candidate> candidates;
    TokenId token = 0;
    const int size = static_cast<int>(random() % 300);
    for (int i = 0; i < size; ++i) {
      token += 1 + static_cast<TokenId>(random() % 5);
      candidates.push_back({token, -std::exponential_distribution<double>(0.1)(random)});
    }
    const Noise noise(n, 8);
    for (uint64_t round = 0; round < 2; ++round) {
      std::vector<std::pair<double, int>> keys;
      for (int i = 0; i < size; ++i) {
        const Candidate& c = candidates[static_cast<size_t>(i)];
        keys.push_back({-(c.log_mass + noise.Gumbel(round, static_cast<uint64_t>(c.token))), i});
      }
      std::sort(keys.begin(), keys.end());
      for (const int head : {1, 3, 16, 1000}) {
        GumbelOrder order(candidates, LogSum(candidates), noise, head);
        for (uint64_t r = 0; r < round; ++r) {
          order.Next();
          order.Restart();
        }
        for (const auto& [key, item] : keys) ASSERT_EQ(order.Next(), item);
        EXPECT_EQ(order.Next(), std::nullopt);
        EXPECT_LE(order.passes(), static_cast<int>(2 * (round + 1)));
      }
    }
  }
}

TEST(GumbelOrderTest, FirstTwoHaveTheLawOfSamplingWithoutReplacement) {
  const std::vector<double> p = {0.5, 0.3, 0.15, 0.05};
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < p.size(); ++i) {
    candidates.push_back({static_cast<TokenId>(3 * i), std::log(p[i])});
  }
  constexpr int kDraws = 40000;
  std::map<std::pair<int, int>, int> counts;
  for (uint64_t n = 0; n < kDraws; ++n) {
    GumbelOrder order(candidates, 0, Noise(77, n), 1);
    const int first = *order.Next();
    ++counts[{first, *order.Next()}];
  }
  double chi = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    for (size_t j = 0; j < p.size(); ++j) {
      if (i == j) continue;
      const double expected = kDraws * p[i] * p[j] / (1 - p[i]);
      const double seen = counts[{static_cast<int>(i), static_cast<int>(j)}];
      chi += (seen - expected) * (seen - expected) / expected;
    }
  }
  EXPECT_LT(chi, 31.3);  // 11 degrees of freedom, 0.1 %
}

}  // namespace
}  // namespace pawl
