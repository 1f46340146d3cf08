// A warp takes 32 words of a mask with one coalesced load, then visits them one by one, each lane
// standing for one token: a word with all bits set costs one shuffle and one comparison, others one
// coalesced store by the lanes whose bit is clear. Logits are never loaded. The CPU twin is
// kernels/cpu/bitmask.cc.
//
// Bytes per row: vocabulary / 8 read, and the refused logits written.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/cuda/bitmask.h"

namespace pawl {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 8;
constexpr int64_t kMaxGridY = 65535;

template <typename Bits>
__global__ void MaskKernel(BitmaskArgs args, Bits minus_infinity) {
  const int64_t i = blockIdx.x;
  const int64_t row = args.logit_rows != nullptr ? args.logit_rows[i] : i;
  const int64_t mask_row = args.mask_rows != nullptr ? args.mask_rows[i] : i;
  Bits* logits = static_cast<Bits*>(args.logits) + row * args.logits_stride;
  const uint32_t* mask = args.masks + mask_row * args.masks_stride;
  const int64_t words = (args.vocabulary + 31) / 32;
  const int lane = threadIdx.x % kWarp;
  const int64_t warp = int64_t{blockIdx.y} * kWarpsPerBlock + threadIdx.x / kWarp;
  const int64_t warps = int64_t{gridDim.y} * kWarpsPerBlock;
  for (int64_t base = warp * kWarp; base < words; base += warps * kWarp) {
    const uint32_t mine = base + lane < words ? mask[base + lane] : ~uint32_t{0};
    for (int j = 0; j < kWarp; ++j) {
      const uint32_t word = __shfl_sync(0xffffffffu, mine, j);
      if (word == ~uint32_t{0}) continue;
      const int64_t token = (base + j) * 32 + lane;
      if (token < args.vocabulary && (word >> lane & 1) == 0) logits[token] = minus_infinity;
    }
  }
}

}  // namespace

Status ApplyBitmaskCuda(const BitmaskArgs& args, void* stream) {
  if (args.count <= 0 || args.vocabulary <= 0) return {};
  const int64_t words = (args.vocabulary + 31) / 32;
  const int64_t blocks = (words + kWarp * kWarpsPerBlock - 1) / (kWarp * kWarpsPerBlock);
  const dim3 grid(static_cast<unsigned>(args.count),
                  static_cast<unsigned>(std::min(blocks, kMaxGridY)));
  const dim3 block(kWarp * kWarpsPerBlock);
  const auto on = static_cast<cudaStream_t>(stream);
  switch (args.type) {
    case LogitType::kF32:
      MaskKernel<uint32_t><<<grid, block, 0, on>>>(args, 0xff800000u);
      break;
    case LogitType::kF16:
      MaskKernel<uint16_t><<<grid, block, 0, on>>>(args, 0xfc00u);
      break;
    case LogitType::kBf16:
      MaskKernel<uint16_t><<<grid, block, 0, on>>>(args, 0xff80u);
      break;
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    return Error{ErrorCode::kInternal, std::string("CUDA: ") + cudaGetErrorString(error),
                 "ApplyBitmaskCuda"};
  }
  return {};
}

}  // namespace pawl
