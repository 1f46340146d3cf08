// What a sampler wants to know about rows of masked logits: a token, the log-probabilities, the
// largest few.
//
// A row is cut into chunks of 4096 tokens, a block each, so that one row of a large vocabulary
// still fills a device. In a chunk a warp takes words of the mask as MaskKernel does; words
// without a set bit cost nothing and their logits are not read. A first kernel leaves what each
// chunk has (Partial) in the workspace, a second one joins the chunks of its row, in ascending
// order, and goes over its chunk once more with what the whole row has; what is left to join after
// that is a third kernel of one block for each row. Nothing depends on how many rows there are.
//
// The rule of the draw is that of src/base/random.h.
#include <algorithm>

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
constexpr int64_t kChunkWords = kChunk / 32;
constexpr float kLowest = -3.402823466e38f;

__host__ __device__ inline int64_t Chunks(int64_t vocabulary) {
  return (vocabulary + kChunk - 1) / kChunk;
}

// A score and its token; the better one has the larger score, the lower token among equals. No
// candidate: token < 0.
struct Best {
  float score;
  int32_t token;
};
__device__ __forceinline__ bool Better(const Best& a, const Best& b) {
  if (a.token < 0 || b.token < 0) return b.token < 0 && a.token >= 0;
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

// Of a chunk's allowed tokens.
struct Partial {
  Best largest;  // of the finite logits
  float sum;     // of e^(logit - largest) over them
  int32_t state;
};
// Bits of Partial::state. kSome: a token is allowed, kBroken: a logit is NaN or +infinity.
constexpr int kSome = 1, kBroken = 2;

__device__ __forceinline__ float LogitAt(const MaskedRows& rows, const void* row, int64_t token) {
  switch (rows.type) {
    case LogitType::kF32:
      return static_cast<const float*>(row)[token];
    case LogitType::kF16:
      return HalfToFloat(static_cast<const uint16_t*>(row)[token]);
    default:
      return Bf16ToFloat(static_cast<const uint16_t*>(row)[token]);
  }
}

struct RowView {
  const void* logits;
  const uint32_t* mask;  // null: everything is allowed
};
__device__ __forceinline__ RowView RowAt(const MaskedRows& rows, int64_t i) {
  const int64_t row = rows.logit_rows != nullptr ? rows.logit_rows[i] : i;
  const int64_t bytes = rows.type == LogitType::kF32 ? 4 : 2;
  RowView view;
  view.logits = static_cast<const char*>(rows.logits) + row * rows.logits_stride * bytes;
  view.mask = nullptr;
  if (rows.masks != nullptr) {
    const int64_t mask_row = rows.mask_rows != nullptr ? rows.mask_rows[i] : i;
    if (mask_row >= 0) view.mask = rows.masks + mask_row * rows.masks_stride;
  }
  return view;
}

// visit(token, logit) for each allowed token of the chunk, by some thread of the block; the threads
// of a warp come together.
template <typename Visit>
__device__ void ForAllowed(const MaskedRows& rows, const RowView& row, int64_t chunk,
                           const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int64_t words = (rows.vocabulary + 31) / 32;
  const int64_t end = (chunk + 1) * kChunkWords < words ? (chunk + 1) * kChunkWords : words;
  for (int64_t base = chunk * kChunkWords + static_cast<int>(threadIdx.x) / kWarpSize * kWarpSize;
       base < end; base += kWarps * kWarpSize) {
    uint32_t mine = 0;
    if (base + lane < end) mine = row.mask != nullptr ? row.mask[base + lane] : ~uint32_t{0};
    for (unsigned some = __ballot_sync(kAllLanes, mine != 0); some != 0; some &= some - 1) {
      const int j = __ffs(static_cast<int>(some)) - 1;
      const uint32_t word = __shfl_sync(kAllLanes, mine, j);
      const int64_t token = (base + j) * 32 + lane;
      if (token < rows.vocabulary && (word >> lane & 1) != 0) {
        visit(token, LogitAt(rows, row.logits, token));
      }
    }
  }
}

__device__ Best WarpBest(Best best) {
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    Best other;
    other.score = __shfl_xor_sync(kAllLanes, best.score, bits);
    other.token = __shfl_xor_sync(kAllLanes, best.token, bits);
    if (Better(other, best)) best = other;
  }
  return best;
}

// Of the whole block, for all its threads. `scratch`: kWarps of them.
__device__ Best BlockBest(Best best, Best* scratch) {
  best = WarpBest(best);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) scratch[threadIdx.x / kWarpSize] = best;
  __syncthreads();
  best = scratch[0];
  for (int i = 1; i < kWarps; ++i) {
    if (Better(scratch[i], best)) best = scratch[i];
  }
  return best;
}

__device__ float BlockSum(float value, float* scratch) {
  value = WarpSum(value);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) scratch[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  value = scratch[0];
  for (int i = 1; i < kWarps; ++i) value += scratch[i];
  return value;
}

__device__ int BlockOr(int bits, int* scratch) {
  for (int by = kWarpSize / 2; by > 0; by /= 2) bits |= __shfl_xor_sync(kAllLanes, bits, by);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) scratch[threadIdx.x / kWarpSize] = bits;
  __syncthreads();
  bits = 0;
  for (int i = 0; i < kWarps; ++i) bits |= scratch[i];
  return bits;
}

// Grid: chunks, rows.
__global__ void PartialKernel(MaskedRows rows, Partial* partials, bool sums) {
  DependencyWait();
  PAWL_SHARED(Best, bests, kWarps);
  PAWL_SHARED(float, floats, kWarps);
  PAWL_SHARED(int, ints, kWarps);
  const int64_t chunk = blockIdx.x;
  const RowView row = RowAt(rows, blockIdx.y);
  Best best = {0.0f, -1};
  int state = 0;
  ForAllowed(rows, row, chunk, [&](int64_t token, float logit) {
    state |= kSome;
    if (!(logit <= -kLowest)) {
      state |= kBroken;
    } else if (logit >= kLowest) {
      const Best candidate = {logit, static_cast<int32_t>(token)};
      if (Better(candidate, best)) best = candidate;
    }
  });
  best = BlockBest(best, bests);
  state = BlockOr(state, ints);
  float sum = 0.0f;
  if (sums && best.token >= 0) {
    ForAllowed(rows, row, chunk, [&](int64_t, float logit) { sum += expf(logit - best.score); });
    sum = BlockSum(sum, floats);
  }
  if (threadIdx.x == 0) {
    partials[blockIdx.y * Chunks(rows.vocabulary) + chunk] = {best, sum, state};
  }
}

// The chunks of a row together. Every thread does it for itself: there are a few dozen.
__device__ Partial Join(const Partial* partials, int64_t chunks) {
  Partial all = {{0.0f, -1}, 0.0f, 0};
  for (int64_t c = 0; c < chunks; ++c) {
    all.state |= partials[c].state;
    if (Better(partials[c].largest, all.largest)) all.largest = partials[c].largest;
  }
  for (int64_t c = 0; c < chunks; ++c) {
    if (partials[c].largest.token < 0) continue;
    all.sum = Fma(partials[c].sum, expf(partials[c].largest.score - all.largest.score), all.sum);
  }
  return all;
}

// Grid: chunks, rows. Leaves the best of each chunk in `bests`.
__global__ void DrawKernel(SampleArgs args, const Partial* partials, Best* bests) {
  DependencyWait();
  PAWL_SHARED(Best, scratch, kWarps);
  const int64_t chunks = Chunks(args.rows.vocabulary), i = blockIdx.y, chunk = blockIdx.x;
  const Partial* own = partials + i * chunks;
  const float temperature = args.temperatures != nullptr ? args.temperatures[i] : 0.0f;
  const Partial all = Join(own, chunks);
  Best best = own[chunk].largest;
  if (temperature != 0.0f || all.largest.token < 0) {
    const bool equal = all.largest.token < 0;  // all allowed logits are -infinity
    const uint64_t seed = args.seeds != nullptr ? args.seeds[i] : 0;
    const uint64_t position = args.positions != nullptr ? args.positions[i] : 0;
    best = {0.0f, -1};
    float hopeless = -INFINITY;
    ForAllowed(args.rows, RowAt(args.rows, i), chunk, [&](int64_t token, float logit) {
      if (!equal && !(logit >= kLowest)) return;
      Best candidate = {equal ? 0.0f : logit, static_cast<int32_t>(token)};
      if (temperature != 0.0f) {
        if (candidate.score < hopeless) return;
        candidate.score = Perturbed(candidate.score, temperature,
                                    GumbelAt(seed, position, static_cast<uint64_t>(token)));
      }
      if (!Better(candidate, best)) return;
      best = candidate;
      hopeless = HopelessLogit(best.score, temperature);
    });
    best = BlockBest(best, scratch);
  }
  if (threadIdx.x == 0) bests[i * chunks + chunk] = best;
}

// Grid: rows.
__global__ void ChooseKernel(SampleArgs args, const Partial* partials, const Best* bests) {
  DependencyWait();
  PAWL_SHARED(Best, scratch, kWarps);
  PAWL_SHARED(int, ints, kWarps);
  const int64_t chunks = Chunks(args.rows.vocabulary), i = blockIdx.x;
  Best best = {0.0f, -1};
  int state = 0;
  for (int64_t c = threadIdx.x; c < chunks; c += kThreads) {
    if (Better(bests[i * chunks + c], best)) best = bests[i * chunks + c];
    state |= partials[i * chunks + c].state;
  }
  best = BlockBest(best, scratch);
  state = BlockOr(state, ints);
  if (threadIdx.x == 0) {
    args.tokens[i] = (state & kBroken) != 0 ? kBrokenLogits
                     : (state & kSome) == 0 ? kNothingAllowed
                                            : best.token;
  }
}

// Grid: chunks, rows.
__global__ void LogSoftmaxKernel(LogSoftmaxArgs args, const Partial* partials) {
  DependencyWait();
  const int64_t chunks = Chunks(args.rows.vocabulary), i = blockIdx.y, chunk = blockIdx.x;
  const Partial all = Join(partials + i * chunks, chunks);
  const float shift = all.largest.score, log_sum = logf(all.sum);
  float* out = args.out + i * args.out_stride;
  const int64_t end =
      (chunk + 1) * kChunk < args.rows.vocabulary ? (chunk + 1) * kChunk : args.rows.vocabulary;
  const RowView row = RowAt(args.rows, i);
  for (int64_t t = chunk * kChunk + threadIdx.x; t < end; t += kThreads) {
    float value = -INFINITY;
    if (row.mask == nullptr || (row.mask[t / 32] >> t % 32 & 1) != 0) {
      const float logit = LogitAt(args.rows, row.logits, t);
      value = logit - shift - log_sum;
    }
    out[t] = value;
  }
}

// The best candidate behind `last` in the order of Better; last.token < 0: the best of all.
__device__ __forceinline__ bool Behind(const Best& candidate, const Best& last) {
  return last.token < 0 || Better(last, candidate);
}

// Grid: chunks, rows. The k largest of each chunk: k rounds of a maximum, each over what comes
// after the one before. The logits of a chunk stay in the L1 cache.
__global__ void TopOfChunkKernel(TopKArgs args, Best* tops) {
  DependencyWait();
  PAWL_SHARED(Best, scratch, kWarps);
  const int64_t chunks = Chunks(args.rows.vocabulary), i = blockIdx.y, chunk = blockIdx.x;
  const RowView row = RowAt(args.rows, i);
  Best last = {0.0f, -1};
  bool ended = false;
  for (int n = 0; n < args.k; ++n) {
    Best best = {0.0f, -1};
    if (!ended) {
      ForAllowed(args.rows, row, chunk, [&](int64_t token, float logit) {
        const Best candidate = {logit, static_cast<int32_t>(token)};
        if (logit >= kLowest && Behind(candidate, last) && Better(candidate, best)) {
          best = candidate;
        }
      });
      best = BlockBest(best, scratch);
      ended = best.token < 0;
      last = best;
    }
    if (threadIdx.x == 0) tops[(i * chunks + chunk) * kMostTopK + n] = best;
  }
}

// Grid: rows.
__global__ void TopOfRowKernel(TopKArgs args, const Partial* partials, const Best* tops) {
  DependencyWait();
  PAWL_SHARED(Best, scratch, kWarps);
  const int64_t chunks = Chunks(args.rows.vocabulary), i = blockIdx.x;
  const Partial all = Join(partials + i * chunks, chunks);
  Best last = {0.0f, -1};
  for (int n = 0; n < args.k; ++n) {
    Best best = {0.0f, -1};
    for (int64_t c = threadIdx.x; c < chunks * args.k && (n == 0 || last.token >= 0);
         c += kThreads) {
      const Best candidate = tops[(i * chunks + c / args.k) * kMostTopK + c % args.k];
      if (candidate.token >= 0 && Behind(candidate, last) && Better(candidate, best)) {
        best = candidate;
      }
    }
    best = BlockBest(best, scratch);
    if (n > 0 && last.token < 0) best = last;
    last = best;
    if (threadIdx.x == 0) {
      const bool found = best.token >= 0;
      args.tokens[i * args.k + n] = best.token;
      args.logprobs[i * args.k + n] =
          found ? best.score - all.largest.score - logf(all.sum) : -INFINITY;
    }
  }
}

Shape ByChunk(const MaskedRows& rows) {
  Shape shape;
  shape.x = static_cast<unsigned>(Chunks(rows.vocabulary));
  shape.y = static_cast<unsigned>(rows.count);
  shape.threads = kThreads;
  return shape;
}
Shape ByRow(const MaskedRows& rows) {
  Shape shape;
  shape.x = static_cast<unsigned>(rows.count);
  shape.threads = kThreads;
  return shape;
}

Status CheckRows(const MaskedRows& rows) {
  if (rows.count > 65535 || rows.vocabulary > (int64_t{1} << 31)) {
    return Error{ErrorCode::kLimit, "at most 65535 rows of 2^31 tokens in a call", "cuda"};
  }
  return {};
}

Partial* Partials(void* workspace) { return static_cast<Partial*>(workspace); }
Best* Bests(void* workspace, const MaskedRows& rows) {
  return reinterpret_cast<Best*>(Partials(workspace) + rows.count * Chunks(rows.vocabulary));
}

}  // namespace

int64_t WorkspaceBytes(int64_t count, int64_t vocabulary) {
  const int64_t chunks = count * Chunks(vocabulary);
  return chunks * static_cast<int64_t>(sizeof(Partial) + kMostTopK * sizeof(Best));
}

Status Sample(const SampleArgs& args, Stream stream) {
  if (args.rows.count <= 0) return {};
  if (Status status = CheckRows(args.rows); !status.ok()) return status;
  Partial* partials = Partials(args.workspace);
  Best* bests = Bests(args.workspace, args.rows);
  Status status = Launch("sample.partial", ByChunk(args.rows), stream, PartialKernel, args.rows,
                         partials, false);
  if (status.ok()) {
    status = Launch("sample.draw", ByChunk(args.rows), stream, DrawKernel, args, partials, bests);
  }
  if (status.ok()) {
    status = Launch("sample.choose", ByRow(args.rows), stream, ChooseKernel, args, partials, bests);
  }
  return status;
}

Status LogSoftmax(const LogSoftmaxArgs& args, Stream stream) {
  if (args.rows.count <= 0) return {};
  if (Status status = CheckRows(args.rows); !status.ok()) return status;
  Partial* partials = Partials(args.workspace);
  Status status = Launch("log_softmax.partial", ByChunk(args.rows), stream, PartialKernel,
                         args.rows, partials, true);
  if (status.ok()) {
    status = Launch("log_softmax", ByChunk(args.rows), stream, LogSoftmaxKernel, args, partials);
  }
  return status;
}

Status TopK(const TopKArgs& args, Stream stream) {
  if (args.rows.count <= 0) return {};
  if (Status status = CheckRows(args.rows); !status.ok()) return status;
  if (args.k < 1 || args.k > kMostTopK) {
    return Error{ErrorCode::kInvalid, "k must be between 1 and " + std::to_string(kMostTopK), "k"};
  }
  Partial* partials = Partials(args.workspace);
  Best* tops = Bests(args.workspace, args.rows);
  Status status =
      Launch("top_k.partial", ByChunk(args.rows), stream, PartialKernel, args.rows, partials, true);
  if (status.ok()) {
    status = Launch("top_k.chunk", ByChunk(args.rows), stream, TopOfChunkKernel, args, tops);
  }
  if (status.ok()) {
    status = Launch("top_k.row", ByRow(args.rows), stream, TopOfRowKernel, args, partials, tops);
  }
  return status;
}

}  // namespace pawl::PAWL_GPU
