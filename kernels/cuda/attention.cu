// Attention of few rows over long caches. The positions that a row sees are cut at multiples of 256
// of the absolute position; a block takes one such split for the query heads that share a key-value
// head, so that long contexts fill the device even with one row and keys and values are read once
// for the group. A second kernel joins the splits of a row in ascending order. Where the cuts are
// depends on positions alone, so a row has the same bits in any company, and a path of a draft tree
// the same bits as the plain run of its tokens: position j is the j-th key either way, only its
// slot differs.
//
// Rows of one sequence that are in a call together (drafts, short chunks) can be a group: then a
// block takes a split for all of them, stages the keys in shared memory, then the values, and a
// team of four warps does for a row what a block does for a row alone, so that pages are read once
// for the group and its bits are those of its rows alone. Short contexts are better off without, as
// blocks are few then; the caller chooses.
//
// Within a split, a key takes as many lanes as its head has pieces of eight elements (16 bytes of
// bf16), so a warp looks at 32 / lanes keys at a time. Scores go to shared memory, their softmax
// is made there, and the weighted values are added by the same division of lanes.
#include <type_traits>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"

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

// What a row has to do with a split, the same for the team of four warps that works on it.
template <int kHeads>
struct RowOfSplit {
  DeviceRow row;
  int index;                       // of the row
  int kv_head, first_head, heads;  // heads: of the kHeads, those that there are
  int start, begin, end;           // of the split, and what the row sees of it
  int lanes, d, own,
      step;     // lanes of a key; this lane's first element; its first key, and from there
  bool inside;  // d is an element of the head

  __device__ RowOfSplit(const Attention& p, int row_index, int split, int portion, int warp) {
    index = row_index;
    row = p.rows[row_index];
    const int group = p.heads / p.cache.kv_heads;
    const int portions = (group + kHeads - 1) / kHeads;
    kv_head = portion / portions;
    first_head = kv_head * group + portion % portions * kHeads;
    const int heads_left = kv_head * group + group - first_head;
    heads = heads_left < kHeads ? heads_left : kHeads;
    start = split * kSplit;
    const int seen = row.prefix + row.extra_count, first = FirstSeen(row, p.window);
    begin = first > start ? first : start;
    end = seen < start + kSplit ? seen : start + kSplit;
    if (row.position < 0) end = begin;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    lanes = 1;
    while (lanes * kPiece < p.cache.head_dim) lanes *= 2;
    d = lane % lanes * kPiece;
    inside = d < p.cache.head_dim;
    const int keys = kWarpSize / lanes;  // of a warp at a time
    own = warp * keys + lane / lanes;
    step = kWarps * keys;
  }
};

// Keys or values of the positions of a split: in the cache, or, those before the row's own extra
// positions, staged in shared memory, which holds them from `start` on.
template <CacheType kType, int kHeads>
__device__ __forceinline__ void LoadPosition(const Attention& p, const RowOfSplit<kHeads>& r, int j,
                                             const void* cache, const void* staged, float* v) {
  if (staged != nullptr && j < r.row.prefix) {
    LoadPiece<kType>(staged, static_cast<int64_t>(j - r.start) * HeadStride(p.cache.head_dim) + r.d,
                     v);
  } else {
    LoadPiece<kType>(cache, ElementOf(p, r.row, j, r.kv_head) + r.d, v);
  }
}

template <CacheType kType, int kHeads>
__device__ __forceinline__ void Scores(const Attention& p, const RowOfSplit<kHeads>& r,
                                       const void* staged, float* scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, head_dim = p.cache.head_dim;
  float q[kHeads][kPiece];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const float* at = p.q + r.index * p.q_stride +
                      static_cast<int64_t>(r.first_head + (h < r.heads ? h : 0)) * head_dim + r.d;
#pragma unroll
    for (int i = 0; i < kPiece; ++i) q[h][i] = r.d + i < head_dim ? at[i] : 0.0f;
  }
  for (int base = r.start; base < r.end; base += r.step) {
    const int j = base + r.own;
    float dot[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) dot[h] = 0.0f;
    if (j >= r.begin && j < r.end && r.inside) {
      float key[kPiece];
      LoadPosition<kType>(p, r, j, p.cache.keys, staged, key);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
#pragma unroll
        for (int i = 0; i < kPiece; ++i) dot[h] = Fma(q[h][i], key[i], dot[h]);
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      for (int bits = r.lanes / 2; bits > 0; bits /= 2) {
        dot[h] += __shfl_xor_sync(kAllLanes, dot[h], bits);
      }
      if (lane % r.lanes == 0 && j < r.start + kSplit) {
        float score = dot[h] * p.scale;
        if (p.soft_cap > 0.0f) score = p.soft_cap * tanhf(score / p.soft_cap);
        scores[h * kSplit + j - r.start] = j >= r.begin && j < r.end ? score : -INFINITY;
      }
    }
  }
}

template <int kHeads>
__device__ __forceinline__ float* PartialOf(const Attention& p, const RowOfSplit<kHeads>& r,
                                            int splits, int head) {
  const int64_t at =
      (static_cast<int64_t>(r.index) * p.heads + r.first_head + head) * splits + r.start / kSplit;
  return p.partial + at * PartialFloats(p.cache.head_dim);
}

// Scores become weights; their largest and their sum go to the workspace.
template <int kHeads>
__device__ __forceinline__ void Softmax(const Attention& p, const RowOfSplit<kHeads>& r, int splits,
                                        int warp, float* scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  // What Scores has filled: whole steps from `start` on.
  const int filled_steps = (r.end - r.start + r.step - 1) / r.step * r.step;
  const int filled = filled_steps < kSplit ? filled_steps : kSplit;
  for (int h = warp; h < r.heads; h += kWarps) {
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
      float* partial = PartialOf(p, r, splits, h);
      partial[0] = most;
      partial[1] = sum;
    }
  }
}

// This warp's part of the weighted values, to of_warps[warp][head][element].
template <CacheType kType, int kHeads>
__device__ __forceinline__ void Values(const Attention& p, const RowOfSplit<kHeads>& r,
                                       const void* staged, const float* scores, int warp,
                                       float* of_warps) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, head_dim = p.cache.head_dim;
  float acc[kHeads][kPiece];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) acc[h][i] = 0.0f;
  }
  for (int base = r.start; base < r.end; base += r.step) {
    const int j = base + r.own;
    if (j < r.begin || j >= r.end || !r.inside) continue;
    float value[kPiece];
    LoadPosition<kType>(p, r, j, p.cache.values, staged, value);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= r.heads) break;
      const float weight = scores[h * kSplit + j - r.start];
#pragma unroll
      for (int i = 0; i < kPiece; ++i) acc[h][i] = Fma(weight, value[i], acc[h][i]);
    }
  }
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
}

// The warps' parts together, by the threads of the team, to the workspace.
template <int kHeads>
__device__ __forceinline__ void JoinWarps(const Attention& p, const RowOfSplit<kHeads>& r,
                                          int splits, int thread, const float* of_warps) {
  const int head_dim = p.cache.head_dim;
  for (int i = thread; i < r.heads * head_dim; i += kThreads) {
    const int h = i / head_dim, e = i % head_dim;
    float sum = 0.0f;
    for (int w = 0; w < kWarps; ++w) sum += of_warps[(w * kHeads + h) * head_dim + e];
    PartialOf(p, r, splits, h)[2 + e] = sum;
  }
}

// Grid: splits, kv_heads * (heads of a group in portions of kHeads), rows.
template <CacheType kType, int kHeads>
__global__ __launch_bounds__(kThreads) void SplitKernel(Attention p, int splits) {
  DependencyWait();
  PAWL_SHARED(float, scores, kHeads* kSplit);
  PAWL_SHARED(float, of_warps, kWarps* kHeads* kMostHeadDim);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarpSize;
  const RowOfSplit<kHeads> r(p, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.x),
                             static_cast<int>(blockIdx.y), warp);
  if (r.begin >= r.end) return;
  Scores<kType>(p, r, nullptr, scores);
  __syncthreads();
  Softmax(p, r, splits, warp, scores);
  __syncthreads();
  Values<kType>(p, r, nullptr, scores, warp, of_warps);
  __syncthreads();
  JoinWarps(p, r, splits, thread, of_warps);
}

// ---- Groups ----

constexpr int kTeams = 4;
constexpr int kGroupHeads = 4;  // registers of a thread

// Dynamic shared memory: staged positions, then scores[row][head][kSplit], then of_warps of the
// teams.
__host__ __device__ inline int64_t StagedBytes(CacheType type, int head_dim) {
  return int64_t{kSplit} * HeadStride(head_dim) * CacheBytes(type);
}
__host__ __device__ inline int64_t GroupSharedBytes(CacheType type, int head_dim, int heads) {
  return StagedBytes(type, head_dim) + int64_t{kMostGroupRows} * heads * kSplit * 4 +
         int64_t{kTeams} * kWarps * heads * head_dim * 4;
}

// The positions begin .. end-1 of a split, found through the page table, to shared memory.
template <CacheType kType>
__device__ __forceinline__ void Stage(const Attention& p, const DeviceRow& row, int kv_head,
                                      int start, int begin, int end, const void* cache, void* to) {
  using Unit = std::conditional_t<kType == CacheType::kFp8, uint2, uint4>;
  const int bytes = HeadStride(p.cache.head_dim) * CacheBytes(kType);
  const int units = bytes / static_cast<int>(sizeof(Unit));
  for (int i = static_cast<int>(threadIdx.x); i < (end - begin) * units; i += kTeams * kThreads) {
    const int j = begin + i / units, unit = i % units;
    const int64_t from = ElementOf(p, row, j, kv_head) * CacheBytes(kType);
    static_cast<Unit*>(to)[(j - start) * units + unit] =
        reinterpret_cast<const Unit*>(static_cast<const char*>(cache) + from)[unit];
  }
}

// Grid: splits, kv_heads * portions, groups.
template <CacheType kType, int kHeads>
__global__ __launch_bounds__(kTeams* kThreads) void GroupSplitKernel(Attention p, int splits) {
  DependencyWait();
  PAWL_DYNAMIC_SHARED(char, shared);
  const RowRun group = p.groups[blockIdx.z];
  if (group.count == 0) return;
  const int head_dim = p.cache.head_dim;
  char* staged = shared;
  auto* scores = reinterpret_cast<float*>(shared + StagedBytes(kType, head_dim));
  float* of_warps = scores + kMostGroupRows * kHeads * kSplit;
  const int team = static_cast<int>(threadIdx.x) / kThreads;
  const int thread = static_cast<int>(threadIdx.x) % kThreads, warp = thread / kWarpSize;
  const auto row_of_split = [&](int i) {
    return RowOfSplit<kHeads>(p, group.first + i, static_cast<int>(blockIdx.x),
                              static_cast<int>(blockIdx.y), warp);
  };
  // What any row sees of the split by the page table, which is the same for all of them.
  int begin = 0, end = 0, longest = 0;
  bool some = false;
  for (int i = 0; i < group.count; ++i) {
    const RowOfSplit<kHeads> r = row_of_split(i);
    if (r.begin >= r.end) continue;
    const int to = r.end < r.row.prefix ? r.end : r.row.prefix;
    if (!some || r.begin < begin) begin = r.begin;
    if (!some || to > end) {
      end = to;
      longest = i;
    }
    some = true;
  }
  if (!some) return;
  const RowOfSplit<kHeads> widest = row_of_split(longest);
  Stage<kType>(p, widest.row, widest.kv_head, widest.start, begin, end, p.cache.keys, staged);
  __syncthreads();
  for (int i = team; i < group.count; i += kTeams) {
    const RowOfSplit<kHeads> r = row_of_split(i);
    if (r.begin < r.end) Scores<kType>(p, r, staged, scores + i * kHeads * kSplit);
  }
  __syncthreads();
  Stage<kType>(p, widest.row, widest.kv_head, widest.start, begin, end, p.cache.values, staged);
  for (int i = team; i < group.count; i += kTeams) {
    const RowOfSplit<kHeads> r = row_of_split(i);
    if (r.begin < r.end) Softmax(p, r, splits, warp, scores + i * kHeads * kSplit);
  }
  __syncthreads();
  float* of_team = of_warps + team * kWarps * kHeads * head_dim;
  for (int first = 0; first < group.count; first += kTeams) {
    const int i = first + team < group.count ? first + team : 0;
    const RowOfSplit<kHeads> r = row_of_split(i);
    const bool works = first + team < group.count && r.begin < r.end;
    if (works) Values<kType>(p, r, staged, scores + i * kHeads * kSplit, warp, of_team);
    __syncthreads();
    if (works) JoinWarps(p, r, splits, thread, of_team);
    __syncthreads();
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
  if (args.groups != nullptr) {
    const auto launch = [&](auto kernel, int heads) {
      shape.y = static_cast<unsigned>(args.cache.kv_heads * ((group + heads - 1) / heads));
      shape.z = static_cast<unsigned>(args.group_count);
      shape.threads = kTeams * kThreads;
      shape.dynamic_shared =
          static_cast<size_t>(GroupSharedBytes(kType, args.cache.head_dim, heads));
      return Launch("attention.groups", shape, stream, kernel, args, splits);
    };
    if (group == 1) return launch(GroupSplitKernel<kType, 1>, 1);
    if (group == 2) return launch(GroupSplitKernel<kType, 2>, 2);
    return launch(GroupSplitKernel<kType, kGroupHeads>, kGroupHeads);
  }
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

bool AttentionTakesGroups(CacheType type, int heads, int kv_heads, int head_dim,
                          int64_t shared_bytes) {
  int group = heads / kv_heads;
  if (group > 2) group = kGroupHeads;  // as LaunchSplits chooses
  // Where blocks may have more than that, one that takes it all has a multiprocessor for itself.
  constexpr int64_t kMost = int64_t{160} << 10;
  return GroupSharedBytes(type, head_dim, group) <= (shared_bytes < kMost ? shared_bytes : kMost);
}

int AttentionGroupRows(int rows, int heads, int kv_heads, int positions, int multiprocessors) {
  const int portions = (heads / kv_heads + kGroupHeads - 1) / kGroupHeads;
  int size = kMostGroupRows;
  while (size > 1 &&
         Splits(positions) * kv_heads * portions * ((rows + size - 1) / size) < multiprocessors) {
    size /= 2;
  }
  return size;
}

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
