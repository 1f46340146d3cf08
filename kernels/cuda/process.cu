// A cluster of blocks for each row (one block before compute capability 9.0), each block with a
// part of the row's allowed logits, over which it goes a few times; they stay in the cache. Words
// of the mask without a bit cost nothing.
//
// Top-k and top-p both ask for the least key that is kept (cutoff.cuh). What cannot be kept is left
// out before the first cut: below the k-th largest of what each thread has as its largest, and
// below the logits whose weight is not 0.
#include "kernels/cuda/cutoff.cuh"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"
#include "pawl/cuda_kernels.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kThreads = kCutoffThreads;
constexpr int kWarps = kCutoffWarps;
constexpr int kWordsInFlight = 8;
// Of -infinity: below all finite logits.
constexpr DrawKey kEndlessKey = 1;

// What the kernel takes of a row: for a block its words of the mask, begin .. end-1.
struct RowView {
  float* logits;
  const uint32_t* mask;  // null: everything is allowed
  int begin, end;
  int limit;
};

// visit(token, logit) for each allowed token of the block, by some thread, which sees its tokens in
// rising order.
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

// Of the whole cluster. `answer`: shared memory that nothing else uses.
__device__ DrawKey ClusterLargest(DrawKey key, DrawKey* answer) {
  PAWL_SHARED(DrawKey, of_warps, kWarps);
  for (int by = kWarpSize / 2; by > 0; by /= 2) {
    const DrawKey other = __shfl_xor_sync(kAllLanes, key, by);
    key = other > key ? other : key;
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (lane == 0) of_warps[threadIdx.x / kWarpSize] = key;
  __syncthreads();
  key = of_warps[lane];
  for (int by = kWarpSize / 2; by > 0; by /= 2) {
    const DrawKey other = __shfl_xor_sync(kAllLanes, key, by);
    key = other > key ? other : key;
  }
  if (threadIdx.x == 0) *answer = key;
  ClusterSync();
  DrawKey of_blocks[kMostBlocks];
  const int blocks = ClusterBlocks();
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) of_blocks[r] = r < blocks ? *SharedOf(answer, r) : kNoKey;
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) key = of_blocks[r] > key ? of_blocks[r] : key;
  return key;
}

// Penalties on the logits of the block. What is not finite stays so.
__device__ void Penalise(const ProcessLogits& p, const ProcessRow& process, const RowView& row) {
  if (!process.penalties.any()) return;
  for (int s = static_cast<int>(threadIdx.x); s < process.seen_count; s += kThreads) {
    const int32_t* seen = p.seen + 2 * (process.seen_begin + s);
    if (seen[0] / 32 < row.begin || seen[0] / 32 >= row.end) continue;
    float& logit = row.logits[seen[0]];
    if (logit >= -kLargestLogit && logit <= kLargestLogit) {
      logit = Penalised(logit, process.penalties, true, seen[1]);
    }
  }
  __syncthreads();
}

// The largest of the thread's keys, kNoKey < kEndlessKey < those of finite logits < kBrokenKey.
__device__ DrawKey ThreadLargest(const RowView& row) {
  bool some = false, broken = false;
  float largest = -INFINITY;
  int its = -1;
  ForAllowed(row, [&](int token, float logit) {
    some = true;
    broken = broken || !(logit <= kLargestLogit);
    if (!(logit > largest)) return;
    largest = logit;
    its = token;
  });
  return broken ? kBrokenKey : its >= 0 ? KeyOf(largest, its) : some ? kEndlessKey : kNoKey;
}

// The least key that top-k and top-p keep. `mine`: ThreadLargest.
__device__ DrawKey LeastKept(const RowView& row, const ProcessRow& process, float temperature,
                             DrawKey mine, DrawKey best, CutoffMemory& memory) {
  DrawKey least = kLeastKey;
  const auto each = [&](const auto& visit) {
    ForAllowed(row, [&, floor = ScoreOf(least)](int token, float logit) {
      if (!(logit >= floor)) return;  // most tokens need no key
      if (const DrawKey key = KeyOf(logit, token); key >= least) visit(key, logit);
    });
  };
  if (process.top_k > 0) {
    const auto k = static_cast<DrawKey>(process.top_k);
    const auto enough = [k](DrawKey count, DrawKey) { return count >= k; };
    least = Cutoff(
        least, best, 2,
        [&](const auto& visit) {
          if (mine >= kLeastKey) visit(mine, 0.0f);
        },
        One(), enough, memory);
    least = Cutoff(least, best, 64, each, One(), enough, memory);
  }
  if (process.top_p < 1.0f) {
    const float largest = ScoreOf(best);
    // e^-28 is less than 2^-40. And where the weights of all tokens below some key are less than
    // the share 1 - p of the largest weight alone, the answer is above.
    const auto key_of = [&](float score) {
      const DrawKey key = KeyOf(largest + score * temperature, 0x7fffffff);
      return key > least ? key : least;
    };
    const float tail = (1.0f - process.top_p) / (2.0f * static_cast<float>(row.limit));
    const auto weight = [&](float logit) {
      return static_cast<DrawKey>(WeightOf(RelativeScore(logit, largest, temperature)));
    };
    const auto enough = [&](DrawKey sum, DrawKey all) { return Reaches(sum, process.top_p, all); };
    least = key_of(-28.0f);
    least = Cutoff(key_of(logf(tail) - 0.01f), best, 64, each, weight, enough, memory);
  }
  return least;
}

// The token of a row, for all threads of its cluster.
__device__ int32_t Draw(const ProcessLogits& p, int i, const RowView& row, DrawKey* answers,
                        CutoffMemory& memory) {
  const ProcessRow process = p.process[i];
  const float temperature = p.rows->temperatures[i];
  Penalise(p, process, row);
  DrawKey mine = ThreadLargest(row);
  DrawKey best = ClusterLargest(mine, answers);
  if (best == kBrokenKey) return kBrokenLogits;
  if (best == kNoKey) return kNothingAllowed;
  if (best == kEndlessKey) {
    // All are -infinity and count as equal.
    ForAllowed(row, [&](int token, float) { row.logits[token] = 0.0f; });
    __syncthreads();
    Penalise(p, process, row);
    mine = ThreadLargest(row);
    best = ClusterLargest(mine, answers + 1);
  }
  if (temperature == 0.0f) return TokenOf(best);

  const float largest = ScoreOf(best);
  const DrawKey least = LeastKept(row, process, temperature, mine, best, memory);
  const uint64_t seed = p.rows->seeds[i], position = p.rows->positions[i];
  DrawKey winner = kNoKey;
  float hopeless = ScoreOf(least);
  ForAllowed(row, [&](int token, float logit) {
    if (!(logit >= hopeless) || KeyOf(logit, token) < least) return;
    if (RelativeScore(logit, largest, temperature) < process.least) return;
    const float value =
        Perturbed(logit, temperature, GumbelAt(seed, position, static_cast<uint64_t>(token)));
    const DrawKey key = KeyOf(value, token);
    if (key <= winner) return;
    winner = key;
    hopeless = fmaxf(hopeless, HopelessLogit(value, temperature));
  });
  return TokenOf(ClusterLargest(winner, answers + 2));
}

// Grid: blocks of a row's cluster, rows.
__global__ __launch_bounds__(kThreads) void ProcessKernel(ProcessLogits p) {
  DependencyWait();
  PAWL_CUTOFF_MEMORY(memory);
  PAWL_SHARED(DrawKey, answers, 3);
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
    token = Draw(p, i, row, answers, memory);
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
