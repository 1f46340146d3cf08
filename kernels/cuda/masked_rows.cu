// What a sampler wants to know about rows of masked logits: a token, the log-probabilities, the
// largest few.
//
// A row is cut into chunks of 4096 tokens, so that one row of a large vocabulary still fills a
// device. A thread takes tokens by fours, which is a load of 8 or 16 bytes, four bits of the mask
// and one block of random numbers; fours without a set bit cost nothing and their logits are not
// read. A first kernel leaves what chunks have in the workspace, a second one joins it: the draw
// and the largest few are of the whole row then, the log-probabilities are written chunk by chunk.
// Nothing depends on how many rows there are.
//
// The rule of the draw is that of src/base/random.h.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/cutoff.cuh"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"
#include "src/base/random.h"

namespace pawl::PAWL_GPU {

// A warp takes 32 words of a mask with one coalesced load and goes over their 1024 tokens in
// vectors of 16 bytes, a lane each, four of them in flight. A vector in which everything is allowed
// is left alone, one in which nothing is allowed is written, and a mixed one is read first: a
// sector that is written in part is read by the device anyhow, and whole vectors need fewer
// instructions than tokens. Rows may begin anywhere, so what is in front of the first vector and
// behind the last one is written token by token. The CPU twin is kernels/cpu/bitmask.cc.
//
// Bytes per row: vocabulary / 8 read, the refused logits written, those of mixed vectors read.

namespace {

constexpr int kWarpsPerBlock = 8;
constexpr int64_t kBlockWords = kWarpSize * kWarpsPerBlock;
constexpr int kVectorsInFlight = 4;
// From so many blocks on a warp takes 32 words more than once, so that fewer blocks have to start.
constexpr int64_t kManyBlocks = 1056;

// The logits of 32 bits with those replaced whose bits in `refused` are set.
template <typename Bits>
__device__ __forceinline__ uint32_t Refuse(uint32_t logits, uint32_t refused, uint32_t minus) {
  uint32_t which = (refused & 1) != 0 ? ~uint32_t{0} : 0;
  if (sizeof(Bits) == 2) which = (which & 0xffffu) | ((refused & 2) != 0 ? 0xffff0000u : 0);
  return (logits & ~which) | (minus & which);
}

// `minus`: -infinity, as often as it goes into 32 bits.
template <typename Bits>
__global__ __launch_bounds__(kWarpSize* kWarpsPerBlock) void MaskKernel(BitmaskArgs args,
                                                                        uint32_t minus) {
  constexpr int kWidth = 16 / static_cast<int>(sizeof(Bits)), kOfWord = kWidth / 4;
  constexpr uint32_t kWhole = (uint32_t{1} << kWidth) - 1;
  DependencyWait();
  const int64_t i = blockIdx.x;
  const int64_t row = args.logit_rows != nullptr ? args.logit_rows[i] : i;
  const int64_t mask_row = args.mask_rows != nullptr ? args.mask_rows[i] : i;
  if (mask_row < 0) return;
  Bits* logits = static_cast<Bits*>(args.logits) + row * args.logits_stride;
  const uint32_t* mask = args.masks + mask_row * args.masks_stride;
  const int64_t words = (args.vocabulary + 31) / 32;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  // Tokens in front of the first vector.
  const int first = static_cast<int>((0 - reinterpret_cast<uintptr_t>(logits)) % 16 / sizeof(Bits));
  const auto refuse = [&](int64_t token) {
    if (token < args.vocabulary) logits[token] = static_cast<Bits>(minus);
  };
  if (blockIdx.y == 0 && static_cast<int>(threadIdx.x) < first && (mask[0] >> lane & 1) == 0) {
    refuse(lane);
  }
  const auto word_at = [&](int64_t at) { return at < words ? mask[at] : ~uint32_t{0}; };
  const int64_t warp =
      static_cast<int64_t>(blockIdx.y) * kWarpsPerBlock + static_cast<int>(threadIdx.x) / kWarpSize;
  const int64_t step = static_cast<int64_t>(gridDim.y) * kBlockWords;
  uint32_t next = word_at(warp * kWarpSize + lane);
  for (int64_t base = warp * kWarpSize; base < words; base += step) {
    uint32_t mine = next;  // the bits of 32 tokens from token 32 (base + lane) + first on
    next = word_at(base + step + lane);
    if (first != 0) {
      mine = mine >> first | word_at(base + lane + 1) << (32 - first);
    }
    if (__ballot_sync(kAllLanes, mine != ~uint32_t{0}) == 0) continue;
    for (int round = 0; round < 32 / kWidth; round += kVectorsInFlight) {
      uint32_t refused[kVectorsInFlight];
      uint4 held[kVectorsInFlight];
      const int64_t begin = base * 32 + first + (round * kWarpSize + lane) * kWidth;
#pragma unroll
      for (int u = 0; u < kVectorsInFlight; ++u) {
        const int bit = ((round + u) * kWarpSize + lane) * kWidth;
        const int64_t token = begin + u * kWarpSize * kWidth;
        held[u] = {minus, minus, minus, minus};
        refused[u] = ~(__shfl_sync(kAllLanes, mine, bit / 32) >> bit % 32) & kWhole;
        if (refused[u] != 0 && token + kWidth > args.vocabulary) {
          for (int e = 0; e < kWidth; ++e) {
            if ((refused[u] >> e & 1) != 0) refuse(token + e);
          }
          refused[u] = 0;
        }
        if (refused[u] != 0 && refused[u] != kWhole) {
          held[u] = *reinterpret_cast<const uint4*>(logits + token);
        }
      }
#pragma unroll
      for (int u = 0; u < kVectorsInFlight; ++u) {
        if (refused[u] == 0) continue;
        uint4 vector;
        vector.x = Refuse<Bits>(held[u].x, refused[u], minus);
        vector.y = Refuse<Bits>(held[u].y, refused[u] >> kOfWord, minus);
        vector.z = Refuse<Bits>(held[u].z, refused[u] >> 2 * kOfWord, minus);
        vector.w = Refuse<Bits>(held[u].w, refused[u] >> 3 * kOfWord, minus);
        *reinterpret_cast<uint4*>(logits + begin + u * kWarpSize * kWidth) = vector;
      }
    }
  }
}

}  // namespace

Status ApplyBitmask(const BitmaskArgs& args, Stream stream) {
  if (args.count <= 0 || args.vocabulary <= 0) return {};
  const int64_t words = (args.vocabulary + 31) / 32;
  const int64_t blocks = (words + kBlockWords - 1) / kBlockWords;
  const int64_t turns = std::max<int64_t>(
      {1, std::min<int64_t>(4, args.count * blocks / kManyBlocks), blocks / 65535 + 1});
  Shape shape;
  shape.x = static_cast<unsigned>(args.count);
  shape.y = static_cast<unsigned>((blocks + turns - 1) / turns);
  shape.threads = kWarpSize * kWarpsPerBlock;
  switch (args.type) {
    case LogitType::kF32:
      return Launch("bitmask", shape, stream, MaskKernel<uint32_t>, args, 0xff800000u);
    case LogitType::kF16:
      return Launch("bitmask", shape, stream, MaskKernel<uint16_t>, args, 0xfc00fc00u);
    case LogitType::kBf16:
      return Launch("bitmask", shape, stream, MaskKernel<uint16_t>, args, 0xff80ff80u);
  }
  return {};
}

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int64_t kChunk = 4096;
constexpr int kFours = static_cast<int>(kChunk) / kThreads / 4;  // of a thread in a chunk

__host__ __device__ inline int64_t Chunks(int64_t vocabulary) {
  return (vocabulary + kChunk - 1) / kChunk;
}

// Kernels are compiled for each type of logits; MaskedRows::type is for the host.
PAWL_HOST_DEVICE constexpr bool IsF32(LogitType type) { return type == LogitType::kF32; }

struct RowView {
  const void* logits;
  const uint8_t* mask;  // null: everything is allowed
  bool aligned;         // fours of logits can be loaded at once
};
template <LogitType kType>
__device__ __forceinline__ RowView RowAt(const MaskedRows& rows, int64_t i) {
  const int64_t row = rows.logit_rows != nullptr ? rows.logit_rows[i] : i;
  constexpr int64_t bytes = IsF32(kType) ? 4 : 2;
  RowView view;
  view.logits = static_cast<const char*>(rows.logits) + row * rows.logits_stride * bytes;
  view.aligned = reinterpret_cast<uintptr_t>(view.logits) % (4 * bytes) == 0;
  view.mask = nullptr;
  if (rows.masks != nullptr) {
    const int64_t mask_row = rows.mask_rows != nullptr ? rows.mask_rows[i] : i;
    if (mask_row >= 0) {
      view.mask = reinterpret_cast<const uint8_t*>(rows.masks + mask_row * rows.masks_stride);
    }
  }
  return view;
}

// Four tokens: which are allowed, and their logits as they are in memory.
template <LogitType kType>
struct Four {
  uint32_t allowed;
  uint32_t bits[IsF32(kType) ? 4 : 2];
};

// Those of thread `thread` of a block in the chunk, from the tokens FirstToken(chunk, thread, u)
// on.
__device__ __forceinline__ int64_t FirstToken(int64_t chunk, int thread, int u) {
  return chunk * kChunk + (u * kThreads + thread) * 4;
}
template <LogitType kType>
__device__ __forceinline__ void LoadFours(const MaskedRows& rows, const RowView& row, int64_t chunk,
                                          int thread, Four<kType>* fours) {
#pragma unroll
  for (int u = 0; u < kFours; ++u) {
    const int64_t token = FirstToken(chunk, thread, u), left = rows.vocabulary - token;
    uint32_t allowed = left <= 0 ? 0 : left < 4 ? (1u << left) - 1 : 15u;
    if (row.mask != nullptr && left > 0) {
      allowed &= static_cast<uint32_t>(row.mask[token / 8]) >> token % 8;
    }
    fours[u] = {allowed, {}};
  }
#pragma unroll
  for (int u = 0; u < kFours; ++u) {
    Four<kType>& four = fours[u];
    const int64_t token = FirstToken(chunk, thread, u);
    if (four.allowed == 0) continue;
    using Element = std::conditional_t<IsF32(kType), uint32_t, uint16_t>;
    const Element* logits = static_cast<const Element*>(row.logits) + token;
    if (row.aligned && token + 4 <= rows.vocabulary) {
      using Vector = std::conditional_t<IsF32(kType), uint4, uint2>;
      const Vector vector = *reinterpret_cast<const Vector*>(logits);
      memcpy(four.bits, &vector, sizeof vector);
      continue;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if ((four.allowed >> e & 1) == 0) continue;
      four.bits[IsF32(kType) ? e : e / 2] |= uint32_t{logits[e]} << (IsF32(kType) ? 0 : e % 2 * 16);
    }
  }
}

// The logits of tokens that are allowed; what the others get is of no interest.
template <LogitType kType>
__device__ __forceinline__ void LogitsOf(const Four<kType>& four, float* logits) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if constexpr (IsF32(kType)) {
      logits[e] = __uint_as_float(four.bits[e]);
    } else {
      const auto half = static_cast<uint16_t>(four.bits[e / 2] >> e % 2 * 16);
      logits[e] = kType == LogitType::kF16 ? HalfToFloat(half) : Bf16ToFloat(half);
    }
  }
}

// visit(token, logit) for each allowed token of the thread, in rising order.
template <LogitType kType, typename Visit>
__device__ __forceinline__ void ForAllowed(const Four<kType>* fours, int64_t chunk, int thread,
                                           const Visit& visit) {
#pragma unroll
  for (int u = 0; u < kFours; ++u) {
    float logits[4];
    if (fours[u].allowed == 0) continue;
    LogitsOf(fours[u], logits);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if ((fours[u].allowed >> e & 1) != 0) {
        visit(static_cast<int32_t>(FirstToken(chunk, thread, u)) + e, logits[e]);
      }
    }
  }
}

__device__ __forceinline__ DrawKey WarpLargest(DrawKey key) {
  for (int by = kWarpSize / 2; by > 0; by /= 2) {
    const DrawKey other = __shfl_xor_sync(kAllLanes, key, by);
    key = other > key ? other : key;
  }
  return key;
}

// ---- Log-probabilities ----

// Of a chunk's allowed tokens.
struct Partial {
  float largest;  // of the finite logits; -infinity: there is none
  float sum;      // of e^(logit - largest) over them
};

// Grid: chunks, rows. `maxima`: not null: gets the largest key of a finite logit of each warp.
template <LogitType kType>
__global__ __launch_bounds__(kThreads, IsF32(kType) ? 5 : 8) void PartialKernel(MaskedRows rows,
                                                                                Partial* partials,
                                                                                DrawKey* maxima) {
  DependencyWait();
  PAWL_SHARED(float, largest_of_warps, kWarps);
  PAWL_SHARED(float, sums_of_warps, kWarps);
  const int64_t chunk = blockIdx.x, out = blockIdx.y * Chunks(rows.vocabulary) + chunk;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarpSize;
  const int lane = thread % kWarpSize;
  Four<kType> fours[kFours];
  LoadFours(rows, RowAt<kType>(rows, blockIdx.y), chunk, thread, fours);
  float largest = -INFINITY;
  int32_t token = -1;
  ForAllowed(fours, chunk, thread, [&](int32_t its, float logit) {
    if (logit > largest && logit <= kLargestLogit) {
      largest = logit;
      token = its;
    }
  });
  if (maxima != nullptr) {
    const DrawKey key = WarpLargest(token < 0 ? kNoKey : KeyOf(largest, token));
    if (lane == 0) maxima[out * kWarps + warp] = key;
  }
  largest = WarpMax(largest);
  if (lane == 0) largest_of_warps[warp] = largest;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, largest_of_warps[w]);
  float sum = 0.0f;
  if (largest != -INFINITY) {
    ForAllowed(fours, chunk, thread, [&](int32_t, float logit) { sum += expf(logit - largest); });
  }
  sum = WarpSum(sum);
  if (lane == 0) sums_of_warps[warp] = sum;
  __syncthreads();
  if (thread == 0) {
    for (int w = 1; w < kWarps; ++w) sum += sums_of_warps[w];
    partials[out] = {largest, sum};
  }
}

// The chunks of a row together. Every warp does it for itself.
__device__ Partial Join(const Partial* partials, int64_t chunks) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  Partial all = {-INFINITY, 0.0f};
  for (int64_t c = lane; c < chunks; c += kWarpSize) {
    all.largest = fmaxf(all.largest, partials[c].largest);
  }
  all.largest = WarpMax(all.largest);
  for (int64_t c = lane; c < chunks; c += kWarpSize) {
    if (partials[c].largest == -INFINITY) continue;
    all.sum = Fma(partials[c].sum, expf(partials[c].largest - all.largest), all.sum);
  }
  all.sum = WarpSum(all.sum);
  return all;
}

// Grid: chunks, rows.
template <LogitType kType>
__global__ __launch_bounds__(kThreads,
                             IsF32(kType) ? 5 : 8) void LogSoftmaxKernel(LogSoftmaxArgs args,
                                                                         const Partial* partials) {
  DependencyWait();
  // The rows that were read last come first: they may be in the L2 cache.
  const int64_t i = gridDim.y - 1 - blockIdx.y, chunk = blockIdx.x;
  const int64_t chunks = Chunks(args.rows.vocabulary);
  const int thread = static_cast<int>(threadIdx.x);
  Four<kType> fours[kFours];
  LoadFours(args.rows, RowAt<kType>(args.rows, i), chunk, thread, fours);
  const Partial all = Join(partials + i * chunks, chunks);
  const float log_sum = logf(all.sum);
  float* out = args.out + i * args.out_stride;
  const bool aligned = reinterpret_cast<uintptr_t>(out) % 16 == 0;
#pragma unroll
  for (int u = 0; u < kFours; ++u) {
    const int64_t token = FirstToken(chunk, thread, u);
    float values[4];
    LogitsOf(fours[u], values);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      values[e] = (fours[u].allowed >> e & 1) != 0 ? values[e] - all.largest - log_sum : -INFINITY;
    }
    if (aligned && token + 4 <= args.rows.vocabulary) {
      *reinterpret_cast<float4*>(out + token) = {values[0], values[1], values[2], values[3]};
      continue;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (token + e < args.rows.vocabulary) out[token + e] = values[e];
    }
  }
}

// ---- The draw ----

// The best key of a thread's tokens. NaN and +infinity give kBrokenKey, -infinity weak keys, with 0
// for the logit, as it counts only if there is nothing else.
//
// Noise is expensive, and few tokens can win. The noise -log(-log(1 - v)) of a word, v = 2^-32
// word, is above x only if v < e^-x. So against a value of a token in front of it, a token wins
// only with a word below 2^32 e^((logit - bound) / T): most are out with their logit, most of the
// others with their word.
template <LogitType kType>
struct Drawer {
  uint64_t seed, position;
  float temperature, scale;
  DrawKey best;
  float bound;  // a value that is reached, times T if T is above 1; -infinity: none

  __device__ Drawer(const SampleArgs& args, int64_t i) {
    temperature = args.temperatures != nullptr ? args.temperatures[i] : 0.0f;
    seed = args.seeds != nullptr ? args.seeds[i] : 0;
    position = args.positions != nullptr ? args.positions[i] : 0;
    // To powers of two. At T = 0 the larger logit wins; 0, where differences overflow, is no bound.
    scale = temperature < 1e30f ? 1.44269504f / temperature : 0.0f;
    best = kNoKey;
    bound = -INFINITY;
  }

  __device__ __forceinline__ void Raise(float value) {
    const float logit = temperature <= 1.0f ? value : value * temperature;
    // Less what roundings can have added.
    const float least = logit - 1e-6f * (fabsf(logit) + kMaxGumbel * temperature);
    bound = least < 3e38f ? least : 3e38f;  // after overflow as well
  }

  __device__ __forceinline__ void TakeNotFinite(const Four<kType>& four, const float* logits,
                                                float* chances) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if ((four.allowed >> e & 1) == 0) continue;
      if (!(logits[e] <= kLargestLogit)) best = kBrokenKey;
      if (logits[e] < -kLargestLogit) chances[e] = bound > -INFINITY ? -1.0f : INFINITY;
    }
  }

  __device__ __forceinline__ void Take(const Four<kType>& four, const float* logits,
                                       int32_t token) {
    float chances[4];  // words above do not win
    float zero = 0.0f;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      // More by a thousandth than it has to be.
      chances[e] = PowerOfTwo(Fma(logits[e] - bound, scale, 32.0015f));
      zero = Fma(logits[e], 0.0f, zero);
    }
    if (zero != 0.0f) TakeNotFinite(four, logits, chances);
    bool some = false;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if ((four.allowed >> e & 1) == 0) chances[e] = -1.0f;
      some = some || !(chances[e] < 0.4f);  // the least word counts as 0.5
    }
    if (!some) return;
    PhiloxBlock random = {};
    if (temperature != 0.0f) random = Philox4x32(seed, position, static_cast<uint64_t>(token) >> 2);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (static_cast<float>(random.word[e]) > chances[e]) continue;
      const bool endless = logits[e] < -kLargestLogit;
      float value = endless ? 0.0f : logits[e];
      if (temperature != 0.0f) {
        value = Perturbed(value, temperature, GumbelFromWord(random.word[e]));
      }
      const DrawKey key = KeyOf(value, token + e, endless);
      if (key <= best) continue;
      best = key;
      if (!endless) Raise(value);
    }
  }
};

// Grid: parts of a row, rows. Leaves the best of each part in `keys`.
template <LogitType kType>
__global__ __launch_bounds__(kThreads, IsF32(kType) ? 5 : 6) void DrawKernel(SampleArgs args,
                                                                             DrawKey* keys) {
  DependencyWait();
  PAWL_SHARED(DrawKey, of_warps, kWarps);
  const int64_t i = blockIdx.y;
  const int thread = static_cast<int>(threadIdx.x);
  const RowView row = RowAt<kType>(args.rows, i);
  Drawer<kType> drawer(args, i);
  for (int64_t chunk = blockIdx.x; chunk < Chunks(args.rows.vocabulary); chunk += gridDim.x) {
    Four<kType> fours[kFours];
    LoadFours(args.rows, row, chunk, thread, fours);
#pragma unroll
    for (int u = 0; u < kFours; ++u) {
      float logits[4];
      LogitsOf(fours[u], logits);
      if (fours[u].allowed != 0) {
        drawer.Take(fours[u], logits, static_cast<int32_t>(FirstToken(chunk, thread, u)));
      }
      drawer.bound = WarpMax(drawer.bound);
    }
  }
  const DrawKey best = WarpLargest(drawer.best);
  if (thread % kWarpSize == 0) of_warps[thread / kWarpSize] = best;
  __syncthreads();
  if (thread == 0) {
    DrawKey largest = best;
    for (int w = 1; w < kWarps; ++w) largest = of_warps[w] > largest ? of_warps[w] : largest;
    keys[i * gridDim.x + blockIdx.x] = largest;
  }
}

// Grid: rows. A warp.
__global__ void ChooseKernel(int32_t* tokens, const DrawKey* keys, int parts) {
  DependencyWait();
  DrawKey best = kNoKey;
  for (int p = static_cast<int>(threadIdx.x); p < parts; p += kWarpSize) {
    const DrawKey key = keys[static_cast<int64_t>(blockIdx.x) * parts + p];
    best = key > best ? key : best;
  }
  best = WarpLargest(best);
  if (threadIdx.x == 0) {
    tokens[blockIdx.x] = best == kBrokenKey ? kBrokenLogits
                         : best == kNoKey   ? kNothingAllowed
                                            : TokenOf(best);
  }
}

// ---- The largest few ----

// Grid: rows. The k-th largest of what warps of PartialKernel have as their largest is a bound:
// only warps that reach it have tokens to look at.
template <LogitType kType>
__global__ __launch_bounds__(kCutoffThreads) void TopOfRowKernel(TopKArgs args,
                                                                 const Partial* partials,
                                                                 const DrawKey* maxima) {
  DependencyWait();
  PAWL_CUTOFF_MEMORY(memory);
  PAWL_SHARED(DrawKey, winners, kMostTopK);
  PAWL_SHARED(int, found, 1);
  const int64_t chunks = Chunks(args.rows.vocabulary), i = blockIdx.x, warps = chunks * kWarps;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarpSize;
  maxima += i * warps;
  const RowView row = RowAt<kType>(args.rows, i);
  const auto k = static_cast<DrawKey>(args.k);
  const auto enough = [k](DrawKey count, DrawKey) { return count >= k; };
  DrawKey least = Cutoff(
      kLeastKey, kMostKey, 2,
      [&](const auto& visit) {
        for (int64_t w = thread; w < warps; w += kCutoffThreads) {
          if (maxima[w] != kNoKey) visit(maxima[w], 0.0f);
        }
      },
      One(), enough, memory);
  // visit(key, logit) for logits of the warps that reach the bound.
  const DrawKey bound = least;
  const auto each = [&](const auto& visit) {
    for (int64_t base = 0; base < warps; base += kCutoffThreads) {
      const int64_t at = base + lane * kCutoffWarps + thread / kWarpSize;
      for (unsigned some = __ballot_sync(kAllLanes, at < warps && maxima[at] >= bound); some != 0;
           some &= some - 1) {
        const int64_t its =
            base + (__ffs(static_cast<int>(some)) - 1) * kCutoffWarps + thread / kWarpSize;
        const int as = static_cast<int>(its % kWarps) * kWarpSize + lane;
        Four<kType> fours[kFours];
        LoadFours(args.rows, row, its / kWarps, as, fours);
        ForAllowed(fours, its / kWarps, as, [&](int32_t token, float logit) {
          const DrawKey key = KeyOf(logit, token);
          if (key >= bound && key <= kMostKey) visit(key, logit);
        });
      }
    }
  };
  least = Cutoff(bound, kMostKey, 64, each, One(), enough, memory);
  if (thread == 0) found[0] = 0;
  __syncthreads();
  each([&](DrawKey key, float) {
    if (key >= least) winners[atomicAdd(found, 1)] = key;
  });
  const Partial all = Join(partials + i * chunks, chunks);
  __syncthreads();
  if (thread >= args.k) return;
  const int count = found[0];
  int place = thread;
  DrawKey key = kNoKey;
  if (thread < count) {
    key = winners[thread];
    place = 0;
    for (int w = 0; w < count; ++w) place += winners[w] > key ? 1 : 0;
  }
  args.tokens[i * args.k + place] = key != kNoKey ? TokenOf(key) : -1;
  args.logprobs[i * args.k + place] =
      key != kNoKey ? ScoreOf(key) - all.largest - logf(all.sum) : -INFINITY;
}

Shape ByChunk(const MaskedRows& rows) {
  Shape shape;
  shape.x = static_cast<unsigned>(Chunks(rows.vocabulary));
  shape.y = static_cast<unsigned>(rows.count);
  shape.threads = kThreads;
  return shape;
}
Shape ByRow(const MaskedRows& rows, int threads) {
  Shape shape;
  shape.x = static_cast<unsigned>(rows.count);
  shape.threads = static_cast<unsigned>(threads);
  return shape;
}

// launch(std::integral_constant<LogitType, type>()).
template <typename Start>
Status ForType(LogitType type, const Start& launch) {
  switch (type) {
    case LogitType::kF32:
      return launch(std::integral_constant<LogitType, LogitType::kF32>());
    case LogitType::kF16:
      return launch(std::integral_constant<LogitType, LogitType::kF16>());
    default:
      return launch(std::integral_constant<LogitType, LogitType::kBf16>());
  }
}

Status CheckRows(const MaskedRows& rows) {
  if (rows.count > 65535 || rows.vocabulary > (int64_t{1} << 31)) {
    return Error{ErrorCode::kLimit, "at most 65535 rows of 2^31 tokens in a call", "cuda"};
  }
  return {};
}

// The keys of a workspace, and behind them its partial results.
DrawKey* Keys(void* workspace) { return static_cast<DrawKey*>(workspace); }
Partial* Partials(void* workspace, const MaskedRows& rows) {
  return reinterpret_cast<Partial*>(Keys(workspace) +
                                    rows.count * Chunks(rows.vocabulary) * kWarps);
}

}  // namespace

int64_t WorkspaceBytes(int64_t count, int64_t vocabulary) {
  return count * Chunks(vocabulary) *
         static_cast<int64_t>(kWarps * sizeof(DrawKey) + sizeof(Partial));
}

Status Sample(const SampleArgs& args, Stream stream) {
  if (args.rows.count <= 0) return {};
  if (Status status = CheckRows(args.rows); !status.ok()) return status;
  DrawKey* keys = Keys(args.workspace);
  Shape shape = ByChunk(args.rows);
  // A block goes over several chunks once there are blocks enough: two times what fits.
  shape.x = std::min(shape.x, std::max(1u, 1584 / shape.y));
  return ForType(args.rows.type, [&](auto type) {
    Status status = Launch("sample.draw", shape, stream, DrawKernel<type()>, args, keys);
    if (!status.ok()) return status;
    return Launch("sample.choose", ByRow(args.rows, kWarpSize), stream, ChooseKernel, args.tokens,
                  keys, static_cast<int>(shape.x));
  });
}

Status LogSoftmax(const LogSoftmaxArgs& args, Stream stream) {
  if (args.rows.count <= 0) return {};
  if (Status status = CheckRows(args.rows); !status.ok()) return status;
  Partial* partials = Partials(args.workspace, args.rows);
  DrawKey* maxima = nullptr;
  return ForType(args.rows.type, [&](auto type) {
    Status status = Launch("log_softmax.partial", ByChunk(args.rows), stream, PartialKernel<type()>,
                           args.rows, partials, maxima);
    if (!status.ok()) return status;
    return Launch("log_softmax", ByChunk(args.rows), stream, LogSoftmaxKernel<type()>, args,
                  partials);
  });
}

Status TopK(const TopKArgs& args, Stream stream) {
  if (args.rows.count <= 0) return {};
  if (Status status = CheckRows(args.rows); !status.ok()) return status;
  if (args.k < 1 || args.k > kMostTopK) {
    return Error{ErrorCode::kInvalid, "k must be between 1 and " + std::to_string(kMostTopK), "k"};
  }
  DrawKey* maxima = Keys(args.workspace);
  Partial* partials = Partials(args.workspace, args.rows);
  return ForType(args.rows.type, [&](auto type) {
    Status status = Launch("top_k.partial", ByChunk(args.rows), stream, PartialKernel<type()>,
                           args.rows, partials, maxima);
    if (!status.ok()) return status;
    return Launch("top_k.row", ByRow(args.rows, kCutoffThreads), stream, TopOfRowKernel<type()>,
                  args, partials, maxima);
  });
}

}  // namespace pawl::PAWL_GPU
