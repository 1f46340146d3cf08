// A cluster of blocks for each row (one block before compute capability 9.0), each block with a
// part of the row's allowed logits, over which it goes a few times; they stay in the cache. Words
// of the mask without a bit cost nothing.
//
// Top-k and top-p both ask for the least key (src/base/random.h) that is kept: the k-th largest, or
// the one where the weights of the largest keys, added up, reach the share p. The keys that may be
// it are cut into 1024 equal ranges; the ranges' weights, added up over the cluster, say in which
// of them it is, and that range is cut again until it holds one key. Weights are integers, so the
// sums are exact, and neither the order of threads nor the number of blocks changes them.
//
// What cannot be kept is left out before the first cut: below the k-th largest of what each thread
// has as its largest, and below the logits whose weight is not 0.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"
#include "pawl/cuda_kernels.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kBins = kThreads, kBinBits = 10;
constexpr int kWordsInFlight = 8;
constexpr float kLargest = 3.402823466e38f;
// Of -infinity: below all finite logits.
constexpr DrawKey kEndlessKey = 1;
// KeyOf(-kLargest, 0x7fffffff): of all finite logits the least.
constexpr DrawKey kLeastKey = DrawKey{1} << 63 | DrawKey{0x00800000u} << 31;

// What the kernel takes of a row: for a block its words of the mask, begin .. end-1.
struct RowView {
  float* logits;
  const uint32_t* mask;  // null: everything is allowed
  int begin, end;
  int limit;
};

// Sums of weights in 32-bit halves, for which there are atomic additions, and how many there were.
struct Bins {
  uint32_t low[kBins], high[kBins], items[kBins];
};
struct Found {
  int bin;  // -1: none
  uint32_t items;
  DrawKey before;  // the sum of larger keys
};

// Shared memory.
struct Shared {
  Bins* bins;         // two: one is cleared and filled while other blocks still read the other
  DrawKey* of_warps;  // kWarps
  DrawKey* answers;   // of this block, for ClusterLargest
  Found* found;
  int turn;
};

// visit(token, logit) for each allowed token of the block, by some thread.
template <typename Visit>
__device__ __forceinline__ void ForAllowed(const RowView& row, const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (int base = row.begin + static_cast<int>(threadIdx.x) / kWarpSize; base < row.end;
       base += kWarps * kWordsInFlight) {
    uint32_t words[kWordsInFlight];
    float logits[kWordsInFlight];
#pragma unroll
    for (int u = 0; u < kWordsInFlight; ++u) {
      const int at = base + u * kWarps;
      words[u] = at >= row.end ? 0 : row.mask != nullptr ? row.mask[at] : ~uint32_t{0};
    }
#pragma unroll
    for (int u = 0; u < kWordsInFlight; ++u) {
      const int token = (base + u * kWarps) * 32 + lane;
      words[u] = token < row.limit ? words[u] >> lane & 1 : 0;
      logits[u] = words[u] != 0 ? row.logits[token] : 0.0f;
    }
#pragma unroll
    for (int u = 0; u < kWordsInFlight; ++u) {
      if (words[u] != 0) visit((base + u * kWarps) * 32 + lane, logits[u]);
    }
  }
}

// Of the whole cluster. `question`: a place in Shared::answers of its own.
__device__ DrawKey ClusterLargest(DrawKey key, int question, const Shared& shared) {
  for (int by = kWarpSize / 2; by > 0; by /= 2) {
    const DrawKey other = __shfl_xor_sync(kAllLanes, key, by);
    key = other > key ? other : key;
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (lane == 0) shared.of_warps[threadIdx.x / kWarpSize] = key;
  __syncthreads();
  key = shared.of_warps[lane];
  for (int by = kWarpSize / 2; by > 0; by /= 2) {
    const DrawKey other = __shfl_xor_sync(kAllLanes, key, by);
    key = other > key ? other : key;
  }
  if (threadIdx.x == 0) shared.answers[question] = key;
  ClusterSync();
  for (int r = 0; r < ClusterBlocks(); ++r) {
    const DrawKey other = *SharedOf(shared.answers + question, r);
    key = other > key ? other : key;
  }
  return key;
}

__device__ __forceinline__ void AddTo(Bins& bins, int bin, DrawKey weight) {
  const auto low = static_cast<uint32_t>(weight);
  auto high = static_cast<uint32_t>(weight >> 32);
  if (low != 0 && atomicAdd(bins.low + bin, low) + low < low) ++high;
  if (high != 0) atomicAdd(bins.high + bin, high);
  atomicAdd(bins.items + bin, 1u);
}

// value and the values of all threads before this one; *all: of all threads.
__device__ DrawKey SumSoFar(DrawKey value, DrawKey* all, DrawKey* of_warps) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const auto in_warp = [lane](DrawKey sum) {
    for (int by = 1; by < kWarpSize; by *= 2) {
      const DrawKey other = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(by));
      if (lane >= by) sum += other;
    }
    return sum;
  };
  value = in_warp(value);
  if (lane == kWarpSize - 1) of_warps[warp] = value;
  __syncthreads();
  const DrawKey warps = in_warp(of_warps[lane]);
  *all = __shfl_sync(kAllLanes, warps, kWarps - 1);
  const DrawKey before = __shfl_sync(kAllLanes, warps, warp - 1);
  return warp > 0 ? before + value : value;
}

// The largest key from which on the weights of the keys are enough, or a smaller one with no key
// between; `least` if all of them are not. Keys are within least .. most. each(visit) calls
// visit(key, logit), weight(logit) is for keys from `least` on, enough(sum, sum of all) stays true
// once it is. After `levels` cuts the result may be too small.
template <typename Each, typename Weight, typename Enough>
__device__ DrawKey Cutoff(DrawKey least, DrawKey most, int levels, const Each& each,
                          const Weight& weight, const Enough& enough, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x), bin = kBins - 1 - thread;
  DrawKey span = most - least, above = 0, total = 0;
  for (int level = 0; level < levels; ++level) {
    const int bits = 64 - __clzll(static_cast<long long>(span));
    const int shift = bits > kBinBits ? bits - kBinBits : 0;
    shared.turn ^= 1;
    Bins& bins = shared.bins[shared.turn];
    bins.low[thread] = bins.high[thread] = bins.items[thread] = 0;
    __syncthreads();
    if (thread == 0) shared.found->bin = -1;
    each([&](DrawKey key, float logit) {
      if (key >= least && key - least <= span) {
        AddTo(bins, static_cast<int>((key - least) >> shift), weight(logit));
      }
    });
    ClusterSync();
    DrawKey value = 0;
    uint32_t items = 0;
    for (int r = 0; r < ClusterBlocks(); ++r) {
      const Bins* there = SharedOf(&bins, r);
      value += there->low[bin] + (static_cast<DrawKey>(there->high[bin]) << 32);
      items += there->items[bin];
    }
    DrawKey all;
    const DrawKey reached = above + SumSoFar(value, &all, shared.of_warps);
    const DrawKey before = reached - value;
    if (level == 0) total = all;
    if (value != 0 && enough(reached, total) && (before == 0 || !enough(before, total))) {
      *shared.found = {bin, items, before};
    }
    __syncthreads();
    const Found found = *shared.found;
    if (found.bin < 0) break;
    least += static_cast<DrawKey>(found.bin) << shift;
    span = (DrawKey{1} << shift) - 1;
    above = found.before;
    if (shift == 0 || found.items == 1) break;
  }
  return least;
}

// Penalties on the logits of the block. What is not finite stays so.
__device__ void Penalise(const ProcessLogits& p, const ProcessRow& process, const RowView& row) {
  if (!process.penalties.any()) return;
  for (int s = static_cast<int>(threadIdx.x); s < process.seen_count; s += kThreads) {
    const int32_t* seen = p.seen + 2 * (process.seen_begin + s);
    if (seen[0] / 32 < row.begin || seen[0] / 32 >= row.end) continue;
    float& logit = row.logits[seen[0]];
    if (logit >= -kLargest && logit <= kLargest) {
      logit = Penalised(logit, process.penalties, true, seen[1]);
    }
  }
  __syncthreads();
}

// The largest of the thread's keys, kNoKey < kEndlessKey < those of finite logits < kBrokenKey.
__device__ DrawKey ThreadLargest(const RowView& row) {
  DrawKey largest = kNoKey;
  ForAllowed(row, [&](int token, float logit) {
    const DrawKey key = !(logit <= kLargest) ? kBrokenKey
                        : logit >= -kLargest ? KeyOf(logit, token)
                                             : kEndlessKey;
    largest = key > largest ? key : largest;
  });
  return largest;
}

// The least key that top-k and top-p keep. `mine`: ThreadLargest.
__device__ DrawKey LeastKept(const RowView& row, const ProcessRow& process, float temperature,
                             DrawKey mine, DrawKey best, Shared& shared) {
  DrawKey least = kLeastKey;
  const auto each = [&](const auto& visit) {
    ForAllowed(row, [&](int token, float logit) { visit(KeyOf(logit, token), logit); });
  };
  if (process.top_k > 0) {
    const auto one = [](float) { return DrawKey{1}; };
    const auto k = static_cast<DrawKey>(process.top_k);
    const auto enough = [k](DrawKey count, DrawKey) { return count >= k; };
    least = Cutoff(
        least, best, 2, [&](const auto& visit) { visit(mine, 0.0f); }, one, enough, shared);
    least = Cutoff(least, best, 64, each, one, enough, shared);
  }
  if (process.top_p < 1.0f) {
    const float largest = ScoreOf(best);
    // e^-28 is less than 2^-40.
    const DrawKey some = KeyOf(largest - 28.0f * temperature, 0x7fffffff);
    const auto weight = [&](float logit) {
      return static_cast<DrawKey>(WeightOf(RelativeScore(logit, largest, temperature)));
    };
    const auto enough = [&](DrawKey sum, DrawKey all) { return Reaches(sum, process.top_p, all); };
    least = Cutoff(some > least ? some : least, best, 64, each, weight, enough, shared);
  }
  return least;
}

// The token of a row, for all threads of its cluster.
__device__ int32_t Draw(const ProcessLogits& p, int i, const RowView& row, Shared& shared) {
  const ProcessRow process = p.process[i];
  const float temperature = p.rows->temperatures[i];
  Penalise(p, process, row);
  DrawKey mine = ThreadLargest(row);
  DrawKey best = ClusterLargest(mine, 0, shared);
  if (best == kBrokenKey) return kBrokenLogits;
  if (best == kNoKey) return kNothingAllowed;
  if (best == kEndlessKey) {
    // All are -infinity and count as equal.
    ForAllowed(row, [&](int token, float) { row.logits[token] = 0.0f; });
    __syncthreads();
    Penalise(p, process, row);
    mine = ThreadLargest(row);
    best = ClusterLargest(mine, 1, shared);
  }
  if (temperature == 0.0f) return TokenOf(best);

  const float largest = ScoreOf(best);
  const DrawKey least = LeastKept(row, process, temperature, mine, best, shared);
  const uint64_t seed = p.rows->seeds[i], position = p.rows->positions[i];
  DrawKey winner = kNoKey;
  float hopeless = -INFINITY;
  ForAllowed(row, [&](int token, float logit) {
    if (!(logit >= hopeless) || KeyOf(logit, token) < least) return;
    if (RelativeScore(logit, largest, temperature) < process.least) return;
    const float value =
        Perturbed(logit, temperature, GumbelAt(seed, position, static_cast<uint64_t>(token)));
    const DrawKey key = KeyOf(value, token);
    if (key <= winner) return;
    winner = key;
    hopeless = HopelessLogit(value, temperature);
  });
  return TokenOf(ClusterLargest(winner, 2, shared));
}

// Grid: blocks of a row's cluster, rows.
__global__ __launch_bounds__(kThreads) void ProcessKernel(ProcessLogits p) {
  DependencyWait();
  PAWL_SHARED(Bins, bins, 2);
  PAWL_SHARED(DrawKey, of_warps, kWarps);
  PAWL_SHARED(DrawKey, answers, 3);
  PAWL_SHARED(Found, found, 1);
  const int i = static_cast<int>(blockIdx.y), mask_row = p.rows->masks[i];
  int32_t token = kNothingAllowed;
  if (mask_row != kNoTokenWanted) {
    RowView row;
    row.logits = p.logits + i * p.logits_stride;
    row.mask = mask_row < 0 ? nullptr : p.masks + mask_row * p.masks_stride;
    row.limit = p.rows->limits[i];
    const int words = (row.limit + 31) / 32;
    const int share = (words + ClusterBlocks() - 1) / ClusterBlocks();
    row.begin = share * ClusterRank();
    row.end = row.begin + share < words ? row.begin + share : words;
    Shared shared = {bins, of_warps, answers, found, 0};
    token = Draw(p, i, row, shared);
  }
  if (threadIdx.x == 0 && ClusterRank() == 0) p.answers->tokens[i] = token;
  ClusterSync();  // others may be reading this block's memory
}

// Blocks for a row of so many: at least 4096 logits each, and one for a multiprocessor.
unsigned BlocksOf(int64_t logits, int rows) {
  constexpr unsigned kMultiprocessors = 132;
  unsigned blocks = 1;
  while (blocks < kMostClusterBlocks && blocks * 4096 < logits &&
         2 * blocks * static_cast<unsigned>(rows) <= kMultiprocessors) {
    blocks *= 2;
  }
  return blocks;
}

}  // namespace

Status RunProcessLogits(const ProcessLogits& args, Stream stream) {
  if (args.count <= 0) return {};
  Shape shape;
  shape.x = shape.cluster = BlocksOf(args.logits_stride, args.count);
  shape.y = static_cast<unsigned>(args.count);
  shape.threads = kThreads;
  return Launch("process", shape, stream, ProcessKernel, args);
}

}  // namespace pawl::PAWL_GPU
