// Integer products with SMMLA of the matrix extension (FEAT_I8MM): eight inputs of two rows of
// weights times those of two input rows are added to four sums, twice the products of SDOT. A
// single input row takes SDOT.
#include "kernels/cpu/integers_neon_dot_inl.h"

namespace pawl {
namespace {

constexpr bool kRowPairs = true;

// Register i, of four, has 8 inputs of the rows 2 i and 2 i + 1 of weights, in the place of two
// fours.
struct PairWeights {
  Bytes half[2];
};
// The sums of these two rows with the first input, the second, the first, the second.
struct PairSum {
  int32x4_t v[4];
};

// Of two fours.
inline PairWeights JoinFours(const Bytes& even, const Bytes& odd) {
  PairWeights joined;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const uint32x4_t a = vreinterpretq_u32_u8(even.v[i]), b = vreinterpretq_u32_u8(odd.v[i]);
    joined.half[i].v[0] = vreinterpretq_u8_u32(vzip1q_u32(a, b));
    joined.half[i].v[1] = vreinterpretq_u8_u32(vzip2q_u32(a, b));
  }
  return joined;
}
template <typename Rows>
inline PairSum BeginPair(Rows) {
  const int32x4_t zero = vdupq_n_s32(0);
  return {{zero, zero, zero, zero}};
}
// The fours j and j + 1 of two inputs.
inline void AddPair(PairSum& sum, const PairWeights& weights, const InputBlock& first,
                    const InputBlock& second, int j) {
  const int8x16_t inputs = vcombine_s8(vld1_s8(first.q + 4 * j), vld1_s8(second.q + 4 * j));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    sum.v[i] = vmmlaq_s32(sum.v[i], Signed(weights.half[i / 2].v[i % 2]), inputs);
  }
}
inline void EndPair(const PairSum& sum, Ints& first, Ints& second) {
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const int32x4_t a = sum.v[2 * i], b = sum.v[2 * i + 1];
    first.quad[i] = vaddq_s32(first.quad[i], vuzp1q_s32(a, b));
    second.quad[i] = vaddq_s32(second.quad[i], vuzp2q_s32(a, b));
  }
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/integers_inl.h"

namespace pawl {
const IntegerKernels kNeonI8mmIntegers = {Pack, MatMul};
}  // namespace pawl
