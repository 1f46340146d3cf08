// The kernels in plain C++: any processor, and the reference for the bits of the other two. The
// fused multiply-add is the language's fmaf, exact everywhere; a processor with the instruction
// (every arm64) inlines it.
#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels.h"

namespace pawl {
namespace {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

inline float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float Widen(float value) { return value; }
inline float Widen(Bf16 value) { return FromBits(static_cast<uint32_t>(value.bits) << 16); }
inline float Widen(F16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t exponent = value.bits >> 10 & 31;
  const uint32_t fraction = value.bits & 1023;
  if (exponent == 31) {  // infinity; NaN made quiet, as the conversion instruction does
    return FromBits(sign | 0x7f800000 | fraction << 13 | (fraction != 0 ? 0x00400000 : 0));
  }
  if (exponent != 0) return FromBits(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // zero and subnormal, exact
  return sign != 0 ? -magnitude : magnitude;
}

struct Vec {
  static constexpr int kFewRows = 1, kOutputsFewRows = 4, kOutputs = 4, kRows = 2;
  static constexpr int kAttentionQueries = 2, kAttentionBlocks = 1;
  float lane[16];

  static Vec Set1(float value) {
    Vec v;
    for (float& lane : v.lane) lane = value;
    return v;
  }
  static Vec Zero() { return Set1(0.0f); }
  template <typename W>
  static Vec Load(const W* p) {
    Vec v;
    for (int i = 0; i < 16; ++i) v.lane[i] = Widen(p[i]);
    return v;
  }
  template <typename W>
  static Vec LoadN(const W* p, int n) {
    Vec v = Zero();
    for (int i = 0; i < n; ++i) v.lane[i] = Widen(p[i]);
    return v;
  }
  // The even, the odd elements of 32.
  static Vec LoadEven(const Bf16* p) {
    Vec v;
    for (int i = 0; i < 16; ++i) v.lane[i] = Widen(p[2 * i]);
    return v;
  }
  static Vec LoadOdd(const Bf16* p) { return LoadEven(p + 1); }
  void Store(float* p) const { StoreN(p, 16); }
  void StoreN(float* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = lane[i];
  }
};

template <typename F>
inline Vec Map(const F& f) {
  Vec v;
  for (int i = 0; i < 16; ++i) v.lane[i] = f(i);
  return v;
}

inline Vec operator+(const Vec& a, const Vec& b) {
  return Map([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline Vec operator-(const Vec& a, const Vec& b) {
  return Map([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline Vec operator*(const Vec& a, const Vec& b) {
  return Map([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Vec operator/(const Vec& a, const Vec& b) {
  return Map([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline Vec Fma(const Vec& a, const Vec& b, const Vec& c) {
  return Map([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}
inline Vec Max(const Vec& a, const Vec& b) {
  return Map([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline Vec Min(const Vec& a, const Vec& b) {
  return Map([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
// 2^n from the low bits of n + 1.5 * 2^23.
inline Vec PowerOfTwo(const Vec& shifted) {
  return Map([&](int i) {
    uint32_t bits;
    std::memcpy(&bits, &shifted.lane[i], sizeof bits);
    return FromBits((bits << 23) + (127u << 23));
  });
}
inline float Sum(const Vec& v) {
  float half[8];
  for (int i = 0; i < 8; ++i) half[i] = v.lane[i] + v.lane[i + 8];
  for (int i = 0; i < 4; ++i) half[i] += half[i + 4];
  return (half[0] + half[2]) + (half[1] + half[3]);
}
inline void Sum4(const Vec& a, const Vec& b, const Vec& c, const Vec& d, float* out) {
  out[0] = Sum(a);
  out[1] = Sum(b);
  out[2] = Sum(c);
  out[3] = Sum(d);
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/sums_of_four_inl.h"
// The loops need the sums.
#include "kernels/cpu/kernels_inl.h"

namespace pawl {
const KernelSet kPortableKernels = TableNamed<kPortableIntegers>("portable");
}  // namespace pawl
