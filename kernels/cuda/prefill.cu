// Attention of many consecutive rows: tiles of queries and of 64 keys on tensor cores with the
// softmax kept up as keys go by (Dao, "FlashAttention-2", 2023). A block has the queries of one run
// and head; each of its four warps has 16 or 32 of them and all the keys, so warps share nothing
// but the tiles in shared memory. Values are on their way while scores are computed, the next keys
// while values are added up. Keys and values are bf16 there, whatever the cache holds: a cache of
// bf16 is copied as it is, others are converted on the way. Tiles of keys begin at multiples of 64
// of the absolute position, and a key that a query does not see adds an exact zero, so a row's
// result depends neither on the rows that share its tile nor on the size of the tile.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tiles.cuh"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kKeys = 64;

// 2^x, to about two units in the last place; of -infinity zero.
__device__ __forceinline__ float Exp2(float x) {
#if defined(__CUDA_ARCH__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

// Eight neighbouring elements of a cache that is not bf16, as bf16.
__device__ __forceinline__ uint4 CacheEight(const Cache& cache, const void* base, int64_t element) {
  if (cache.type == CacheType::kF32) {
    const auto* at = reinterpret_cast<const float4*>(static_cast<const float*>(base) + element);
    const float4 low = at[0], high = at[1];
    return uint4{PackBf16(low.x, low.y), PackBf16(low.z, low.w), PackBf16(high.x, high.y),
                 PackBf16(high.z, high.w)};
  }
  const auto* at = reinterpret_cast<const uint2*>(static_cast<const uint8_t*>(base) + element);
  const uint2 codes = *at;
  const auto pair = [](uint32_t two) {
    return PackBf16(E4m3ToFloat(two & 255u), E4m3ToFloat(two >> 8 & 255u));
  };
  return uint4{pair(codes.x), pair(codes.x >> 16), pair(codes.y), pair(codes.y >> 16)};
}

// The keys or values of a head at the positions start .. start + kKeys - 1, of which those below
// `first` or from `end` on are zeros, become rows of a tile. What is copied, here and before, is
// a group; what is converted is there at once.
template <int kDim, bool kCopied>
__device__ __forceinline__ void FetchTile(const PrefillAttention& p, const void* base,
                                          const int32_t* table, int kv_head, int start, int first,
                                          int end, uint16_t* tile) {
  constexpr int kPieces = kDim / 8, kRows = kThreads / kPieces;
  const int thread = static_cast<int>(threadIdx.x), d = thread % kPieces * 8;
  const int stride = HeadStride(p.cache.head_dim);
#pragma unroll
  for (int i = 0; i < kKeys / kRows; ++i) {
    const int k = thread / kPieces + i * kRows, j = start + k;
    const bool there = j >= first && j < end && d < stride;
    const int page = there ? table[j / kPageSize] : 0;
    const int64_t element =
        there ? ((static_cast<int64_t>(page) * p.cache.kv_heads + kv_head) * kPageSize +
                 j % kPageSize) *
                        stride +
                    d
              : 0;
    uint16_t* to = tile + k * (kDim + kTilePad) + d;
    if constexpr (kCopied) {
      CopyToTile(to, static_cast<const uint16_t*>(base) + element, there);
    } else {
      *reinterpret_cast<uint4*>(to) =
          there ? CacheEight(p.cache, base, element) : uint4{0, 0, 0, 0};
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

// Turns scores into weights beside the largest score of each query so far; factor: what weights
// added up before are worth now. A weight is 2^(exponent (score - largest)).
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
    // Nothing seen so far: all weights of this tile are zero beside any finite number, and the next
    // tile starts afresh.
    base[h] = largest == -INFINITY ? 0.0f : largest * exponent;
    factor[h] = Exp2(Fma(softmax.most[h], exponent, -base[h]));
    softmax.most[h] = largest;
    softmax.sum[h] *= factor[h];
  }
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[n][i] = Exp2(Fma(scores[n][i], exponent, -base[i / 2]));
      softmax.sum[i / 2] += scores[n][i];
    }
  }
}

// Grid: heads, pieces of runs, the last ones first: they see most. kDim: head_dim or more. kTiles:
// how often a warp has 16 queries.
template <int kDim, int kTiles, bool kCopied>
__global__ __launch_bounds__(kThreads) void PrefillKernel(PrefillAttention p) {
  DependencyWait();
  constexpr int kStride = kDim + kTilePad, kQueries = kWarps * kTiles * 16;
  constexpr int kPieces = kPrefillTile / kQueries;
  PAWL_DYNAMIC_SHARED(uint16_t, shared);
  uint16_t* queries = shared;  // [kQueries][kStride]
  uint16_t* keys = queries + kQueries * kStride;
  uint16_t* values = keys + kKeys * kStride;
  const auto index = static_cast<int>(gridDim.y - 1 - blockIdx.y);
  const RowRun run = p.runs[index / kPieces];
  const int skipped = index % kPieces * kQueries, count = run.count - skipped;
  if (count <= 0) return;
  const int first_row = run.first + skipped;
  const DeviceRow row = p.rows[first_row];
  const int head = static_cast<int>(blockIdx.x);
  const int kv_head = head / (p.heads / p.cache.kv_heads);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize, g = lane / 4, t = lane % 4;
  const int32_t* table = p.tables + row.table_begin;

  // What the first query of the block sees, of the warp, and of this lane's first.
  const auto first_seen = [&](int position) {
    return p.window > 0 && position + 1 > p.window ? position + 1 - p.window : 0;
  };
  const int block_first = first_seen(row.position);
  const int end = row.position + (count < kQueries ? count : kQueries);
  const int warp_row = warp * kTiles * 16, warp_position = row.position + warp_row;
  const int warp_first = first_seen(warp_position);
  const int warp_end = warp_row < count ? warp_position + kTiles * 16 : 0;

  FetchQueries<kDim, kQueries>(p, first_row, count, head, queries);
  int start = block_first / kKeys * kKeys;
  FetchTile<kDim, kCopied>(p, p.cache.keys, table, kv_head, start, block_first, end, keys);

  Softmax softmax[kTiles];
  float out[kTiles][kDim / 8][4];
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out[m][n][i] = 0.0f;
    }
  }
  const float exponent = 1.4426950408889634f * (p.soft_cap > 0.0f ? p.soft_cap : p.scale);

  for (; start < end; start += kKeys) {
    const bool seen = start < warp_end && start + kKeys > warp_first;
    WaitForCopies<0>();
    __syncthreads();  // the keys are there, and the values have been read
    FetchTile<kDim, kCopied>(p, p.cache.values, table, kv_head, start, block_first, end, values);
    float scores[kTiles][kKeys / 8][4];
    if (seen) {
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) scores[m][n][i] = 0.0f;
        }
      }
#pragma unroll
      for (int d = 0; d < kDim; d += 16) {
        uint32_t a[kTiles][4];
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          LoadPieces<false>(queries + (warp_row + m * 16 + lane % 16) * kStride + d + lane / 16 * 8,
                            a[m]);
        }
#pragma unroll
        for (int n = 0; n < kKeys / 8; n += 2) {
          uint32_t b[4];
          LoadPieces<false>(
              keys + (n * 8 + lane / 16 * 8 + lane % 8) * kStride + d + lane / 8 % 2 * 8, b);
#pragma unroll
          for (int m = 0; m < kTiles; ++m) {
            MmaBf16(scores[m][n], a[m], b);
            MmaBf16(scores[m][n + 1], a[m], b + 2);
          }
        }
      }
    }
    WaitForCopies<0>();
    __syncthreads();  // the values are there, and the keys have been read
    if (start + kKeys < end) {
      FetchTile<kDim, kCopied>(p, p.cache.keys, table, kv_head, start + kKeys, block_first, end,
                               keys);
    }
    if (!seen) continue;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const int position = warp_position + m * 16;
      if (p.soft_cap > 0.0f) {
        // In units of the cap.
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            scores[m][n][i] = tanhf(scores[m][n][i] * p.scale / p.soft_cap);
          }
        }
      }
      if (start + kKeys > position + 1 || start < first_seen(position + 15)) {
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int j = start + n * 8 + 2 * t + i % 2, mine = position + g + i / 2 * 8;
            if (j > mine || j < first_seen(mine)) scores[m][n][i] = -INFINITY;
          }
        }
      }
      float factor[2];
      Weigh(scores[m], exponent, softmax[m], factor);
      // Most tiles of a long context leave the largest score as it is.
      if (__ballot_sync(kAllLanes, factor[0] != 1.0f || factor[1] != 1.0f) != 0) {
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) out[m][n][i] *= factor[i / 2];
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kKeys; k += 16) {
      uint32_t a[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        const float* low = scores[m][k / 8];
        const float* high = scores[m][k / 8 + 1];
        a[m][0] = PackBf16(low[0], low[1]);
        a[m][1] = PackBf16(low[2], low[3]);
        a[m][2] = PackBf16(high[0], high[1]);
        a[m][3] = PackBf16(high[2], high[3]);
      }
#pragma unroll
      for (int n = 0; n < kDim / 8; n += 2) {
        uint32_t b[4];
        LoadPieces<true>(values + (k + lane % 16) * kStride + n * 8 + lane / 16 * 8, b);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          MmaBf16(out[m][n], a[m], b);
          MmaBf16(out[m][n + 1], a[m], b + 2);
        }
      }
    }
  }

  const int head_dim = p.cache.head_dim;
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = softmax[m].sum[h];
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
      const int r = warp_row + m * 16 + h * 8 + g;
      if (r >= count) continue;
      const float factor = 1.0f / sum;
      uint16_t* to =
          p.out + (first_row + r) * p.out_stride + static_cast<int64_t>(head) * head_dim + 2 * t;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        if (n * 8 + 2 * t >= head_dim) continue;
        *reinterpret_cast<uint32_t*>(to + n * 8) =
            PackBf16(out[m][n][2 * h] * factor, out[m][n][2 * h + 1] * factor);
      }
    }
  }
}

template <int kDim, int kTiles, bool kCopied>
Status LaunchPrefill(const PrefillAttention& args, Stream stream) {
  constexpr int kQueries = kWarps * kTiles * 16;
  Shape shape;
  shape.x = static_cast<unsigned>(args.heads);
  shape.y = static_cast<unsigned>(args.run_count * (kPrefillTile / kQueries));
  shape.threads = kThreads;
  shape.dynamic_shared = sizeof(uint16_t) * (kQueries + 2 * kKeys) * (kDim + kTilePad);
  return Launch("prefill_attention", shape, stream, PrefillKernel<kDim, kTiles, kCopied>, args);
}

// Large tiles read keys and values half as often, if there are enough of them to fill a device.
constexpr int kEnoughTiles = 192;

template <int kDim>
Status LaunchPrefillOf(const PrefillAttention& args, Stream stream) {
  const bool copied = args.cache.type == CacheType::kBf16;
  if constexpr (kDim <= 128) {
    if (args.run_count * args.heads >= kEnoughTiles) {
      return copied ? LaunchPrefill<kDim, 2, true>(args, stream)
                    : LaunchPrefill<kDim, 2, false>(args, stream);
    }
  }
  return copied ? LaunchPrefill<kDim, 1, true>(args, stream)
                : LaunchPrefill<kDim, 1, false>(args, stream);
}

// ---- Numbers as bf16 ----

constexpr int kRowThreads = 256;
constexpr int kRowWarps = kRowThreads / kWarpSize;

// Grid: rows.
__global__ void ToBf16Kernel(ToBf16 p) {
  DependencyWait();
  PAWL_SHARED(float, sums, kRowWarps);
  const float* x = p.x + blockIdx.x * p.x_stride;
  const float* up = p.up != nullptr ? p.up + blockIdx.x * p.x_stride : nullptr;
  uint16_t* to = p.to + blockIdx.x * p.to_stride;
  float factor = 1.0f;
  if (p.norm != nullptr) {
    float sum = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < p.columns; i += kRowThreads) {
      sum = Fma(x[i], x[i], sum);
    }
    sum = WarpSum(sum);
    if (threadIdx.x % kWarpSize == 0) sums[threadIdx.x / kWarpSize] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < kRowWarps; ++i) sum += sums[i];
    factor = 1.0f / sqrtf(sum / static_cast<float>(p.columns) + p.epsilon);
  }
  const auto value = [&](int i) {
    if (i >= p.columns) return 0.0f;
    if (p.norm != nullptr) return x[i] * factor * p.norm[i];
    if (up == nullptr) return x[i];
    if (p.gate == Gate::kSilu) return x[i] / (1.0f + expf(-x[i])) * up[i];
    const float u = -1.5957691216057308f * (x[i] * Fma(0.044715f, x[i] * x[i], 1.0f));
    return x[i] / (1.0f + expf(u)) * up[i];
  };
  for (int i = static_cast<int>(threadIdx.x) * 2; i < p.to_stride; i += kRowThreads * 2) {
    *reinterpret_cast<uint32_t*>(to + i) = PackBf16(value(i), value(i + 1));
  }
}

// Grid: rows of the matrix.
__global__ void UnpackKernel(DeviceMatrix w, uint16_t* to) {
  DependencyWait();
  const int row = static_cast<int>(blockIdx.x), padded = PaddedColumns(w.columns);
  to += static_cast<int64_t>(row) * padded;
  for (int i = static_cast<int>(threadIdx.x) * 2; i < padded; i += kRowThreads * 2) {
    const float a = i < w.columns ? WeightAt(w, row, i) : 0.0f;
    const float b = i + 1 < w.columns ? WeightAt(w, row, i + 1) : 0.0f;
    *reinterpret_cast<uint32_t*>(to + i) = PackBf16(a, b);
  }
}

}  // namespace

Status RunPrefillAttention(const PrefillAttention& args, Stream stream) {
  if (args.run_count <= 0) return {};
  if (args.cache.head_dim <= 64) return LaunchPrefillOf<64>(args, stream);
  if (args.cache.head_dim <= 128) return LaunchPrefillOf<128>(args, stream);
  return LaunchPrefillOf<256>(args, stream);
}

Status RunToBf16(const ToBf16& args, Stream stream) {
  Shape shape;
  shape.x = static_cast<unsigned>(args.count);
  shape.threads = kRowThreads;
  return Launch("to_bf16", shape, stream, ToBf16Kernel, args);
}

Status RunUnpack(const DeviceMatrix& matrix, uint16_t* to, Stream stream) {
  Shape shape;
  shape.x = static_cast<unsigned>(matrix.rows);
  shape.threads = kRowThreads;
  return Launch("unpack", shape, stream, UnpackKernel, matrix, to);
}

}  // namespace pawl::PAWL_GPU
