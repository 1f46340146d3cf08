// A warp takes 32 words of a mask with one coalesced load and visits those that are not all ones,
// each lane standing for one token: one coalesced store by the lanes whose bit is clear. Logits are
// never loaded, and where everything is allowed nothing is touched. The CPU twin is
// kernels/cpu/bitmask.cc.
//
// Bytes per row: vocabulary / 8 read, and the refused logits written.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/masks.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kWarpsPerBlock = 8;
constexpr int64_t kMaxGridY = 65535;

template <typename Bits>
__global__ void MaskKernel(BitmaskArgs args, Bits minus_infinity) {
  DependencyWait();
  const int64_t i = blockIdx.x;
  const int64_t row = args.logit_rows != nullptr ? args.logit_rows[i] : i;
  const int64_t mask_row = args.mask_rows != nullptr ? args.mask_rows[i] : i;
  if (mask_row < 0) return;
  Bits* logits = static_cast<Bits*>(args.logits) + row * args.logits_stride;
  const uint32_t* mask = args.masks + mask_row * args.masks_stride;
  const int64_t words = (args.vocabulary + 31) / 32;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int64_t warp =
      static_cast<int64_t>(blockIdx.y) * kWarpsPerBlock + static_cast<int>(threadIdx.x) / kWarpSize;
  const int64_t warps = static_cast<int64_t>(gridDim.y) * kWarpsPerBlock;
  for (int64_t base = warp * kWarpSize; base < words; base += warps * kWarpSize) {
    const uint32_t mine = base + lane < words ? mask[base + lane] : ~uint32_t{0};
    for (unsigned mixed = __ballot_sync(kAllLanes, mine != ~uint32_t{0}); mixed != 0;
         mixed &= mixed - 1) {
      const int j = __ffs(static_cast<int>(mixed)) - 1;
      const uint32_t word = __shfl_sync(kAllLanes, mine, j);
      const int64_t token = (base + j) * 32 + lane;
      if (token < args.vocabulary && (word >> lane & 1) == 0) logits[token] = minus_infinity;
    }
  }
}

}  // namespace

Status ApplyBitmask(const BitmaskArgs& args, Stream stream) {
  if (args.count <= 0 || args.vocabulary <= 0) return {};
  const int64_t words = (args.vocabulary + 31) / 32;
  const int64_t blocks = (words + kWarpSize * kWarpsPerBlock - 1) / (kWarpSize * kWarpsPerBlock);
  Shape shape;
  shape.x = static_cast<unsigned>(args.count);
  shape.y = static_cast<unsigned>(blocks < kMaxGridY ? blocks : kMaxGridY);
  shape.threads = kWarpSize * kWarpsPerBlock;
  switch (args.type) {
    case LogitType::kF32:
      return Launch("bitmask", shape, stream, MaskKernel<uint32_t>, args, 0xff800000u);
    case LogitType::kF16:
      return Launch("bitmask", shape, stream, MaskKernel<uint16_t>, args, uint16_t{0xfc00u});
    case LogitType::kBf16:
      return Launch("bitmask", shape, stream, MaskKernel<uint16_t>, args, uint16_t{0xff80u});
  }
  return {};
}

}  // namespace pawl::PAWL_GPU
