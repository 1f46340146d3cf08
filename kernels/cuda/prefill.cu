// Attention of many consecutive rows: tiles of 64 queries and 32 keys on tensor cores with the
// softmax kept up as keys go by (Dao, "FlashAttention-2", 2023). A block has one tile and one head;
// each of its four warps has 16 queries and all the keys, so warps share nothing but the tiles in
// shared memory. Keys and values become bf16 there, whatever the cache holds. Tiles of keys begin
// at multiples of 32 of the absolute position, and a key that a query does not see adds an exact
// zero, so a row's result does not depend on which rows share its tile.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kWarps = kPrefillTile / 16;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kKeys = 32;

// Rows of a tile in shared memory lie `kPad` elements further apart than they are long, so that
// eight rows at the same place fall into different banks.
constexpr int kPad = 8;

// The transposed 16 x 8 piece of bf16 whose row i is at `row` of lane i < 16: b operands of an MMA.
__device__ __forceinline__ void LoadTransposed(const uint16_t* row, uint32_t* b) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(address)
               : "memory");
#elif defined(PAWL_CUDA_EMULATED)
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) emulation::Fail("a row that is not aligned");
  const unsigned char* lanes = emulation::Exchange("ldmatrix", &row, sizeof row);
  const int g = static_cast<int>(threadIdx.x % 32) / 4, t = static_cast<int>(threadIdx.x % 4);
  for (int i = 0; i < 2; ++i) {
    const auto at = [&](int k) {
      return uint32_t{emulation::FromLane<const uint16_t*>(lanes, i * 8 + k)[g]};
    };
    b[i] = at(2 * t) | at(2 * t + 1) << 16;
  }
#endif
}

__device__ __forceinline__ uint32_t Pair(const uint16_t* at) {
  return *reinterpret_cast<const uint32_t*>(at);
}

// Two neighbouring elements of a cache as bf16.
__device__ __forceinline__ uint32_t CachePair(const Cache& cache, const void* base,
                                              int64_t element) {
  switch (cache.type) {
    case CacheType::kF32: {
      const float* at = static_cast<const float*>(base) + element;
      return PackBf16(at[0], at[1]);
    }
    case CacheType::kBf16:
      return Pair(static_cast<const uint16_t*>(base) + element);
    default: {
      const uint8_t* at = static_cast<const uint8_t*>(base) + element;
      return PackBf16(E4m3ToFloat(at[0]), E4m3ToFloat(at[1]));
    }
  }
}

// Grid: runs, heads. kDim: head_dim or more; shared memory has zeros between.
template <int kDim>
__global__ __launch_bounds__(kThreads) void PrefillKernel(PrefillAttention p) {
  DependencyWait();
  constexpr int kStride = kDim + kPad;
  PAWL_DYNAMIC_SHARED(uint16_t, shared);
  uint16_t* queries = shared;  // [kPrefillTile][kStride]
  uint16_t* keys = queries + kPrefillTile * kStride;
  uint16_t* values = keys + kKeys * kStride;
  const RowRun run = p.runs[blockIdx.x];
  const DeviceRow row = p.rows[run.first];
  const int head = static_cast<int>(blockIdx.y), head_dim = p.cache.head_dim;
  const int kv_head = head / (p.heads / p.cache.kv_heads);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarpSize;
  const int warp = thread / kWarpSize, g = lane / 4, t = lane % 4;
  constexpr int kPairs = kDim / 2;

  for (int i = thread; i < kPrefillTile * kPairs; i += kThreads) {
    const int r = i / kPairs, d = i % kPairs * 2;
    uint32_t pair = 0;
    if (r < run.count && d < head_dim) {
      const float* q =
          p.q + (run.first + r) * p.q_stride + static_cast<int64_t>(head) * head_dim + d;
      pair = PackBf16(q[0], q[1]);
    }
    *reinterpret_cast<uint32_t*>(queries + r * kStride + d) = pair;
  }

  // This lane's two queries.
  int position[2], first[2];
  float most[2], sum[2];
  for (int h = 0; h < 2; ++h) {
    const int r = warp * 16 + g + h * 8;
    position[h] = r < run.count ? row.position + r : -1;
    const int out_of_sight = position[h] + 1 - p.window;
    first[h] = p.window > 0 && out_of_sight > 0 ? out_of_sight : 0;
    most[h] = -INFINITY;
    sum[h] = 0.0f;
  }
  float out[kDim / 8][4];
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out[n][i] = 0.0f;
  }

  const int block_first =
      p.window > 0 && row.position + 1 > p.window ? row.position + 1 - p.window : 0;
  const int end = row.position + run.count;
  for (int start = block_first / kKeys * kKeys; start < end; start += kKeys) {
    __syncthreads();
    for (int i = thread; i < kKeys * kPairs; i += kThreads) {
      const int k = i / kPairs, d = i % kPairs * 2, j = start + k;
      uint32_t key = 0, value = 0;
      if (j < end && d < head_dim) {
        const int page = p.tables[row.table_begin + j / kPageSize];
        const int64_t element =
            ((static_cast<int64_t>(page) * p.cache.kv_heads + kv_head) * kPageSize +
             j % kPageSize) *
                HeadStride(head_dim) +
            d;
        key = CachePair(p.cache, p.cache.keys, element);
        value = CachePair(p.cache, p.cache.values, element);
      }
      *reinterpret_cast<uint32_t*>(keys + k * kStride + d) = key;
      *reinterpret_cast<uint32_t*>(values + k * kStride + d) = value;
    }
    __syncthreads();

    float scores[kKeys / 8][4];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = 0.0f;
    }
#pragma unroll
    for (int d = 0; d < kDim; d += 16) {
      const uint16_t* q = queries + (warp * 16 + g) * kStride + d + 2 * t;
      const uint32_t a[4] = {Pair(q), Pair(q + 8 * kStride), Pair(q + 8),
                             Pair(q + 8 * kStride + 8)};
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const uint16_t* k = keys + (n * 8 + g) * kStride + d + 2 * t;
        const uint32_t b[2] = {Pair(k), Pair(k + 8)};
        MmaBf16(scores[n], a, b);
      }
    }

    float largest[2] = {most[0], most[1]};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int h = i / 2, j = start + n * 8 + 2 * t + i % 2;
        float score = scores[n][i] * p.scale;
        if (p.soft_cap > 0.0f) score = p.soft_cap * tanhf(score / p.soft_cap);
        if (j > position[h] || j < first[h]) score = -INFINITY;
        scores[n][i] = score;
        largest[h] = fmaxf(largest[h], score);
      }
    }
    float factor[2], base[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      largest[h] = fmaxf(largest[h], __shfl_xor_sync(kAllLanes, largest[h], 1));
      largest[h] = fmaxf(largest[h], __shfl_xor_sync(kAllLanes, largest[h], 2));
      // Nothing seen so far: all weights of this tile are zero beside any finite number, and the
      // next tile starts afresh.
      base[h] = largest[h] == -INFINITY ? 0.0f : largest[h];
      factor[h] = expf(most[h] - base[h]);
      most[h] = largest[h];
      sum[h] *= factor[h];
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = expf(scores[n][i] - base[i / 2]);
        sum[i / 2] += scores[n][i];
      }
    }
    // Where nothing changes the factor is one; most tiles of a long context leave it so.
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out[n][i] *= factor[i / 2];
    }
#pragma unroll
    for (int k = 0; k < kKeys; k += 16) {
      const float* low = scores[k / 8];
      const float* high = scores[k / 8 + 1];
      const uint32_t a[4] = {PackBf16(low[0], low[1]), PackBf16(low[2], low[3]),
                             PackBf16(high[0], high[1]), PackBf16(high[2], high[3])};
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        uint32_t b[2];
        LoadTransposed(values + (k + lane % 16) * kStride + n * 8, b);
        MmaBf16(out[n], a, b);
      }
    }
  }

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    sum[h] += __shfl_xor_sync(kAllLanes, sum[h], 1);
    sum[h] += __shfl_xor_sync(kAllLanes, sum[h], 2);
  }
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = warp * 16 + g + h * 8, d = n * 8 + 2 * t;
      if (r >= run.count || d >= head_dim) continue;
      uint16_t* to =
          p.out + (run.first + r) * p.out_stride + static_cast<int64_t>(head) * head_dim + d;
      *reinterpret_cast<uint32_t*>(to) =
          PackBf16(out[n][2 * h] / sum[h], out[n][2 * h + 1] / sum[h]);
    }
  }
}

template <int kDim>
Status LaunchPrefill(const PrefillAttention& args, Stream stream) {
  Shape shape;
  shape.x = static_cast<unsigned>(args.run_count);
  shape.y = static_cast<unsigned>(args.heads);
  shape.threads = kThreads;
  shape.dynamic_shared = sizeof(uint16_t) * (kPrefillTile + 2 * kKeys) * (kDim + kPad);
  return Launch("prefill_attention", shape, stream, PrefillKernel<kDim>, args);
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
  if (args.cache.head_dim <= 64) return LaunchPrefill<64>(args, stream);
  if (args.cache.head_dim <= 128) return LaunchPrefill<128>(args, stream);
  return LaunchPrefill<256>(args, stream);
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
