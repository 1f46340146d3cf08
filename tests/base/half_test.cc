// Half-precision numbers against all of them.
#include "src/base/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace pawl {
namespace {

double Value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

TEST(HalfTest, EveryHalfIsItself) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if ((half & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isnan(value), (half & 1023) != 0);
      EXPECT_EQ(std::isinf(value), (half & 1023) == 0);
      const uint16_t back = FloatToHalf(value);
      EXPECT_TRUE(std::isnan(value) ? std::isnan(HalfToFloat(back)) : back == half);
    } else {
      EXPECT_EQ(value, Value(half));
      EXPECT_EQ(FloatToHalf(value), half);
    }
  }
}

TEST(HalfTest, FloatsGoToTheNearestTiesToEven) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    // Up to the largest half; every third one half way between two.
    const auto below = static_cast<uint16_t>(random() % 0x7bff);
    double value = Value(below) + (Value(static_cast<uint16_t>(below + 1)) - Value(below)) *
                                      (static_cast<double>(random() % 4096) / 4096.0);
    if (i % 3 == 0) value = (Value(below) + Value(static_cast<uint16_t>(below + 1))) / 2;
    const auto single = static_cast<float>(value);
    const double down = single - Value(below);
    const double up = Value(static_cast<uint16_t>(below + 1)) - single;
    const bool above = down > up || (down == up && below % 2 == 1);
    EXPECT_EQ(FloatToHalf(single), below + (above ? 1 : 0)) << single;
    EXPECT_EQ(FloatToHalf(-single), (below + (above ? 1 : 0)) | 0x8000) << single;
  }
  EXPECT_EQ(FloatToHalf(65519.9f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(3e38f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1e-45f), 0);
}

}  // namespace
}  // namespace pawl
