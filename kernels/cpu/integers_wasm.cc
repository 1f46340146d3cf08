// Integer products with SIMD of WebAssembly, in place of integers_portable.cc: signed bytes are
// widened to 16 bits, and products of neighbours added as 32-bit integers by one instruction, which
// are exact.
#include <cstdint>
#include <cstring>

#include "kernels/cpu/integers.h"
#include "kernels/cpu/wasm_inl.h"

namespace pawl {
namespace {

// Four rows of a tile are a register.
struct Ints {
  v128_t quad[2];
};
struct Floats {
  Quad quad[2];
};
struct Bytes {
  v128_t v[2];
};

constexpr int kLanes = 8, kRows = 2;
constexpr bool kOffset8 = false, kRowPairs = false;  // all bytes are multiplied as signed ones
constexpr int kHalfOffset = 32;

template <typename Pair, typename F>
PAWL_INLINE Pair Both(const F& f) {
  return {{f(0), f(1)}};
}
PAWL_INLINE Floats Set1(float value) {
  return Both<Floats>([=](int) { return wasm_f32x4_splat(value); });
}
PAWL_INLINE Floats Zero() { return Set1(0.0f); }
PAWL_INLINE Ints SetInts(int32_t value) {
  return Both<Ints>([=](int) { return wasm_i32x4_splat(value); });
}
PAWL_INLINE Floats Load(const float* p) {
  return Both<Floats>([=](int i) { return wasm_v128_load(p + 4 * i); });
}
PAWL_INLINE void Store(float* p, const Floats& a) {
  wasm_v128_store(p, a.quad[0]);
  wasm_v128_store(p + 4, a.quad[1]);
}
PAWL_INLINE Floats Halves(const uint16_t* p) {
  return Both<Floats>([=](int i) { return OfHalves(wasm_u32x4_load16x4(p + 4 * i)); });
}
// Eight bytes, four in each register.
PAWL_INLINE v128_t StepsOf(v128_t words, int i) {
  return i == 0 ? wasm_u32x4_extend_low_u16x8(words) : wasm_u32x4_extend_high_u16x8(words);
}
PAWL_INLINE Floats StepIntegers(const uint8_t* p) {
  const v128_t words = wasm_i16x8_load8x8(p);
  return {{wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(words)),
           wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(words))}};
}
PAWL_INLINE Floats StepE4m3(const uint8_t* p) {
  const v128_t words = wasm_i16x8_shl(wasm_u16x8_load8x8(p), 7);
  return Both<Floats>([&](int i) { return OfHalves(StepsOf(words, i)); });
}
PAWL_INLINE Floats StepPowers(const uint8_t* p) {
  const v128_t words = wasm_u16x8_load8x8(p);
  return Both<Floats>([&](int i) { return wasm_i32x4_shl(StepsOf(words, i), 23); });
}
PAWL_INLINE Floats operator+(const Floats& a, const Floats& b) {
  return Both<Floats>([&](int i) { return wasm_f32x4_add(a.quad[i], b.quad[i]); });
}
PAWL_INLINE Floats operator-(const Floats& a, const Floats& b) {
  return Both<Floats>([&](int i) { return wasm_f32x4_sub(a.quad[i], b.quad[i]); });
}
PAWL_INLINE Floats operator*(const Floats& a, const Floats& b) {
  return Both<Floats>([&](int i) { return wasm_f32x4_mul(a.quad[i], b.quad[i]); });
}
PAWL_INLINE Floats Fma(const Floats& a, const Floats& b, const Floats& c) {
  Floats v;
  FmaQuads<2>(a.quad, b.quad, c.quad, v.quad);
  return v;
}
PAWL_INLINE Floats Scaled(const Ints& ints, const Floats& scale, const Floats&) {
  const v128_t zero = wasm_i32x4_splat(kZero);
  return Both<Floats>([&](int i) {
    return wasm_f32x4_mul(wasm_f32x4_convert_i32x4(wasm_i32x4_sub(ints.quad[i], zero)),
                          scale.quad[i]);
  });
}

PAWL_INLINE Bytes LoadBytes(const uint8_t* p) {
  return Both<Bytes>([=](int i) { return wasm_v128_load(p + 16 * i); });
}
PAWL_INLINE void StoreBytes(uint8_t* p, const Bytes& a) {
  wasm_v128_store(p, a.v[0]);
  wasm_v128_store(p + 16, a.v[1]);
}
PAWL_INLINE Bytes SetBytes(int value) {
  return Both<Bytes>([=](int) { return wasm_i8x16_splat(static_cast<int8_t>(value)); });
}
PAWL_INLINE Bytes operator&(const Bytes& a, const Bytes& b) {
  return Both<Bytes>([&](int i) { return wasm_v128_and(a.v[i], b.v[i]); });
}
PAWL_INLINE Bytes operator|(const Bytes& a, const Bytes& b) {
  return Both<Bytes>([&](int i) { return wasm_v128_or(a.v[i], b.v[i]); });
}
PAWL_INLINE Bytes Plus(const Bytes& a, const Bytes& b) {
  return Both<Bytes>([&](int i) { return wasm_i8x16_add(a.v[i], b.v[i]); });
}
template <int n>
PAWL_INLINE Bytes Shift(const Bytes& a) {
  return Both<Bytes>([&](int i) {
    return n < 0 ? wasm_i16x8_shl(a.v[i], n < 0 ? -n : 0) : wasm_u16x8_shr(a.v[i], n < 0 ? 0 : n);
  });
}
PAWL_INLINE Bytes LoadTable(const int8_t* p) {
  return Both<Bytes>([=](int) { return wasm_v128_load(p); });
}
PAWL_INLINE Bytes Lookup(const Bytes& table, const Bytes& index) {
  return Both<Bytes>([&](int i) { return wasm_i8x16_swizzle(table.v[i], index.v[i]); });
}
PAWL_INLINE Bytes Wide(const Bytes& a) {
  const v128_t top = wasm_i8x16_const_splat(-128);
  return Both<Bytes>([&](int i) { return wasm_v128_xor(a.v[i], top); });
}

// The bytes as 16-bit integers, two rows in a register.
template <int kMost>
struct Factor {
  v128_t rows[4];
};
template <int kMost>
PAWL_INLINE Factor<kMost> Prepare(const Bytes& a) {
  return {{wasm_i16x8_extend_low_i8x16(a.v[0]), wasm_i16x8_extend_high_i8x16(a.v[0]),
           wasm_i16x8_extend_low_i8x16(a.v[1]), wasm_i16x8_extend_high_i8x16(a.v[1])}};
}
// Two halves of the sum of each row, those of two rows in a register.
template <int kMost>
struct Sum {
  v128_t rows[4];
};
template <int kMost>
constexpr int kRoom = kQuantBlock / 4;
template <int kMost>
PAWL_INLINE Sum<kMost> Begin(const Ints&) {
  const v128_t zero = wasm_i32x4_const_splat(0);
  return {{zero, zero, zero, zero}};
}
template <int kMost>
PAWL_INLINE void Add(Sum<kMost>& sum, const Factor<kMost>& weights, const InputBlock& input,
                     int j) {
  const v128_t four = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_splat(input.q + 4 * j));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    sum.rows[i] = wasm_i32x4_add(sum.rows[i], wasm_i32x4_dot_i16x8(weights.rows[i], four));
  }
}
template <int kMost>
PAWL_INLINE Ints End(const Sum<kMost>& sum, const Ints& ints) {
  return Both<Ints>([&](int i) {
    const v128_t a = sum.rows[2 * i], b = sum.rows[2 * i + 1];
    const v128_t rows =
        wasm_i32x4_add(wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), wasm_i32x4_shuffle(a, b, 1, 3, 5, 7));
    return wasm_i32x4_add(ints.quad[i], rows);
  });
}

inline int LargestBits(const float* x) {
  v128_t top = wasm_i32x4_const_splat(0);
  for (int i = 0; i < kQuantBlock; i += 4) {
    top = wasm_i32x4_max(top,
                         wasm_v128_and(wasm_v128_load(x + i), wasm_i32x4_const_splat(0x7fffffff)));
  }
  top = wasm_i32x4_max(top, wasm_i32x4_shuffle(top, top, 2, 3, 0, 1));
  top = wasm_i32x4_max(top, wasm_i32x4_shuffle(top, top, 1, 0, 3, 2));
  return wasm_i32x4_extract_lane(top, 0);
}
inline void Round(const float* x, float factor, int8_t* q) {
  const auto four = [=](int i) {
    return wasm_i32x4_trunc_sat_f32x4(
        wasm_f32x4_nearest(wasm_f32x4_mul(wasm_v128_load(x + i), wasm_f32x4_splat(factor))));
  };
  for (int i = 0; i < kQuantBlock; i += 16) {
    wasm_v128_store(q + i,
                    wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(four(i), four(i + 4)),
                                            wasm_i16x8_narrow_i32x4(four(i + 8), four(i + 12))));
  }
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/integers_inl.h"

namespace pawl {
const IntegerKernels kPortableIntegers = {Pack, MatMul};
}  // namespace pawl
