// One table of cases for every kernel variant, against double precision. Outputs and scratch are
// poisoned with NaN, and guards around outputs must survive. Two variants must agree to the bit.
#include "kernels/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/integers.h"

namespace pawl {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kGuard = 19;  // also makes rows start at odd addresses

std::vector<const KernelSet*> Variants() {
  std::vector<const KernelSet*> variants;
  for (const KernelVariant variant :
       {KernelVariant::kPortable, KernelVariant::kAvx2, KernelVariant::kAvx512,
        KernelVariant::kAvx512Vnni, KernelVariant::kAmx, KernelVariant::kAmxBf16,
        KernelVariant::kAvx512Bf16}) {
    if (const KernelSet* kernels = FindKernels(variant)) variants.push_back(kernels);
  }
  return variants;
}

using Random = std::mt19937;

std::vector<float> Normal(Random& random, size_t n, float spread = 1.0f) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

// An output of n floats between guards, all poisoned.
class Output {
 public:
  explicit Output(size_t n) : n_(n), memory_(n + 2 * kGuard, kNan) {}
  float* data() { return memory_.data() + kGuard; }
  float& operator[](size_t i) { return memory_[kGuard + i]; }
  std::vector<float> values() const {
    return {memory_.begin() + kGuard, memory_.begin() + kGuard + static_cast<long>(n_)};
  }
  bool GuardsIntact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (!std::isnan(memory_[i]) || !std::isnan(memory_[memory_.size() - 1 - i])) return false;
    }
    return true;
  }

 private:
  size_t n_;
  std::vector<float> memory_;
};

// ||a - b|| / ||b||, NaN if any value is.
double RelativeError(const std::vector<float>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-300));
}

// Weights as stored, and what they are worth.
struct Weights {
  std::vector<uint16_t> halves;
  std::vector<float> floats;
  std::vector<double> exact;
  const void* data() const {
    return halves.empty() ? static_cast<const void*>(floats.data()) : halves.data();
  }
};

double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

Weights MakeWeights(Random& random, WeightType type, size_t n) {
  Weights weights;
  for (const float value : Normal(random, n)) {
    if (type == WeightType::kF32) {
      weights.floats.push_back(value);
      weights.exact.push_back(value);
    } else if (type == WeightType::kBf16) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      weights.halves.push_back(static_cast<uint16_t>(bits >> 16));
      bits &= 0xffff0000u;
      float rounded;
      std::memcpy(&rounded, &bits, sizeof rounded);
      weights.exact.push_back(rounded);
    } else {
      // Any finite half; large ones would drown the rest, so exponents stay small. Subnormals are
      // among them.
      const auto bits = static_cast<uint16_t>(random() & 0xc3ffu & ~0x4000u) |
                        static_cast<uint16_t>((random() % 17) << 10);
      weights.halves.push_back(static_cast<uint16_t>(bits));
      weights.exact.push_back(HalfToDouble(static_cast<uint16_t>(bits)));
    }
  }
  return weights;
}

const char* Name(WeightType type) {
  return type == WeightType::kF32 ? "fp32" : type == WeightType::kBf16 ? "bf16" : "fp16";
}

// ---- Matrix product ----

// What becomes of inputs beside bf16 weights, relative to them: AMX takes 16 bits of each, |error|
// <= 2^-17 |input|, or 8 bits, |error| <= 2^-8 |input|.
bool Rounds(const KernelSet& kernels) {
  const std::string name = kernels.name;
  return name == "amx-bf16" || name == "avx512-bf16";
}
bool SplitsInputs(const KernelSet& kernels, WeightType type) {
  return type == WeightType::kBf16 && (Rounds(kernels) || std::string(kernels.name) == "amx");
}
double ProductBound(const KernelSet& kernels, WeightType type, int64_t inputs) {
  if (!SplitsInputs(kernels, type)) return inputs <= 1024 ? 2e-7 : 5e-7;
  return Rounds(kernels) ? 4e-3 : 4e-6;
}

std::vector<float> Packed(const KernelSet& kernels, WeightType type, const std::vector<float>& x,
                          int64_t x_stride, int rows, int64_t n) {
  std::vector<float> packed(static_cast<size_t>(PackedFloats(rows, n)), kNan);
  kernels.pack(type, x.data(), x_stride, rows, n, packed.data());
  return packed;
}

struct MatMulCase {
  int64_t outputs, inputs;
  int rows;
  bool bias, add, scattered;
};

const MatMulCase kMatMulCases[] = {
    {1, 1, 1, false, false, false},    {1, 16, 1, false, false, false},
    {7, 15, 1, true, false, false},    {8, 17, 1, false, true, false},
    {33, 64, 1, true, true, false},    {37, 100, 2, false, false, true},
    {16, 48, 3, true, false, false},   {19, 33, 4, false, true, true},
    {12, 129, 5, true, true, true},    {64, 64, 6, false, false, false},
    {31, 257, 7, true, false, true},   {40, 96, 13, false, true, false},
    {5, 1000, 24, true, true, true},   {130, 72, 50, false, false, false},
    {257, 31, 128, false, false, true}};

// Sums of which some variants make several parts.
const MatMulCase kLongCases[] = {{9, 2049, 1, true, true, false},
                                 {11, 4100, 3, true, false, false},
                                 {6, 5000, 21, true, true, true}};

TEST(KernelsTest, MatMul) {
  Random random(1);
  std::vector<MatMulCase> cases(std::begin(kMatMulCases), std::end(kMatMulCases));
  cases.insert(cases.end(), std::begin(kLongCases), std::end(kLongCases));
  for (const WeightType type : {WeightType::kF32, WeightType::kBf16, WeightType::kF16}) {
    for (const MatMulCase& c : cases) {
      const auto outputs = static_cast<size_t>(c.outputs), inputs = static_cast<size_t>(c.inputs);
      const auto rows = static_cast<size_t>(c.rows);
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
      for (const KernelSet* kernels : Variants()) {
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
              std::min<int64_t>(c.outputs, begin + 1 + static_cast<int64_t>(random() % 20));
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
  Random random(13);
  for (const KernelSet* kernels : variants) {
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

// ---- Matrix product of integers ----

// A matrix of any integers and scales, and what the weights are worth. Its memory is of that size
// exactly, for the address sanitizer.
struct IntegerWeights {
  IntegerWeights(Random& random, WeightType type, int shift, bool with_minimums, int64_t rows,
                 int64_t cols) {
    const auto padded = static_cast<size_t>(QuantBlocks(cols) * kQuantBlock);
    m.type = type;
    m.rows = rows;
    m.cols = cols;
    m.group_shift = shift;
    m.groups = (QuantBlocks(cols) * kQuantBlock + (1 << shift) - 1) >> shift;
    data.resize(static_cast<size_t>(QuantBytes(type, rows, cols)));
    const auto groups = static_cast<size_t>(QuantTiles(rows) * kQuantTile * m.groups);
    // Any half with a small exponent; subnormals are among them.
    const auto half = [&] {
      return static_cast<uint16_t>((random() & 0x83ffu) | (random() % 17) << 10);
    };
    for (size_t i = 0; i < groups; ++i) scales.push_back(half());
    for (size_t i = 0; i < groups && with_minimums; ++i) minimums.push_back(half());
    m.data = data.data();
    m.scales = scales.data();
    m.minimums = with_minimums ? minimums.data() : nullptr;
    const int zero = type == WeightType::kI8 ? 128 : with_minimums ? 0 : 8;
    std::vector<uint8_t> row(padded), back(padded);
    for (int64_t r = 0; r < rows; ++r) {
      for (uint8_t& value : row) {
        value = static_cast<uint8_t>(random() & (type == WeightType::kI8 ? 255 : 15));
        if (random() % 8 == 0) value = random() % 2 == 0 ? 0 : type == WeightType::kI8 ? 255 : 15;
      }
      StoreIntegers(type, cols, r, row.data(), data.data());
      LoadIntegers(m, r, back.data());
      EXPECT_EQ(back, row);
      for (int64_t k = 0; k < cols; ++k) {
        const auto g = static_cast<size_t>(GroupIndex(m, r, k >> shift));
        exact.push_back((row[static_cast<size_t>(k)] - zero) * HalfToDouble(scales[g]) +
                        (with_minimums ? HalfToDouble(minimums[g]) : 0.0));
      }
    }
  }
  Matrix m;
  std::vector<uint8_t> data;
  std::vector<uint16_t> scales, minimums;
  std::vector<double> exact;  // [rows][cols]
};

// What products see of a row of inputs: a multiple of max |x| / 127 in each block of 32.
std::vector<double> RoundedInputs(const float* x, size_t n) {
  std::vector<double> rounded;
  for (size_t k = 0; k < n; k += 32) {
    const size_t end = std::min(n, k + 32);
    float largest = 0;
    for (size_t i = k; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float factor = 127.0f / largest;
    for (size_t i = k; i < end; ++i) {
      const double q = largest > 0 ? std::nearbyint(x[i] * factor) : 0.0f;
      rounded.push_back(q * double{largest / 127.0f});
      EXPECT_LE(std::fabs(rounded.back() - x[i]), largest / 254 * 1.00001);
    }
  }
  return rounded;
}

struct IntegerFormat {
  WeightType type;
  int shift;
  bool minimums;
};
constexpr IntegerFormat kIntegerFormats[] = {{WeightType::kI8, 4, false},
                                             {WeightType::kI8, 5, false},
                                             {WeightType::kI4, 5, false},
                                             {WeightType::kI4, 5, true},
                                             {WeightType::kI4, 6, true}};
// Of a product, relative to the norm of its terms: the rounding of normally distributed inputs to 8
// bits, and of sums. A block of 32 has a largest input of 2.1 deviations, 3.3 at the most, so that
// steps of 1/127 of it are off by 0.005 (0.0075) deviations on average.
constexpr double kRoundedInputsBound = 0.012, kSumsBound = 2e-7;

TEST(KernelsTest, MatMulOfIntegers) {
  Random random(12);
  for (const IntegerFormat& f : kIntegerFormats) {
    std::vector<MatMulCase> cases(std::begin(kMatMulCases), std::end(kMatMulCases));
    for (int rows = 1; rows <= 17; ++rows) {
      cases.push_back({20 + rows, 40 + 31 * rows, rows, rows % 2 == 0, rows % 3 == 0, false});
    }
    for (const MatMulCase& c : cases) {
      const auto outputs = static_cast<size_t>(c.outputs), inputs = static_cast<size_t>(c.inputs);
      const auto rows = static_cast<size_t>(c.rows);
      const IntegerWeights w(random, f.type, f.shift, f.minimums, c.outputs, c.inputs);
      const size_t x_stride = inputs + random() % 5, y_stride = outputs + random() % 5;
      const std::vector<float> x = Normal(random, rows * x_stride);
      const std::vector<float> bias = Normal(random, outputs);
      const std::vector<float> before = Normal(random, rows * y_stride);
      std::vector<int32_t> places(rows);
      for (size_t r = 0; r < rows; ++r) places[r] = static_cast<int32_t>(r);
      if (c.scattered) std::shuffle(places.begin(), places.end(), random);

      // With the inputs as they are, and as they are rounded.
      std::vector<double> exact(rows * outputs), rounded(rows * outputs);
      double magnitude = 0;
      for (size_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * x_stride;
        const std::vector<double> inputs_seen = RoundedInputs(row, inputs);
        const auto place = static_cast<size_t>(places[r]);
        for (size_t o = 0; o < outputs; ++o) {
          double sum = c.bias ? bias[o] : 0.0;
          if (c.add) sum += before[place * y_stride + o];
          double seen = sum;
          for (size_t k = 0; k < inputs; ++k) {
            const double weight = w.exact[o * inputs + k];
            sum += weight * row[k];
            seen += weight * inputs_seen[k];
            magnitude += weight * weight * row[k] * row[k];
          }
          exact[place * outputs + o] = sum;
          rounded[place * outputs + o] = seen;
        }
      }
      MatMulArgs args;
      args.w = w.m;
      args.bias = c.bias ? bias.data() : nullptr;
      args.y_stride = static_cast<int64_t>(y_stride);
      args.add = c.add;
      std::vector<float> first;
      for (const KernelSet* kernels : Variants()) {
        const std::string label = std::string(kernels->name) + " " +
                                  std::to_string(static_cast<int>(f.type)) + " " +
                                  std::to_string(f.shift) + " " + std::to_string(c.outputs) + "x" +
                                  std::to_string(c.inputs) + " " + std::to_string(c.rows) + " rows";
        const auto output = [&] {
          Output y(rows * y_stride);
          for (size_t i = 0; i < rows * y_stride && c.add; ++i) {
            if (i % y_stride < outputs) y[i] = before[i];
          }
          return y;
        };
        Output y = output();
        const std::vector<float> packed =
            Packed(*kernels, f.type, x, static_cast<int64_t>(x_stride), c.rows, c.inputs);
        args.x = packed.data();
        args.rows = c.rows;
        args.y = y.data();
        args.y_rows = c.scattered ? places.data() : nullptr;
        for (int64_t begin = 0; begin < c.outputs;) {
          const int64_t end =
              std::min<int64_t>(c.outputs, begin + 1 + static_cast<int64_t>(random() % 40));
          kernels->matmul(args, begin, end);
          begin = end;
        }
        EXPECT_TRUE(y.GuardsIntact()) << label;
        double error = 0, sums_error = 0;
        for (size_t r = 0; r < rows; ++r) {
          for (size_t o = 0; o < y_stride; ++o) {
            const float got = y[r * y_stride + o];
            if (o >= outputs) {
              EXPECT_TRUE(std::isnan(got));
              continue;
            }
            error += std::pow(got - exact[r * outputs + o], 2);
            sums_error += std::pow(got - rounded[r * outputs + o], 2);
          }
        }
        EXPECT_LT(std::sqrt(error / magnitude), kRoundedInputsBound) << label;
        EXPECT_LT(std::sqrt(sums_error / magnitude), kSumsBound) << label;
        const auto same = [&](const std::vector<float>& a, const std::vector<float>& b) {
          return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
        };
        if (first.empty()) first = y.values();
        EXPECT_TRUE(same(y.values(), first)) << label;
        // Each row alone: the same bits.
        Output alone = output();
        for (size_t r = 0; r < rows; ++r) {
          const std::vector<float> row(x.begin() + static_cast<long>(r * x_stride), x.end());
          const std::vector<float> one = Packed(*kernels, f.type, row, c.inputs, 1, c.inputs);
          args.x = one.data();
          args.rows = 1;
          args.y = alone.data();
          args.y_rows = &places[r];
          kernels->matmul(args, 0, c.outputs);
        }
        EXPECT_TRUE(same(alone.values(), first)) << label;
        for (size_t o = 0; o < outputs; o += 7) {
          Output row(inputs);
          kernels->read_row(args.w, static_cast<int64_t>(o), row.data());
          EXPECT_TRUE(row.GuardsIntact()) << label;
          for (size_t k = 0; k < inputs; ++k) {
            ASSERT_EQ(row[k], static_cast<float>(w.exact[o * inputs + k])) << label;
          }
        }
      }
    }
  }
}

// The largest sums that integers can make, which 16-bit sums would not hold.
TEST(KernelsTest, MatMulOfTheLargestIntegers) {
  constexpr int64_t kOutputs = 18, kInputs = 128;
  for (const IntegerFormat& f : kIntegerFormats) {
    for (const uint8_t weight : {0, 255}) {
      for (const float sign : {-1.0f, 1.0f}) {
        Random random(1);
        IntegerWeights w(random, f.type, f.shift, f.minimums, kOutputs, kInputs);
        std::fill(w.data.begin(), w.data.end(), weight);
        std::fill(w.scales.begin(), w.scales.end(), uint16_t{0x3c00});  // 1
        std::fill(w.minimums.begin(), w.minimums.end(), uint16_t{0});
        const int zero = f.type == WeightType::kI8 ? 128 : f.minimums ? 0 : 8;
        const int value = f.type == WeightType::kI8 ? weight : weight & 15;
        const std::vector<float> x(kInputs, sign);
        for (const KernelSet* kernels : Variants()) {
          std::vector<float> y(kOutputs, kNan);
          const std::vector<float> packed = Packed(*kernels, f.type, x, kInputs, 1, kInputs);
          MatMulArgs args;
          args.w = w.m;
          args.x = packed.data();
          args.rows = 1;
          args.y = y.data();
          kernels->matmul(args, 0, kOutputs);
          for (const float got : y) {
            EXPECT_NEAR(got, sign * static_cast<float>(value - zero) * kInputs,
                        1e-6 * kInputs * 128)
                << kernels->name;
          }
        }
      }
    }
  }
}

TEST(KernelsTest, IntegersOfInputsThatAreNotFiniteOrTiny) {
  constexpr int64_t kOutputs = 16, kInputs = 96;
  Random random(14);
  for (const IntegerFormat& f : kIntegerFormats) {
    const IntegerWeights w(random, f.type, f.shift, f.minimums, kOutputs, kInputs);
    for (const float bad :
         {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          0.0f, -0.0f, 1e-30f, 1e-45f, 3e38f}) {
      std::vector<float> x = Normal(random, 3 * kInputs);
      std::fill(x.begin() + kInputs, x.begin() + 2 * kInputs, 0.0f);
      x[kInputs + 40] = bad;
      std::vector<float> first;
      for (const KernelSet* kernels : Variants()) {
        std::vector<float> y(3 * kOutputs, 5.0f);
        const std::vector<float> packed = Packed(*kernels, f.type, x, kInputs, 3, kInputs);
        MatMulArgs args;
        args.w = w.m;
        args.x = packed.data();
        args.rows = 3;
        args.y = y.data();
        args.y_stride = kOutputs;
        kernels->matmul(args, 0, kOutputs);
        for (int64_t o = 0; o < kOutputs; ++o) {
          const auto at = static_cast<size_t>(o);
          EXPECT_TRUE(std::isfinite(y[at]) && std::isfinite(y[at + 2 * kOutputs]));
          const float got = y[at + kOutputs];
          if (!std::isfinite(bad)) {
            EXPECT_TRUE(std::isnan(got)) << kernels->name << " " << bad;
          } else if (bad < 1e38f) {
            const double expected = double{bad} * w.exact[at * kInputs + 40];
            EXPECT_NEAR(got, expected, std::fabs(expected) * 1e-6 + 1e-26) << kernels->name;
          }
        }
        if (first.empty()) first = y;
        EXPECT_EQ(std::memcmp(y.data(), first.data(), y.size() * sizeof(float)), 0)
            << kernels->name << " " << bad;
      }
    }
  }
}

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

// ---- Attention ----

struct AttentionCase {
  int64_t prefix;
  int extra;
  int group, head_dim;
  float spread;  // of the queries: large ones make one position win
  int64_t first = 0;
  float soft_cap = 0;
};

const AttentionCase kAttentionCases[] = {{1, 0, 1, 16, 1},
                                         {0, 1, 1, 16, 1},
                                         {0, 3, 2, 24, 1},
                                         {5, 0, 3, 32, 1},
                                         {15, 2, 4, 64, 1},
                                         {16, 0, 5, 64, 1},
                                         {17, 9, 6, 48, 1},
                                         {64, 0, 7, 128, 1},
                                         {100, 5, 8, 80, 30},
                                         {333, 63, 9, 2, 1},
                                         {1000, 0, 1, 64, 1},
                                         {1000, 17, 2, 100, 100},
                                         {2000, 1, 4, 6, 5},
                                         {31, 31, 12, 160, 1},
                                         // With a first position, and with a soft cap.
                                         {40, 0, 3, 32, 1, 39},
                                         {40, 5, 2, 32, 1, 40},
                                         {100, 7, 5, 48, 1, 33},
                                         {500, 0, 4, 64, 3, 250, 2.0f},
                                         {17, 9, 6, 48, 10, 0, 50.0f},
                                         {31, 2, 1, 16, 100, 3, 1.0f}};

TEST(KernelsTest, Attention) {
  Random random(6);
  for (const AttentionCase& c : kAttentionCases) {
    const auto dim = static_cast<size_t>(c.head_dim), group = static_cast<size_t>(c.group);
    const int64_t positions = c.prefix - c.first + c.extra;
    // Pages in any order, with a gap between them; slots that are neither seen nor listed hold NaN.
    const auto pages_of = [](int64_t n) {
      return static_cast<size_t>((n + kKvPage - 1) / kKvPage);
    };
    const size_t page_count = pages_of(c.prefix) + pages_of(c.extra) + 3;
    const size_t stride = static_cast<size_t>(kKvPage) * dim + 5;
    std::vector<int32_t> pages(page_count);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    const std::vector<float> q = Normal(random, group * dim, c.spread);
    const std::vector<float> all_keys = Normal(random, page_count * stride),
                             all_values = Normal(random, page_count * stride);
    std::vector<float> keys(all_keys.size(), kNan), values(all_values.size(), kNan);
    const auto offset_of = [&](int32_t slot) {
      return static_cast<size_t>(slot / kKvPage) * stride +
             static_cast<size_t>(slot % kKvPage) * dim;
    };
    const auto slot_of = [&](int64_t position) {
      return static_cast<int32_t>(pages[static_cast<size_t>(position / kKvPage)] * kKvPage +
                                  position % kKvPage);
    };
    std::vector<int32_t> extra;
    for (size_t i = pages_of(c.prefix); i < page_count; ++i) {
      for (int64_t o = 0; o < kKvPage; ++o) {
        extra.push_back(static_cast<int32_t>(pages[i] * kKvPage + o));
      }
    }
    std::shuffle(extra.begin(), extra.end(), random);
    std::vector<int32_t> order;  // slots, as they are seen
    for (int64_t j = c.first; j < c.prefix; ++j) order.push_back(slot_of(j));
    order.insert(order.end(), extra.begin(), extra.begin() + c.extra);
    for (const int32_t slot : order) {
      const auto at = static_cast<ptrdiff_t>(offset_of(slot));
      std::copy_n(all_keys.begin() + at, dim, keys.begin() + at);
      std::copy_n(all_values.begin() + at, dim, values.begin() + at);
    }
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));

    std::vector<double> expected(group * dim, 0.0);
    for (size_t h = 0; h < group; ++h) {
      std::vector<double> scores;
      for (const int32_t slot : order) {
        double score = 0;
        const size_t at = offset_of(slot);
        for (size_t i = 0; i < dim; ++i) score += double{q[h * dim + i]} * keys[at + i];
        score *= scale;
        scores.push_back(c.soft_cap > 0 ? c.soft_cap * std::tanh(score / c.soft_cap) : score);
      }
      const double top = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - top);
      for (size_t j = 0; j < order.size(); ++j) {
        for (size_t i = 0; i < dim; ++i) {
          expected[h * dim + i] += scores[j] / sum * values[offset_of(order[j]) + i];
        }
      }
    }

    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      Output out(group * dim);
      std::vector<float> scratch(
          static_cast<size_t>(AttentionScratch(positions, 1, c.group, c.head_dim)) + kGuard, kNan);
      AttentionRow row;
      row.q = q.data();
      row.out = out.data();
      row.first = c.first;
      row.prefix = c.prefix;
      row.extra = extra.data();
      row.extra_count = c.extra;
      AttentionArgs args;
      args.rows = &row;
      args.row_count = 1;
      args.keys = keys.data();
      args.values = values.data();
      args.page_stride = static_cast<int64_t>(stride);
      args.pages = pages.data();
      args.group = c.group;
      args.head_dim = c.head_dim;
      args.scale = scale;
      args.soft_cap = c.soft_cap;
      args.scratch = scratch.data();
      kernels->attention(args);
      const std::string label = std::string(kernels->name) + " " + std::to_string(c.prefix) + "+" +
                                std::to_string(c.extra) + " group " + std::to_string(c.group) +
                                " dim " + std::to_string(c.head_dim);
      // Scores of some size lose their own size in units of the last place before they are
      // exponents.
      EXPECT_LT(RelativeError(out.values(), expected),
                (Rounds(*kernels) ? 5e-3 : 2e-6) * std::max(1.0f, c.spread))
          << label;
      EXPECT_TRUE(out.GuardsIntact()) << label;
      for (size_t i = scratch.size() - kGuard; i < scratch.size(); ++i) {
        EXPECT_TRUE(std::isnan(scratch[i])) << label;
      }
      if (first.empty() || Rounds(*kernels)) first = out.values();
      EXPECT_EQ(out.values(), first) << label;

      // The same positions, all listed: the same bits.
      std::vector<int32_t> listed(static_cast<size_t>(c.first), -1);
      listed.insert(listed.end(), order.begin(), order.end());
      row.prefix = 0;
      row.extra = listed.data();
      row.extra_count = static_cast<int>(listed.size());
      Output again(group * dim);
      row.out = again.data();
      kernels->attention(args);
      EXPECT_EQ(again.values(), first) << label << " listed";
    }
  }
}

// Rows of one sequence that see different positions: each gets the bits that it gets alone.
TEST(KernelsTest, AttentionRowsAreIndependent) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const int group = round % 40 == 0 ? 24 + static_cast<int>(random() % 30)
                                      : 1 + static_cast<int>(random() % 13);
    const int head_dim = 2 * (1 + static_cast<int>(random() % (round % 4 == 0 ? 80 : 33)));
    const auto width = static_cast<size_t>(group) * static_cast<size_t>(head_dim);
    const int row_count =
        1 + static_cast<int>(random() % static_cast<unsigned>(AttentionRows(group)));
    const int64_t most = 1 + static_cast<int64_t>(random() % 150);
    const auto page_count = static_cast<size_t>((most + kKvPage - 1) / kKvPage) + 4;
    const size_t stride = static_cast<size_t>(kKvPage * head_dim) + random() % 7;
    std::vector<int32_t> pages(page_count);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    const std::vector<float> keys = Normal(random, page_count * stride),
                             values = Normal(random, page_count * stride),
                             q = Normal(random, static_cast<size_t>(row_count) * width, 3.0f);
    std::vector<int32_t> extra(64);
    for (int32_t& slot : extra) {
      slot = static_cast<int32_t>(random() % (page_count * static_cast<size_t>(kKvPage)));
    }
    std::vector<AttentionRow> rows(static_cast<size_t>(row_count));
    for (size_t r = 0; r < rows.size(); ++r) {
      AttentionRow& row = rows[r];
      row.q = q.data() + r * width;
      // Neighbours in a prompt, mostly; with a window half of the time.
      const auto n = static_cast<int64_t>(r);
      row.prefix = round % 3 == 0 ? static_cast<int64_t>(random()) % (most + 1)
                                  : std::max<int64_t>(0, most - row_count + 1 + n);
      const auto window = static_cast<int64_t>(random() % 40);
      row.extra = extra.data() + random() % 10;
      row.extra_count = round % 5 == 0 ? static_cast<int>(random() % 50) : 0;
      if (row.prefix == 0) row.extra_count += 1;
      const int64_t end = row.prefix + row.extra_count;
      if (round % 2 == 0) row.first = std::max<int64_t>(0, end - 1 - window);
    }
    AttentionArgs args;
    args.keys = keys.data();
    args.values = values.data();
    args.page_stride = static_cast<int64_t>(stride);
    args.pages = pages.data();
    args.group = group;
    args.head_dim = head_dim;
    args.scale = 0.2f;
    args.soft_cap = round % 7 == 0 ? 5.0f : 0.0f;
    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      std::vector<float> scratch(
          static_cast<size_t>(AttentionScratch(most + 64, row_count, group, head_dim)) + kGuard,
          kNan);
      args.scratch = scratch.data();
      Output together(rows.size() * width), alone(rows.size() * width);
      for (size_t r = 0; r < rows.size(); ++r) rows[r].out = together.data() + r * width;
      args.rows = rows.data();
      args.row_count = row_count;
      kernels->attention(args);
      args.row_count = 1;
      for (size_t r = 0; r < rows.size(); ++r) {
        rows[r].out = alone.data() + r * width;
        args.rows = &rows[r];
        kernels->attention(args);
      }
      const std::string label = std::string(kernels->name) + " round " + std::to_string(round);
      EXPECT_EQ(together.values(), alone.values()) << label;
      EXPECT_TRUE(together.GuardsIntact()) << label;
      for (size_t i = scratch.size() - kGuard; i < scratch.size(); ++i) {
        EXPECT_TRUE(std::isnan(scratch[i])) << label;
      }
      if (first.empty() || Rounds(*kernels)) first = together.values();
      EXPECT_EQ(together.values(), first) << label;
    }
  }
}

// Neither values that are not numbers nor memory that nobody wrote reach rows that do not see them.
TEST(KernelsTest, AttentionSeesNothingElse) {
  Random random(8);
  constexpr int kDim = 40, kRows = 8;
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    const std::vector<int32_t> pages = {2, 0, 1, 3};
    const size_t stride = static_cast<size_t>(kKvPage) * kDim;
    std::vector<float> keys = Normal(random, 4 * stride), values = Normal(random, 4 * stride);
    const std::vector<float> q = Normal(random, kRows * kDim);
    const auto run = [&](const KernelSet& kernels, int count) {
      std::vector<float> scratch(static_cast<size_t>(AttentionScratch(64, count, 1, kDim)), kNan);
      std::vector<float> out(kRows * kDim, kNan);
      std::vector<AttentionRow> rows(static_cast<size_t>(count));
      for (size_t r = 0; r < rows.size(); ++r) {
        rows[r].q = q.data() + r * kDim;
        rows[r].out = out.data() + r * kDim;
        rows[r].prefix = 35 + static_cast<int64_t>(r);
        rows[r].first = 3 + static_cast<int64_t>(r);
      }
      AttentionArgs args;
      args.rows = rows.data();
      args.row_count = count;
      args.keys = keys.data();
      args.values = values.data();
      args.page_stride = static_cast<int64_t>(stride);
      args.pages = pages.data();
      args.group = 1;
      args.head_dim = kDim;
      args.scratch = scratch.data();
      kernels.attention(args);
      return out;
    };
    const auto at = [&](int64_t position) {
      return static_cast<size_t>(pages[static_cast<size_t>(position / kKvPage)] * kKvPage +
                                 position % kKvPage) *
             kDim;
    };
    for (const KernelSet* kernels : Variants()) {
      const std::vector<float> whole = run(*kernels, kRows);
      // Position 40 is seen by the last two rows, 2 and 42 by none.
      const std::vector<float> saved_keys = keys, saved_values = values;
      for (const int64_t position : {2, 40, 42}) {
        std::fill_n(keys.begin() + static_cast<long>(at(position)), kDim, bad);
        std::fill_n(values.begin() + static_cast<long>(at(position)), kDim, bad);
      }
      const std::vector<float> damaged = run(*kernels, kRows);
      keys = saved_keys;
      values = saved_values;
      EXPECT_EQ(std::memcmp(whole.data(), damaged.data(), 6 * kDim * sizeof(float)), 0)
          << kernels->name;
      EXPECT_FALSE(std::isfinite(damaged[6 * kDim])) << kernels->name;
      EXPECT_FALSE(std::isfinite(damaged[7 * kDim])) << kernels->name;
    }
  }
}

TEST(KernelsTest, AutoIsTheWidestThatThisProcessorHas) {
  std::vector<const KernelSet*> exact = Variants();
  while (Rounds(*exact.back())) exact.pop_back();
  EXPECT_EQ(FindKernels(KernelVariant::kAuto), exact.back());
  EXPECT_EQ(FindKernels(KernelVariant::kPortable), Variants().front());
}

}  // namespace
}  // namespace pawl
