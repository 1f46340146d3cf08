// The small kernels around products and attention. Each reads and writes its rows once; none is
// long enough to matter but for the time a launch takes.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

// Grid: rows.
__global__ void EmbedKernel(Embed p) {
  DependencyWait();
  const int token = p.rows[blockIdx.x].token;
  float* x = p.x + blockIdx.x * p.x_stride;
  for (int i = static_cast<int>(threadIdx.x); i < p.table.columns; i += kThreads) {
    x[i] = WeightAt(p.table, token, i) * p.scale;
  }
}

__device__ __forceinline__ void Store(const Cache& cache, void* base, int64_t element, float v) {
  switch (cache.type) {
    case CacheType::kF32:
      static_cast<float*>(base)[element] = v;
      break;
    case CacheType::kBf16:
      static_cast<uint16_t*>(base)[element] = static_cast<uint16_t>(PackBf16(v, 0.0f));
      break;
    case CacheType::kFp8:
      static_cast<uint8_t*>(base)[element] = FloatToE4m3(v);
      break;
  }
}

// Grid: heads + 2 kv_heads, by kWarps, and rows. A warp for each, whose lanes have up to kOf
// elements of both halves. What does not depend on the row's position is read while that is read.
template <int kOf>
__global__ __launch_bounds__(kThreads, kOf <= 2 ? 6 : 4) void RotateKernel(RotateAndStore p) {
  DependencyWait();
  const int index = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarpSize);
  if (index >= p.heads + 2 * p.cache.kv_heads) return;
  const int position = p.rows[blockIdx.y].position, slot = p.rows[blockIdx.y].slot;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int head_dim = p.cache.head_dim, half = head_dim / 2;
  const bool is_query = index < p.heads;
  const bool is_value = index >= p.heads + p.cache.kv_heads;
  const int head = is_query ? index : (index - p.heads) % p.cache.kv_heads;
  const float* bias = is_query ? p.q_bias : is_value ? p.v_bias : p.k_bias;
  const float* norm = is_value ? nullptr : is_query ? p.q_norm : p.k_norm;
  float* v = p.qkv + blockIdx.y * p.stride + static_cast<int64_t>(index) * head_dim;
  const auto input = [&](int i) {
    return bias != nullptr ? v[i] + bias[head * head_dim + i] : v[i];
  };
  float a[kOf], b[kOf];
#pragma unroll
  for (int k = 0; k < kOf; ++k) {
    const int i = lane + k * kWarpSize;
    a[k] = i < half ? input(i) : 0.0f;
    b[k] = i < half ? input(i + half) : 0.0f;
  }
  if (norm != nullptr) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kOf; ++k) sum = Fma(a[k], a[k], sum);
#pragma unroll
    for (int k = 0; k < kOf; ++k) sum = Fma(b[k], b[k], sum);
    sum = WarpSum(sum);
    const float factor = 1.0f / sqrtf(sum / static_cast<float>(head_dim) + p.epsilon);
#pragma unroll
    for (int k = 0; k < kOf; ++k) {
      const int i = lane + k * kWarpSize;
      a[k] = i < half ? a[k] * factor * norm[i] : 0.0f;
      b[k] = i < half ? b[k] * factor * norm[i + half] : 0.0f;
    }
  }
  if (position < 0) return;  // padding
  const int64_t element =
      ((static_cast<int64_t>(slot / kPageSize) * p.cache.kv_heads + head % p.cache.kv_heads) *
           kPageSize +
       slot % kPageSize) *
      HeadStride(head_dim);
  const float* turn = p.rope + static_cast<int64_t>(position) * head_dim;
  const auto keep = [&](int i, float value) {
    if (!is_query) {
      Store(p.cache, is_value ? p.cache.values : p.cache.keys, element + i, value);
    } else if (p.rounded != nullptr) {
      p.rounded[blockIdx.y * p.rounded_stride + static_cast<int64_t>(index) * head_dim + i] =
          static_cast<uint16_t>(PackBf16(value, 0.0f));
    } else {
      v[i] = value;
    }
  };
  float cosine[kOf], sine[kOf];
#pragma unroll
  for (int k = 0; k < kOf; ++k) {
    const int i = lane + k * kWarpSize;
    const bool turned = i < half && !is_value;
    cosine[k] = turned ? turn[i] : 1.0f;
    sine[k] = turned ? turn[half + i] : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < kOf; ++k) {
    const int i = lane + k * kWarpSize;
    if (i >= half) continue;
    keep(i, is_value ? a[k] : a[k] * cosine[k] - b[k] * sine[k]);
    keep(i + half, is_value ? b[k] : b[k] * cosine[k] + a[k] * sine[k]);
  }
}

// Grid: rows.
__global__ void NormAndAddKernel(NormAndAdd p) {
  DependencyWait();
  PAWL_SHARED(float, sums, kWarps);
  const float* y = p.y + blockIdx.x * p.y_stride;
  float* x = p.x + blockIdx.x * p.x_stride;
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < p.columns; i += kThreads) {
    sum = Fma(y[i], y[i], sum);
  }
  sum = WarpSum(sum);
  if (threadIdx.x % kWarpSize == 0) sums[threadIdx.x / kWarpSize] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < kWarps; ++i) sum += sums[i];
  const float factor = 1.0f / sqrtf(sum / static_cast<float>(p.columns) + p.epsilon);
  for (int i = static_cast<int>(threadIdx.x); i < p.columns; i += kThreads) {
    x[i] += y[i] * factor * p.norm[i];
  }
}

// Grid: rows.
__global__ void AddBiasKernel(AddBias p) {
  DependencyWait();
  float* x = p.x + blockIdx.x * p.x_stride;
  for (int i = static_cast<int>(threadIdx.x); i < p.columns; i += kThreads) x[i] += p.bias[i];
}

// Grid: moves, layers.
__global__ void MoveKernel(MoveSlots p) {
  DependencyWait();
  const int from = p.moves[2 * blockIdx.x], to = p.moves[2 * blockIdx.x + 1];
  const int bytes = CacheBytes(p.first.type) * HeadStride(p.first.head_dim);
  const int64_t layer = static_cast<int64_t>(blockIdx.y) * p.layer_stride;
  const auto at = [&](int slot, int head) {
    return layer + ((static_cast<int64_t>(slot / kPageSize) * p.first.kv_heads + head) * kPageSize +
                    slot % kPageSize) *
                       bytes;
  };
  char* keys = static_cast<char*>(p.first.keys);
  char* values = static_cast<char*>(p.first.values);
  for (int i = static_cast<int>(threadIdx.x); i < p.first.kv_heads * bytes; i += kThreads) {
    const int head = i / bytes, byte = i % bytes;
    keys[at(to, head) + byte] = keys[at(from, head) + byte];
    values[at(to, head) + byte] = values[at(from, head) + byte];
  }
}

Shape Blocks(int x, int y = 1) {
  Shape shape;
  shape.x = static_cast<unsigned>(x);
  shape.y = static_cast<unsigned>(y);
  shape.threads = kThreads;
  return shape;
}

}  // namespace

Status RunEmbed(const Embed& args, Stream stream) {
  return Launch("embed", Blocks(args.count), stream, EmbedKernel, args);
}

Status RunRotateAndStore(const RotateAndStore& args, Stream stream) {
  const Shape shape =
      Blocks((args.heads + 2 * args.cache.kv_heads + kWarps - 1) / kWarps, args.count);
  constexpr int kMost = kMostHeadDim / 2 / kWarpSize;
  return args.cache.head_dim <= kMostHeadDim / 2
             ? Launch("rotate", shape, stream, RotateKernel<kMost / 2>, args)
             : Launch("rotate", shape, stream, RotateKernel<kMost>, args);
}

Status RunNormAndAdd(const NormAndAdd& args, Stream stream) {
  return Launch("norm_add", Blocks(args.count), stream, NormAndAddKernel, args);
}

Status RunAddBias(const AddBias& args, Stream stream) {
  return Launch("add_bias", Blocks(args.count), stream, AddBiasKernel, args);
}

Status RunMoveSlots(const MoveSlots& args, Stream stream) {
  if (args.count <= 0) return {};
  return Launch("move", Blocks(args.count, args.layers), stream, MoveKernel, args);
}

}  // namespace pawl::PAWL_GPU
