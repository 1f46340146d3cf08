// The small kernels around products and attention. Each reads and writes its rows once; none is
// long enough to matter but for the time a launch takes.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/layer.h"
#include "kernels/cuda/weight.cuh"

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

// Grid: heads + 2 kv_heads, rows. A warp for each.
__global__ void RotateKernel(RotateAndStore p) {
  DependencyWait();
  const DeviceRow row = p.rows[blockIdx.y];
  if (row.position < 0) return;
  const int lane = static_cast<int>(threadIdx.x), head_dim = p.cache.head_dim, half = head_dim / 2;
  const int index = static_cast<int>(blockIdx.x);
  const bool is_query = index < p.heads;
  const bool is_value = index >= p.heads + p.cache.kv_heads;
  float* v = p.qkv + blockIdx.y * p.stride + static_cast<int64_t>(index) * head_dim;
  const int head = is_query ? index : (index - p.heads) % p.cache.kv_heads;
  const float* bias = is_query ? p.q_bias : is_value ? p.v_bias : p.k_bias;
  const auto input = [&](int i) {
    return bias != nullptr ? v[i] + bias[head * head_dim + i] : v[i];
  };
  const float* norm = is_query ? p.q_norm : p.k_norm;
  float factor = 1.0f;
  if (norm != nullptr && !is_value) {
    float sum = 0.0f;
    for (int i = lane; i < head_dim; i += kWarpSize) sum = Fma(input(i), input(i), sum);
    sum = WarpSum(sum);
    factor = 1.0f / sqrtf(sum / static_cast<float>(head_dim) + p.epsilon);
  }
  const int64_t element =
      ((static_cast<int64_t>(row.slot / kPageSize) * p.cache.kv_heads + head % p.cache.kv_heads) *
           kPageSize +
       row.slot % kPageSize) *
      HeadStride(head_dim);
  const float* turn = p.rope + static_cast<int64_t>(row.position) * head_dim;
  for (int i = lane; i < half; i += kWarpSize) {
    float a = input(i), b = input(i + half);
    if (is_value) {
      Store(p.cache, p.cache.values, element + i, a);
      Store(p.cache, p.cache.values, element + i + half, b);
      continue;
    }
    if (norm != nullptr) {
      a = a * factor * norm[i];
      b = b * factor * norm[i + half];
    }
    const float cosine = turn[i], sine = turn[half + i];
    const float turned_a = a * cosine - b * sine, turned_b = b * cosine + a * sine;
    if (is_query) {
      v[i] = turned_a;
      v[i + half] = turned_b;
    } else {
      Store(p.cache, p.cache.keys, element + i, turned_a);
      Store(p.cache, p.cache.keys, element + i + half, turned_b);
    }
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
__global__ void GatherKernel(GatherRows p) {
  DependencyWait();
  const float* from = p.from + static_cast<int64_t>(p.list[blockIdx.x]) * p.stride;
  float* to = p.to + blockIdx.x * p.stride;
  for (int i = static_cast<int>(threadIdx.x); i < p.columns; i += kThreads) to[i] = from[i];
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

// ---- Which rows of the head anybody allows ----

constexpr int kUnionWords = kThreads;  // of a block

__device__ uint32_t UnionWord(const UnionOfMasks& p, int word) {
  uint32_t bits = 0;
  for (int i = 0; i < p.count; ++i) {
    const int row = p.mask_rows[i];
    bits |= row < 0 ? ~uint32_t{0} : p.masks[row * p.masks_stride + word];
  }
  const int left = p.vocabulary - word * 32;
  return left < 32 ? bits & ((uint32_t{1} << left) - 1) : bits;
}

// The sum of `mine` over the threads before this one, and over all of them.
__device__ void BlockScan(int mine, int* of_warps, int* before, int* all) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  int sum = mine;
  for (int by = 1; by < kWarpSize; by *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(by));
    if (lane >= by) sum += other;
  }
  if (lane == kWarpSize - 1) of_warps[warp] = sum;
  __syncthreads();
  int earlier = 0, total = 0;
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) earlier += of_warps[i];
    total += of_warps[i];
  }
  *before = earlier + sum - mine;
  *all = total;
}

// Grid: chunks of kUnionWords words.
__global__ void CountKernel(UnionOfMasks p) {
  DependencyWait();
  PAWL_SHARED(int, of_warps, kWarps);
  const int words = (p.vocabulary + 31) / 32;
  const int word = static_cast<int>(blockIdx.x * kUnionWords + threadIdx.x);
  const int mine = word < words ? __popc(UnionWord(p, word)) : 0;
  int before, all;
  BlockScan(mine, of_warps, &before, &all);
  if (threadIdx.x == 0) p.chunk_counts[blockIdx.x] = all;
}

__global__ void ListKernel(UnionOfMasks p) {
  DependencyWait();
  PAWL_SHARED(int, of_warps, kWarps);
  const int words = (p.vocabulary + 31) / 32;
  const int word = static_cast<int>(blockIdx.x * kUnionWords + threadIdx.x);
  uint32_t bits = word < words ? UnionWord(p, word) : 0;
  int before, all, earlier = 0;
  BlockScan(__popc(bits), of_warps, &before, &all);
  for (unsigned i = 0; i < blockIdx.x; ++i) earlier += p.chunk_counts[i];
  int32_t* out = p.tokens + earlier + before;
  for (; bits != 0; bits &= bits - 1) *out++ = word * 32 + __ffs(static_cast<int>(bits)) - 1;
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) *p.token_count = earlier + all;
}

// Grid: chunks of the vocabulary, rows. Each place is written by one block alone: the -infinity of
// a chunk, then the tokens that fall into it, found by bisection of the ascending list.
constexpr int kSpreadChunk = 4096;
__global__ void SpreadKernel(SpreadLogits p) {
  DependencyWait();
  const int begin = static_cast<int>(blockIdx.x) * kSpreadChunk;
  const int end = begin + kSpreadChunk < p.vocabulary ? begin + kSpreadChunk : p.vocabulary;
  float* logits = p.logits + blockIdx.y * p.logits_stride;
  for (int t = begin + static_cast<int>(threadIdx.x); t < end; t += kThreads) logits[t] = -INFINITY;
  __syncthreads();
  const auto first_from = [&](int token) {
    int low = 0, high = *p.token_count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (p.tokens[middle] < token) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const int to = first_from(end);
  const float* compact = p.compact + blockIdx.y * p.compact_stride;
  for (int i = first_from(begin) + static_cast<int>(threadIdx.x); i < to; i += kThreads) {
    logits[p.tokens[i]] = compact[i];
  }
}

Shape Blocks(int x, int y = 1, unsigned threads = kThreads) {
  Shape shape;
  shape.x = static_cast<unsigned>(x);
  shape.y = static_cast<unsigned>(y);
  shape.threads = threads;
  return shape;
}

}  // namespace

Status RunEmbed(const Embed& args, Stream stream) {
  return Launch("embed", Blocks(args.count), stream, EmbedKernel, args);
}

Status RunRotateAndStore(const RotateAndStore& args, Stream stream) {
  return Launch("rotate", Blocks(args.heads + 2 * args.cache.kv_heads, args.count, kWarpSize),
                stream, RotateKernel, args);
}

Status RunNormAndAdd(const NormAndAdd& args, Stream stream) {
  return Launch("norm_add", Blocks(args.count), stream, NormAndAddKernel, args);
}

Status RunGatherRows(const GatherRows& args, Stream stream) {
  return Launch("gather", Blocks(args.count), stream, GatherKernel, args);
}

Status RunMoveSlots(const MoveSlots& args, Stream stream) {
  if (args.count <= 0) return {};
  return Launch("move", Blocks(args.count, args.layers), stream, MoveKernel, args);
}

Status RunUnionOfMasks(const UnionOfMasks& args, Stream stream) {
  const int words = (args.vocabulary + 31) / 32;
  const Shape shape = Blocks((words + kUnionWords - 1) / kUnionWords);
  Status status = Launch("union.count", shape, stream, CountKernel, args);
  if (status.ok()) status = Launch("union.list", shape, stream, ListKernel, args);
  return status;
}

Status RunSpreadLogits(const SpreadLogits& args, Stream stream) {
  const int chunks = (args.vocabulary + kSpreadChunk - 1) / kSpreadChunk;
  return Launch("spread", Blocks(chunks, args.count), stream, SpreadKernel, args);
}

}  // namespace pawl::PAWL_GPU
