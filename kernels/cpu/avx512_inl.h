// Vec of AVX-512 (F, BW, DQ, VL): one register of sixteen lanes, 32 registers, masks for the ends
// of rows. As kernels_inl.h, for which it is: all of it in an unnamed namespace, for one .cc file.
#include <immintrin.h>

#include <cstdint>

namespace pawl {
namespace {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

inline __m512 Widen(const Bf16*, __m256i half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
inline __m512 Widen(const F16*, __m256i half) { return _mm512_cvtph_ps(half); }

inline __mmask16 FirstLanes(int n) { return static_cast<__mmask16>((1u << n) - 1); }

struct Vec {
  static constexpr int kFewRows = 2, kOutputsFewRows = 8, kOutputs = 4, kRows = 6;
  static constexpr int kAttentionQueries = 6, kAttentionBlocks = 4;
  __m512 lanes;

  static Vec Zero() { return {_mm512_setzero_ps()}; }
  static Vec Set1(float value) { return {_mm512_set1_ps(value)}; }
  static Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec LoadN(const float* p, int n) { return {_mm512_maskz_loadu_ps(FirstLanes(n), p)}; }
  template <typename W>
  static Vec Load(const W* p) {
    return {Widen(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  template <typename W>
  static Vec LoadN(const W* p, int n) {
    return {Widen(p, _mm256_maskz_loadu_epi16(FirstLanes(n), p))};
  }
  // The even, the odd elements of 32.
  static Vec LoadEven(const Bf16* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  static Vec LoadOdd(const Bf16* p) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), upper))};
  }
  void Store(float* p) const { _mm512_storeu_ps(p, lanes); }
  void StoreN(float* p, int n) const { _mm512_mask_storeu_ps(p, FirstLanes(n), lanes); }
};

inline Vec operator+(const Vec& a, const Vec& b) { return {_mm512_add_ps(a.lanes, b.lanes)}; }
inline Vec operator-(const Vec& a, const Vec& b) { return {_mm512_sub_ps(a.lanes, b.lanes)}; }
inline Vec operator*(const Vec& a, const Vec& b) { return {_mm512_mul_ps(a.lanes, b.lanes)}; }
inline Vec operator/(const Vec& a, const Vec& b) { return {_mm512_div_ps(a.lanes, b.lanes)}; }
inline Vec Fma(const Vec& a, const Vec& b, const Vec& c) {
  return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
}
inline Vec Max(const Vec& a, const Vec& b) { return {_mm512_max_ps(a.lanes, b.lanes)}; }
inline Vec Min(const Vec& a, const Vec& b) { return {_mm512_min_ps(a.lanes, b.lanes)}; }
// 2^n from the low bits of n + 1.5 * 2^23.
inline Vec PowerOfTwo(const Vec& shifted) {
  const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted.lanes), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(127 << 23)))};
}

// 16 -> 8 -> 4 lanes.
inline __m128 Fold(const Vec& v) {
  const __m256 sum =
      _mm256_add_ps(_mm512_castps512_ps256(v.lanes), _mm512_extractf32x8_ps(v.lanes, 1));
  return _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/x86_sums_inl.h"

namespace pawl {
namespace {

// The sums of 16 or 8 vectors. They are folded in pairs, so that every addition has 16 lanes to do.
// Out of line they would be given their vectors in memory.
#define PAWL_FOLD __attribute__((always_inline)) inline

// The lower half: a's eight, the upper: b's.
PAWL_FOLD __m512 Eight(const Vec& a, const Vec& b) {
  return _mm512_add_ps(_mm512_insertf32x8(a.lanes, _mm512_castps512_ps256(b.lanes), 1),
                       _mm512_shuffle_f32x4(a.lanes, b.lanes, 0xee));
}
// Four lanes of each of two vectors in both.
PAWL_FOLD __m512 Four(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}
PAWL_FOLD __m512 Two(__m512 a, __m512 b) {
  const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}
PAWL_FOLD __m512 One(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}
PAWL_FOLD void Sum16(const Vec* v, float* out) {
  __m512 four[4];  // v[e], v[4 + e], v[8 + e], v[12 + e], four lanes of each
#pragma GCC unroll 4
  for (int e = 0; e < 4; ++e) four[e] = Four(Eight(v[e], v[4 + e]), Eight(v[8 + e], v[12 + e]));
  _mm512_storeu_ps(out, One(Two(four[0], four[1]), Two(four[2], four[3])));
}
PAWL_FOLD void Sum8(const Vec* v, float* out) {
  // v[0], v[4], v[2], v[6], then v[1], v[5], v[3], v[7]
  const __m512 even = Four(Eight(v[0], v[4]), Eight(v[2], v[6]));
  const __m512 odd = Four(Eight(v[1], v[5]), Eight(v[3], v[7]));
  const __m512 two = Two(even, odd);
  // Two lanes each: v[0], v[1]; v[4], v[5]; v[2], v[3]; v[6], v[7].
  const __m512 one = One(two, two);
  const __m512i order = _mm512_setr_epi32(0, 1, 8, 9, 4, 5, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0);
  _mm256_storeu_ps(out, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, one)));
}
#undef PAWL_FOLD

}  // namespace
}  // namespace pawl
