// The laws of the four resampling methods.
#include "src/decode/sampling/resampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "src/decode/sampling/step_law.h"

namespace pawl {
namespace {

constexpr Resampling kMethods[] = {Resampling::kStratified, Resampling::kSystematic,
                                   Resampling::kMultinomial, Resampling::kResidual};

TEST(ResamplingTest, LengthRangeOrderAndZeros) {
  std::mt19937 random(1);
  for (int n = 0; n < 400; ++n) {
    const size_t size = 1 + random() % 12;
    std::vector<double> logs(size);
    for (double& l : logs) {
      l = random() % 3 == 0 ? kNoMass : std::normal_distribution<double>(-800, 5)(random);
    }
    logs[random() % size] = -800;
    const std::vector<double> weights = Normalised(logs);
    const int count = 1 + static_cast<int>(random() % 15);
    for (const Resampling method : kMethods) {
      const std::vector<int> chosen =
          Resample(weights, count, method, Noise(2, static_cast<uint64_t>(n)));
      ASSERT_EQ(chosen.size(), static_cast<size_t>(count));
      EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
      for (const int i : chosen) {
        ASSERT_GE(i, 0);
        ASSERT_LT(i, static_cast<int>(size));
        EXPECT_GT(weights[static_cast<size_t>(i)], 0);
      }
      for (size_t i = 0; i < size; ++i) {
        const double expected = weights[i] * count;
        const auto got = static_cast<double>(std::count(chosen.begin(), chosen.end(), i));
        if (method == Resampling::kSystematic) {
          EXPECT_LT(std::abs(got - expected), 1 + 1e-9);
        }
        if (method == Resampling::kStratified) {
          EXPECT_LT(std::abs(got - expected), 2 + 1e-9);
        }
        if (method == Resampling::kResidual) {
          EXPECT_GE(got, std::floor(expected));
        }
      }
    }
  }
}

TEST(ResamplingTest, ExpectedCounts) {
  const std::vector<double> weights = {0.05, 0, 0.47, 0.2, 0.28};
  constexpr int kRuns = 20000, kPlaces = 5;
  for (const Resampling method : kMethods) {
    std::vector<double> counts(weights.size());
    for (uint64_t n = 0; n < kRuns; ++n) {
      for (const int i : Resample(weights, kPlaces, method, Noise(3, n))) {
        ++counts[static_cast<size_t>(i)];
      }
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(counts[i] / kRuns, weights[i] * kPlaces, 0.04);
    }
  }
}

TEST(ResamplingTest, OneParticleHasEverything) {
  const std::vector<double> weights = {0, 0, 1, 0};
  for (const Resampling method : kMethods) {
    EXPECT_EQ(Resample(weights, 4, method, Noise(1, 1)), (std::vector<int>{2, 2, 2, 2}));
  }
}

TEST(ResamplingTest, EffectiveSize) {
  EXPECT_NEAR(EffectiveSize(std::vector<double>{-5, -5, -5, -5}), 4, 1e-12);
  EXPECT_NEAR(EffectiveSize(std::vector<double>{-5, kNoMass, kNoMass}), 1, 1e-12);
  EXPECT_EQ(EffectiveSize(std::vector<double>{kNoMass, kNoMass}), 0);
}

TEST(ResamplingTest, PlacesAreKept) {
  EXPECT_EQ(KeepPlaces(std::vector<int>{1, 1, 1, 3}), (std::vector<int>{1, 1, 1, 3}));
  EXPECT_EQ(KeepPlaces(std::vector<int>{0, 2, 2, 3}), (std::vector<int>{0, 2, 2, 3}));
  EXPECT_EQ(KeepPlaces(std::vector<int>{2, 2, 3, 3}), (std::vector<int>{2, 3, 2, 3}));
}

}  // namespace
}  // namespace pawl
