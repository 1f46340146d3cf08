// The kernels for WebAssembly with SIMD, in place of portable.cc: sixteen lanes are four registers
// of four. Its bits are those of the other variants (wasm_inl.h).
#include <cstdint>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/wasm_inl.h"

namespace pawl {
namespace {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

PAWL_INLINE Quad Load4(const float* p) { return wasm_v128_load(p); }
PAWL_INLINE Quad Load4(const Bf16* p) { return wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16); }
PAWL_INLINE Quad Load4(const F16* p) { return OfHalves(wasm_u32x4_load16x4(p)); }

struct Vec {
  static constexpr int kFewRows = 1, kOutputsFewRows = 2, kOutputs = 2, kRows = 2;
  static constexpr int kAttentionQueries = 2, kAttentionBlocks = 1;
  Quad quad[4];

  static Vec Set1(float value) {
    const Quad v = wasm_f32x4_splat(value);
    return {{v, v, v, v}};
  }
  static Vec Zero() { return Set1(0.0f); }
  template <typename W>
  PAWL_INLINE static Vec Load(const W* p) {
    return {{Load4(p), Load4(p + 4), Load4(p + 8), Load4(p + 12)}};
  }
  template <typename W>
  static Vec LoadN(const W* p, int n) {
    W padded[16] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return Load(padded);
  }
  // The even, the odd elements of 32.
  PAWL_INLINE static Vec LoadEven(const Bf16* p) {
    Vec v;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v.quad[i] = wasm_i32x4_shl(wasm_v128_load(p + 8 * i), 16);
    return v;
  }
  PAWL_INLINE static Vec LoadOdd(const Bf16* p) {
    const v128_t upper = wasm_u32x4_const_splat(0xffff0000u);
    Vec v;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v.quad[i] = wasm_v128_and(wasm_v128_load(p + 8 * i), upper);
    return v;
  }
  PAWL_INLINE void Store(float* p) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) wasm_v128_store(p + 4 * i, quad[i]);
  }
  void StoreN(float* p, int n) const {
    float lanes[16];
    Store(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }
};

// f of the four quads, each on its own.
template <typename F>
PAWL_INLINE Vec OfQuads(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}
PAWL_INLINE Vec operator+(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return wasm_f32x4_add(a.quad[i], b.quad[i]); });
}
PAWL_INLINE Vec operator-(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return wasm_f32x4_sub(a.quad[i], b.quad[i]); });
}
PAWL_INLINE Vec operator*(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return wasm_f32x4_mul(a.quad[i], b.quad[i]); });
}
PAWL_INLINE Vec operator/(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return wasm_f32x4_div(a.quad[i], b.quad[i]); });
}
PAWL_INLINE Vec Fma(const Vec& a, const Vec& b, const Vec& c) {
  Vec v;
  FmaQuads<4>(a.quad, b.quad, c.quad, v.quad);
  return v;
}
// a > b ? a : b, and a < b ? a : b.
PAWL_INLINE Vec Max(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return wasm_f32x4_pmax(b.quad[i], a.quad[i]); });
}
PAWL_INLINE Vec Min(const Vec& a, const Vec& b) {
  return OfQuads([&](int i) { return wasm_f32x4_pmin(b.quad[i], a.quad[i]); });
}
// 2^n from the low bits of n + 1.5 * 2^23.
PAWL_INLINE Vec PowerOfTwo(const Vec& shifted) {
  return OfQuads([&](int i) {
    return wasm_i32x4_add(wasm_i32x4_shl(shifted.quad[i], 23), wasm_i32x4_const_splat(127 << 23));
  });
}

// 16 -> 8 -> 4 -> 2 lanes, the low ones.
PAWL_INLINE Quad FoldToTwo(const Vec& v) {
  const Quad four =
      wasm_f32x4_add(wasm_f32x4_add(v.quad[0], v.quad[2]), wasm_f32x4_add(v.quad[1], v.quad[3]));
  return wasm_f32x4_add(four, wasm_i32x4_shuffle(four, four, 2, 3, 2, 3));
}
PAWL_INLINE float Sum(const Vec& v) {
  const Quad two = FoldToTwo(v);
  return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}
PAWL_INLINE void Sum4(const Vec& a, const Vec& b, const Vec& c, const Vec& d, float* out) {
  const Quad low = wasm_i32x4_shuffle(FoldToTwo(a), FoldToTwo(b), 0, 1, 4, 5);
  const Quad high = wasm_i32x4_shuffle(FoldToTwo(c), FoldToTwo(d), 0, 1, 4, 5);
  wasm_v128_store(out, wasm_f32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6),
                                      wasm_i32x4_shuffle(low, high, 1, 3, 5, 7)));
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/sums_of_four_inl.h"
// The loops need the sums.
#include "kernels/cpu/kernels_inl.h"

namespace pawl {
const KernelSet kPortableKernels = TableNamed<kPortableIntegers>("wasm-simd128");
}  // namespace pawl
