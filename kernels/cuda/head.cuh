// The head, the masks, the noise and the argmax in one kernel.
//
// A block takes 64 tokens of the vocabulary. It reads their bits in the masks of all rows first and
// keeps the tokens that some row allows; without any it is done, so rows of the head that no row
// allows are never read. Where all masks are sparse, the tokens come from a short list instead, and
// a launch has few blocks. The logits are those of matmul.cuh, by the same code and so the same
// bits; each becomes a key of (perturbed logit, token) where its row allows it, and the largest key
// wins: an order without ties, so the winner does not depend on which block comes first. Blocks
// meet in an atomic maximum for each row; the last one to be done (a ticket) turns keys into tokens
// and leaves zeros for the next launch.
//
// Noise is expensive (ten rounds of Philox, two logarithms), so logits that the best key so far
// beats with any noise are dropped before it.
#ifndef PAWL_KERNELS_CUDA_HEAD_CUH_
#define PAWL_KERNELS_CUDA_HEAD_CUH_

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/matmul.cuh"
#include "pawl/cuda_kernels.h"

namespace pawl::PAWL_GPU {

constexpr int kHeadWords = 2;  // of a mask, for a block
constexpr int kHeadTokens = kHeadWords * 32;

// Bits of word `word` that row `r` allows, none beyond its limit.
__device__ __forceinline__ uint32_t AllowedWord(const HeadSample& p, int r, int word) {
  const int32_t mask = p.rows->masks[r];
  const int left = p.rows->limits[r] - word * 32;
  if (mask == kNoTokenWanted || left <= 0) return 0;
  const uint32_t bits = mask < 0 ? ~uint32_t{0} : p.masks[mask * p.masks_stride + word];
  return left < 32 ? bits & ((uint32_t{1} << left) - 1) : bits;
}

template <DeviceWeight W, int kTiles, int kEights>
__global__ __launch_bounds__(kMatMulThreads,
                             BlocksTogether(W, kTiles, kEights)) void HeadKernel(HeadSample p) {
  constexpr int kGroup = kTiles * kTileRows;  // tokens that are computed at a time
  PAWL_SHARED(float, sums, kMatMulWarps* kTiles* kTileRows * 8);
  PAWL_SHARED(float, squares_of_warps, kMatMulWarps* kEights * 8);
  PAWL_SHARED(float, inverse_norms, kEights * 8);
  PAWL_SHARED(DrawKey, best, kEights * 8);
  PAWL_SHARED(float, hopeless, kEights * 8);
  PAWL_SHARED(uint32_t, wanted, kHeadWords);
  PAWL_SHARED(int32_t, tokens, kHeadTokens);
  PAWL_SHARED(int, last, 1);

  const MatMul& product = p.product;
  const MatMulPart& part = product.parts[0];
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int lane = thread % kWarpSize, g = lane / 4;
  const bool listed = p.list != nullptr;
  DependencyWait();

  if (thread < kHeadWords) wanted[thread] = 0;
  for (int r = thread; r < kEights * 8; r += kMatMulThreads) best[r] = kNoKey;
  __syncthreads();
  int count = 0;
  if (listed) {
    // Few tokens: every block takes as many as it computes at a time.
    const int begin = block * kGroup, all = p.rows->list_count;
    count = all - begin < kGroup ? all - begin : kGroup;
    if (thread < count) tokens[thread] = p.list[begin + thread];
  } else {
    for (int i = thread; i < product.rows * kHeadWords; i += kMatMulThreads) {
      const uint32_t bits = AllowedWord(p, i / kHeadWords, block * kHeadWords + i % kHeadWords);
      if (bits != 0) atomicOr(wanted + i % kHeadWords, bits);
    }
    __syncthreads();
    for (int w = 0; w < kHeadWords; ++w) {
      const uint32_t bits = wanted[w];
      const int bit = thread - w * 32;
      if (bit >= 0 && bit < 32 && (bits >> bit & 1) != 0) {
        tokens[count + __popc(bits & ((uint32_t{1} << bit) - 1))] =
            (block * kHeadWords + w) * 32 + bit;
      }
      count += __popc(bits);
    }
  }
  __syncthreads();

  for (int base = 0; base < count; base += kGroup) {
    // Rows of the head; those beyond the last repeat it, and their results are dropped.
    int row_of[kTiles][2];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int i = base + t * kTileRows + h * 8 + g;
        row_of[t][h] = tokens[i < count ? i : count - 1];
      }
    }
    float acc[kTiles][kEights][4];
    float squares[kEights];
    // Where everything is allowed, the tokens are whole tiles.
    const bool whole_tiles = IsPacked(W) && count - base >= kGroup &&
                             tokens[base] % kTileRows == 0 &&
                             tokens[base + kGroup - 1] - tokens[base] == kGroup - 1;
    TileProduct<W, kTiles, kEights, false>(part, row_of, whole_tiles).Sums(product, acc, squares);
    InverseNorms<kEights>(product, part.w.columns, squares, squares_of_warps, inverse_norms);
    for (int r = thread; r < kEights * 8 && r < product.rows; r += kMatMulThreads) {
      // Any key that has been there will do: the later, the more is dropped.
      const DrawKey known = *static_cast<volatile DrawKey*>(&p.state->best[r]);
      const float temperature = p.rows->temperatures[r];
      hopeless[r] = known == kNoKey || known == kBrokenKey
                        ? -INFINITY
                        : HopelessLogit(ScoreOf(known), temperature);
    }
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      __syncthreads();
      ShareSums<kTiles, kEights>(acc, n, sums);
      __syncthreads();
      // Half a warp takes 16 tokens of one row of x.
      for (int i = thread; i < kGroup * 8; i += kMatMulThreads) {
        const int row = i % kTileRows, tile = i / kTileRows % kTiles;
        const int column = i / kGroup, r = n * 8 + column;
        const int at = base + tile * kTileRows + row;
        DrawKey key = kNoKey;
        if (at < count && r < product.rows) {
          const int token = tokens[at];
          const uint32_t bits = AllowedWord(p, r, token / 32);
          if ((bits >> token % 32 & 1) != 0) {
            float value = TileTotal<kTiles>(sums, tile, row, column);
            if (product.norm != nullptr) value *= inverse_norms[r];
            if constexpr (W == DeviceWeight::kFp8) value *= part.w.row_scales[token];
            if (product.soft_cap > 0.0f) {
              value = product.soft_cap * tanhf(value / product.soft_cap);
            }
            if (!IsFinite(value)) {
              key = kBrokenKey;
            } else if (!(value < hopeless[r])) {
              const float temperature = p.rows->temperatures[r];
              if (temperature != 0.0f) {
                value = Perturbed(
                    value, temperature,
                    GumbelAt(p.rows->seeds[r], p.rows->positions[r], static_cast<uint64_t>(token)));
              }
              key = KeyOf(value, token);
            }
          }
        }
        for (int by = kTileRows / 2; by > 0; by /= 2) {
          const DrawKey other = __shfl_xor_sync(kAllLanes, key, by);
          key = other > key ? other : key;
        }
        if (row == 0 && key != kNoKey) atomicMax(best + r, key);
      }
    }
    __syncthreads();
  }

  if (thread < kEights * 8 && best[thread] != kNoKey) {
    atomicMax(&p.state->best[thread], best[thread]);
  }
  __threadfence();
  __syncthreads();
  if (thread == 0) {
    last[0] = atomicAdd(&p.state->blocks_done, 1) == static_cast<int>(gridDim.x) - 1 ? 1 : 0;
  }
  __syncthreads();
  if (last[0] == 0) return;
  __threadfence();
  if (thread < product.rows) {
    const DrawKey key = atomicMax(&p.state->best[thread], kNoKey);
    const bool broken = key == kBrokenKey;
    p.answers->tokens[thread] = broken          ? kBrokenLogits
                                : key == kNoKey ? kNothingAllowed
                                                : TokenOf(key);
    p.state->best[thread] = kNoKey;
  }
  if (thread == 0) p.state->blocks_done = 0;
}

template <DeviceWeight W, int kTiles, int kEights>
Status LaunchHeadEights(const HeadSample& args, Stream stream) {
  Shape shape;
  shape.threads = kMatMulWarps * kWarpSize;
  const int tokens = args.list != nullptr ? kTiles * kTileRows : kHeadTokens;
  const int all = args.list != nullptr ? args.most_listed : args.product.parts[0].w.rows;
  shape.x = static_cast<unsigned>((all + tokens - 1) / tokens);
  return Launch("head", shape, stream, HeadKernel<W, kTiles, kEights>, args);
}

// The widths of LaunchMatMul, for the same bits.
template <DeviceWeight W, int kTiles>
Status LaunchHead(const HeadSample& args, Stream stream) {
  if (args.product.rows <= 8) return LaunchHeadEights<W, kTiles, 1>(args, stream);
  if constexpr (W != DeviceWeight::kF32) {
    if (args.product.rows <= 16) return LaunchHeadEights<W, kTiles, 2>(args, stream);
  }
  return LaunchHeadEights<W, 1, 8>(args, stream);
}

Status HeadF32(const HeadSample& args, Stream stream);
Status HeadBf16(const HeadSample& args, Stream stream);
Status HeadF16(const HeadSample& args, Stream stream);
Status HeadFp8(const HeadSample& args, Stream stream);
Status HeadI8(const HeadSample& args, Stream stream);
Status HeadI4(const HeadSample& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_HEAD_CUH_
