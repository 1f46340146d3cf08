// Integer products with VPDPBUSD of AVX-512 VNNI: four products of an unsigned and a signed byte
// are added to each of sixteen 32-bit sums, exactly.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/integers.h"

namespace pawl {
namespace {

using Ints = __m512i;
struct Bytes {
  __m512i v;
};
struct Floats {
  __m512 v;
};

// Sums, and what becomes of them, of eight rows take sixteen of 32 registers.
constexpr int kLanes = 16, kRows = 8;
constexpr bool kOffset8 = true, kRowPairs = false;
constexpr int kHalfOffset = 128;

inline Floats Zero() { return {_mm512_setzero_ps()}; }
inline Floats Set1(float value) { return {_mm512_set1_ps(value)}; }
inline Ints SetInts(int32_t value) { return _mm512_set1_epi32(value); }
inline Floats Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void Store(float* p, const Floats& a) { _mm512_storeu_ps(p, a.v); }
inline Floats Halves(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Floats operator+(const Floats& a, const Floats& b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Floats operator-(const Floats& a, const Floats& b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Floats operator*(const Floats& a, const Floats& b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Floats Fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline __m128i LoadSteps(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline Floats StepIntegers(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(LoadSteps(p)))};
}
inline Floats StepE4m3(const uint8_t* p) {
  return {_mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(LoadSteps(p)), 7))};
}
inline Floats StepPowers(const uint8_t* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(LoadSteps(p)), 23))};
}
inline Floats Scaled(Ints ints, const Floats& scale, const Floats& shift) {
  return Fma({_mm512_castsi512_ps(ints)}, scale, shift);
}

inline Bytes LoadBytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline void StoreBytes(uint8_t* p, const Bytes& a) { _mm512_storeu_si512(p, a.v); }
inline Bytes SetBytes(int value) { return {_mm512_set1_epi8(static_cast<char>(value))}; }
inline Bytes operator&(const Bytes& a, const Bytes& b) { return {_mm512_and_si512(a.v, b.v)}; }
inline Bytes operator|(const Bytes& a, const Bytes& b) { return {_mm512_or_si512(a.v, b.v)}; }
inline Bytes Plus(const Bytes& a, const Bytes& b) { return {_mm512_add_epi8(a.v, b.v)}; }
template <int n>
inline Bytes Shift(const Bytes& a) {
  if constexpr (n < 0) return {_mm512_slli_epi16(a.v, -n)};
  return {_mm512_srli_epi16(a.v, n < 0 ? 0 : n)};
}
inline Bytes LoadTable(const int8_t* p) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_broadcast_i32x4(_mm_xor_si128(table, _mm_set1_epi8(-128)))};
}
inline Bytes Lookup(const Bytes& table, const Bytes& index) {
  return {_mm512_shuffle_epi8(table.v, index.v)};
}
inline Bytes Wide(const Bytes& a) { return a; }

template <int kMost>
using Factor = Bytes;
template <int kMost>
inline Bytes Prepare(const Bytes& a) {
  return a;
}
template <int kMost>
using Sum = Ints;
template <int kMost>
constexpr int kRoom = kQuantBlock / 4;
template <int kMost>
inline Ints Begin(Ints ints) {
  return ints;
}
inline void Add(Ints& sum, const Bytes& weights, const InputBlock& input, int j) {
  int32_t bytes;
  std::memcpy(&bytes, input.q + 4 * j, sizeof bytes);
  sum = _mm512_dpbusd_epi32(sum, weights.v, _mm512_set1_epi32(bytes));
}
inline Ints End(Ints sum, Ints) { return sum; }

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
