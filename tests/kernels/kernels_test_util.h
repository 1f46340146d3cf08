// What the tests of kernels share: every variant of this processor, poisoned outputs between
// guards, weights as stored next to what they are worth, and bounds of products.
#ifndef PAWL_TESTS_KERNELS_KERNELS_TEST_UTIL_H_
#define PAWL_TESTS_KERNELS_KERNELS_TEST_UTIL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "tests/support/kernel_variants.h"

namespace pawl {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr int kGuard = 19;  // also makes rows start at odd addresses

inline std::vector<const KernelSet*> Variants() {
  std::vector<const KernelSet*> variants;
  for (const KernelVariant variant : kAllKernels) {
    if (const KernelSet* kernels = FindKernels(variant)) variants.push_back(kernels);
  }
  return variants;
}

using Random = std::mt19937;

inline std::vector<float> Normal(Random& random, size_t n, float spread = 1.0f) {
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
inline double RelativeError(const std::vector<float>& a, const std::vector<double>& b) {
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

inline double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

inline Weights MakeWeights(Random& random, WeightType type, size_t n) {
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

inline const char* Name(WeightType type) {
  return type == WeightType::kF32 ? "fp32" : type == WeightType::kBf16 ? "bf16" : "fp16";
}

// What becomes of inputs next to bf16 weights, relative to them: AMX and BFMMLA take 16 bits of
// each, |error|
// <= 2^-17 |input|, or 8 bits, |error| <= 2^-8 |input|.
inline bool Rounds(const KernelSet& kernels) {
  const std::string name = kernels.name;
  return name == "amx-bf16" || name == "avx512-bf16";
}
inline bool SplitsInputs(const KernelSet& kernels, WeightType type) {
  const std::string name = kernels.name;
  return type == WeightType::kBf16 && (Rounds(kernels) || name == "amx" || name == "neon-bfmmla");
}
inline double ProductBound(const KernelSet& kernels, WeightType type, int64_t inputs) {
  if (!SplitsInputs(kernels, type)) return inputs <= 1024 ? 2e-7 : 5e-7;
  return Rounds(kernels) ? 4e-3 : 4e-6;
}

inline std::vector<float> Packed(const KernelSet& kernels, WeightType type,
                                 const std::vector<float>& x, int64_t x_stride, int rows,
                                 int64_t n) {
  std::vector<float> packed(static_cast<size_t>(PackedFloats(rows, n)), kNan);
  kernels.pack(type, x.data(), x_stride, rows, n, packed.data());
  return packed;
}

struct MatMulCase {
  int64_t outputs, inputs;
  int rows;
  bool bias, add, scattered;
};

inline const MatMulCase kMatMulCases[] = {
    {1, 1, 1, false, false, false},     {1, 16, 1, false, false, false},
    {7, 15, 1, true, false, false},     {8, 17, 1, false, true, false},
    {33, 64, 1, true, true, false},     {37, 100, 2, false, false, true},
    {16, 48, 3, true, false, false},    {19, 33, 4, false, true, true},
    {12, 129, 5, true, true, true},     {64, 64, 6, false, false, false},
    {31, 257, 7, true, false, true},    {40, 96, 13, false, true, false},
    {5, 1000, 24, true, true, true},    {130, 72, 50, false, false, false},
    {257, 31, 128, false, false, true}, {20, 1100, 147, true, false, false}};

}  // namespace pawl

#endif  // PAWL_TESTS_KERNELS_KERNELS_TEST_UTIL_H_
