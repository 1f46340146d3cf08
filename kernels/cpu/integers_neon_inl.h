// What the integer products of the three NEON variants have in common: floats, and bytes and how
// they are unpacked. A variant (integers_neon.cc, integers_neon_dot.cc, integers_neon_i8mm.cc) adds
// how they are multiplied, then includes integers_inl.h. All of it is in an unnamed namespace, for
// one .cc file.
#include <arm_neon.h>

#include <cstdint>

#include "kernels/cpu/integers.h"

namespace pawl {
namespace {

// Four rows of a tile are a register.
struct Ints {
  int32x4_t quad[2];
};
struct Floats {
  float32x4_t quad[2];
};
struct Bytes {
  uint8x16_t v[2];
};

// Sums, and what becomes of them, of four rows take sixteen of 32 registers.
constexpr int kLanes = 8, kRows = 4;
constexpr bool kOffset8 = false;  // all bytes are multiplied as signed ones
constexpr int kHalfOffset = 32;

inline Floats Set1(float value) { return {{vdupq_n_f32(value), vdupq_n_f32(value)}}; }
inline Floats Zero() { return Set1(0.0f); }
inline Ints SetInts(int32_t value) { return {{vdupq_n_s32(value), vdupq_n_s32(value)}}; }
inline Floats Load(const float* p) { return {{vld1q_f32(p), vld1q_f32(p + 4)}}; }
inline void Store(float* p, const Floats& a) {
  vst1q_f32(p, a.quad[0]);
  vst1q_f32(p + 4, a.quad[1]);
}
inline Floats OfHalves(uint16x8_t bits) {
  const float16x8_t halves = vreinterpretq_f16_u16(bits);
  return {{vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)}};
}
inline Floats Halves(const uint16_t* p) { return OfHalves(vld1q_u16(p)); }
inline Floats StepIntegers(const uint8_t* p) {
  const int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)));
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), vcvtq_f32_s32(vmovl_high_s16(wide))}};
}
inline Floats StepE4m3(const uint8_t* p) { return OfHalves(vshll_n_u8(vld1_u8(p), 7)); }
inline Floats StepPowers(const uint8_t* p) {
  const uint16x8_t wide = vshll_n_u8(vld1_u8(p), 7);
  return {{vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(wide)), 16)),
           vreinterpretq_f32_u32(vshlq_n_u32(vmovl_high_u16(wide), 16))}};
}
inline Floats operator+(const Floats& a, const Floats& b) {
  return {{vaddq_f32(a.quad[0], b.quad[0]), vaddq_f32(a.quad[1], b.quad[1])}};
}
inline Floats operator-(const Floats& a, const Floats& b) {
  return {{vsubq_f32(a.quad[0], b.quad[0]), vsubq_f32(a.quad[1], b.quad[1])}};
}
inline Floats operator*(const Floats& a, const Floats& b) {
  return {{vmulq_f32(a.quad[0], b.quad[0]), vmulq_f32(a.quad[1], b.quad[1])}};
}
inline Floats Fma(const Floats& a, const Floats& b, const Floats& c) {
  return {{vfmaq_f32(c.quad[0], a.quad[0], b.quad[0]), vfmaq_f32(c.quad[1], a.quad[1], b.quad[1])}};
}
inline Floats Scaled(const Ints& ints, const Floats& scale, const Floats& shift) {
  return Fma({{vreinterpretq_f32_s32(ints.quad[0]), vreinterpretq_f32_s32(ints.quad[1])}}, scale,
             shift);
}

inline Bytes LoadBytes(const uint8_t* p) { return {{vld1q_u8(p), vld1q_u8(p + 16)}}; }
inline void StoreBytes(uint8_t* p, const Bytes& a) {
  vst1q_u8(p, a.v[0]);
  vst1q_u8(p + 16, a.v[1]);
}
inline Bytes SetBytes(int value) {
  const uint8x16_t v = vdupq_n_u8(static_cast<uint8_t>(value));
  return {{v, v}};
}
inline Bytes operator&(const Bytes& a, const Bytes& b) {
  return {{vandq_u8(a.v[0], b.v[0]), vandq_u8(a.v[1], b.v[1])}};
}
inline Bytes operator|(const Bytes& a, const Bytes& b) {
  return {{vorrq_u8(a.v[0], b.v[0]), vorrq_u8(a.v[1], b.v[1])}};
}
inline Bytes Plus(const Bytes& a, const Bytes& b) {
  return {{vaddq_u8(a.v[0], b.v[0]), vaddq_u8(a.v[1], b.v[1])}};
}
template <int n>
inline Bytes Shift(const Bytes& a) {
  if constexpr (n < 0) return {{vshlq_n_u8(a.v[0], -n), vshlq_n_u8(a.v[1], -n)}};
  if constexpr (n > 0) return {{vshrq_n_u8(a.v[0], n), vshrq_n_u8(a.v[1], n)}};
  return a;
}
inline Bytes LoadTable(const int8_t* p) {
  const uint8x16_t table = vreinterpretq_u8_s8(vld1q_s8(p));
  return {{table, table}};
}
inline Bytes Lookup(const Bytes& table, const Bytes& index) {
  return {{vqtbl1q_u8(table.v[0], index.v[0]), vqtbl1q_u8(table.v[1], index.v[1])}};
}
inline Bytes Wide(const Bytes& a) {
  const uint8x16_t top = vdupq_n_u8(0x80);
  return {{veorq_u8(a.v[0], top), veorq_u8(a.v[1], top)}};
}

template <int kMost>
using Factor = Bytes;
template <int kMost>
inline Bytes Prepare(const Bytes& a) {
  return a;
}
inline int8x16_t Signed(uint8x16_t a) { return vreinterpretq_s8_u8(a); }

inline int LargestBits(const float* x) {
  uint32x4_t top = vdupq_n_u32(0);
  for (int i = 0; i < kQuantBlock; i += 4) {
    top = vmaxq_u32(top, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + i))));
  }
  return static_cast<int>(vmaxvq_u32(top));
}
inline int16x4_t Rounded4(const float* x, float factor) {
  return vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), factor)));
}
inline void Round(const float* x, float factor, int8_t* q) {
  for (int i = 0; i < kQuantBlock; i += 8) {
    vst1_s8(q + i, vmovn_s16(vcombine_s16(Rounded4(x + i, factor), Rounded4(x + i + 4, factor))));
  }
}

}  // namespace
}  // namespace pawl
