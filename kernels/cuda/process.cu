// A block for each row, which goes over the row's allowed logits a few times; they stay in the L2
// cache. Words of the mask without a bit cost nothing.
//
// Top-k and top-p both ask for the least key (src/base/random.h) that is kept: the k-th largest, or
// the one where the weights of the largest keys, added up, reach the share p. It is found eight
// bits at a time from the top: a histogram of the weights of the keys that share the bits found so
// far, and in it the bin where the sum over larger keys crosses what is asked for. Weights are
// integers, so the sums are exact and no order of threads changes them.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"
#include "pawl/cuda_kernels.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kBins = 256;
constexpr float kLargest = 3.402823466e38f;

// What a row of the call is, for all threads of its block.
struct RowView {
  float* logits;
  const uint32_t* mask;  // null: everything is allowed
  int words, limit;
};

// visit(token, logit) for each allowed token, by some thread; a warp's threads come together.
template <typename Visit>
__device__ void ForAllowed(const RowView& row, const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (int base = static_cast<int>(threadIdx.x) / kWarpSize * kWarpSize; base < row.words;
       base += kThreads) {
    uint32_t mine = 0;
    if (base + lane < row.words) mine = row.mask != nullptr ? row.mask[base + lane] : ~uint32_t{0};
    for (unsigned some = __ballot_sync(kAllLanes, mine != 0); some != 0; some &= some - 1) {
      const int j = __ffs(static_cast<int>(some)) - 1;
      const uint32_t word = __shfl_sync(kAllLanes, mine, j);
      const int token = (base + j) * 32 + lane;
      if (token < row.limit && (word >> lane & 1) != 0) visit(token, row.logits[token]);
    }
  }
}

__device__ DrawKey BlockLargest(DrawKey key, DrawKey* scratch) {
  for (int by = kWarpSize / 2; by > 0; by /= 2) {
    const DrawKey other = __shfl_xor_sync(kAllLanes, key, by);
    key = other > key ? other : key;
  }
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) scratch[threadIdx.x / kWarpSize] = key;
  __syncthreads();
  for (int i = 0; i < kWarps; ++i) key = scratch[i] > key ? scratch[i] : key;
  return key;
}

__device__ DrawKey BlockTotal(DrawKey value, DrawKey* scratch) {
  for (int by = kWarpSize / 2; by > 0; by /= 2) value += __shfl_xor_sync(kAllLanes, value, by);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) scratch[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  value = 0;
  for (int i = 0; i < kWarps; ++i) value += scratch[i];
  return value;
}

// The least key of the fewest largest ones whose weights are enough. weight(logit) of the keys
// below `least` does not count. `bins`: kBins of them, `found`: two.
template <typename Weight, typename Enough>
__device__ DrawKey Cutoff(const RowView& row, DrawKey least, const Weight& weight,
                          const Enough& enough, DrawKey* bins, DrawKey* found) {
  DrawKey prefix = 0, above = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) bins[i] = 0;
    __syncthreads();
    // Neighbours often fall into the same bin: one atomic for all of them.
    int bin = -1;
    DrawKey sum = 0;
    ForAllowed(row, [&](int token, float logit) {
      const DrawKey key = KeyOf(logit, token);
      if (key < least || (shift < 56 && key >> (shift + 8) != prefix >> (shift + 8))) return;
      const int its = static_cast<int>(key >> shift & (kBins - 1));
      if (its != bin) {
        if (sum != 0) atomicAdd(bins + bin, sum);
        bin = its;
        sum = 0;
      }
      sum += weight(logit);
    });
    if (sum != 0) atomicAdd(bins + bin, sum);
    __syncthreads();
    if (threadIdx.x == 0) {
      // The last bin with something in it, where rounding leaves none that is enough.
      DrawKey reached = above, its = 0, before = above;
      for (int i = kBins - 1; i >= 0; --i) {
        if (bins[i] == 0) continue;
        its = static_cast<DrawKey>(i);
        before = reached;
        reached += bins[i];
        if (enough(reached)) break;
      }
      found[0] = its;
      found[1] = before;
    }
    __syncthreads();
    prefix |= found[0] << shift;
    above = found[1];
  }
  return prefix;
}

// Grid: rows.
__global__ __launch_bounds__(kThreads) void ProcessKernel(ProcessLogits p) {
  DependencyWait();
  PAWL_SHARED(DrawKey, scratch, kWarps);
  PAWL_SHARED(DrawKey, bins, kBins);
  PAWL_SHARED(DrawKey, found, 2);
  const int i = static_cast<int>(blockIdx.x), mask_row = p.rows->masks[i];
  if (mask_row == kNoTokenWanted) {
    if (threadIdx.x == 0) p.answers->tokens[i] = kNothingAllowed;
    return;
  }
  const ProcessRow process = p.process[i];
  const float temperature = p.rows->temperatures[i];
  RowView row;
  row.logits = p.logits + i * p.logits_stride;
  row.mask = mask_row < 0 ? nullptr : p.masks + mask_row * p.masks_stride;
  row.limit = p.rows->limits[i];
  row.words = (row.limit + 31) / 32;

  // The largest logit that is finite; bits of what else there is.
  DrawKey best = kNoKey, state = 0;
  ForAllowed(row, [&](int token, float logit) {
    state |= 1;
    if (!(logit <= kLargest)) {
      state |= 2;
    } else if (logit >= -kLargest) {
      const DrawKey key = KeyOf(logit, token);
      best = key > best ? key : best;
    }
  });
  best = BlockLargest(best, scratch);
  const bool some = BlockLargest(state, scratch) != 0;
  const bool broken = BlockLargest(state & 2, scratch) != 0;
  if (!some || broken) {
    if (threadIdx.x == 0) p.answers->tokens[i] = broken ? kBrokenLogits : kNothingAllowed;
    return;
  }
  if (best == kNoKey) {
    // All are -infinity and count as equal.
    ForAllowed(row, [&](int token, float) { row.logits[token] = 0.0f; });
    __syncthreads();
  }
  if (process.penalties.any()) {
    for (int s = static_cast<int>(threadIdx.x); s < process.seen_count; s += kThreads) {
      const int32_t* seen = p.seen + 2 * (process.seen_begin + s);
      float& logit = row.logits[seen[0]];
      // Others are not in play, and are not to come into it.
      if (logit >= -kLargest) logit = Penalised(logit, process.penalties, true, seen[1]);
    }
    __syncthreads();
  }
  if (best == kNoKey || process.penalties.any()) {
    best = kNoKey;
    ForAllowed(row, [&](int token, float logit) {
      if (!(logit >= -kLargest)) return;
      const DrawKey key = KeyOf(logit, token);
      best = key > best ? key : best;
    });
    best = BlockLargest(best, scratch);
  }
  if (temperature == 0.0f) {
    if (threadIdx.x == 0) p.answers->tokens[i] = TokenOf(best);
    return;
  }

  // Everything from here on is about keys from `least` on; -infinity is below it.
  const float largest = ScoreOf(best);
  DrawKey least = KeyOf(-kLargest, 0x7fffffff);
  if (process.top_k > 0) {
    const auto k = static_cast<DrawKey>(process.top_k);
    least = Cutoff(
        row, least, [](float) { return DrawKey{1}; }, [&](DrawKey count) { return count >= k; },
        bins, found);
  }
  if (process.top_p < 1.0f) {
    const auto weight = [&](float logit) {
      return static_cast<DrawKey>(WeightOf(RelativeScore(logit, largest, temperature)));
    };
    DrawKey total = 0;
    ForAllowed(row, [&](int token, float logit) {
      if (KeyOf(logit, token) >= least) total += weight(logit);
    });
    total = BlockTotal(total, scratch);
    least = Cutoff(
        row, least, weight, [&](DrawKey sum) { return Reaches(sum, process.top_p, total); }, bins,
        found);
  }
  const uint64_t seed = p.rows->seeds[i], position = p.rows->positions[i];
  DrawKey winner = kNoKey;
  float hopeless = -INFINITY;
  ForAllowed(row, [&](int token, float logit) {
    if (KeyOf(logit, token) < least || logit < hopeless) return;
    if (RelativeScore(logit, largest, temperature) < process.least) return;
    const float value =
        Perturbed(logit, temperature, GumbelAt(seed, position, static_cast<uint64_t>(token)));
    const DrawKey key = KeyOf(value, token);
    if (key <= winner) return;
    winner = key;
    hopeless = HopelessLogit(value, temperature);
  });
  winner = BlockLargest(winner, scratch);
  if (threadIdx.x == 0) p.answers->tokens[i] = TokenOf(winner);
}

}  // namespace

Status RunProcessLogits(const ProcessLogits& args, Stream stream) {
  if (args.count <= 0) return {};
  Shape shape;
  shape.x = static_cast<unsigned>(args.count);
  shape.threads = kThreads;
  return Launch("process", shape, stream, ProcessKernel, args);
}

}  // namespace pawl::PAWL_GPU
