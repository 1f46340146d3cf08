// Logits are stored, never loaded: minus infinity is one bit pattern for each type. Words with all
// bits set, most of a permissive mask, are skipped; in others only the clear bits are visited.
#include "kernels/bitmask.h"

#include <bit>
#include <cstdint>

namespace pawl {
namespace {

template <typename Bits>
void MaskRow(Bits* logits, const uint32_t* mask, int64_t vocabulary, Bits minus_infinity) {
  for (int64_t first = 0; first < vocabulary; first += 32) {
    uint32_t refused = ~mask[first / 32];
    const int64_t left = vocabulary - first;
    if (left < 32) refused &= (uint32_t{1} << left) - 1;
    if (refused == ~uint32_t{0}) {
      for (int i = 0; i < 32; ++i) logits[first + i] = minus_infinity;
      continue;
    }
    for (; refused != 0; refused &= refused - 1) {
      logits[first + std::countr_zero(refused)] = minus_infinity;
    }
  }
}

template <typename Bits>
void MaskRows(const BitmaskArgs& args, Bits minus_infinity) {
  for (int32_t i = 0; i < args.count; ++i) {
    const int64_t row = args.logit_rows != nullptr ? args.logit_rows[i] : i;
    const int64_t mask = args.mask_rows != nullptr ? args.mask_rows[i] : i;
    if (mask < 0) continue;
    MaskRow(static_cast<Bits*>(args.logits) + row * args.logits_stride,
            args.masks + mask * args.masks_stride, args.vocabulary, minus_infinity);
  }
}

}  // namespace

void ApplyBitmask(const BitmaskArgs& args) {
  switch (args.type) {
    case LogitType::kF32:
      return MaskRows<uint32_t>(args, 0xff800000u);
    case LogitType::kF16:
      return MaskRows<uint16_t>(args, 0xfc00u);
    case LogitType::kBf16:
      return MaskRows<uint16_t>(args, 0xff80u);
  }
}

}  // namespace pawl
