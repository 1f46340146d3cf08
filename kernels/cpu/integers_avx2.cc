// Integer products with AVX2: VPMADDUBSW adds two products of an unsigned and a signed byte as
// 16-bit integers, which saturates; nothing here comes so far. Two products of kI4 are at most 2 *
// 15 * 127, and eight of these sums below 2^15. Products of kI8 are those of |w| <= 128 with x
// times the sign of w, at most 2 * 128 * 127 together.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/integers.h"

namespace pawl {
namespace {

using Ints = __m256i;
struct Floats {
  __m256 v;
};

// Sums, and what becomes of them, of four rows take eight of sixteen registers.
constexpr int kLanes = 8, kRows = 4;
constexpr bool kOffset8 = false;

inline Floats Zero() { return {_mm256_setzero_ps()}; }
inline Floats Set1(float value) { return {_mm256_set1_ps(value)}; }
inline Ints SetInts(int32_t value) { return _mm256_set1_epi32(value); }
inline Floats Load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void Store(float* p, const Floats& a) { _mm256_storeu_ps(p, a.v); }
inline Floats Halves(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Floats ToFloats(Ints ints) { return {_mm256_cvtepi32_ps(ints)}; }
inline Floats operator+(const Floats& a, const Floats& b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Floats operator*(const Floats& a, const Floats& b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Floats Fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}

inline __m256i Load32(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline __m256i Four(const InputBlock& block, int four) {
  int32_t bytes;
  std::memcpy(&bytes, block.q + 4 * four, sizeof bytes);
  return _mm256_set1_epi32(bytes);
}
// Pairs of 16-bit integers, added.
inline __m256i Widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

template <bool kFour, int kFirst, int kLast, int R>
inline void Dots(const uint8_t* weights, const InputBlock* x, int64_t pitch, Ints* sums) {
  if constexpr (kFour) {
    const __m256i half = _mm256_set1_epi8(15);
    __m256i pairs[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) pairs[r] = _mm256_setzero_si256();
    const auto add = [&](__m256i weight, int four) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256i products = _mm256_maddubs_epi16(weight, Four(x[r * pitch], four));
        pairs[r] = _mm256_add_epi16(pairs[r], products);
      }
    };
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m256i both = Load32(weights + j * 64);
      add(_mm256_and_si256(both, half), j);
      add(_mm256_and_si256(_mm256_srli_epi16(both, 4), half), 4 + j);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sums[r] = _mm256_add_epi32(sums[r], Widen(pairs[r]));
  } else {
    const __m256i offset = _mm256_set1_epi8(-128);
#pragma GCC unroll 8
    for (int j = kFirst; j < kLast; ++j) {
      const __m256i weight = _mm256_xor_si256(Load32(weights + j * 64), offset);
      const __m256i size = _mm256_abs_epi8(weight);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256i signs = _mm256_sign_epi8(Four(x[r * pitch], j), weight);
        sums[r] = _mm256_add_epi32(sums[r], Widen(_mm256_maddubs_epi16(size, signs)));
      }
    }
  }
}

inline int LargestBits(const float* x) {
  __m256i top = _mm256_setzero_si256();
  for (int i = 0; i < kQuantBlock; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    top = _mm256_max_epi32(top, _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)));
  }
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}
inline __m256i Rounded8(const float* x, float factor) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), _mm256_set1_ps(factor)));
}
inline void Round(const float* x, float factor, int8_t* q) {
  const __m256i low = _mm256_packs_epi32(Rounded8(x, factor), Rounded8(x + 8, factor));
  const __m256i high = _mm256_packs_epi32(Rounded8(x + 16, factor), Rounded8(x + 24, factor));
  // Packing works in each half on its own: fours come out in the order 0 2 4 6 1 3 5 7.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q),
                      _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/integers_inl.h"

namespace pawl {
const IntegerKernels kAvx2Integers = {Pack, MatMul};
}  // namespace pawl
