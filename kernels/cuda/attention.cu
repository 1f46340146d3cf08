// Attention of few rows over long caches. The positions that a row sees are cut into splits
// (SplitStart); a block takes one split for the query heads that share a key-value head, so that a
// short context, too, keeps many multiprocessors busy, and keys and values are read once for the
// heads. A second kernel joins the splits of a row. Where the cuts are depends on positions alone,
// so a row has the same bits in any company, and a path of a draft tree the same bits as the plain
// run of its tokens: position j is the j-th key either way, only its slot differs.
//
// At these sizes memory's latency is what counts, not its rate. So a block first looks up where its
// positions are, then has many loads of keys under way at once, and the first values too, before it
// uses the first key. Rows of one sequence (drafts) are neighbours in the grid: their blocks run at
// the same time, and the L2 cache gives keys and values to all but the first.
//
// Within a split, a key takes as many lanes as its head has pieces of eight elements (16 bytes of
// bf16), so a warp looks at 32 / lanes keys at a time. Scores go to shared memory, their softmax
// is made there, and the weighted values are added by the same division of lanes. A sink joins with
// the splits.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

// The first splits are short: a block that reads few positions ends early, and there are more
// blocks. Far into a context there are enough blocks anyway, and joining fewer splits is less work.
constexpr int kShortSplit = 64, kShortSplits = 64, kLongSplit = 128;
constexpr int kShortPositions = kShortSplit * kShortSplits;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kPiece = 8;

__host__ __device__ inline int SplitStart(int split) {
  return split <= kShortSplits ? split * kShortSplit
                               : kShortPositions + (split - kShortSplits) * kLongSplit;
}
__host__ __device__ inline int SplitOf(int position) {
  return position < kShortPositions ? position / kShortSplit
                                    : kShortSplits + (position - kShortPositions) / kLongSplit;
}

// Eight elements of a key or a value, as they lie in memory.
template <CacheType kType>
struct Piece;
template <>
struct Piece<CacheType::kF32> {
  float4 raw[2];
  __device__ __forceinline__ void Load(const void* base, int64_t element) {
    const float4* at = reinterpret_cast<const float4*>(static_cast<const float*>(base) + element);
    raw[0] = at[0];
    raw[1] = at[1];
  }
  __device__ __forceinline__ void Decode(float* v) const {
    v[0] = raw[0].x, v[1] = raw[0].y, v[2] = raw[0].z, v[3] = raw[0].w;
    v[4] = raw[1].x, v[5] = raw[1].y, v[6] = raw[1].z, v[7] = raw[1].w;
  }
};
template <>
struct Piece<CacheType::kBf16> {
  uint4 raw;
  __device__ __forceinline__ void Load(const void* base, int64_t element) {
    raw = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(base) + element);
  }
  __device__ __forceinline__ void Decode(float* v) const {
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[2 * i] = LowBf16(words[i]);
      v[2 * i + 1] = HighBf16(words[i]);
    }
  }
};
template <>
struct Piece<CacheType::kFp8> {
  uint2 raw;
  __device__ __forceinline__ void Load(const void* base, int64_t element) {
    raw = *reinterpret_cast<const uint2*>(static_cast<const uint8_t*>(base) + element);
  }
  __device__ __forceinline__ void Decode(float* v) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = E4m3ToFloat((i < 4 ? raw.x : raw.y) >> 8 * (i % 4) & 0xffu);
  }
};
// Loads of a lane that are under way at once.
template <CacheType kType>
constexpr int kAhead = kType == CacheType::kF32 ? 4 : 8;

__device__ __forceinline__ int FirstSeen(const DeviceRow& row, int window) {
  const int out_of_sight = row.position + 1 - window;
  return window > 0 && out_of_sight > 0 ? out_of_sight : 0;
}

// Workspace of a (row, head, split): maximum, sum, and the unscaled sum of values.
__host__ __device__ inline int64_t PartialFloats(int head_dim) { return head_dim + 2; }

// What a block has to do.
template <int kHeads>
struct RowOfSplit {
  DeviceRow row;
  int index;  // of the row
  int split;
  int kv_head, first_head, heads;  // heads: of the kHeads, those that there are
  int start, begin, end;           // of the split, and what the row sees of it
  int lanes, d, own,
      step;     // lanes of a key; this lane's first element; its first key, and from there
  bool inside;  // d is an element of the head

  __device__ RowOfSplit(const Attention& p, int row_index, int split_index, int portion) {
    index = row_index;
    split = split_index;
    row = p.rows[row_index];
    const int group = p.heads / p.cache.kv_heads;
    const int portions = (group + kHeads - 1) / kHeads;
    kv_head = portion / portions;
    first_head = kv_head * group + portion % portions * kHeads;
    const int heads_left = kv_head * group + group - first_head;
    heads = heads_left < kHeads ? heads_left : kHeads;
    start = SplitStart(split);
    const int stop = SplitStart(split + 1);
    const int seen = row.prefix + row.extra_count, first = FirstSeen(row, p.window);
    begin = first > start ? first : start;
    end = seen < stop ? seen : stop;
    if (row.position < 0) end = begin;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    lanes = 1;
    while (lanes * kPiece < p.cache.head_dim) lanes *= 2;
    d = lane % lanes * kPiece;
    inside = d < p.cache.head_dim;
    const int keys = kWarpSize / lanes;  // of a warp at a time
    own = warp * keys + lane / lanes;
    step = kWarps * keys;
  }
  // Whether this lane has something to read of position j.
  __device__ __forceinline__ bool Reads(int j) const { return j >= begin && j < end && inside; }
};

// Where the positions of a split are in the cache: places[j - start].
template <int kHeads>
__device__ __forceinline__ void FindPlaces(const Attention& p, const RowOfSplit<kHeads>& r,
                                           int32_t* places) {
  for (int j = r.begin + static_cast<int>(threadIdx.x); j < r.end; j += kThreads) {
    const int slot = j < r.row.prefix
                         ? p.tables[r.row.table_begin + j / kPageSize] * kPageSize + j % kPageSize
                         : p.extra[r.row.extra_begin + j - r.row.prefix];
    places[j - r.start] = slot;
  }
}
__device__ __forceinline__ int64_t ElementOf(const Attention& p, int slot, int head) {
  return ((static_cast<int64_t>(slot / kPageSize) * p.cache.kv_heads + head) * kPageSize +
          slot % kPageSize) *
         HeadStride(p.cache.head_dim);
}

// Begins the loads of the positions base + own, base + own + step, ...
template <CacheType kType, int kHeads>
__device__ __forceinline__ void LoadAhead(const Attention& p, const RowOfSplit<kHeads>& r, int base,
                                          const void* cache, const int32_t* places,
                                          Piece<kType> (&to)[kAhead<kType>]) {
#pragma unroll
  for (int a = 0; a < kAhead<kType>; ++a) {
    const int j = base + a * r.step + r.own;
    if (r.Reads(j)) to[a].Load(cache, ElementOf(p, places[j - r.start], r.kv_head) + r.d);
  }
}

template <int kHeads>
__device__ __forceinline__ void LoadQueries(const Attention& p, const RowOfSplit<kHeads>& r,
                                            float (&q)[kHeads][kPiece]) {
  const int head_dim = p.cache.head_dim;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const float* at = p.q + r.index * p.q_stride +
                      static_cast<int64_t>(r.first_head + (h < r.heads ? h : 0)) * head_dim + r.d;
#pragma unroll
    for (int i = 0; i < kPiece; ++i) q[h][i] = r.d + i < head_dim ? at[i] : 0.0f;
  }
}

// scores[head][j - start] of the positions whose keys are in `keys`, which are those from `base`
// on.
template <CacheType kType, int kHeads>
__device__ __forceinline__ void Scores(const Attention& p, const RowOfSplit<kHeads>& r, int base,
                                       const Piece<kType> (&keys)[kAhead<kType>],
                                       const float (&q)[kHeads][kPiece], float* scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int a = 0; a < kAhead<kType>; ++a) {
    if (base + a * r.step >= r.end) break;
    const int j = base + a * r.step + r.own;
    float dot[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) dot[h] = 0.0f;
    if (r.Reads(j)) {
      float key[kPiece];
      keys[a].Decode(key);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
#pragma unroll
        for (int i = 0; i < kPiece; ++i) dot[h] = Fma(q[h][i], key[i], dot[h]);
      }
    }
    for (int bits = r.lanes / 2; bits > 0; bits /= 2) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) dot[h] += __shfl_xor_sync(kAllLanes, dot[h], bits);
    }
    if (lane % r.lanes == 0 && j - r.start < kLongSplit) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        float score = dot[h] * p.scale;
        if (p.soft_cap > 0.0f) score = p.soft_cap * tanhf(score / p.soft_cap);
        scores[h * kLongSplit + j - r.start] = j >= r.begin && j < r.end ? score : -INFINITY;
      }
    }
  }
}

template <int kHeads>
__device__ __forceinline__ float* PartialOf(const Attention& p, const RowOfSplit<kHeads>& r,
                                            int splits, int head) {
  const int64_t at =
      (static_cast<int64_t>(r.index) * p.heads + r.first_head + head) * splits + r.split;
  return p.partial + at * PartialFloats(p.cache.head_dim);
}

// Scores become weights; their largest and their sum go to the workspace.
template <int kHeads>
__device__ __forceinline__ void Softmax(const Attention& p, const RowOfSplit<kHeads>& r, int splits,
                                        float* scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  for (int h = warp; h < r.heads; h += kWarps) {
    float* of_head = scores + h * kLongSplit - r.start;
    float most = -INFINITY;
    for (int j = r.begin + lane; j < r.end; j += kWarpSize) most = fmaxf(most, of_head[j]);
    most = WarpMax(most);
    float sum = 0.0f;
    for (int j = r.begin + lane; j < r.end; j += kWarpSize) {
      const float weight = expf(of_head[j] - most);
      of_head[j] = weight;
      sum += weight;
    }
    sum = WarpSum(sum);
    if (lane == 0) {
      float* partial = PartialOf(p, r, splits, h);
      partial[0] = most;
      partial[1] = sum;
    }
  }
}

// Adds the weighted values of the positions from `base` on.
template <CacheType kType, int kHeads>
__device__ __forceinline__ void AddValues(const RowOfSplit<kHeads>& r, int base,
                                          const Piece<kType> (&values)[kAhead<kType>],
                                          const float* scores, float (&acc)[kHeads][kPiece]) {
#pragma unroll
  for (int a = 0; a < kAhead<kType>; ++a) {
    const int j = base + a * r.step + r.own;
    if (!r.Reads(j)) continue;
    float value[kPiece];
    values[a].Decode(value);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= r.heads) break;
      const float weight = scores[h * kLongSplit + j - r.start];
#pragma unroll
      for (int i = 0; i < kPiece; ++i) acc[h][i] = Fma(weight, value[i], acc[h][i]);
    }
  }
}

// The lanes' sums together: first those of a warp, then the warps, to the workspace.
template <int kHeads>
__device__ __forceinline__ void JoinWarps(const Attention& p, const RowOfSplit<kHeads>& r,
                                          int splits, float (&acc)[kHeads][kPiece],
                                          float* of_warps) {
  const int thread = static_cast<int>(threadIdx.x), head_dim = p.cache.head_dim;
  const int lane = thread % kWarpSize, warp = thread / kWarpSize;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      for (int bits = r.lanes; bits < kWarpSize; bits *= 2) {
        acc[h][i] += __shfl_xor_sync(kAllLanes, acc[h][i], bits);
      }
      if (lane < r.lanes && r.d + i < head_dim) {
        of_warps[(warp * kHeads + h) * head_dim + r.d + i] = acc[h][i];
      }
    }
  }
  __syncthreads();
  for (int i = thread; i < r.heads * head_dim; i += kThreads) {
    const int h = i / head_dim, e = i % head_dim;
    float sum = 0.0f;
    for (int w = 0; w < kWarps; ++w) sum += of_warps[(w * kHeads + h) * head_dim + e];
    PartialOf(p, r, splits, h)[2 + e] = sum;
  }
}

// Grid: rows, kv_heads * (heads of a group in portions of kHeads), splits.
template <CacheType kType, int kHeads>
__global__ __launch_bounds__(kThreads, 4) void SplitKernel(Attention p, int splits) {
  DependencyWait();
  PAWL_SHARED(float, scores, kHeads* kLongSplit);
  PAWL_SHARED(float, of_warps, kWarps* kHeads* kMostHeadDim);
  PAWL_SHARED(int32_t, places, kLongSplit);
  const RowOfSplit<kHeads> r(p, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.z),
                             static_cast<int>(blockIdx.y));
  if (r.begin >= r.end) return;
  FindPlaces(p, r, places);
  __syncthreads();
  const int round = r.step * kAhead<kType>;
  Piece<kType> keys[kAhead<kType>], values[kAhead<kType>];
  LoadAhead(p, r, r.start, p.cache.keys, places, keys);
  LoadAhead(p, r, r.start, p.cache.values, places, values);
  {
    float q[kHeads][kPiece];
    LoadQueries(p, r, q);
    for (int base = r.start; base < r.end; base += round) {
      if (base != r.start) LoadAhead(p, r, base, p.cache.keys, places, keys);
      Scores(p, r, base, keys, q, scores);
    }
  }
  __syncthreads();
  Softmax(p, r, splits, scores);
  __syncthreads();
  float acc[kHeads][kPiece];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) acc[h][i] = 0.0f;
  }
  for (int base = r.start; base < r.end; base += round) {
    if (base != r.start) LoadAhead(p, r, base, p.cache.values, places, values);
    AddValues(r, base, values, scores, acc);
  }
  JoinWarps(p, r, splits, acc, of_warps);
}

// Grid: heads, rows. A team of threads has one for each element of a head; the teams share the
// splits, one after the other, and their sums are added in the order of the teams.
constexpr int kJoinThreads = 256;
__global__ __launch_bounds__(kJoinThreads) void JoinKernel(Attention p, int splits) {
  DependencyWait();
  PAWL_SHARED(float, most_of_warps, kJoinThreads / kWarpSize);
  PAWL_SHARED(float, weights, kJoinThreads);
  PAWL_SHARED(float, weighted_sums, kJoinThreads);
  PAWL_SHARED(float, values_of_teams, kJoinThreads);
  PAWL_SHARED(float, sums_of_teams, kJoinThreads);
  const DeviceRow row = p.rows[blockIdx.y];
  const int head = static_cast<int>(blockIdx.x), head_dim = p.cache.head_dim;
  const int thread = static_cast<int>(threadIdx.x);
  float* out = p.out + blockIdx.y * p.out_stride + static_cast<int64_t>(head) * head_dim;
  if (row.position < 0) {
    for (int d = thread; d < head_dim; d += kJoinThreads) out[d] = 0.0f;
    return;
  }
  const int64_t size = PartialFloats(head_dim);
  const int from = SplitOf(FirstSeen(row, p.window));
  const int count = SplitOf(row.prefix + row.extra_count - 1) - from + 1;
  const float* partial =
      p.partial + ((static_cast<int64_t>(blockIdx.y) * p.heads + head) * splits + from) * size;
  float most = -INFINITY;
  for (int s = thread; s < count; s += kJoinThreads) most = fmaxf(most, partial[s * size]);
  most = WarpMax(most);
  if (thread % kWarpSize == 0) most_of_warps[thread / kWarpSize] = most;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kJoinThreads / kWarpSize; ++w) most = fmaxf(most, most_of_warps[w]);
  const float sink = p.sinks != nullptr ? p.sinks[head] : -INFINITY;
  most = fmaxf(most, sink);

  int width = kWarpSize;
  while (width < head_dim) width *= 2;
  const int teams = kJoinThreads / width, team = thread / width, d = thread % width;
  float value = 0.0f, sum = 0.0f;
  for (int first = 0; first < count; first += kJoinThreads) {
    const int here = count - first < kJoinThreads ? count - first : kJoinThreads;
    if (first > 0) __syncthreads();
    if (thread < here) {
      const float* at = partial + (first + thread) * size;
      const float weight = expf(at[0] - most);
      weights[thread] = weight;
      weighted_sums[thread] = at[1] * weight;
    }
    __syncthreads();
#pragma unroll 8
    for (int s = team; s < here; s += teams) {
      const float part = d < head_dim ? partial[(first + s) * size + 2 + d] : 0.0f;
      value = Fma(part, weights[s], value);
      sum += weighted_sums[s];
    }
  }
  values_of_teams[thread] = value;
  sums_of_teams[thread] = sum;
  __syncthreads();
  if (thread >= head_dim) return;
  for (int t = 1; t < teams; ++t) {
    value += values_of_teams[t * width + thread];
    sum += sums_of_teams[t * width + thread];
  }
  if (p.sinks != nullptr) sum += expf(sink - most);
  out[thread] = value / sum;
}

int Splits(int positions) { return positions <= 0 ? 0 : SplitOf(positions - 1) + 1; }

template <CacheType kType>
Status LaunchSplits(const Attention& args, Stream stream) {
  const int group = args.heads / args.cache.kv_heads;
  const int splits = Splits(args.most_positions);
  const auto launch = [&](auto kernel, int heads) {
    Shape shape;
    shape.x = static_cast<unsigned>(args.count);
    shape.y = static_cast<unsigned>(args.cache.kv_heads * ((group + heads - 1) / heads));
    shape.z = static_cast<unsigned>(splits);
    shape.threads = kThreads;
    return Launch("attention", shape, stream, kernel, args, splits);
  };
  if (group == 1) return launch(SplitKernel<kType, 1>, 1);
  if (group == 2) return launch(SplitKernel<kType, 2>, 2);
  return launch(SplitKernel<kType, 4>, 4);
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
  shape.threads = kJoinThreads;
  return Launch("attention.join", shape, stream, JoinKernel, args, Splits(args.most_positions));
}

}  // namespace pawl::PAWL_GPU
