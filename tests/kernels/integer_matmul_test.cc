// Matrix products with weights of 8 to 2 bits, of every kernel variant, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cpu/integers.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cuda/matrix.h"
#include "kernels/cuda/pack.h"
#include "src/base/half.h"
#include "tests/kernels/kernels_test_util.h"

namespace pawl {
namespace {

struct IntegerFormat {
  WeightType type;
  int shift;
  bool minimums = false;
  const int8_t* table = nullptr;
  StepKind steps = StepKind::kNone;
};
// The signed bytes that sums of 16 bits hold least well are among them.
constexpr int8_t kTable[16] = {-128, -127, -100, -83, -65, -49, -35, -22,
                               0,    1,    13,   38,  69,  89,  113, 127};
constexpr IntegerFormat kIntegerFormats[] = {
    {WeightType::kI8, 5},
    {WeightType::kI6, 4, false, nullptr, StepKind::kInteger},
    {WeightType::kI5, 5},
    {WeightType::kI5, 5, true},
    {WeightType::kI4, 5},
    {WeightType::kI4, 6},
    {WeightType::kI4, 5, true},
    {WeightType::kI4, 6, true},
    {WeightType::kI3, 4, false, kTable, StepKind::kInteger},
    {WeightType::kI3, 5, false, kTable, StepKind::kInteger},
    {WeightType::kI3, 4, false, nullptr, StepKind::kInteger},
    {WeightType::kI4, 5, false, kTable},
    {WeightType::kI8, 6},
    {WeightType::kI5, 6, false},
    {WeightType::kI4, 6, false, kTable},
    {WeightType::kI2, 4, true, nullptr, StepKind::kInteger},
    {WeightType::kI5, 5, true, nullptr, StepKind::kInteger},
    {WeightType::kI4, 5, true, nullptr, StepKind::kInteger},
    {WeightType::kI4, 4, false, kTable, StepKind::kE4m3},
    {WeightType::kI4, 5, false, kTable, StepKind::kInteger},
    {WeightType::kI4, 5, false, kTable, StepKind::kPower}};

// What an integer stands for.
int Worth(const IntegerFormat& f, int integer) {
  if (f.table != nullptr) return f.table[integer];
  return f.minimums ? integer : integer - (1 << (QuantBits(f.type) - 1));
}

// A matrix of any integers and scales, and what the weights are worth. Its memory is of that size
// exactly, for the address sanitizer.
struct IntegerWeights {
  IntegerWeights(Random& random, const IntegerFormat& f, int64_t rows, int64_t cols) {
    const auto padded = static_cast<size_t>(QuantBlocks(cols) * kQuantBlock);
    m.type = f.type;
    m.rows = rows;
    m.cols = cols;
    m.table = f.table;
    m.group_shift = f.shift;
    m.groups = (QuantBlocks(cols) * kQuantBlock + (1 << f.shift) - 1) >> f.shift;
    data.resize(static_cast<size_t>(QuantBytes(f.type, rows, cols)));
    const auto groups = static_cast<size_t>(QuantTiles(rows) * kQuantTile * m.groups);
    // Any half with a small exponent; subnormals are among them.
    const auto half = [&] {
      return static_cast<uint16_t>((random() & 0x83ffu) | (random() % 17) << 10);
    };
    m.has_minimums = f.minimums;
    m.step_kind = f.steps;
    m.data = data.data();
    if (HasSteps(m)) {
      const auto step = [&] {
        if (f.steps == StepKind::kPower) return random() % 9 == 0 ? 0 : 118 + random() % 12;
        if (f.steps == StepKind::kE4m3) return random() % 127;
        if (f.minimums) return random() % 64;
        return random() % 256;  // with signs
      };
      for (size_t i = 0; i < groups; ++i) steps.push_back(static_cast<uint8_t>(step()));
      for (size_t i = 0; i < groups && f.minimums; ++i)
        minimum_steps.push_back(static_cast<uint8_t>(step()));
      const auto blocks = static_cast<size_t>(QuantTiles(rows) * kQuantTile * StepBlocks(m));
      const auto factor = [&] {
        return std::ldexp(HalfToFloat(half()), f.steps == StepKind::kInteger ? -4 : 8);
      };
      for (size_t i = 0; i < blocks; ++i) factors.push_back(factor());
      for (size_t i = 0; i < blocks && f.minimums; ++i) minimum_factors.push_back(factor());
      m.steps = steps.data();
      m.minimum_steps = minimum_steps.data();
      m.factors = factors.data();
      m.minimum_factors = minimum_factors.data();
    } else {
      for (size_t i = 0; i < groups; ++i) scales.push_back(half());
      for (size_t i = 0; i < groups && f.minimums; ++i) minimums.push_back(half());
      m.scales = scales.data();
      m.minimums = minimums.data();
    }
    const uint32_t most = (1u << QuantBits(f.type)) - 1;
    std::vector<uint8_t> row(padded), back(padded);
    for (int64_t r = 0; r < rows; ++r) {
      for (uint8_t& value : row) {
        value = static_cast<uint8_t>(random() & most);
        if (random() % 8 == 0) value = static_cast<uint8_t>(random() % 2 == 0 ? 0 : most);
      }
      StoreIntegers(f.type, cols, r, row.data(), data.data());
      stored.push_back(row);
      for (int64_t k = 0; k < cols; ++k) {
        exact.push_back(Worth(f, row[static_cast<size_t>(k)]) *
                            double{ScaleAt(m, r, k >> f.shift)} +
                        double{MinimumAt(m, r, k >> f.shift)});
      }
    }
    // No row wrote over another one.
    for (int64_t r = 0; r < rows; ++r) {
      LoadIntegers(m, r, back.data());
      EXPECT_EQ(back, stored[static_cast<size_t>(r)]);
    }
  }
  Matrix m;
  std::vector<uint8_t> data;
  std::vector<uint16_t> scales, minimums;
  std::vector<uint8_t> steps, minimum_steps;
  std::vector<float> factors, minimum_factors;
  std::vector<std::vector<uint8_t>> stored;
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

// How far the sums of these cases are off, relative to the norm of their terms. Not a bound: every
// variant gives the same bits, so each machine measures the same.
constexpr double kSumsBound = 2.4e-7;
// What is off at most in one output, for any inputs. An input is off by half a step, and a step is
// 1/127 of the largest input of its block of 32: sum |weight| * largest / 254. The 1e-5 are the
// roundings of the step. Sums of floats lose 2^-24 of the sum of magnitudes at each of at most
// (blocks + 8) steps.
constexpr double kHalfStep = 1.00001 / 254;

TEST(KernelsTest, MatMulOfIntegers) {
  unsigned seed = 1200;
  for (const IntegerFormat& f : kIntegerFormats) {
    std::vector<MatMulCase> cases(std::begin(kMatMulCases), std::end(kMatMulCases));
    for (int rows = 1; rows <= 17; ++rows) {
      cases.push_back({20 + rows, 40 + 31 * rows, rows, rows % 2 == 0, rows % 3 == 0, false});
    }
    for (const MatMulCase& c : cases) {
      const auto outputs = static_cast<size_t>(c.outputs), inputs = static_cast<size_t>(c.inputs);
      const auto rows = static_cast<size_t>(c.rows);
      Random random(++seed);  // its own, so that no case depends on what the others draw
      const IntegerWeights w(random, f, c.outputs, c.inputs);
      const size_t x_stride = inputs + random() % 5, y_stride = outputs + random() % 5;
      const std::vector<float> x = Normal(random, rows * x_stride);
      const std::vector<float> bias = Normal(random, outputs);
      const std::vector<float> before = Normal(random, rows * y_stride);
      std::vector<int32_t> places(rows);
      for (size_t r = 0; r < rows; ++r) places[r] = static_cast<int32_t>(r);
      if (c.scattered) std::shuffle(places.begin(), places.end(), random);

      // With the inputs as they are, and as they are rounded.
      std::vector<double> exact(rows * outputs), rounded(rows * outputs), bound(rows * outputs);
      double magnitude = 0;
      for (size_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * x_stride;
        const std::vector<double> inputs_seen = RoundedInputs(row, inputs);
        std::vector<double> largest((inputs + 31) / 32, 0.0);  // of each block
        for (size_t k = 0; k < inputs; ++k) {
          largest[k / 32] = std::max(largest[k / 32], std::fabs(double{row[k]}));
        }
        const auto place = static_cast<size_t>(places[r]);
        for (size_t o = 0; o < outputs; ++o) {
          double sum = c.bias ? bias[o] : 0.0;
          if (c.add) sum += before[place * y_stride + o];
          double seen = sum, magnitudes = std::fabs(sum), off = 0;
          for (size_t k = 0; k < inputs; ++k) {
            const double weight = w.exact[o * inputs + k];
            magnitudes += std::fabs(weight * inputs_seen[k]);
            off += std::fabs(weight) * largest[k / 32] * kHalfStep;
            sum += weight * row[k];
            seen += weight * inputs_seen[k];
            magnitude += weight * weight * row[k] * row[k];
          }
          const double steps = static_cast<double>(inputs) / (1 << f.shift) + 8;
          bound[place * outputs + o] = off + steps * std::ldexp(magnitudes, -24);
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
      const unsigned cuts_seed = random();
      for (const KernelSet* kernels : Variants()) {
        Random cuts(cuts_seed);
        const std::string label =
            std::string(kernels->name) + " " + std::to_string(static_cast<int>(f.type)) + " " +
            std::to_string(f.shift) + (f.minimums ? "m " : " ") + std::to_string(c.outputs) + "x" +
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
              std::min<int64_t>(c.outputs, begin + 1 + static_cast<int64_t>(cuts() % 40));
          kernels->matmul(args, begin, end);
          begin = end;
        }
        EXPECT_TRUE(y.GuardsIntact()) << label;
        double sums_error = 0;
        for (size_t r = 0; r < rows; ++r) {
          for (size_t o = 0; o < y_stride; ++o) {
            const float got = y[r * y_stride + o];
            if (o >= outputs) {
              EXPECT_TRUE(std::isnan(got));
              continue;
            }
            EXPECT_LE(std::fabs(got - exact[r * outputs + o]), bound[r * outputs + o]) << label;
            sums_error += std::pow(got - rounded[r * outputs + o], 2);
          }
        }
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
        IntegerWeights w(random, f, kOutputs, kInputs);
        std::fill(w.data.begin(), w.data.end(), weight);
        std::fill(w.scales.begin(), w.scales.end(), uint16_t{0x3c00});  // 1
        std::fill(w.minimums.begin(), w.minimums.end(), uint16_t{0});
        const int one = f.steps == StepKind::kPower ? 127 : f.steps == StepKind::kE4m3 ? 0x78 : 1;
        std::fill(w.steps.begin(), w.steps.end(), static_cast<uint8_t>(one));
        std::fill(w.factors.begin(), w.factors.end(), 1.0f);
        std::fill(w.minimum_steps.begin(), w.minimum_steps.end(), uint8_t{0});
        const int value = Worth(f, weight & ((1 << QuantBits(f.type)) - 1));
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
            EXPECT_NEAR(got, sign * static_cast<float>(value) * kInputs, 1e-6 * kInputs * 128)
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
    const IntegerWeights w(random, f, kOutputs, kInputs);
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

// CUDA devices have integers of eight and of four bits: others become the former, with their
// values, or are refused.
TEST(KernelsTest, IntegersAreUnpackedForDevices) {
  constexpr int64_t kRows = 35, kInputs = 100;
  Random random(15);
  for (const IntegerFormat& f : kIntegerFormats) {
    const IntegerWeights w(random, f, kRows, kInputs);
    const bool minimums_elsewhere = f.minimums && f.type != WeightType::kI4;
    ASSERT_EQ(CanPack(w.m), !minimums_elsewhere);
    if (minimums_elsewhere) continue;
    const PackedMatrix packed = PackMatrix(w.m);
    const bool four = f.type == WeightType::kI4 && f.table == nullptr;
    EXPECT_EQ(packed.shape.type, four ? DeviceWeight::kI4 : DeviceWeight::kI8);
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t g = 0; g < w.m.groups; ++g) {
        const auto at = static_cast<size_t>(TableIndex(packed.shape.groups, r, g));
        EXPECT_EQ(packed.scales[at], FloatToHalf(ScaleAt(w.m, r, g)));
        EXPECT_TRUE(!f.minimums || packed.minimums[at] == FloatToHalf(MinimumAt(w.m, r, g)));
      }
    }
    EXPECT_EQ(packed.shape.group_shift, f.shift);
    if (four) continue;
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t k = 0; k < kInputs; ++k) {
        for (int quarter = 0; quarter < 4; ++quarter) {
          for (int e = 0; e < 8; ++e) {
            if (PackedColumn(quarter, e) != k % 32) continue;
            const int64_t at =
                PackedOffset(DeviceWeight::kI8, packed.shape.columns, r, k / 32, quarter) + e;
            const auto q = static_cast<int8_t>(packed.data[static_cast<size_t>(at)]);
            const auto stored = w.stored[static_cast<size_t>(r)][static_cast<size_t>(k)];
            ASSERT_EQ(q, Worth(f, stored)) << r << " " << k;
          }
        }
      }
    }
  }
}

// The digests are what every architecture has: of all integer formats, of products of floats, and
// of what works element by element. A new digest means that logits have changed.
TEST(KernelsTest, BitsAreThoseOfEveryArchitecture) {
  const auto floats = [](Random& random, size_t n) {
    std::vector<float> values(n);
    for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 8001) - 4000) / 999;
    return values;
  };
  constexpr int64_t kOutputs = 37, kInputs = 300;
  for (const KernelSet* kernels : Variants()) {
    Random random(77);
    uint64_t digests[2] = {0xcbf29ce484222325u, 0xcbf29ce484222325u};
    const auto digest = [](uint64_t& sum, const std::vector<float>& values) {
      for (const float value : values) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        sum = (sum ^ bits) * 0x100000001b3u;
      }
    };
    const auto multiply = [&](const Matrix& m, int rows) {
      const std::vector<float> x = floats(random, static_cast<size_t>(rows * kInputs));
      const std::vector<float> packed = Packed(*kernels, m.type, x, kInputs, rows, kInputs);
      std::vector<float> y(static_cast<size_t>(rows * kOutputs), kNan);
      MatMulArgs args;
      args.w = m;
      args.x = packed.data();
      args.rows = rows;
      args.y = y.data();
      args.y_stride = kOutputs;
      kernels->matmul(args, 0, kOutputs);
      return y;
    };
    for (const IntegerFormat& format : kIntegerFormats) {
      const IntegerWeights w(random, format, kOutputs, kInputs);
      for (const int rows : {1, 2, 3, 19}) digest(digests[0], multiply(w.m, rows));
    }
    EXPECT_EQ(digests[0], 15671408887863934564u) << kernels->name;
    for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBf16}) {
      if (SplitsInputs(*kernels, type)) continue;
      std::vector<float> exact = floats(random, kOutputs * kInputs);
      std::vector<uint16_t> halves(exact.size());
      for (size_t i = 0; i < exact.size(); ++i) {
        uint32_t bits;
        std::memcpy(&bits, &exact[i], sizeof bits);
        halves[i] = static_cast<uint16_t>(type == WeightType::kF16 ? bits % 0x4400 : bits >> 16);
      }
      const bool whole = type == WeightType::kF32;
      const void* data = whole ? static_cast<const void*>(exact.data()) : halves.data();
      for (const int rows : {1, 2, 3, 19}) {
        digest(digests[1], multiply({data, type, kOutputs, kInputs}, rows));
      }
    }
    std::vector<float> x = floats(random, 333), up = floats(random, 333), y(333);
    kernels->rmsnorm(x.data(), up.data(), 1e-5f, 333, y.data());
    digest(digests[1], y);
    kernels->silu_mul(x.data(), up.data(), 333, y.data());
    digest(digests[1], y);
    kernels->gelu_mul(x.data(), up.data(), 333, y.data());
    digest(digests[1], y);
    x.resize(336);
    digest(digests[1], {kernels->softmax(x.data(), 333, 0.5f, 0.0f, nullptr)});
    digest(digests[1], x);
    const bool splits = SplitsInputs(*kernels, WeightType::kBf16);
    EXPECT_EQ(digests[1], splits ? 9907433459163809505u : 3855719820834681117u) << kernels->name;
  }
}

}  // namespace
}  // namespace pawl
