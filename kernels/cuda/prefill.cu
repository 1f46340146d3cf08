// Attention of many consecutive rows: tiles of queries and of 64 keys on tensor cores with the
// softmax kept up as keys go by (Dao, "FlashAttention-2", 2023). A block has the queries of one run
// and head; each of its four warps has 16 or 32 of them and all the keys, so warps share nothing
// but the tiles in shared memory. Values are in flight while scores are computed, the next keys
// while values are added up. Keys and values are bf16 there, whatever the cache holds: a cache of
// bf16 is copied as it is, others are converted. Tiles of keys begin at multiples of 64
// of the absolute position, and a key that a query does not see adds an exact zero, so a row's
// result depends neither on the rows that share its tile nor on the size of the tile.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tiles.cuh"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kKeys = 64;
constexpr float kLog2E = 1.4426950408889634f;

// 1 / x, to about a unit in the last place.
__device__ __forceinline__ float Reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
#else
  return 1.0f / x;
#endif
}

// Two e4m3 codes, in the high bytes of both halves, as bf16. The fields in place of bf16's, then
// the difference of the exponent biases; subnormal codes are subnormal numbers on the way.
__device__ __forceinline__ uint32_t E4m3PairToBf16(uint32_t codes) {
#if defined(__CUDA_ARCH__)
  const uint32_t scaled = (codes & 0x80008000u) | (codes & 0x7f007f00u) >> 4;
  uint32_t pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(pair)
      : "r"(scaled), "r"(0x7b807b80u), "r"(0x80008000u));  // times 2^120, plus -0
  return pair;
#else
  return PackBf16(E4m3ToFloat(codes >> 8 & 255u), E4m3ToFloat(codes >> 24));
#endif
}

// Eight neighbouring elements of a cache that is not bf16, as bf16.
template <CacheType kType>
__device__ __forceinline__ uint4 CacheEight(const void* base, int64_t element) {
  if constexpr (kType == CacheType::kF32) {
    const auto* at = reinterpret_cast<const float4*>(static_cast<const float*>(base) + element);
    const float4 low = at[0], high = at[1];
    return uint4{PackBf16(low.x, low.y), PackBf16(low.z, low.w), PackBf16(high.x, high.y),
                 PackBf16(high.z, high.w)};
  } else {
    const uint2 codes =
        *reinterpret_cast<const uint2*>(static_cast<const uint8_t*>(base) + element);
    const auto low = [](uint32_t four) { return (four & 0xffu) << 8 | (four & 0xff00u) << 16; };
    const auto high = [](uint32_t four) {
      return (four >> 16 & 0xffu) << 8 | (four & 0xff000000u);
    };
    return uint4{E4m3PairToBf16(low(codes.x)), E4m3PairToBf16(high(codes.x)),
                 E4m3PairToBf16(low(codes.y)), E4m3PairToBf16(high(codes.y))};
  }
}

// The keys or values of a head at the positions start .. start + kKeys - 1, of which those below
// `first` or from `end` on are zeros, become rows of a tile. What is copied, here and before, is
// a group; what is converted is there at once. Without branches, so that loads are in flight
// together.
template <int kDim, CacheType kType>
__device__ __forceinline__ void FetchTile(const PrefillAttention& p, const void* base,
                                          const int32_t* table, int kv_head, int start, int first,
                                          int end, uint16_t* tile) {
  constexpr int kPieces = kDim / 8, kRows = kThreads / kPieces;
  static_assert(kPageSize % kRows == 0 && kKeys % kPageSize == 0);
  const int thread = static_cast<int>(threadIdx.x), r = thread / kPieces, d = thread % kPieces * 8;
  const int stride = HeadStride(p.cache.head_dim);
  const int page_elements = p.cache.kv_heads * kPageSize * stride;
  const bool column_there = d < stride;
  const int mine = (kv_head * kPageSize + r) * stride + (column_there ? d : 0);
  uint16_t* to = tile + r * (kDim + kTilePad) + d;
#pragma unroll
  for (int n = 0; n < kKeys; n += kPageSize) {
    // Not beyond the pages of the sequence.
    int near = start + n < end ? start + n : end - 1;
    near = near > first ? near : first;
    const int64_t element = static_cast<int64_t>(table[near / kPageSize]) * page_elements + mine;
#pragma unroll
    for (int i = 0; i < kPageSize; i += kRows) {
      const int j = start + n + i + r;
      const bool there = j >= first && j < end && column_there;
      uint16_t* row = to + (n + i) * (kDim + kTilePad);
      if constexpr (kType == CacheType::kBf16) {
        CopyToTile(row, static_cast<const uint16_t*>(base) + (element + i * stride), there);
      } else {
        const uint4 eight = CacheEight<kType>(base, element + i * stride);
        *reinterpret_cast<uint4*>(row) = there ? eight : uint4{0, 0, 0, 0};
      }
    }
  }
  CloseCopies();
}

// The queries of a head in the rows first .. first + count - 1, then zeros.
template <int kDim, int kQueries>
__device__ __forceinline__ void FetchQueries(const PrefillAttention& p, int first, int count,
                                             int head, uint16_t* tile) {
  constexpr int kPieces = kDim / 8;
  const int head_dim = p.cache.head_dim;
  const uint16_t* from = p.q + first * p.q_stride + static_cast<int64_t>(head) * head_dim;
  const bool aligned = head_dim % 8 == 0 && p.q_stride % 8 == 0;
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * kPieces; i += kThreads) {
    const int r = i / kPieces, d = i % kPieces * 8;
    const bool there = r < count && d < head_dim;
    const uint16_t* at = there ? from + r * p.q_stride + d : p.q;
    uint16_t* to = tile + r * (kDim + kTilePad) + d;
    if (aligned) {
      CopyToTile(to, at, there);
      continue;
    }
    for (int e = 0; e < 8; ++e) to[e] = there && d + e < head_dim ? at[e] : uint16_t{0};
  }
}

// What a lane keeps of the softmax of its two queries among 16.
struct Softmax {
  float most[2] = {-INFINITY, -INFINITY};  // before scaling
  float sum[2] = {0.0f, 0.0f};
};

// Turns scores into weights relative to the largest score of each query so far; factor: what
// weights added up before are worth now. A weight is 2^(exponent (score - largest)).
__device__ __forceinline__ void Weigh(float (*scores)[4], float exponent, Softmax& softmax,
                                      float* factor) {
  float base[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float largest = softmax.most[h];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][2 * h], scores[n][2 * h + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
    // Nothing seen so far: all weights of this tile are exact zeros, and the next
    // tile starts afresh.
    const float finite = largest == -INFINITY ? 0.0f : largest;
    base[h] = finite * exponent;
    // Exactly one where the largest score stays.
    factor[h] = PowerOfTwo((softmax.most[h] - finite) * exponent);
    softmax.most[h] = largest;
    softmax.sum[h] *= factor[h];
  }
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[n][i] = PowerOfTwo(Fma(scores[n][i], exponent, -base[i / 2]));
      softmax.sum[i / 2] += scores[n][i];
    }
  }
}

// A sink's weight relative to the largest score. Far above all scores it is infinite, and the
// result 0.
__device__ __forceinline__ float SinkWeight(const PrefillAttention& p, int head, float exponent,
                                            float most) {
  if (p.sinks == nullptr) return 0.0f;
  return PowerOfTwo(Fma(-exponent, most, kLog2E * p.sinks[head]));
}

// The first position that a query sees.
__device__ __forceinline__ int FirstSeen(int window, int position) {
  return window > 0 && position + 1 > window ? position + 1 - window : 0;
}

// Of 16 queries from `position` on: caps scores, in units of the cap, and takes out what a query
// does not see. start: the position of the first key. end: behind what queries of both sides see.
__device__ __forceinline__ void CapAndMask(const PrefillAttention& p, int start, int position,
                                           int end, float (*scores)[4]) {
  if (p.soft_cap > 0.0f) {
    // tanh(x) = 1 - 2 / (1 + e^2x)
    const float factor = 2.0f * kLog2E * p.scale / p.soft_cap;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = Fma(-2.0f, Reciprocal(1.0f + PowerOfTwo(scores[n][i] * factor)), 1.0f);
      }
    }
  }
  const int seen_by_all = p.both_sides ? end : position + 1;
  if (start + kKeys <= seen_by_all && start >= FirstSeen(p.window, position + 15)) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int mine = position + lane / 4 + h * 8, first = FirstSeen(p.window, mine);
    const int last = p.both_sides ? end - 1 : mine;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int j = start + n * 8 + lane % 4 * 2 + i;
        if (j > last || j < first) scores[n][2 * h + i] = -INFINITY;
      }
    }
  }
}

// scores = queries . keys of a warp; the operands are where the tiles have them for this lane.
template <int kDim, int kTiles>
__device__ __forceinline__ void Score(const uint16_t* queries, const uint16_t* keys,
                                      float (*scores)[kKeys / 8][4]) {
  constexpr int kStride = kDim + kTilePad;
#pragma unroll
  for (int d = 0; d < kDim; d += 16) {
    uint32_t a[kTiles][4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) LoadPieces<false>(queries + m * 16 * kStride + d, a[m]);
#pragma unroll
    for (int n = 0; n < kKeys / 8; n += 2) {
      uint32_t b[4];
      LoadPieces<false>(keys + n * 8 * kStride + d, b);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        MmaBf16(scores[m][n], a[m], b);
        MmaBf16(scores[m][n + 1], a[m], b + 2);
      }
    }
  }
}

// out += weights . values, likewise.
template <int kDim, int kTiles>
__device__ __forceinline__ void AddValues(float (*weights)[kKeys / 8][4], const uint16_t* values,
                                          float (*out)[kDim / 8][4]) {
#pragma unroll
  for (int k = 0; k < kKeys; k += 16) {
    uint32_t a[kTiles][4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const float* low = weights[m][k / 8];
      const float* high = weights[m][k / 8 + 1];
      a[m][0] = PackBf16(low[0], low[1]);
      a[m][1] = PackBf16(low[2], low[3]);
      a[m][2] = PackBf16(high[0], high[1]);
      a[m][3] = PackBf16(high[2], high[3]);
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; n += 2) {
      uint32_t b[4];
      LoadPieces<true>(values + k * (kDim + kTilePad) + n * 8, b);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        MmaBf16(out[m][n], a[m], b);
        MmaBf16(out[m][n + 1], a[m], b + 2);
      }
    }
  }
}

// How many tiles of keys and of values a block has: with two, the next ones are in flight while the
// first are worked on. Shared memory stays below 99 KB, which all devices have.
template <int kDim, int kTiles>
constexpr int kStages = kDim* kTiles <= 128 ? 2 : 1;

// What registers and shared memory of a multiprocessor of compute capability 9.0 are enough for.
template <int kDim, int kTiles>
constexpr int kBlocks = kDim* kTiles <= 64 ? 4 : 2;

// Grid: heads, pieces of runs, the last ones first: they see most. kDim: head_dim or more. kTiles:
// how often a warp has 16 queries.
template <int kDim, int kTiles, CacheType kType>
__global__ __launch_bounds__(kThreads,
                             (kBlocks<kDim, kTiles>)) void PrefillKernel(PrefillAttention p) {
  DependencyWait();
  constexpr int kStride = kDim + kTilePad, kQueries = kWarps * kTiles * 16;
  constexpr int kPieces = kPrefillTile / kQueries;
  PAWL_DYNAMIC_SHARED(uint16_t, shared);
  // [kQueries][kStride], then, for each stage, keys and values [kKeys][kStride]
  uint16_t* queries = shared;
  uint16_t* tiles = queries + kQueries * kStride;
  constexpr int kTile = kKeys * kStride, kStageCount = kStages<kDim, kTiles>;
  const auto index = static_cast<int>(gridDim.y - 1 - blockIdx.y);
  const RowRun run = p.runs[index / kPieces];
  const int skipped = index % kPieces * kQueries, first_row = run.first + skipped;
  if (run.count <= skipped) return;
  const int count = run.count - skipped < kQueries ? run.count - skipped : kQueries;
  const DeviceRow row = p.rows[first_row];
  const int head = static_cast<int>(blockIdx.x), kv_head = head / (p.heads / p.cache.kv_heads);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int32_t* table = p.tables + row.table_begin;
  // What the queries of the block see, and those of this warp.
  const int first = FirstSeen(p.window, row.position);
  const int end = p.both_sides ? row.prefix : row.position + count;
  const int warp_row = warp * kTiles * 16, position = row.position + warp_row;
  const int warp_first = FirstSeen(p.window, position);
  const int warp_end = warp_row >= count ? 0 : p.both_sides ? end : position + kTiles * 16;
  // Where this lane finds its operands (LoadPieces).
  const uint16_t* my_queries = queries + (warp_row + lane % 16) * kStride + lane / 16 * 8;
  const uint16_t* my_keys = tiles + (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
  const uint16_t* my_values = tiles + kTile + lane % 16 * kStride + lane / 16 * 8;
  const float exponent = kLog2E * (p.soft_cap > 0.0f ? p.soft_cap : p.scale);

  const auto fetch = [&](const void* base, int from, uint16_t* tile) {
    FetchTile<kDim, kType>(p, base, table, kv_head, from, first, end, tile);
  };
  FetchQueries<kDim, kQueries>(p, first_row, count, head, queries);
  int start = first / kKeys * kKeys, stage = 0;  // stage: where its tiles begin
  fetch(p.cache.keys, start, tiles);
  if constexpr (kStageCount == 2) fetch(p.cache.values, start, tiles + kTile);
  Softmax softmax[kTiles];
  float out[kTiles][kDim / 8][4] = {};
  for (; start < end; start += kKeys, stage = (kStageCount - 1) * 2 * kTile - stage) {
    const bool seen = start < warp_end && start + kKeys > warp_first;
    const bool more = start + kKeys < end;
    WaitForCopies<0>();
    __syncthreads();  // the keys are there, and the tiles before have been read
    if constexpr (kStageCount == 1) {
      fetch(p.cache.values, start, tiles + kTile);
    } else if (more) {
      uint16_t* other = tiles + 2 * kTile - stage;
      fetch(p.cache.keys, start + kKeys, other);
      fetch(p.cache.values, start + kKeys, other + kTile);
    }
    float scores[kTiles][kKeys / 8][4] = {};
    if (seen) Score<kDim, kTiles>(my_queries, my_keys + stage, scores);
    if constexpr (kStageCount == 1) {
      WaitForCopies<0>();
      __syncthreads();  // the values are there, and the keys have been read
      if (more) fetch(p.cache.keys, start + kKeys, tiles);
    }
    if (!seen) continue;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      CapAndMask(p, start, position + m * 16, end, scores[m]);
      float factor[2];
      Weigh(scores[m], exponent, softmax[m], factor);
      // Most tiles of a long context leave the largest score as it is.
      if (__ballot_sync(kAllLanes, factor[0] != 1.0f || factor[1] != 1.0f) == 0) continue;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) out[m][n][i] *= factor[i / 2];
      }
    }
    AddValues<kDim, kTiles>(scores, my_values + stage, out);
  }

#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = softmax[m].sum[h];
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
      sum += SinkWeight(p, head, exponent, softmax[m].most[h]);
      const int r = warp_row + m * 16 + h * 8 + lane / 4;
      if (r >= count) continue;
      const float factor = 1.0f / sum;
      uint16_t* to = p.out + (first_row + r) * p.out_stride +
                     static_cast<int64_t>(head) * p.cache.head_dim + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        if (n * 8 + lane % 4 * 2 >= p.cache.head_dim) continue;
        *reinterpret_cast<uint32_t*>(to + n * 8) =
            PackBf16(out[m][n][2 * h] * factor, out[m][n][2 * h + 1] * factor);
      }
    }
  }
}

template <int kDim, int kTiles, CacheType kType>
Status LaunchPrefill(const PrefillAttention& args, Stream stream) {
  constexpr int kQueries = kWarps * kTiles * 16;
  Shape shape;
  shape.x = static_cast<unsigned>(args.heads);
  shape.y = static_cast<unsigned>(args.run_count * (kPrefillTile / kQueries));
  shape.threads = kThreads;
  shape.dynamic_shared =
      sizeof(uint16_t) * (kQueries + kStages<kDim, kTiles> * 2 * kKeys) * (kDim + kTilePad);
  return Launch("prefill_attention", shape, stream, PrefillKernel<kDim, kTiles, kType>, args);
}

// Large tiles read keys and values half as often, if there are enough of them to fill a device.
constexpr int kEnoughTiles = 192;

template <int kDim, CacheType kType>
Status LaunchPrefillOf(const PrefillAttention& args, Stream stream) {
  if constexpr (kDim <= 128) {
    if (args.run_count * args.heads >= kEnoughTiles) {
      return LaunchPrefill<kDim, 2, kType>(args, stream);
    }
  }
  return LaunchPrefill<kDim, 1, kType>(args, stream);
}

template <CacheType kType>
Status LaunchPrefillOf(const PrefillAttention& args, Stream stream) {
  if (args.cache.head_dim <= 64) return LaunchPrefillOf<64, kType>(args, stream);
  if (args.cache.head_dim <= 128) return LaunchPrefillOf<128, kType>(args, stream);
  return LaunchPrefillOf<256, kType>(args, stream);
}

// ---- Numbers as bf16 ----

constexpr int kRowThreads = 256;
constexpr int kRowWarps = kRowThreads / kWarpSize;

__device__ __forceinline__ uint4 PackEight(const float* v) {
  return uint4{PackBf16(v[0], v[1]), PackBf16(v[2], v[3]), PackBf16(v[4], v[5]),
               PackBf16(v[6], v[7])};
}

// Elements i .. i + 7 of a row of floats; zeros from `columns` on.
__device__ __forceinline__ void LoadEight(const float* row, int i, int columns, float* v) {
  const float4 low = *reinterpret_cast<const float4*>(row + i);
  const float4 high = *reinterpret_cast<const float4*>(row + i + 4);
  const float all[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int e = 0; e < 8; ++e) v[e] = i + e < columns ? all[e] : 0.0f;
}

// Grid: rows.
__global__ void ToBf16Kernel(ToBf16 p) {
  DependencyWait();
  PAWL_SHARED(float, sums, kRowWarps);
  const float* x = p.x + blockIdx.x * p.x_stride;
  uint16_t* to = p.to + blockIdx.x * p.to_stride;
  const int first = static_cast<int>(threadIdx.x) * 8;
  float factor = 1.0f;
  if (p.norm != nullptr) {
    float sum = 0.0f;
#pragma unroll 2
    for (int i = first; i < p.columns; i += kRowThreads * 8) {
      float v[8];
      LoadEight(x, i, p.columns, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum = Fma(v[e], v[e], sum);
    }
    sum = WarpSum(sum);
    if (threadIdx.x % kWarpSize == 0) sums[threadIdx.x / kWarpSize] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < kRowWarps; ++i) sum += sums[i];
    factor = 1.0f / sqrtf(sum / static_cast<float>(p.columns) + p.epsilon);
  }
  for (int i = first; i < p.to_stride; i += kRowThreads * 8) {
    float v[8] = {};
    if (i < p.columns) LoadEight(x, i, p.columns, v);
    if (p.norm != nullptr && i < p.columns) {
      float norm[8];
      LoadEight(p.norm, i, p.columns, norm);
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = v[e] * factor * norm[e];
    }
    *reinterpret_cast<uint4*>(to + i) = PackEight(v);
  }
}

// Grid: pieces of 8 columns a thread, rows.
__global__ void GateKernel(GateRows p) {
  DependencyWait();
  const int i = static_cast<int>(blockIdx.x * kRowThreads + threadIdx.x) * 8;
  if (i >= p.stride) return;
  const int64_t at = blockIdx.y * p.stride + i;
  const uint4 gates = *reinterpret_cast<const uint4*>(p.gate + at);
  const uint4 ups = *reinterpret_cast<const uint4*>(p.up + at);
  const uint32_t gate[4] = {gates.x, gates.y, gates.z, gates.w};
  const uint32_t up[4] = {ups.x, ups.y, ups.z, ups.w};
  float v[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float x = e % 2 == 0 ? LowBf16(gate[e / 2]) : HighBf16(gate[e / 2]);
    const float y = e % 2 == 0 ? LowBf16(up[e / 2]) : HighBf16(up[e / 2]);
    // Both are x / (1 + e^-u); tanh'(s) is 2 / (1 + e^-2s) - 1.
    const float u =
        p.act == Gate::kSilu ? x : 1.5957691216057308f * (x * Fma(0.044715f, x * x, 1.0f));
    const float value = x * Reciprocal(1.0f + PowerOfTwo(-kLog2E * u)) * y;
    v[e] = i + e < p.columns ? value : 0.0f;
  }
  *reinterpret_cast<uint4*>(p.to + at) = PackEight(v);
}

// Float weights lie as their bf16 will. Grid: pieces of 8 elements a thread.
__global__ void UnpackFloatsKernel(DeviceMatrix w, uint16_t* to) {
  DependencyWait();
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kRowThreads + threadIdx.x) * 8;
  if (i >= static_cast<int64_t>(w.rows) * PaddedColumns(w.columns)) return;
  float v[8];
  if (w.type == DeviceWeight::kF32) {
    LoadEight(static_cast<const float*>(w.data) + i, 0, 8, v);
  } else {
    const uint4 halves = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(w.data) + i);
    const uint32_t pairs[4] = {halves.x, halves.y, halves.z, halves.w};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      v[e] = HalfToFloat(static_cast<uint16_t>(pairs[e / 2] >> 16 * (e % 2)));
    }
  }
  *reinterpret_cast<uint4*>(to + i) = PackEight(v);
}

constexpr int kTilesOfWarp = 4;

// Four weights of a lane that lie in one row from `column` on, of which `word` has the integers or
// codes; kI4: those of half `u` of the word.
template <DeviceWeight kType>
__device__ __forceinline__ uint2 FourWeights(uint32_t word, int u, float scale, float minimum) {
  float v[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if constexpr (kType == DeviceWeight::kI4) {
      const uint32_t q = word >> 4 * PackedNibble(u * 4 + e) & 15u;
      v[e] = Fma(static_cast<float>(q), scale, minimum);
    } else if constexpr (kType == DeviceWeight::kI8) {
      v[e] = static_cast<float>(static_cast<int8_t>(word >> 8 * e)) * scale;
    } else {
      v[e] = E4m3ToFloat(word >> 8 * e & 255u) * scale;
    }
  }
  return uint2{PackBf16(v[0], v[1]), PackBf16(v[2], v[3])};
}

// Packed weights, read as they lie. A warp has neighbouring tiles of 16 rows and 32 columns, of
// which a lane has rows g and g + 8. All that is read comes first. Grid: pieces of rows, tiles of
// rows.
template <DeviceWeight kType>
__global__ void UnpackTilesKernel(DeviceMatrix w, uint16_t* to) {
  DependencyWait();
  constexpr int kShare = kType == DeviceWeight::kI4 ? 2 : 4;  // words of a lane in a tile
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, g = lane / 4, t = lane % 4;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int padded = PaddedColumns(w.columns), tiles = padded / kTileColumns;
  const int first = (static_cast<int>(blockIdx.x) * kRowWarps + warp) * kTilesOfWarp;
  if (first >= tiles) return;
  const int row = static_cast<int>(blockIdx.y) * kTileRows + g;
  const auto* words = static_cast<const uint32_t*>(w.data) +
                      (static_cast<int64_t>(blockIdx.y) * tiles * kWarpSize + lane) * kShare;
  uint32_t share[kTilesOfWarp][kShare];
  float scales[kTilesOfWarp][2][2], minimums[kTilesOfWarp][2][2];  // of a row, half a tile
#pragma unroll
  for (int b = 0; b < kTilesOfWarp; ++b) {
    const int tile = first + b < tiles ? first + b : first;
    const uint32_t* at = words + static_cast<int64_t>(tile) * kWarpSize * kShare;
    if constexpr (kShare == 2) {
      const uint2 both = *reinterpret_cast<const uint2*>(at);
      share[b][0] = both.x;
      share[b][1] = both.y;
    } else {
      const uint4 all = *reinterpret_cast<const uint4*>(at);
      share[b][0] = all.x;
      share[b][1] = all.y;
      share[b][2] = all.z;
      share[b][3] = all.w;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = row + i / 2 * 8;
      float& scale = scales[b][i / 2][i % 2];
      if constexpr (kType == DeviceWeight::kFp8) {
        scale = w.row_scales[r < w.rows ? r : w.rows - 1];
      } else {
        const int group = (tile * kTileColumns + i % 2 * 16) >> w.group_shift;
        scale = HalfToFloat(w.scales[TableIndex(w.groups, r, group)]);
      }
      minimums[b][i / 2][i % 2] = -8.0f * scale;
    }
  }
  if (kType == DeviceWeight::kI4 && w.minimums != nullptr) {
#pragma unroll
    for (int b = 0; b < kTilesOfWarp; ++b) {
      const int tile = first + b < tiles ? first + b : first;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int group = (tile * kTileColumns + i % 2 * 16) >> w.group_shift;
        minimums[b][i / 2][i % 2] =
            HalfToFloat(w.minimums[TableIndex(w.groups, row + i / 2 * 8, group)]);
      }
    }
  }
#pragma unroll
  for (int b = 0; b < kTilesOfWarp; ++b) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = i / 2, u = i % 2, r = row + h * 8;
      const int column = (first + b) * kTileColumns + u * 16 + 4 * t;
      uint2 four = FourWeights<kType>(share[b][h * (kShare / 2) + u % (kShare / 2)], u,
                                      scales[b][h][u], minimums[b][h][u]);
      // What pads a row may be anything here.
      const int left = w.columns - column;
      if (left < 4) {
        four.y = left < 3 ? 0 : four.y & 0xffffu;
        if (left < 2) four.x = left < 1 ? 0 : four.x & 0xffffu;
      }
      if (r < w.rows && column < padded) {
        *reinterpret_cast<uint2*>(to + static_cast<int64_t>(r) * padded + column) = four;
      }
    }
  }
}

template <DeviceWeight kType>
Status LaunchUnpackTiles(const DeviceMatrix& w, uint16_t* to, Stream stream) {
  constexpr int kPiece = kRowWarps * kTilesOfWarp * kTileColumns;
  Shape shape;
  shape.x = static_cast<unsigned>((PaddedColumns(w.columns) + kPiece - 1) / kPiece);
  shape.y = static_cast<unsigned>(RowTiles(w.rows));
  shape.threads = kRowThreads;
  return Launch("unpack", shape, stream, UnpackTilesKernel<kType>, w, to);
}

}  // namespace

Status RunPrefillAttention(const PrefillAttention& args, Stream stream) {
  if (args.run_count <= 0) return {};
  switch (args.cache.type) {
    case CacheType::kF32:
      return LaunchPrefillOf<CacheType::kF32>(args, stream);
    case CacheType::kBf16:
      return LaunchPrefillOf<CacheType::kBf16>(args, stream);
    case CacheType::kFp8:
      break;
  }
  return LaunchPrefillOf<CacheType::kFp8>(args, stream);
}

Status RunToBf16(const ToBf16& args, Stream stream) {
  Shape shape;
  shape.x = static_cast<unsigned>(args.count);
  shape.threads = kRowThreads;
  return Launch("to_bf16", shape, stream, ToBf16Kernel, args);
}

Status RunGateRows(const GateRows& args, Stream stream) {
  constexpr int64_t kPiece = kRowThreads * 8;
  Shape shape;
  shape.x = static_cast<unsigned>((args.stride + kPiece - 1) / kPiece);
  shape.y = static_cast<unsigned>(args.count);
  shape.threads = kRowThreads;
  return Launch("gate_rows", shape, stream, GateKernel, args);
}

Status RunUnpack(const DeviceMatrix& matrix, uint16_t* to, Stream stream) {
  switch (matrix.type) {
    case DeviceWeight::kFp8:
      return LaunchUnpackTiles<DeviceWeight::kFp8>(matrix, to, stream);
    case DeviceWeight::kI8:
      return LaunchUnpackTiles<DeviceWeight::kI8>(matrix, to, stream);
    case DeviceWeight::kI4:
      return LaunchUnpackTiles<DeviceWeight::kI4>(matrix, to, stream);
    default:
      break;
  }
  constexpr int64_t kPiece = kRowThreads * 8;
  const int64_t elements = static_cast<int64_t>(matrix.rows) * PaddedColumns(matrix.columns);
  Shape shape;
  shape.x = static_cast<unsigned>((elements + kPiece - 1) / kPiece);
  shape.threads = kRowThreads;
  return Launch("unpack", shape, stream, UnpackFloatsKernel, matrix, to);
}

}  // namespace pawl::PAWL_GPU
