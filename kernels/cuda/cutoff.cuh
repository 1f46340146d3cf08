// The least key (src/base/random.h) of the largest ones whose weights, added up, are enough: the
// k-th largest, or the one where a share of all weights is reached. For kernels of 1024 threads,
// whose blocks may be clusters.
//
// The keys that may be it are cut into 1024 equal ranges; the ranges' weights, added up over the
// cluster, say in which of them it is, and that range is cut again until it holds one key. Weights
// are integers, so the sums are exact, and neither the order of threads nor the number of blocks
// changes them.
#ifndef PAWL_KERNELS_CUDA_CUTOFF_CUH_
#define PAWL_KERNELS_CUDA_CUTOFF_CUH_

#include "kernels/cuda/device_language.h"
#include "src/base/random.h"

namespace pawl::PAWL_GPU {

constexpr int kCutoffThreads = 1024;
constexpr int kCutoffWarps = kCutoffThreads / kWarpSize;
constexpr int kBins = kCutoffThreads, kBinBits = 10;
constexpr int kMostBlocks = static_cast<int>(kMostClusterBlocks);

// KeyOf(-kLargestLogit, 0x7fffffff) and KeyOf(kLargestLogit, 0): keys of finite logits.
constexpr float kLargestLogit = 3.402823466e38f;
constexpr DrawKey kLeastKey = DrawKey{1} << 63 | DrawKey{0x00800000u} << 31;
constexpr DrawKey kMostKey = DrawKey{1} << 63 | DrawKey{0xff7fffffu} << 31 | 0x7fffffffu;

// Sums of weights in 32-bit halves, for which there are atomic additions, and how many there were.
struct Bins {
  uint32_t low[kBins], high[kBins], items[kBins];
  DrawKey groups[kCutoffWarps];  // sums of 32 bins, from the last bin on
};
struct Found {
  int bin;  // -1: none
  uint32_t items;
  DrawKey before;  // the sum of larger keys
};

// Of the block, and what it has used of it.
struct CutoffMemory {
  Bins* bins;  // two: one is cleared and filled while other blocks still read the other
  Found* found;
  int turn;
};

#define PAWL_CUTOFF_MEMORY(name)       \
  PAWL_SHARED(Bins, name##_bins, 2);   \
  PAWL_SHARED(Found, name##_found, 1); \
  CutoffMemory name = {name##_bins, name##_found, 0}

// A weight, without counting it as an item.
__device__ __forceinline__ void AddWeight(Bins& bins, int bin, DrawKey weight) {
  const auto low = static_cast<uint32_t>(weight);
  auto high = static_cast<uint32_t>(weight >> 32);
  if (low != 0 && atomicAdd(bins.low + bin, low) + low < low) ++high;
  if (high != 0) atomicAdd(bins.high + bin, high);
}

// value and the values of the lanes before this one.
__device__ __forceinline__ DrawKey SumSoFar(DrawKey value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (int by = 1; by < kWarpSize; by *= 2) {
    const DrawKey other = __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(by));
    if (lane >= by) value += other;
  }
  return value;
}

// For a warp whose lanes have sums of keys, the larger keys first, behind keys that sum up to
// `above`: the lane where the sum is enough, -1: none. *before: the sum in front of the lane.
template <typename Enough>
__device__ __forceinline__ int LaneOf(DrawKey value, DrawKey above, DrawKey total,
                                      const Enough& enough, DrawKey* before) {
  const DrawKey reached = above + SumSoFar(value);
  *before = reached - value;
  const bool here =
      value != 0 && enough(reached, total) && (*before == 0 || !enough(*before, total));
  return __ffs(static_cast<int>(__ballot_sync(kAllLanes, here ? 1 : 0))) - 1;
}

// The bin where the sum of the cluster's bins is enough, found by one warp: first the 32 bins, then
// the one of them, so that little is read from other blocks. *total is set at the first level.
template <typename Enough>
__device__ __forceinline__ Found FindBin(const Bins& bins, DrawKey above, bool first,
                                         const Enough& enough, DrawKey* total) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, blocks = ClusterBlocks();
  DrawKey groups[kMostBlocks], value = 0, before = 0;
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) {
    groups[r] = r < blocks ? SharedOf(&bins, r)->groups[lane] : 0;
  }
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) value += groups[r];
  if (first) *total = __shfl_sync(kAllLanes, SumSoFar(value), kWarpSize - 1);
  const int group = LaneOf(value, above, *total, enough, &before);
  if (group < 0) return {-1, 0, 0};
  above = __shfl_sync(kAllLanes, before, group);
  const int bin = kBins - 1 - group * kWarpSize - lane;
  uint32_t low[kMostBlocks], high[kMostBlocks], count[kMostBlocks], items = 0;
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) {
    low[r] = high[r] = count[r] = 0;
    if (r >= blocks) continue;
    const Bins* there = SharedOf(&bins, r);
    low[r] = there->low[bin];
    high[r] = there->high[bin];
    count[r] = there->items[bin];
  }
  value = 0;
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) {
    value += low[r] + (static_cast<DrawKey>(high[r]) << 32);
    items += count[r];
  }
  const int its = LaneOf(value, above, *total, enough, &before);
  return {__shfl_sync(kAllLanes, bin, its), __shfl_sync(kAllLanes, items, its),
          __shfl_sync(kAllLanes, before, its)};
}

// The largest key from which on the weights of the keys are enough, or a smaller one with no key
// between; `least` if all of them are not. each(visit) calls visit(key, logit) for keys up to
// `most`; those below `least`, which must not be the answer, add to the sum of all.
// enough(sum, sum of all) stays true once it is. After `levels` cuts the result may be too small.
template <typename Each, typename Weight, typename Enough>
__device__ DrawKey Cutoff(DrawKey least, DrawKey most, int levels, const Each& each,
                          const Weight& weight, const Enough& enough, CutoffMemory& memory) {
  const int thread = static_cast<int>(threadIdx.x), bin = kBins - 1 - thread;
  DrawKey span = most - least, above = 0, total = 0;
  for (int level = 0; level < levels; ++level) {
    const int bits = 64 - __clzll(static_cast<long long>(span));
    const int shift = bits > kBinBits ? bits - kBinBits : 0;
    memory.turn ^= 1;
    Bins& bins = memory.bins[memory.turn];
    bins.low[thread] = bins.high[thread] = bins.items[thread] = 0;
    __syncthreads();
    DrawKey rest = 0;
    each([&](DrawKey key, float logit) {
      const bool below = key < least;
      if (below ? level > 0 : key - least > span) return;
      const DrawKey its = weight(logit);
      if (below) {
        rest += its;
      } else {
        const auto at = static_cast<int>((key - least) >> shift);
        AddWeight(bins, at, its);
        atomicAdd(bins.items + at, 1u);
      }
    });
    // The answer is in the last range at most, so the rest may be in it.
    for (int by = kWarpSize / 2; by > 0; by /= 2) rest += __shfl_xor_sync(kAllLanes, rest, by);
    if (rest != 0 && thread % kWarpSize == 0) AddWeight(bins, 0, rest);
    __syncthreads();
    DrawKey group = bins.low[bin] + (static_cast<DrawKey>(bins.high[bin]) << 32);
    for (int by = kWarpSize / 2; by > 0; by /= 2) group += __shfl_xor_sync(kAllLanes, group, by);
    if (thread % kWarpSize == 0) bins.groups[thread / kWarpSize] = group;
    ClusterSync();
    if (thread < kWarpSize) {
      const Found found = FindBin(bins, above, level == 0, enough, &total);
      if (thread == 0) *memory.found = found;
    }
    __syncthreads();
    const Found found = *memory.found;
    if (found.bin < 0) break;
    least += static_cast<DrawKey>(found.bin) << shift;
    span = (DrawKey{1} << shift) - 1;
    above = found.before;
    if (shift == 0 || found.items == 1) break;
  }
  return least;
}

// Weights of keys that are counted.
struct One {
  __device__ DrawKey operator()(float) const { return 1; }
};

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_CUTOFF_CUH_
