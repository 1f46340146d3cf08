// Attention of few rows over long caches. The positions that a row sees are cut at multiples of 256
// of the absolute position; a block takes one such split for the query heads that share a key-value
// head, so that long contexts fill the device even with one row and keys and values are read once
// for the group. A second kernel joins the splits of a row in ascending order. Where the cuts are
// depends on positions alone, so a row has the same bits in any company, and a path of a draft tree
// the same bits as the plain run of its tokens: position j is the j-th key either way, only its
// slot differs.
//
// Within a split, a key takes as many lanes as its head has pieces of eight elements (16 bytes of
// bf16), so a warp looks at 32 / lanes keys at a time. Scores go to shared memory, their softmax
// is made there, and the weighted values are added by the same division of lanes.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/layer.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kSplit = 256;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kPiece = 8;
static_assert(kSplit % kPageSize == 0);

template <CacheType kType>
__device__ __forceinline__ void LoadPiece(const void* base, int64_t element, float* v) {
  if constexpr (kType == CacheType::kF32) {
    const float4* at = reinterpret_cast<const float4*>(static_cast<const float*>(base) + element);
    const float4 a = at[0], b = at[1];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  } else if constexpr (kType == CacheType::kBf16) {
    const uint4 a = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(base) + element);
    const uint32_t words[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[2 * i] = LowBf16(words[i]);
      v[2 * i + 1] = HighBf16(words[i]);
    }
  } else {
    const uint2 a = *reinterpret_cast<const uint2*>(static_cast<const uint8_t*>(base) + element);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = E4m3ToFloat((i < 4 ? a.x : a.y) >> 8 * (i % 4) & 0xffu);
  }
}

__device__ __forceinline__ int FirstSeen(const DeviceRow& row, int window) {
  const int out_of_sight = row.position + 1 - window;
  return window > 0 && out_of_sight > 0 ? out_of_sight : 0;
}

// Elements from the start of a cache to head `head` of position j.
__device__ __forceinline__ int64_t ElementOf(const Attention& p, const DeviceRow& row, int j,
                                             int head) {
  int slot;
  if (j < row.prefix) {
    slot = p.tables[row.table_begin + j / kPageSize] * kPageSize + j % kPageSize;
  } else {
    slot = p.extra[row.extra_begin + j - row.prefix];
  }
  return ((static_cast<int64_t>(slot / kPageSize) * p.cache.kv_heads + head) * kPageSize +
          slot % kPageSize) *
         HeadStride(p.cache.head_dim);
}

// Workspace of a (row, head, split): maximum, sum, and the unscaled sum of values.
__host__ __device__ inline int64_t PartialFloats(int head_dim) { return head_dim + 2; }

// Grid: splits, kv_heads * (heads of a group in portions of kHeads), rows.
template <CacheType kType, int kHeads>
__global__ __launch_bounds__(kThreads) void SplitKernel(Attention p, int splits) {
  DependencyWait();
  PAWL_SHARED(float, scores, kHeads* kSplit);
  PAWL_SHARED(float, of_warps, kWarps* kHeads* kMostHeadDim);
  const DeviceRow row = p.rows[blockIdx.z];
  const int group = p.heads / p.cache.kv_heads, head_dim = p.cache.head_dim;
  const int portions = (group + kHeads - 1) / kHeads;
  const int kv_head = static_cast<int>(blockIdx.y) / portions;
  const int first_head = kv_head * group + static_cast<int>(blockIdx.y) % portions * kHeads;
  const int heads_left = kv_head * group + group - first_head;
  const int heads = heads_left < kHeads ? heads_left : kHeads;
  const int split = static_cast<int>(blockIdx.x), start = split * kSplit;
  const int seen = row.prefix + row.extra_count;
  const int first = FirstSeen(row, p.window);
  const int begin = first > start ? first : start;
  const int end = seen < start + kSplit ? seen : start + kSplit;
  if (row.position < 0 || begin >= end) return;

  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  int lanes = 1;  // of a key
  while (lanes * kPiece < head_dim) lanes *= 2;
  const int d = lane % lanes * kPiece;
  const bool inside = d < head_dim;
  const int keys = kWarpSize / lanes;  // of a warp at a time
  const int own = warp * keys + lane / lanes, step = kWarps * keys;

  float q[kHeads][kPiece];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const float* at = p.q + blockIdx.z * p.q_stride +
                      static_cast<int64_t>(first_head + (h < heads ? h : 0)) * head_dim + d;
#pragma unroll
    for (int i = 0; i < kPiece; ++i) q[h][i] = d + i < head_dim ? at[i] : 0.0f;
  }
  for (int base = start; base < end; base += step) {
    const int j = base + own;
    float dot[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) dot[h] = 0.0f;
    if (j >= begin && j < end && inside) {
      float key[kPiece];
      LoadPiece<kType>(p.cache.keys, ElementOf(p, row, j, kv_head) + d, key);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
#pragma unroll
        for (int i = 0; i < kPiece; ++i) dot[h] = Fma(q[h][i], key[i], dot[h]);
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      for (int bits = lanes / 2; bits > 0; bits /= 2) {
        dot[h] += __shfl_xor_sync(kAllLanes, dot[h], bits);
      }
      if (lane % lanes == 0 && j < start + kSplit) {
        float score = dot[h] * p.scale;
        if (p.soft_cap > 0.0f) score = p.soft_cap * tanhf(score / p.soft_cap);
        scores[h * kSplit + j - start] = j >= begin && j < end ? score : -INFINITY;
      }
    }
  }
  __syncthreads();

  float* partial =
      p.partial + ((static_cast<int64_t>(blockIdx.z) * p.heads + first_head) * splits + split) *
                      PartialFloats(head_dim);
  const int64_t of_head = static_cast<int64_t>(splits) * PartialFloats(head_dim);
  // What the loop above has filled: whole steps from `start` on.
  const int filled_steps = (end - start + step - 1) / step * step;
  const int filled = filled_steps < kSplit ? filled_steps : kSplit;
  for (int h = warp; h < heads; h += kWarps) {
    float most = -INFINITY;
    for (int j = lane; j < filled; j += kWarpSize) most = fmaxf(most, scores[h * kSplit + j]);
    most = WarpMax(most);
    float sum = 0.0f;
    for (int j = lane; j < filled; j += kWarpSize) {
      const float weight = expf(scores[h * kSplit + j] - most);
      scores[h * kSplit + j] = weight;
      sum += weight;
    }
    sum = WarpSum(sum);
    if (lane == 0) {
      partial[h * of_head] = most;
      partial[h * of_head + 1] = sum;
    }
  }
  __syncthreads();

  float acc[kHeads][kPiece];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) acc[h][i] = 0.0f;
  }
  for (int base = start; base < end; base += step) {
    const int j = base + own;
    if (j < begin || j >= end || !inside) continue;
    float value[kPiece];
    LoadPiece<kType>(p.cache.values, ElementOf(p, row, j, kv_head) + d, value);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= heads) break;
      const float weight = scores[h * kSplit + j - start];
#pragma unroll
      for (int i = 0; i < kPiece; ++i) acc[h][i] = Fma(weight, value[i], acc[h][i]);
    }
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      for (int bits = lanes; bits < kWarpSize; bits *= 2) {
        acc[h][i] += __shfl_xor_sync(kAllLanes, acc[h][i], bits);
      }
      if (lane < lanes && inside) of_warps[(warp * kHeads + h) * kMostHeadDim + d + i] = acc[h][i];
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < heads * head_dim; i += kThreads) {
    const int h = i / head_dim, e = i % head_dim;
    float sum = 0.0f;
    for (int w = 0; w < kWarps; ++w) sum += of_warps[(w * kHeads + h) * kMostHeadDim + e];
    partial[h * of_head + 2 + e] = sum;
  }
}

// Grid: heads, rows.
__global__ void JoinKernel(Attention p, int splits) {
  DependencyWait();
  const DeviceRow row = p.rows[blockIdx.y];
  const int head = static_cast<int>(blockIdx.x), head_dim = p.cache.head_dim;
  float* out = p.out + blockIdx.y * p.out_stride + static_cast<int64_t>(head) * head_dim;
  if (row.position < 0) {
    for (int d = static_cast<int>(threadIdx.x); d < head_dim; d += kThreads) out[d] = 0.0f;
    return;
  }
  const int64_t size = PartialFloats(head_dim);
  const float* partial =
      p.partial + (static_cast<int64_t>(blockIdx.y) * p.heads + head) * splits * size;
  const int from = FirstSeen(row, p.window) / kSplit;
  const int to = (row.prefix + row.extra_count - 1) / kSplit;
  float most = -INFINITY;
  for (int s = from; s <= to; ++s) most = fmaxf(most, partial[s * size]);
  float sum = 0.0f;
  for (int s = from; s <= to; ++s) {
    sum = Fma(partial[s * size + 1], expf(partial[s * size] - most), sum);
  }
  for (int d = static_cast<int>(threadIdx.x); d < head_dim; d += kThreads) {
    float value = 0.0f;
    for (int s = from; s <= to; ++s) {
      value = Fma(partial[s * size + 2 + d], expf(partial[s * size] - most), value);
    }
    out[d] = value / sum;
  }
}

int Splits(int positions) { return (positions + kSplit - 1) / kSplit; }

template <CacheType kType>
Status LaunchSplits(const Attention& args, Stream stream) {
  const int group = args.heads / args.cache.kv_heads;
  const int splits = Splits(args.most_positions);
  Shape shape;
  shape.x = static_cast<unsigned>(splits);
  shape.z = static_cast<unsigned>(args.count);
  shape.threads = kThreads;
  const auto portions = [&](int heads) {
    return static_cast<unsigned>(args.cache.kv_heads * ((group + heads - 1) / heads));
  };
  if (group == 1) {
    shape.y = portions(1);
    return Launch("attention", shape, stream, SplitKernel<kType, 1>, args, splits);
  }
  if (group == 2) {
    shape.y = portions(2);
    return Launch("attention", shape, stream, SplitKernel<kType, 2>, args, splits);
  }
  if (group <= 4) {
    shape.y = portions(4);
    return Launch("attention", shape, stream, SplitKernel<kType, 4>, args, splits);
  }
  shape.y = portions(8);
  return Launch("attention", shape, stream, SplitKernel<kType, 8>, args, splits);
}

}  // namespace

int64_t AttentionWorkspace(int rows, int heads, int head_dim, int most_positions) {
  return int64_t{rows} * heads * Splits(most_positions) * PartialFloats(head_dim) * 4;
}

Status RunAttention(const Attention& args, Stream stream) {
  if (args.count <= 0) return {};
  if (args.cache.head_dim > kMostHeadDim || args.cache.head_dim % 2 != 0) {
    return Error{ErrorCode::kUnsupported,
                 "heads of " + std::to_string(args.cache.head_dim) +
                     " elements; the CUDA kernels take even numbers up to 256",
                 "cuda"};
  }
  Status status;
  switch (args.cache.type) {
    case CacheType::kF32:
      status = LaunchSplits<CacheType::kF32>(args, stream);
      break;
    case CacheType::kBf16:
      status = LaunchSplits<CacheType::kBf16>(args, stream);
      break;
    case CacheType::kFp8:
      status = LaunchSplits<CacheType::kFp8>(args, stream);
      break;
  }
  if (!status.ok()) return status;
  Shape shape;
  shape.x = static_cast<unsigned>(args.heads);
  shape.y = static_cast<unsigned>(args.count);
  shape.threads = kThreads;
  return Launch("attention.join", shape, stream, JoinKernel, args, Splits(args.most_positions));
}

}  // namespace pawl::PAWL_GPU
