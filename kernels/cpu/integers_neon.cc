// Integer products with NEON alone: products of bytes are added as 16-bit integers, each lane's on
// its own, and pairs of lanes as 32-bit integers before that overflows. A product of integers below
// 2^bits is at most (2^bits - 1) * 127; of the signed bytes of kI8 and of tables it is at most
// 128 * 127, twice of which fit.
#include <cstring>

#include "kernels/cpu/integers_neon_inl.h"

namespace pawl {
namespace {

constexpr bool kRowPairs = false;

// Row l of the eight has lanes 4 (l % 2) .. of part[l / 2].
template <int kMost>
struct Sum {
  int16x8_t part[4];
};
template <int kMost>
constexpr int kRoom = kMost == 255 ? 2 : 32767 / (127 * kMost);
template <int kMost>
inline Sum<kMost> Begin(const Ints&) {
  const int16x8_t zero = vdupq_n_s16(0);
  return {{zero, zero, zero, zero}};
}
template <int kMost>
inline void Add(Sum<kMost>& sum, const Bytes& weights, const InputBlock& input, int j) {
  int32_t bytes;
  std::memcpy(&bytes, input.q + 4 * j, sizeof bytes);
  const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(bytes));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const int8x16_t w = Signed(weights.v[i]);
    sum.part[2 * i] = vmlal_s8(sum.part[2 * i], vget_low_s8(w), vget_low_s8(four));
    sum.part[2 * i + 1] = vmlal_high_s8(sum.part[2 * i + 1], w, four);
  }
}
template <int kMost>
inline Ints End(const Sum<kMost>& sum, const Ints& ints) {
  const auto four = [&sum](int i) {
    return vpaddq_s32(vpaddlq_s16(sum.part[i]), vpaddlq_s16(sum.part[i + 1]));
  };
  return {{vaddq_s32(ints.quad[0], four(0)), vaddq_s32(ints.quad[1], four(2))}};
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/integers_inl.h"

namespace pawl {
const IntegerKernels kNeonIntegers = {Pack, MatMul};
}  // namespace pawl
