// Integer products with AVX2: VPMADDUBSW adds two products of an unsigned and a signed byte as
// 16-bit integers, which saturates; nothing here comes so far. Two products of integers below
// 2^bits are at most 2 * (2^bits - 1) * 127, of which eight (four bits), four (five bits) or two
// (six bits) make less than 2^15. Those of three bits have 28 added, and three make less. Products
// of signed bytes, of kI8 and of tables, are those of |w|
// <= 128 with x times the sign of w, at most 2 * 128 * 127 together.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/integers.h"

namespace pawl {
namespace {

using Ints = __m256i;
struct Bytes {
  __m256i v;
};
struct Floats {
  __m256 v;
};

// Sums, and what becomes of them, of four rows take eight of sixteen registers.
constexpr int kLanes = 8, kRows = 4;
constexpr bool kOffset8 = false, kRowPairs = false;
constexpr int kHalfOffset = 32;

inline Floats Zero() { return {_mm256_setzero_ps()}; }
inline Floats Set1(float value) { return {_mm256_set1_ps(value)}; }
inline Ints SetInts(int32_t value) { return _mm256_set1_epi32(value); }
inline Floats Load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void Store(float* p, const Floats& a) { _mm256_storeu_ps(p, a.v); }
inline Floats Halves(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Floats operator+(const Floats& a, const Floats& b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Floats operator-(const Floats& a, const Floats& b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Floats operator*(const Floats& a, const Floats& b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Floats Fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline __m128i LoadSteps(const uint8_t* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
inline Floats StepIntegers(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(LoadSteps(p)))};
}
inline Floats StepE4m3(const uint8_t* p) {
  return {_mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(LoadSteps(p)), 7))};
}
inline Floats StepPowers(const uint8_t* p) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(LoadSteps(p)), 23))};
}
inline Floats Scaled(Ints ints, const Floats& scale, const Floats& shift) {
  return Fma({_mm256_castsi256_ps(ints)}, scale, shift);
}

inline Bytes LoadBytes(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
inline void StoreBytes(uint8_t* p, const Bytes& a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
}
inline Bytes SetBytes(int value) { return {_mm256_set1_epi8(static_cast<char>(value))}; }
inline Bytes operator&(const Bytes& a, const Bytes& b) { return {_mm256_and_si256(a.v, b.v)}; }
inline Bytes operator|(const Bytes& a, const Bytes& b) { return {_mm256_or_si256(a.v, b.v)}; }
inline Bytes Plus(const Bytes& a, const Bytes& b) { return {_mm256_add_epi8(a.v, b.v)}; }
template <int n>
inline Bytes Shift(const Bytes& a) {
  if constexpr (n < 0) return {_mm256_slli_epi16(a.v, -n)};
  return {_mm256_srli_epi16(a.v, n < 0 ? 0 : n)};
}
inline Bytes LoadTable(const int8_t* p) {
  return {_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Bytes Lookup(const Bytes& table, const Bytes& index) {
  return {_mm256_shuffle_epi8(table.v, index.v)};
}
inline Bytes Wide(const Bytes& a) { return {_mm256_xor_si256(a.v, _mm256_set1_epi8(-128))}; }

// Signed bytes go by their size and, for the input, their sign.
template <int kMost>
struct Factor {
  __m256i size, sign;
};
template <int kMost>
inline Factor<kMost> Prepare(const Bytes& a) {
  if constexpr (kMost == 255) return {_mm256_abs_epi8(a.v), a.v};
  return {a.v, a.v};
}
// Pairs of 16-bit integers; of signed bytes 32-bit ones at once.
template <int kMost>
struct Sum {
  __m256i v;
};
template <int kMost>
constexpr int kRoom = kMost == 255 ? kQuantBlock / 4 : 32767 / (2 * 127 * kMost);
template <int kMost>
inline Sum<kMost> Begin(Ints ints) {
  if constexpr (kMost == 255) return {ints};
  return {_mm256_setzero_si256()};
}
inline __m256i Widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
template <int kMost>
inline void Add(Sum<kMost>& sum, const Factor<kMost>& weights, const InputBlock& input, int j) {
  int32_t bytes;
  std::memcpy(&bytes, input.q + 4 * j, sizeof bytes);
  const __m256i four = _mm256_set1_epi32(bytes);
  if constexpr (kMost == 255) {
    const __m256i signs = _mm256_sign_epi8(four, weights.sign);
    sum.v = _mm256_add_epi32(sum.v, Widen(_mm256_maddubs_epi16(weights.size, signs)));
  } else {
    sum.v = _mm256_add_epi16(sum.v, _mm256_maddubs_epi16(weights.size, four));
  }
}
template <int kMost>
inline Ints End(const Sum<kMost>& sum, Ints ints) {
  if constexpr (kMost == 255) return sum.v;
  return _mm256_add_epi32(ints, Widen(sum.v));
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
