// One table of cases for every kernel variant, against double precision: conversions and what works
// element by element. Outputs and scratch are poisoned with NaN, and guards around outputs must
// survive. Two variants must agree to the bit. Products and attention have files of their own.
#include "kernels/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/kernels/kernels_test_util.h"

namespace pawl {
namespace {

// ---- Conversion ----

TEST(KernelsTest, ToFloatIsExactForEveryHalf) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const KernelSet* kernels : Variants()) {
    for (const int64_t n : {65536, 65535, 3}) {
      Output half(static_cast<size_t>(n)), brain(static_cast<size_t>(n));
      kernels->to_float(all.data(), WeightType::kF16, n, half.data());
      kernels->to_float(all.data(), WeightType::kBf16, n, brain.data());
      EXPECT_TRUE(half.GuardsIntact() && brain.GuardsIntact());
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        uint32_t bits;
        std::memcpy(&bits, &brain[i], sizeof bits);
        ASSERT_EQ(bits, static_cast<uint32_t>(i << 16)) << kernels->name;
        if ((i >> 10 & 31) == 31) {
          ASSERT_EQ(std::isnan(half[i]), (i & 1023) != 0) << kernels->name << " " << i;
          ASSERT_EQ(std::isinf(half[i]), (i & 1023) == 0) << kernels->name << " " << i;
        } else {
          ASSERT_EQ(half[i], HalfToDouble(all[i])) << kernels->name << " " << i;
        }
      }
    }
  }
}

// ---- Element-wise ----

TEST(KernelsTest, RmsNorm) {
  Random random(3);
  for (const size_t n : {1, 5, 16, 31, 64, 100, 576, 4099}) {
    for (const float spread : {1e-4f, 1.0f, 1e4f}) {
      const std::vector<float> x = Normal(random, n, spread), weight = Normal(random, n);
      double squares = 0;
      for (const float v : x) squares += double{v} * v;
      std::vector<double> expected(n);
      for (size_t i = 0; i < n; ++i) {
        expected[i] = x[i] / std::sqrt(squares / static_cast<double>(n) + 1e-5f) * weight[i];
      }
      std::vector<float> first;
      for (const KernelSet* kernels : Variants()) {
        Output y(n);
        kernels->rmsnorm(x.data(), weight.data(), 1e-5f, static_cast<int64_t>(n), y.data());
        EXPECT_LT(RelativeError(y.values(), expected), 1e-6) << kernels->name << " " << n;
        EXPECT_TRUE(y.GuardsIntact());
        Output in_place(n);
        std::copy(x.begin(), x.end(), in_place.data());
        kernels->rmsnorm(in_place.data(), weight.data(), 1e-5f, static_cast<int64_t>(n),
                         in_place.data());
        if (first.empty()) first = y.values();
        EXPECT_EQ(y.values(), first) << kernels->name;
        EXPECT_EQ(in_place.values(), first) << kernels->name;
      }
    }
  }
}

TEST(KernelsTest, Rope) {
  Random random(4);
  for (const int head_dim : {2, 6, 16, 24, 32, 64, 80, 128, 130}) {
    const int heads = 3;
    const auto half = static_cast<size_t>(head_dim) / 2;
    const std::vector<float> x = Normal(random, static_cast<size_t>(heads * head_dim));
    const std::vector<float> angles = Normal(random, half, 3.0f);
    std::vector<float> cos_sin(2 * half);
    for (size_t i = 0; i < half; ++i) {
      cos_sin[i] = std::cos(angles[i]);
      cos_sin[half + i] = std::sin(angles[i]);
    }
    std::vector<double> expected(x.size());
    for (size_t h = 0; h < heads; ++h) {
      for (size_t i = 0; i < half; ++i) {
        const size_t low = h * 2 * half + i, high = low + half;
        const double c = cos_sin[i], s = cos_sin[half + i];
        expected[low] = x[low] * c - x[high] * s;
        expected[high] = x[high] * c + x[low] * s;
      }
    }
    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      Output y(x.size());
      std::copy(x.begin(), x.end(), y.data());
      kernels->rope(y.data(), cos_sin.data(), heads, head_dim);
      EXPECT_LT(RelativeError(y.values(), expected), 1e-6) << kernels->name << " " << head_dim;
      EXPECT_TRUE(y.GuardsIntact());
      if (first.empty()) first = y.values();
      EXPECT_EQ(y.values(), first) << kernels->name;
    }
  }
}

TEST(KernelsTest, SiluMul) {
  Random random(5);
  for (const size_t n : {1, 15, 16, 17, 96, 1000}) {
    std::vector<float> gate = Normal(random, n, 6.0f);
    const std::vector<float> up = Normal(random, n);
    const float extremes[] = {0.0f, 87.0f, -87.0f, 89.0f, -89.0f, 1e30f, -1e30f, 1e-30f};
    for (size_t i = 0; i < std::min(n, std::size(extremes)); ++i) gate[i] = extremes[i];
    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      Output y(n);
      kernels->silu_mul(gate.data(), up.data(), static_cast<int64_t>(n), y.data());
      for (size_t i = 0; i < n; ++i) {
        const double expected = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
        // e^x is clamped at 88, which leaves -1e30 * e^-88 where -1e30 * e^(-1e30) = 0 is exact.
        const double slack = gate[i] < -87.0f ? std::fabs(double{gate[i]}) * 1e-37 : 1e-37;
        ASSERT_NEAR(y[i], expected, std::fabs(expected) * 1e-6 + slack * std::fabs(up[i]))
            << kernels->name << " " << gate[i];
      }
      EXPECT_TRUE(y.GuardsIntact());
      if (first.empty()) first = y.values();
      EXPECT_EQ(y.values(), first) << kernels->name;
      Output in_place(n);
      std::copy(gate.begin(), gate.end(), in_place.data());
      kernels->silu_mul(in_place.data(), up.data(), static_cast<int64_t>(n), in_place.data());
      EXPECT_EQ(in_place.values(), first) << kernels->name;
    }
  }
}

TEST(KernelsTest, GeluMul) {
  Random random(15);
  for (const size_t n : {1, 15, 16, 17, 96, 1000}) {
    std::vector<float> gate = Normal(random, n, 4.0f);
    const std::vector<float> up = Normal(random, n);
    const float extremes[] = {0.0f, 10.0f, -10.0f, 40.0f, -40.0f, 1e30f, 1e-30f, -1e-3f};
    for (size_t i = 0; i < std::min(n, std::size(extremes)); ++i) gate[i] = extremes[i];
    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      Output y(n);
      kernels->gelu_mul(gate.data(), up.data(), static_cast<int64_t>(n), y.data());
      for (size_t i = 0; i < n; ++i) {
        const double g = gate[i];
        // (1 + tanh u) / 2, written so that it does not cancel.
        const double u = 0.7978845608028654 * (g + 0.044715 * g * g * g);
        const double expected = g / (1.0 + std::exp(-2.0 * u)) * up[i];
        ASSERT_NEAR(y[i], expected,
                    std::fabs(expected) * 1e-6 * std::max(1.0, std::fabs(u)) +
                        1e-37 * std::fabs(up[i]) * std::max(1.0, std::fabs(g)))
            << kernels->name << " " << gate[i];
      }
      EXPECT_TRUE(y.GuardsIntact());
      if (first.empty()) first = y.values();
      EXPECT_EQ(y.values(), first) << kernels->name;
      Output in_place(n);
      std::copy(gate.begin(), gate.end(), in_place.data());
      kernels->gelu_mul(in_place.data(), up.data(), static_cast<int64_t>(n), in_place.data());
      EXPECT_EQ(in_place.values(), first) << kernels->name;
    }
  }
}

TEST(KernelsTest, SoftCap) {
  Random random(16);
  for (const size_t n : {1, 15, 16, 17, 96, 1000}) {
    for (const float cap : {1.0f, 30.0f}) {
      std::vector<float> x = Normal(random, n, 40.0f);
      const float extremes[] = {0.0f, 1e-30f, -1e-3f, 1e30f, -1e30f, 0.3f, -600.0f};
      for (size_t i = 0; i < std::min(n, std::size(extremes)); ++i) x[i] = extremes[i];
      std::vector<float> first;
      for (const KernelSet* kernels : Variants()) {
        Output y(n);
        std::copy(x.begin(), x.end(), y.data());
        kernels->soft_cap(y.data(), cap, static_cast<int64_t>(n));
        for (size_t i = 0; i < n; ++i) {
          const double expected = cap * std::tanh(double{x[i]} / cap);
          ASSERT_NEAR(y[i], expected, std::fabs(expected) * 1e-6) << kernels->name << " " << x[i];
        }
        EXPECT_TRUE(y.GuardsIntact());
        if (first.empty()) first = y.values();
        EXPECT_EQ(y.values(), first) << kernels->name;
      }
      x[n / 2] = kNan;
      for (const KernelSet* kernels : Variants()) {
        std::vector<float> y = x;
        kernels->soft_cap(y.data(), cap, static_cast<int64_t>(n));
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y[i]), i == n / 2) << kernels->name;
      }
    }
  }
}

TEST(KernelsTest, NanAndInfinityAreSeenAndKept) {
  for (const KernelSet* kernels : Variants()) {
    for (const size_t n : {1, 16, 17, 40}) {
      for (size_t bad = 0; bad < n; ++bad) {
        for (const float value : {kNan, std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity()}) {
          std::vector<float> x(n, -3e38f);
          EXPECT_TRUE(kernels->all_finite(x.data(), static_cast<int64_t>(n))) << kernels->name;
          x[bad] = value;
          EXPECT_FALSE(kernels->all_finite(x.data(), static_cast<int64_t>(n))) << kernels->name;
        }
        std::vector<float> gate(n, 1.0f), up(n, 1.0f);
        gate[bad] = kNan;
        kernels->silu_mul(gate.data(), up.data(), static_cast<int64_t>(n), up.data());
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(up[i]), i == bad) << kernels->name;
      }
    }
  }
}

TEST(KernelsTest, AutoIsTheWidestThatThisProcessorHas) {
  std::vector<const KernelSet*> exact = Variants();
  while (Rounds(*exact.back())) exact.pop_back();
  EXPECT_EQ(FindKernels(KernelVariant::kAuto), exact.back());
  EXPECT_EQ(FindKernels(KernelVariant::kPortable), Variants().front());
  // scripts/test_arm.sh reads the name on several processors.
  std::printf("chosen kernels: %s\n", FindKernels(KernelVariant::kAuto)->name);
}

}  // namespace
}  // namespace pawl
