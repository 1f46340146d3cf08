// Products of fours of signed bytes with SDOT of the dot product extension, which adds four of them
// to each of four 32-bit sums: as integers_neon_inl.h.
#include "kernels/cpu/integers_neon_inl.h"

namespace pawl {
namespace {

template <int kMost>
using Sum = Ints;
template <int kMost>
constexpr int kRoom = kQuantBlock / 4;
template <int kMost>
inline Ints Begin(const Ints& ints) {
  return ints;
}
template <typename J>
inline void Add(Ints& sum, const Bytes& weights, const InputBlock& input, J) {
  const int8x16_t fours = vld1q_s8(input.q + J::value / 4 * 16);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    sum.quad[i] = vdotq_laneq_s32(sum.quad[i], Signed(weights.v[i]), fours, J::value % 4);
  }
}
inline Ints End(const Ints& sum, const Ints&) { return sum; }

}  // namespace
}  // namespace pawl
