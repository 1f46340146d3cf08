// What the kernels for WebAssembly share (wasm.cc, integers_wasm.cc): a fused multiply-add, which
// SIMD of WebAssembly does not have, of four floats at a time. As kernels_inl.h, for one .cc file.
//
// The product of two floats is exact as a double. Their sum with the third is rounded to a double
// and then to a float. Rounding twice is wrong only where the double lies in the middle between two
// floats and was rounded itself. There the rest that was rounded away is found (Knuth's TwoSum) and
// moves the double by one unit to its side. So the bits are those of the instruction of other
// processors, but for results below 2^-126.
#include <wasm_simd128.h>

#include <cstdint>

namespace pawl {
namespace {

using Quad = v128_t;  // four floats

#define PAWL_INLINE __attribute__((always_inline)) inline

PAWL_INLINE Quad HighDoubles(Quad a) {
  return wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(a, a, 2, 3, 2, 3));
}
PAWL_INLINE Quad LowDoubles(Quad a) { return wasm_f64x2_promote_low_f32x4(a); }
PAWL_INLINE Quad JoinDoubles(v128_t low, v128_t high) {
  return wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high),
                            0, 1, 4, 5);
}

// `sum` of the two doubles, moved to the side of what it lacks where it is in the middle between
// two floats.
inline v128_t OffTheMiddle(v128_t product, v128_t c, v128_t sum) {
  const v128_t part = wasm_f64x2_sub(sum, product);
  const v128_t rest =
      wasm_f64x2_add(wasm_f64x2_sub(product, wasm_f64x2_sub(sum, part)), wasm_f64x2_sub(c, part));
  const v128_t middle = wasm_i64x2_eq(wasm_v128_and(sum, wasm_i64x2_const_splat(0x1fffffff)),
                                      wasm_i64x2_const_splat(0x10000000));
  const v128_t inexact = wasm_f64x2_ne(rest, wasm_f64x2_const_splat(0));
  // -1 where the rest is towards zero, else 1.
  const v128_t step =
      wasm_v128_or(wasm_i64x2_shr(wasm_v128_xor(rest, sum), 63), wasm_i64x2_const_splat(1));
  return wasm_i64x2_add(sum, wasm_v128_and(step, wasm_v128_and(middle, inexact)));
}
__attribute__((noinline)) Quad FmaOffTheMiddle(Quad a, Quad b, Quad c) {
  const v128_t low = wasm_f64x2_mul(LowDoubles(a), LowDoubles(b));
  const v128_t high = wasm_f64x2_mul(HighDoubles(a), HighDoubles(b));
  const v128_t low_c = LowDoubles(c), high_c = HighDoubles(c);
  return JoinDoubles(OffTheMiddle(low, low_c, wasm_f64x2_add(low, low_c)),
                     OffTheMiddle(high, high_c, wasm_f64x2_add(high, high_c)));
}

// out[i] = a[i] b[i] + c[i]
template <int N>
PAWL_INLINE void FmaQuads(const Quad* a, const Quad* b, const Quad* c, Quad* out) {
  v128_t middle = wasm_i32x4_const_splat(0);
  Quad result[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    const v128_t low =
        wasm_f64x2_add(wasm_f64x2_mul(LowDoubles(a[i]), LowDoubles(b[i])), LowDoubles(c[i]));
    const v128_t high =
        wasm_f64x2_add(wasm_f64x2_mul(HighDoubles(a[i]), HighDoubles(b[i])), HighDoubles(c[i]));
    result[i] = JoinDoubles(low, high);
    const v128_t words = wasm_v128_and(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6),
                                       wasm_i32x4_const_splat(0x1fffffff));
    middle = wasm_v128_or(middle, wasm_i32x4_eq(words, wasm_i32x4_const_splat(0x10000000)));
  }
  if (__builtin_expect(wasm_v128_any_true(middle), 0)) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) result[i] = FmaOffTheMiddle(a[i], b[i], c[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) out[i] = result[i];
}

// Four half-precision numbers in the low halves of the lanes. Their exponents are 112 too small.
PAWL_INLINE Quad OfHalves(v128_t halves) {
  const v128_t size = wasm_v128_and(halves, wasm_i32x4_const_splat(0x7fff));
  v128_t bits = wasm_f32x4_mul(wasm_i32x4_shl(size, 13), wasm_f32x4_const_splat(0x1p112f));
  const v128_t top = wasm_i32x4_gt(size, wasm_i32x4_const_splat(0x7bff));  // infinity, NaN
  const v128_t nan = wasm_i32x4_gt(size, wasm_i32x4_const_splat(0x7c00));  // made quiet
  bits = wasm_v128_or(bits, wasm_v128_and(top, wasm_i32x4_const_splat(0x7f800000)));
  bits = wasm_v128_or(bits, wasm_v128_and(nan, wasm_i32x4_const_splat(0x00400000)));
  const v128_t sign = wasm_v128_and(halves, wasm_i32x4_const_splat(0x8000));
  return wasm_v128_or(bits, wasm_i32x4_shl(sign, 16));
}

}  // namespace
}  // namespace pawl
