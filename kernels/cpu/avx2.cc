// The kernels for AVX2, FMA and F16C: sixteen lanes are two 8-float registers. There are 16
// registers, hence the small tiles: 2 x 3 sums take 12.
#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace pawl {
namespace {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

inline __m256 Load8(const float* p) { return _mm256_loadu_ps(p); }
inline __m256 Load8(const Bf16* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
inline __m256 Load8(const F16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

inline __m256i Load256(const Bf16* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline __m256 Even8(const Bf16* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(Load256(p), 16));
}
inline __m256 Odd8(const Bf16* p) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return _mm256_castsi256_ps(_mm256_and_si256(Load256(p), upper));
}

struct Vec {
  static constexpr int kFewRows = 1, kOutputsFewRows = 4, kOutputs = 2, kRows = 3;
  static constexpr int kAttentionQueries = 2, kAttentionBlocks = 2;
  __m256 low, high;

  static Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec Set1(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  template <typename W>
  static Vec Load(const W* p) {
    return {Load8(p), Load8(p + 8)};
  }
  template <typename W>
  static Vec LoadN(const W* p, int n) {
    W padded[16] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return Load(padded);
  }
  // The even, the odd elements of 32.
  static Vec LoadEven(const Bf16* p) { return {Even8(p), Even8(p + 16)}; }
  static Vec LoadOdd(const Bf16* p) { return {Odd8(p), Odd8(p + 16)}; }
  void Store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  void StoreN(float* p, int n) const {
    float lanes[16];
    Store(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }
};

inline Vec operator+(const Vec& a, const Vec& b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline Vec operator-(const Vec& a, const Vec& b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline Vec operator*(const Vec& a, const Vec& b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline Vec operator/(const Vec& a, const Vec& b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline Vec Fma(const Vec& a, const Vec& b, const Vec& c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Vec Max(const Vec& a, const Vec& b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Vec Min(const Vec& a, const Vec& b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline __m256 PowerOfTwo8(__m256 shifted) {
  const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(127 << 23)));
}
// 2^n from the low bits of n + 1.5 * 2^23.
inline Vec PowerOfTwo(const Vec& shifted) {
  return {PowerOfTwo8(shifted.low), PowerOfTwo8(shifted.high)};
}

// 16 -> 8 -> 4 lanes.
inline __m128 Fold(const Vec& v) {
  const __m256 sum = _mm256_add_ps(v.low, v.high);
  return _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/x86_sums_inl.h"
// These need the sums of four.
#include "kernels/cpu/sums_of_four_inl.h"
// The loops need all sums.
#include "kernels/cpu/kernels_inl.h"

namespace pawl {
const KernelSet kAvx2Kernels = TableNamed<kAvx2Integers>("avx2");
}  // namespace pawl
