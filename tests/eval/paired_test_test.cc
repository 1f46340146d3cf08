// The paired test against all signs of the differences, one by one.
#include "src/eval/paired_test.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace pawl::eval {
namespace {

double ByAllSigns(const std::vector<int64_t>& differences) {
  int64_t seen = 0;
  for (const int64_t d : differences) seen += d;
  int64_t as_far = 0;
  const uint64_t all = uint64_t{1} << differences.size();
  for (uint64_t signs = 0; signs < all; ++signs) {
    int64_t sum = 0;
    for (size_t i = 0; i < differences.size(); ++i)
      sum += (signs >> i & 1) != 0 ? differences[i] : -differences[i];
    as_far += std::llabs(sum) >= std::llabs(seen);
  }
  return static_cast<double>(as_far) / static_cast<double>(all);
}

TEST(PairedTestTest, IsThatOfAllSigns) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const size_t texts = 1 + random() % 12;
    std::vector<int64_t> a(texts), b(texts), differences(texts);
    for (size_t i = 0; i < texts; ++i) {
      a[i] = static_cast<int64_t>(random() % 6);
      b[i] = static_cast<int64_t>(random() % 6);
      differences[i] = b[i] - a[i];
    }
    const PairedResult result = PairedTest(a, b);
    EXPECT_NEAR(result.p, ByAllSigns(differences), 1e-12);
    EXPECT_EQ(result.better_a + result.better_b + result.same, static_cast<int64_t>(texts));
  }
}

TEST(PairedTestTest, EqualSettingsDifferByNothing) {
  const std::vector<int64_t> a = {3, 4, 0};
  const PairedResult result = PairedTest(a, a);
  EXPECT_EQ(result.p, 1);
  EXPECT_EQ(result.same, 3);
}

TEST(PairedTestTest, ALargeDifferenceIsNoChance) {
  const std::vector<int64_t> a(200, 2), b(200, 3);
  EXPECT_LT(PairedTest(a, b).p, 1e-50);
  EXPECT_EQ(PairedTest(a, b).difference, 200);
}

}  // namespace
}  // namespace pawl::eval
