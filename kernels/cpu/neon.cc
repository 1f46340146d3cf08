// The kernels for 64-bit ARM: NEON, which every such processor has. Sixteen lanes are four
// registers of four, of 32 registers. What differs between processors are products of integers.
#include <arm_neon.h>

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

inline float32x4_t AsFloats(uint32x4_t bits) { return vreinterpretq_f32_u32(bits); }
inline float32x4_t Load4(const float* p) { return vld1q_f32(p); }
inline float32x4_t Load4(const Bf16* p) {
  return AsFloats(vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p)), 16));
}
inline float32x4_t Load4(const F16* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))));
}
inline uint32x4_t LoadPairs(const Bf16* p) {
  return vreinterpretq_u32_u16(vld1q_u16(reinterpret_cast<const uint16_t*>(p)));
}

struct Vec {
  static constexpr int kFewRows = 1, kOutputsFewRows = 4, kOutputs = 2, kRows = 2;
  static constexpr int kAttentionQueries = 2, kAttentionBlocks = 2;
  float32x4_t quad[4];

  static Vec Set1(float value) {
    const float32x4_t v = vdupq_n_f32(value);
    return {{v, v, v, v}};
  }
  static Vec Zero() { return Set1(0.0f); }
  template <typename W>
  static Vec Load(const W* p) {
    return {{Load4(p), Load4(p + 4), Load4(p + 8), Load4(p + 12)}};
  }
  template <typename W>
  static Vec LoadN(const W* p, int n) {
    W padded[16] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return Load(padded);
  }
  // The even, the odd elements of 32.
  static Vec LoadEven(const Bf16* p) {
    Vec v;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v.quad[i] = AsFloats(vshlq_n_u32(LoadPairs(p + 8 * i), 16));
    return v;
  }
  static Vec LoadOdd(const Bf16* p) {
    const uint32x4_t upper = vdupq_n_u32(0xffff0000u);
    Vec v;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v.quad[i] = AsFloats(vandq_u32(LoadPairs(p + 8 * i), upper));
    return v;
  }
  void Store(float* p) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, quad[i]);
  }
  void StoreN(float* p, int n) const {
    float lanes[16];
    Store(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }
};

// f of the four quads, each on its own.
template <typename F>
__attribute__((always_inline)) inline Vec OfQuads(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}
inline Vec operator+(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return vaddq_f32(a.quad[i], b.quad[i]); });
}
inline Vec operator-(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return vsubq_f32(a.quad[i], b.quad[i]); });
}
inline Vec operator*(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return vmulq_f32(a.quad[i], b.quad[i]); });
}
inline Vec operator/(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return vdivq_f32(a.quad[i], b.quad[i]); });
}
inline Vec Fma(const Vec& a, const Vec& b, const Vec& c) {
  return OfQuads([&](int i) { return vfmaq_f32(c.quad[i], a.quad[i], b.quad[i]); });
}
// Not the instructions of these names, which answer NaN where one of the two is.
inline Vec Max(const Vec& a, const Vec& b) {
  return OfQuads(
      [&](int i) { return vbslq_f32(vcgtq_f32(a.quad[i], b.quad[i]), a.quad[i], b.quad[i]); });
}
inline Vec Min(const Vec& a, const Vec& b) {
  return OfQuads(
      [&](int i) { return vbslq_f32(vcltq_f32(a.quad[i], b.quad[i]), a.quad[i], b.quad[i]); });
}
// 2^n from the low bits of n + 1.5 * 2^23.
inline Vec PowerOfTwo(const Vec& shifted) {
  return OfQuads([&](int i) {
    const uint32x4_t bits = vshlq_n_u32(vreinterpretq_u32_f32(shifted.quad[i]), 23);
    return AsFloats(vaddq_u32(bits, vdupq_n_u32(127u << 23)));
  });
}

// 16 -> 8 -> 4 -> 2 lanes.
inline float32x2_t FoldToTwo(const Vec& v) {
  const float32x4_t four =
      vaddq_f32(vaddq_f32(v.quad[0], v.quad[2]), vaddq_f32(v.quad[1], v.quad[3]));
  return vadd_f32(vget_low_f32(four), vget_high_f32(four));
}
inline float Sum(const Vec& v) {
  const float32x2_t two = FoldToTwo(v);
  return vget_lane_f32(vpadd_f32(two, two), 0);
}
inline void Sum4(const Vec& a, const Vec& b, const Vec& c, const Vec& d, float* out) {
  vst1q_f32(out, vpaddq_f32(vcombine_f32(FoldToTwo(a), FoldToTwo(b)),
                            vcombine_f32(FoldToTwo(c), FoldToTwo(d))));
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/sums_of_four_inl.h"
// The loops need the sums.
#include "kernels/cpu/kernels_inl.h"

namespace pawl {
const KernelSet kNeonKernels = TableNamed<kNeonIntegers>("neon");
const KernelSet kNeonDotKernels = TableNamed<kNeonDotIntegers>("neon-dot");
const KernelSet kNeonI8mmKernels = TableNamed<kNeonI8mmIntegers>("neon-i8mm");
}  // namespace pawl
