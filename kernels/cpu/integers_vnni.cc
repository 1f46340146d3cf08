// Integer products with VPDPBUSD of AVX-512 VNNI: four products of an unsigned and a signed byte
// are added to each of sixteen 32-bit sums, exactly.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/integers.h"

namespace pawl {
namespace {

using Ints = __m512i;
struct Floats {
  __m512 v;
};

// Sums, and what becomes of them, of eight rows take sixteen of 32 registers.
constexpr int kLanes = 16, kRows = 8;
constexpr bool kOffset8 = true;

inline Floats Zero() { return {_mm512_setzero_ps()}; }
inline Floats Set1(float value) { return {_mm512_set1_ps(value)}; }
inline Ints SetInts(int32_t value) { return _mm512_set1_epi32(value); }
inline Floats Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void Store(float* p, const Floats& a) { _mm512_storeu_ps(p, a.v); }
inline Floats Halves(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Floats ToFloats(Ints ints) { return {_mm512_cvtepi32_ps(ints)}; }
inline Floats operator+(const Floats& a, const Floats& b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Floats operator*(const Floats& a, const Floats& b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Floats Fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}

inline __m512i Four(const InputBlock& block, int four) {
  int32_t bytes;
  std::memcpy(&bytes, block.q + 4 * four, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

template <bool kFour, int kFirst, int kLast, int R>
inline void Dots(const uint8_t* weights, const InputBlock* x, int64_t pitch, Ints* sums) {
  const auto add = [&](__m512i weight, int four) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      sums[r] = _mm512_dpbusd_epi32(sums[r], weight, Four(x[r * pitch], four));
    }
  };
  if constexpr (kFour) {
    const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i both = _mm512_loadu_si512(weights + j * 64);
      add(_mm512_and_si512(both, low), j);
      add(_mm512_and_si512(_mm512_srli_epi16(both, 4), low), 4 + j);
    }
  } else {
#pragma GCC unroll 8
    for (int j = kFirst; j < kLast; ++j) add(_mm512_loadu_si512(weights + j * 64), j);
  }
}

inline int LargestBits(const float* x) {
  const __m512i size = _mm512_set1_epi32(0x7fffffff);
  const __m512i a = _mm512_and_si512(_mm512_loadu_si512(x), size);
  const __m512i b = _mm512_and_si512(_mm512_loadu_si512(x + 16), size);
  return _mm512_reduce_max_epi32(_mm512_max_epi32(a, b));
}
inline void Round(const float* x, float factor, int8_t* q) {
  for (int i = 0; i < kQuantBlock; i += 16) {
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(factor));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i),
                     _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(scaled)));
  }
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/integers_inl.h"

namespace pawl {
const IntegerKernels kVnniIntegers = {Pack, MatMul};
}  // namespace pawl
