// Matrix products with weights of floats: one table of cases for every kernel variant, against
// double precision, and rows that do not depend on their neighbours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "tests/kernels/kernels_test_util.h"

namespace pawl {
namespace {

// Sums of which some variants make several parts.
const MatMulCase kLongCases[] = {{9, 2049, 1, true, true, false},
                                 {11, 4100, 3, true, false, false},
                                 {6, 5000, 21, true, true, true}};

TEST(KernelsTest, MatMul) {
  unsigned seed = 100;
  std::vector<MatMulCase> cases(std::begin(kMatMulCases), std::end(kMatMulCases));
  cases.insert(cases.end(), std::begin(kLongCases), std::end(kLongCases));
  for (const WeightType type : {WeightType::kF32, WeightType::kBf16, WeightType::kF16}) {
    for (const MatMulCase& c : cases) {
      const auto outputs = static_cast<size_t>(c.outputs), inputs = static_cast<size_t>(c.inputs);
      const auto rows = static_cast<size_t>(c.rows);
      Random random(++seed);  // its own, so that no case depends on what the others draw
      const Weights w = MakeWeights(random, type, outputs * inputs);
      const size_t x_stride = inputs + random() % 5, y_stride = outputs + random() % 5;
      const std::vector<float> x = Normal(random, rows * x_stride);
      const std::vector<float> bias = Normal(random, outputs);
      const std::vector<float> before = Normal(random, rows * y_stride);
      std::vector<int32_t> places(rows);
      for (size_t r = 0; r < rows; ++r) places[r] = static_cast<int32_t>(r);
      if (c.scattered) std::shuffle(places.begin(), places.end(), random);

      std::vector<double> expected(rows * outputs);
      double magnitude = 0;  // of the terms, which may cancel in a sum
      for (size_t r = 0; r < rows; ++r) {
        for (size_t o = 0; o < outputs; ++o) {
          double sum = c.bias ? bias[o] : 0.0;
          for (size_t i = 0; i < inputs; ++i) {
            const double term = w.exact[o * inputs + i] * x[r * x_stride + i];
            sum += term;
            magnitude += term * term;
          }
          const auto place = static_cast<size_t>(places[r]);
          if (c.add) sum += before[place * y_stride + o];
          expected[place * outputs + o] = sum;
        }
      }
      std::vector<float> first;
      const unsigned cuts_seed = random();
      for (const KernelSet* kernels : Variants()) {
        Random cuts(cuts_seed);
        Output y(rows * y_stride);
        if (c.add) {
          for (size_t r = 0; r < rows; ++r) {
            for (size_t o = 0; o < outputs; ++o) y[r * y_stride + o] = before[r * y_stride + o];
          }
        }
        MatMulArgs args;
        args.w = {w.data(), type, c.outputs, c.inputs};
        args.bias = c.bias ? bias.data() : nullptr;
        const std::vector<float> packed =
            Packed(*kernels, type, x, static_cast<int64_t>(x_stride), c.rows, c.inputs);
        args.x = packed.data();
        args.rows = c.rows;
        args.y = y.data();
        args.y_stride = static_cast<int64_t>(y_stride);
        args.y_rows = c.scattered ? places.data() : nullptr;
        args.add = c.add;
        // Cut at random: the same bits whatever the ranges.
        for (int64_t begin = 0; begin < c.outputs;) {
          const int64_t end =
              std::min<int64_t>(c.outputs, begin + 1 + static_cast<int64_t>(cuts() % 20));
          kernels->matmul(args, begin, end);
          begin = end;
        }
        std::vector<float> got;
        for (size_t r = 0; r < rows; ++r) {
          for (size_t o = 0; o < outputs; ++o) got.push_back(y[r * y_stride + o]);
          for (size_t o = outputs; o < y_stride; ++o) EXPECT_TRUE(std::isnan(y[r * y_stride + o]));
        }
        const std::string label = std::string(kernels->name) + " " + Name(type) + " " +
                                  std::to_string(c.outputs) + "x" + std::to_string(c.inputs) + " " +
                                  std::to_string(c.rows) + " rows";
        double error = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          error += (got[i] - expected[i]) * (got[i] - expected[i]);
        }
        const bool split = SplitsInputs(*kernels, type);
        EXPECT_LT(std::sqrt(error / magnitude), ProductBound(*kernels, type, c.inputs)) << label;
        EXPECT_TRUE(y.GuardsIntact()) << label;
        if (first.empty() || split) first = got;
        EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * sizeof(float)), 0) << label;
      }
    }
  }
}

// The nearest of the numbers with 8 bits, ties to even.
double NearestBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
  float rounded;
  std::memcpy(&rounded, &bits, sizeof rounded);
  return rounded;
}

// Those that round inputs do it once, to the nearest: what is left are roundings of sums.
TEST(KernelsTest, RoundedInputsAreTheNearest) {
  std::vector<const KernelSet*> variants = Variants();
  std::erase_if(variants, [](const KernelSet* kernels) { return !Rounds(*kernels); });
  if (variants.empty()) GTEST_SKIP() << "this processor lacks the instructions of those that round";
  for (const KernelSet* kernels : variants) {
    Random random(13);  // the same cases for each
    for (const int rows : {1, 2, 7, 16, 35}) {
      for (const int64_t inputs : {31, 192, 4196}) {
        constexpr int64_t kOutputs = 21;
        const auto n = static_cast<size_t>(inputs);
        const Weights w = MakeWeights(random, WeightType::kBf16, kOutputs * n);
        std::vector<float> x = Normal(random, static_cast<size_t>(rows) * n);
        x[0] = 1.00390625f;  // in the middle between two
        const std::vector<float> packed =
            Packed(*kernels, WeightType::kBf16, x, inputs, rows, inputs);
        std::vector<float> y(static_cast<size_t>(rows * kOutputs), kNan);
        MatMulArgs args;
        args.w = {w.data(), WeightType::kBf16, kOutputs, inputs};
        args.x = packed.data();
        args.rows = rows;
        args.y = y.data();
        args.y_stride = kOutputs;
        kernels->matmul(args, 0, kOutputs);
        double error = 0, magnitude = 0;
        for (size_t i = 0; i < y.size(); ++i) {
          double sum = 0;
          for (size_t k = 0; k < n; ++k) {
            const double term =
                w.exact[i % kOutputs * n + k] * NearestBf16(x[i / kOutputs * n + k]);
            sum += term;
            magnitude += term * term;
          }
          error += (y[i] - sum) * (y[i] - sum);
        }
        EXPECT_LT(std::sqrt(error / magnitude), inputs <= 1024 ? 2e-7 : 5e-7)
            << kernels->name << " " << rows << " rows, " << inputs << " inputs";
      }
    }
  }
}

TEST(KernelsTest, MatMulRowsAreIndependent) {
  Random random(2);
  for (const int64_t inputs : {90, 256, 2100}) {
    const auto n = static_cast<size_t>(inputs);
    const Weights w = MakeWeights(random, WeightType::kBf16, 50 * n);
    const std::vector<float> x = Normal(random, 40 * n);
    for (const KernelSet* kernels : Variants()) {
      std::vector<float> alone(40 * 50);
      MatMulArgs args;
      args.w = {w.data(), WeightType::kBf16, 50, inputs};
      args.y_stride = 50;
      for (size_t r = 0; r < 40; ++r) {
        const std::vector<float> one(x.begin() + static_cast<long>(r * n), x.end());
        const std::vector<float> packed =
            Packed(*kernels, WeightType::kBf16, one, inputs, 1, inputs);
        args.x = packed.data();
        args.y = alone.data() + r * 50;
        args.rows = 1;
        kernels->matmul(args, 0, 50);
      }
      for (int rows = 2; rows <= 40; ++rows) {
        std::vector<float> together(static_cast<size_t>(rows) * 50, kNan);
        const std::vector<float> packed =
            Packed(*kernels, WeightType::kBf16, x, inputs, rows, inputs);
        args.x = packed.data();
        args.y = together.data();
        args.rows = rows;
        kernels->matmul(args, 0, 50);
        ASSERT_EQ(std::memcmp(alone.data(), together.data(), together.size() * sizeof(float)), 0)
            << kernels->name << " " << rows;
      }
    }
  }
}

}  // namespace
}  // namespace pawl
