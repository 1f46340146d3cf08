// A skinny product on tensor cores, bound by the bytes of the weights.
//
// A block computes 16 outputs (or a few times 16) for all rows of x. Its eight warps share the sum:
// warp w takes the blocks of 32 columns w, w + 8, w + 16, ...; each loads its weights straight from
// global memory into the registers of an MMA, 16 bytes a lane, without a detour through shared
// memory, as no other warp wants them. That works because a sum does not care which k a lane calls
// its own, so long as weights and activations agree. The partial sums of the warps meet in shared
// memory and are added in the order of the warps.
//
// Loads are a ring: as soon as a block of columns has been decoded, the loads of the block that is
// BlocksAhead further begin, so that as many are always under way. The first begin before the
// kernel waits for the one in front, which the weights do not depend on. Scales travel with their
// weights. Rows of x come from the caches and are loaded where they are used: registers for them
// cost a block of threads on each multiprocessor, and that costs more (seen on an H100).
//
// Weights are decoded to bf16, the rows of x are the columns of B: up to eight rows cost one MMA,
// like one row. Precision is that of float and not of bf16: x is split into two bf16 terms, x = hi
// + lo to 2^-17, and so are weights with more digits than bf16 has (fp16, fp32). Two or three MMAs
// instead of one are hidden behind the memory at the widths in question. Scales of integer weights
// multiply the float sums of their group; the minimum of kI4 is multiplied with the sum of x over
// the group, which one more MMA with ones in place of weights gives.
//
// Norms: x . norm goes into the product, each lane adds up the squares of what it loads, and the
// results are divided by the root mean square at the end, so norming costs no pass of its own.
//
// Every result is the same sum in the same order whatever the number of rows and wherever its row
// stands: an MMA computes its columns independently of each other, and nothing else mixes rows.
#ifndef PAWL_KERNELS_CUDA_MATMUL_CUH_
#define PAWL_KERNELS_CUDA_MATMUL_CUH_

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"

namespace pawl::PAWL_GPU {

constexpr int kMatMulWarps = 8, kMatMulThreads = kMatMulWarps * kWarpSize;

__device__ __forceinline__ uint4 LoadWeights16(const void* at) {
#if defined(__CUDA_ARCH__)
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
#else
#if defined(PAWL_CUDA_EMULATED)
  emulation::NoteLoad(at, sizeof(uint4));
#endif
  return *static_cast<const uint4*>(at);
#endif
}
__device__ __forceinline__ uint2 LoadWeights8(const void* at) {
#if defined(__CUDA_ARCH__)
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(at));
  return v;
#else
#if defined(PAWL_CUDA_EMULATED)
  emulation::NoteLoad(at, sizeof(uint2));
#endif
  return *static_cast<const uint2*>(at);
#endif
}

// The two bf16 terms of a pair of floats.
__device__ __forceinline__ void SplitBf16(float a, float b, uint32_t* high, uint32_t* low) {
  *high = PackBf16(a, b);
  *low = PackBf16(a - LowBf16(*high), b - HighBf16(*high));
}

// The upper halves of two floats that bf16 holds exactly.
__device__ __forceinline__ uint32_t JoinExact(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x7632);
#else
  return __float_as_uint(a) >> 16 | (__float_as_uint(b) & 0xffff0000u);
#endif
}

// Two bytes of a word, the lower two or the upper two, each in a half of its own.
__device__ __forceinline__ uint32_t SpreadBytes(uint32_t word, int upper) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(word, 0, upper != 0 ? 0x4342 : 0x4140);
#else
  word = upper != 0 ? word >> 16 : word;
  return (word & 0xffu) | (word & 0xff00u) << 8;
#endif
}

// Products of two pairs of bf16, which are exact here: one factor is a power of two.
__device__ __forceinline__ uint32_t TimesBf16(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t product;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
#else
  return JoinExact(LowBf16(a) * LowBf16(b), HighBf16(a) * HighBf16(b));
#endif
}

// How one row's eight elements of a block are loaded and turned into pairs of bf16. pairs[i] has
// the elements 2i and 2i + 1; `low` is the second term of weights that need one.
template <DeviceWeight W>
struct RowOfWeights;

template <>
struct RowOfWeights<DeviceWeight::kBf16> {
  static constexpr bool kTwoTerms = false;
  uint4 raw;
  __device__ void Load(const DeviceMatrix& w, int row, int block, int quarter) {
    raw = LoadWeights16(static_cast<const uint16_t*>(w.data) +
                        static_cast<int64_t>(row) * PaddedColumns(w.columns) + block * 32 +
                        quarter * 8);
  }
  __device__ void Decode(uint32_t* pairs, uint32_t*) const {
    pairs[0] = raw.x;
    pairs[1] = raw.y;
    pairs[2] = raw.z;
    pairs[3] = raw.w;
  }
};

template <>
struct RowOfWeights<DeviceWeight::kF16> {
  static constexpr bool kTwoTerms = true;
  uint4 raw;
  __device__ void Load(const DeviceMatrix& w, int row, int block, int quarter) {
    raw = LoadWeights16(static_cast<const uint16_t*>(w.data) +
                        static_cast<int64_t>(row) * PaddedColumns(w.columns) + block * 32 +
                        quarter * 8);
  }
  __device__ void Decode(uint32_t* pairs, uint32_t* low) const {
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      SplitBf16(HalfToFloat(static_cast<uint16_t>(words[i])),
                HalfToFloat(static_cast<uint16_t>(words[i] >> 16)), pairs + i, low + i);
    }
  }
};

template <>
struct RowOfWeights<DeviceWeight::kF32> {
  static constexpr bool kTwoTerms = true;
  uint4 raw[2];
  __device__ void Load(const DeviceMatrix& w, int row, int block, int quarter) {
    const float* at = static_cast<const float*>(w.data) +
                      static_cast<int64_t>(row) * PaddedColumns(w.columns) + block * 32 +
                      quarter * 8;
    raw[0] = LoadWeights16(at);
    raw[1] = LoadWeights16(at + 4);
  }
  __device__ void Decode(uint32_t* pairs, uint32_t* low) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      SplitBf16(__uint_as_float(raw[i].x), __uint_as_float(raw[i].y), pairs + 2 * i, low + 2 * i);
      SplitBf16(__uint_as_float(raw[i].z), __uint_as_float(raw[i].w), pairs + 2 * i + 1,
                low + 2 * i + 1);
    }
  }
};

template <>
struct RowOfWeights<DeviceWeight::kFp8> {
  static constexpr bool kTwoTerms = false;
  uint2 raw;
  __device__ void Load(const DeviceMatrix& w, int row, int block, int quarter) {
    raw = LoadWeights8(static_cast<const char*>(w.data) +
                       PackedOffset(DeviceWeight::kFp8, w.columns, row, block, quarter));
  }
  // The fields of e4m3 in place of bf16's, two codes at a time, then the difference of the exponent
  // biases; subnormal codes are subnormal numbers on the way.
  __device__ void Decode(uint32_t* pairs, uint32_t*) const {
    const uint32_t words[2] = {raw.x, raw.y};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t two = SpreadBytes(words[i / 2], i % 2);
      pairs[i] = TimesBf16((two << 8 & 0x80008000u) | (two << 4 & 0x07f007f0u), 0x7b807b80u);
    }
  }
};

template <>
struct RowOfWeights<DeviceWeight::kI8> {
  static constexpr bool kTwoTerms = false;
  uint2 raw;
  __device__ void Load(const DeviceMatrix& w, int row, int block, int quarter) {
    raw = LoadWeights8(static_cast<const char*>(w.data) +
                       PackedOffset(DeviceWeight::kI8, w.columns, row, block, quarter));
  }
  // A byte with its sign flipped, as the lowest bits of 2^23, is 2^23 + 128 + q.
  __device__ void Decode(uint32_t* pairs, uint32_t*) const {
    const uint32_t words[2] = {raw.x ^ 0x80808080u, raw.y ^ 0x80808080u};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t two = words[i / 2] >> 16 * (i % 2);
      pairs[i] = JoinExact(__uint_as_float(0x4b000000u | (two & 0xffu)) - 8388736.0f,
                           __uint_as_float(0x4b000000u | (two >> 8 & 0xffu)) - 8388736.0f);
    }
  }
};

// 128 + q as bf16; the 128 is taken back with the minimum.
template <>
struct RowOfWeights<DeviceWeight::kI4> {
  static constexpr bool kTwoTerms = false;
  uint32_t raw;
  __device__ void Load(const DeviceMatrix& w, int row, int block, int quarter) {
    raw = *reinterpret_cast<const uint32_t*>(
        static_cast<const char*>(w.data) +
        PackedOffset(DeviceWeight::kI4, w.columns, row, block, quarter));
  }
  __device__ void Decode(uint32_t* pairs, uint32_t*) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = (raw >> 4 * i & 0x000f000fu) | 0x43004300u;
  }
};

// Both rows of a packed tile that belong to a lane, `row` and `row` + 8, which lie next to each
// other: half as many loads, and whole sectors of memory.
__device__ __forceinline__ void LoadPair(RowOfWeights<DeviceWeight::kFp8> (&pair)[2],
                                         const DeviceMatrix& w, int row, int block, int quarter) {
  const uint4 both =
      LoadWeights16(static_cast<const char*>(w.data) +
                    PackedOffset(DeviceWeight::kFp8, w.columns, row, block, quarter));
  pair[0].raw = {both.x, both.y};
  pair[1].raw = {both.z, both.w};
}
__device__ __forceinline__ void LoadPair(RowOfWeights<DeviceWeight::kI8> (&pair)[2],
                                         const DeviceMatrix& w, int row, int block, int quarter) {
  const uint4 both = LoadWeights16(static_cast<const char*>(w.data) +
                                   PackedOffset(DeviceWeight::kI8, w.columns, row, block, quarter));
  pair[0].raw = {both.x, both.y};
  pair[1].raw = {both.z, both.w};
}
__device__ __forceinline__ void LoadPair(RowOfWeights<DeviceWeight::kI4> (&pair)[2],
                                         const DeviceMatrix& w, int row, int block, int quarter) {
  const uint2 both = LoadWeights8(static_cast<const char*>(w.data) +
                                  PackedOffset(DeviceWeight::kI4, w.columns, row, block, quarter));
  pair[0].raw = both.x;
  pair[1].raw = both.y;
}

// Scales, and minimums where weights have them, of both rows of a lane in a group: `row` in the
// lower halves. Nothing for weights without groups.
template <DeviceWeight W>
struct GroupOfRows {
  static constexpr bool kThere = W == DeviceWeight::kI8 || W == DeviceWeight::kI4;
  uint32_t scales = 0, minimums = 0;
  // `neighbours`: the rows are r and r + 8 of a tile.
  __device__ __forceinline__ void Load(const DeviceMatrix& w, const int (&rows)[2], bool neighbours,
                                       int group) {
    scales = LoadTwo(w.scales, w.groups, rows, neighbours, group);
    if constexpr (W == DeviceWeight::kI4) {
      if (w.minimums != nullptr) {
        minimums = LoadTwo(w.minimums, w.groups, rows, neighbours, group);
      }
    }
  }
  // What a unit of row `half` is worth, and what is added for each.
  __device__ __forceinline__ GroupScale Of(const DeviceMatrix& w, int half) const {
    const float scale = HalfToFloat(static_cast<uint16_t>(scales >> 16 * half));
    if constexpr (W == DeviceWeight::kI4) {
      if (w.minimums != nullptr) {
        return {scale, HalfToFloat(static_cast<uint16_t>(minimums >> 16 * half))};
      }
    }
    return {scale, -8.0f * scale};
  }

 private:
  static __device__ __forceinline__ uint32_t LoadTwo(const uint16_t* table, int32_t groups,
                                                     const int (&rows)[2], bool neighbours,
                                                     int group) {
    const uint16_t* at = table + TableIndex(groups, rows[0], group);
    if (neighbours) return *reinterpret_cast<const uint32_t*>(at);
    return *at | static_cast<uint32_t>(table[TableIndex(groups, rows[1], group)]) << 16;
  }
};

// The eight elements of a row of x that go with a lane's weights, as pairs of two bf16 terms.
struct RowOfInput {
  uint32_t high[4], low[4];
};

// `squares` gains those of the elements.
template <DeviceWeight W>
__device__ __forceinline__ RowOfInput LoadInput(const MatMul& p, int columns, int row, int block,
                                                int quarter, float* squares) {
  float v[8];
  const int first = block * 32 + quarter * (IsPacked(W) ? 4 : 8);
  constexpr int kSecond = IsPacked(W) ? 16 : 4;  // where the second four are
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = 0.0f;
  if (row < p.rows) {
    const int x_row = p.x_rows != nullptr ? p.x_rows[row] : row;
    const float* x = p.x + static_cast<int64_t>(x_row) * p.x_stride;
    if (block * 32 + 32 <= columns) {
      const float4 a = *reinterpret_cast<const float4*>(x + first);
      const float4 b = *reinterpret_cast<const float4*>(x + first + kSecond);
      v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
      v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int k = first + (i < 4 ? i : kSecond + i - 4);
        if (k < columns) v[i] = x[k];
      }
    }
  }
  if (p.norm != nullptr) {
    float sum = *squares;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = Fma(v[i], v[i], sum);
    *squares = sum;
    const float4 a = *reinterpret_cast<const float4*>(p.norm + first);
    const float4 b = *reinterpret_cast<const float4*>(p.norm + first + kSecond);
    v[0] *= a.x, v[1] *= a.y, v[2] *= a.z, v[3] *= a.w;
    v[4] *= b.x, v[5] *= b.y, v[6] *= b.z, v[7] *= b.w;
  }
  RowOfInput input;
#pragma unroll
  for (int i = 0; i < 4; ++i) SplitBf16(v[2 * i], v[2 * i + 1], input.high + i, input.low + i);
  return input;
}

__device__ __forceinline__ float Activate(Gate gate, float v) {
  if (gate == Gate::kSilu) return v / (1.0f + expf(-v));
  // x (1 + tanh u) / 2 = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
  const float u = -1.5957691216057308f * (v * Fma(0.044715f, v * v, 1.0f));
  return v / (1.0f + expf(u));
}

// Blocks of threads that a multiprocessor should have registers for, and how many loads of blocks
// of columns are under way at once: as many as these registers hold.
constexpr int BlocksTogether(DeviceWeight type, int tiles, int eights) {
  if (tiles * eights > 2) return 1;
  return tiles * eights == 2 || IsPacked(type) ? 2 : 3;
}
constexpr int BlocksAhead(DeviceWeight type, int tiles, int eights) {
  if (eights == 8 || type == DeviceWeight::kF32) return 2;
  return IsPacked(type) && tiles * eights == 1 ? 8 : 4;
}

// The products of the rows row_of of the weights (upper and lower half of each tile) with the rows
// of x, as far as a warp's columns go. With kGated the second half of the tiles are rows of the
// part's other factor.
template <DeviceWeight W, int kTiles, int kEights, bool kGated>
class TileProduct {
 public:
  // Begins the loads of the first blocks of columns, of the weights alone. `whole_tiles`: of packed
  // weights, whether the rows are those of whole tiles, which the memory has for the last one, too.
  __device__ __forceinline__ TileProduct(const MatMulPart& part, const int (&row_of)[kTiles][2],
                                         bool whole_tiles)
      : part_(part), row_of_(row_of), whole_tiles_(whole_tiles) {
    warp_ = static_cast<int>(threadIdx.x) / kWarpSize;
    quarter_ = static_cast<int>(threadIdx.x) % 4;
    blocks_ = PaddedColumns(part.w.columns) / kTileColumns;
    // Scales go on at the end of a group: each half of a block where groups have 16 columns.
    whole_groups_ = part.w.group_shift >= 5 && (!kGated || part.up.group_shift >= 5);
#pragma unroll
    for (int a = 0; a < kAhead; ++a) Load(a, warp_ + a * kMatMulWarps);
  }

  // `squares` gains those of the rows of x.
  __device__ __forceinline__ void Sums(const MatMul& p, float (&acc)[kTiles][kEights][4],
                                       float (&squares)[kEights]) {
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      squares[n] = 0.0f;
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[t][n][i] = 0.0f;
      }
    }
    for (int first = warp_; first < blocks_; first += kMatMulWarps * kAhead) {
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const int block = first + a * kMatMulWarps;
        if (block < blocks_) AddBlock(p, a, block, acc, squares);
      }
    }
  }

 private:
  static constexpr int kOutTiles = kGated ? kTiles / 2 : kTiles;
  static constexpr int kAhead = BlocksAhead(W, kTiles, kEights);
  using Group = GroupOfRows<W>;

  __device__ __forceinline__ const DeviceMatrix& Weights(int tile) const {
    return kGated && tile >= kOutTiles ? part_.up : part_.w;
  }

  __device__ __forceinline__ void Load(int a, int block) {
    if (block >= blocks_) return;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const DeviceMatrix& w = Weights(t);
      const int(&rows)[2] = row_of_[t];
      if constexpr (IsPacked(W)) {
        if (whole_tiles_) {
          LoadPair(raw_[a][t], w, rows[0], block, quarter_);
        } else {
          raw_[a][t][0].Load(w, rows[0], block, quarter_);
          raw_[a][t][1].Load(w, rows[1], block, quarter_);
        }
      } else {
        raw_[a][t][0].Load(w, rows[0], block, quarter_);
        raw_[a][t][1].Load(w, rows[1], block, quarter_);
      }
      if constexpr (Group::kThere) {
        group_[a][t].Load(w, rows, whole_tiles_, block * 32 >> w.group_shift);
      }
    }
  }

  // One block of 32 columns, whose weights are in place `a` of the ring.
  __device__ __forceinline__ void AddBlock(const MatMul& p, int a, int block,
                                           float (&acc)[kTiles][kEights][4],
                                           float (&squares)[kEights]) {
    uint32_t high[kTiles][2][4], low[kTiles][2][4];  // [tile][upper or lower rows][pair]
    Group group[kTiles], second_group[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      raw_[a][t][0].Decode(high[t][0], low[t][0]);
      raw_[a][t][1].Decode(high[t][1], low[t][1]);
      if constexpr (Group::kThere) {
        group[t] = group_[a][t];
        const DeviceMatrix& w = Weights(t);
        if (!whole_groups_) {
          second_group[t].Load(w, row_of_[t], whole_tiles_, (block * 32 + 16) >> w.group_shift);
        }
      }
    }
    Load(a, block + kAhead * kMatMulWarps);
    const int g = static_cast<int>(threadIdx.x) % kWarpSize / 4;
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      const RowOfInput x =
          LoadInput<W>(p, part_.w.columns, n * 8 + g, block, quarter_, squares + n);
      float ones_sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      float group_sum[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) group_sum[t][i] = 0.0f;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t x_high[2] = {x.high[2 * half], x.high[2 * half + 1]};
        const uint32_t x_low[2] = {x.low[2 * half], x.low[2 * half + 1]};
        if constexpr (W == DeviceWeight::kI4) {
          const uint32_t ones[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
          MmaBf16(ones_sum, ones, x_high);
          MmaBf16(ones_sum, ones, x_low);
        }
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          float* to = Group::kThere ? group_sum[t] : acc[t][n];
          const uint32_t w_high[4] = {high[t][0][2 * half], high[t][1][2 * half],
                                      high[t][0][2 * half + 1], high[t][1][2 * half + 1]};
          MmaBf16(to, w_high, x_high);
          MmaBf16(to, w_high, x_low);
          if constexpr (RowOfWeights<W>::kTwoTerms) {
            const uint32_t w_low[4] = {low[t][0][2 * half], low[t][1][2 * half],
                                       low[t][0][2 * half + 1], low[t][1][2 * half + 1]};
            MmaBf16(to, w_low, x_high);
          }
        }
        if constexpr (Group::kThere) {
          if (whole_groups_) {
            if (half == 1) AddGroups(group, group_sum, ones_sum, n, acc);
          } else if (half == 0) {
            AddGroups(group, group_sum, ones_sum, n, acc);
          } else {
            AddGroups(second_group, group_sum, ones_sum, n, acc);
          }
        }
      }
    }
  }

  // The sums of a group of columns, times their scales.
  __device__ __forceinline__ void AddGroups(const Group (&group)[kTiles],
                                            float (&group_sum)[kTiles][4],
                                            const float (&ones_sum)[4], int n,
                                            float (&acc)[kTiles][kEights][4]) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const GroupScale of_group = group[t].Of(Weights(t), h);
        const float minimum = Fma(-128.0f, of_group.scale, of_group.minimum);
#pragma unroll
        for (int i = 2 * h; i < 2 * h + 2; ++i) {
          acc[t][n][i] = Fma(of_group.scale, group_sum[t][i], acc[t][n][i]);
          group_sum[t][i] = 0.0f;
          if constexpr (W == DeviceWeight::kI4) {
            acc[t][n][i] = Fma(minimum, ones_sum[i], acc[t][n][i]);
          }
        }
      }
    }
  }

  const MatMulPart& part_;
  const int (&row_of_)[kTiles][2];
  bool whole_tiles_, whole_groups_;
  int warp_, quarter_, blocks_;
  RowOfWeights<W> raw_[kAhead][kTiles][2];
  Group group_[kAhead][kTiles];
};

// 1 / root mean square of each row of x, in shared memory, from the squares that the lanes have.
// All threads of the block come; the results can be read after the next barrier.
template <int kEights>
__device__ __forceinline__ void InverseNorms(const MatMul& p, int columns,
                                             const float (&squares)[kEights],
                                             float* squares_of_warps, float* inverse_norms) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int g = lane / 4, quarter = lane % 4;
  if (p.norm == nullptr) return;
#pragma unroll
  for (int n = 0; n < kEights; ++n) {
    float sum = squares[n];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    if (quarter == 0) squares_of_warps[(warp * kEights + n) * 8 + g] = sum;
  }
  __syncthreads();
  for (int r = static_cast<int>(threadIdx.x); r < kEights * 8; r += kMatMulWarps * kWarpSize) {
    float sum = 0.0f;
    for (int w = 0; w < kMatMulWarps; ++w) sum += squares_of_warps[w * kEights * 8 + r];
    inverse_norms[r] = 1.0f / sqrtf(sum / static_cast<float>(columns) + p.epsilon);
  }
}

// This warp's part of the sums for the rows of x n * 8 .. n * 8 + 7, to shared memory:
// sums[warp][tile][row of the tile][row of x]. TileTotal adds them up in the order of the warps.
template <int kTiles, int kEights>
__device__ __forceinline__ void ShareSums(const float (&acc)[kTiles][kEights][4], int n,
                                          float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int g = lane / 4, quarter = lane % 4;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + i / 2 * 8, column = quarter * 2 + i % 2;
      sums[((warp * kTiles + t) * kTileRows + row) * 8 + column] = acc[t][n][i];
    }
  }
}
template <int kTiles>
__device__ __forceinline__ float TileTotal(const float* sums, int tile, int row, int column) {
  float sum = 0.0f;
  for (int w = 0; w < kMatMulWarps; ++w) {
    sum += sums[((w * kTiles + tile) * kTileRows + row) * 8 + column];
  }
  return sum;
}

// kTiles: of 16 outputs in a block; with a gate half of them are the gate's and half the other
// factor's. kEights: of rows of x.
template <DeviceWeight W, int kTiles, int kEights, bool kGated>
__global__ __launch_bounds__(kMatMulThreads,
                             BlocksTogether(W, kTiles, kEights)) void MatMulKernel(MatMul p) {
  constexpr int kOutTiles = kGated ? kTiles / 2 : kTiles;
  PAWL_SHARED(float, sums, kMatMulWarps* kTiles* kTileRows * 8);
  PAWL_SHARED(float, squares_of_warps, kMatMulWarps* kEights * 8);
  PAWL_SHARED(float, inverse_norms, kEights * 8);

  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int g = lane / 4;

  // The part that this block works for, and its first group of tiles there.
  int part_index = 0, tile_group = static_cast<int>(blockIdx.x);
  for (; part_index + 1 < p.part_count; ++part_index) {
    const int groups = (RowTiles(p.parts[part_index].w.rows) + kOutTiles - 1) / kOutTiles;
    if (tile_group < groups) break;
    tile_group -= groups;
  }
  const MatMulPart& part = p.parts[part_index];
  const int columns = part.w.columns;
  const bool listed = p.row_list != nullptr;
  if (listed) DependencyWait();

  // A block takes one group of tiles, or, of a list whose length only the device knows, every
  // gridDim.x-th.
  const int outputs = listed ? *p.row_list_count : part.w.rows;
  const int tile_groups = listed ? (RowTiles(outputs) + kOutTiles - 1) / kOutTiles : tile_group + 1;
  for (; tile_group < tile_groups; tile_group += static_cast<int>(gridDim.x)) {
    // Rows of the weights; those beyond the last repeat it, or are of its tile where there is
    // memory for them, or repeat that. Their results are dropped.
    const bool whole_tiles = IsPacked(W) && !listed;
    int row_of[kTiles][2];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const int tile = tile_group * kOutTiles + t % kOutTiles;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        int row = tile * kTileRows + h * 8 + g;
        if (whole_tiles) {
          const int last = RowTiles(outputs) - 1;
          row -= (tile > last ? tile - last : 0) * kTileRows;
        } else {
          row = row < outputs ? row : outputs - 1;
        }
        row_of[t][h] = listed ? p.row_list[row] : row;
      }
    }
    float acc[kTiles][kEights][4];
    float squares[kEights];
    TileProduct<W, kTiles, kEights, kGated> product(part, row_of, whole_tiles);
    // The weights do not depend on what the kernel in front writes; all else does.
    if (!listed) DependencyWait();
    product.Sums(p, acc, squares);
    InverseNorms<kEights>(p, columns, squares, squares_of_warps, inverse_norms);
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      __syncthreads();
      ShareSums<kTiles, kEights>(acc, n, sums);
      __syncthreads();
      const auto total = [&](int tile, int row, int column) {
        const float sum = TileTotal<kTiles>(sums, tile, row, column);
        return p.norm != nullptr ? sum * inverse_norms[n * 8 + column] : sum;
      };
      for (int i = static_cast<int>(threadIdx.x); i < kOutTiles * kTileRows * 8;
           i += kMatMulWarps * kWarpSize) {
        // Neighbouring threads take neighbouring outputs.
        const int row = i % kTileRows, tile = i / kTileRows % kOutTiles;
        const int column = i / (kTileRows * kOutTiles), r = n * 8 + column;
        const int output = (tile_group * kOutTiles + tile) * kTileRows + row;
        if (output >= outputs || r >= p.rows) continue;
        const int w_row = listed ? p.row_list[output] : output;
        float value = total(tile, row, column);
        if constexpr (W == DeviceWeight::kFp8) value *= part.w.row_scales[w_row];
        if (part.bias != nullptr) value += part.bias[w_row];
        if constexpr (kGated) {
          float factor = total(tile + kOutTiles, row, column);
          if constexpr (W == DeviceWeight::kFp8) factor *= part.up.row_scales[w_row];
          if (part.up_bias != nullptr) factor += part.up_bias[w_row];
          value = Activate(p.gate, value) * factor;
        }
        if (p.soft_cap > 0.0f) value = p.soft_cap * tanhf(value / p.soft_cap);
        if (p.not_finite != nullptr && !IsFinite(value)) p.not_finite[r] = 1;
        float* y = part.y + static_cast<int64_t>(r) * part.y_stride + output;
        *y = p.add ? *y + value : value;
      }
    }
    __syncthreads();
  }
}

// Blocks for a list whose length only the device knows: enough to fill any device.
constexpr unsigned kListBlocks = 1024;

template <DeviceWeight W, int kTiles, int kEights>
Status LaunchTiles(const MatMul& args, Stream stream) {
  constexpr int kGateTiles = kTiles > 1 ? kTiles : 2;
  const int out_tiles = args.gate != Gate::kNone ? kGateTiles / 2 : kTiles;
  Shape shape;
  shape.threads = kMatMulWarps * kWarpSize;
  shape.x = 0;
  for (int i = 0; i < args.part_count; ++i) {
    shape.x += static_cast<unsigned>((RowTiles(args.parts[i].w.rows) + out_tiles - 1) / out_tiles);
  }
  if (args.gate != Gate::kNone) {
    return Launch("matmul.gated", shape, stream, MatMulKernel<W, kGateTiles, kEights, true>, args);
  }
  if (args.row_list != nullptr && shape.x > kListBlocks) shape.x = kListBlocks;
  return Launch("matmul", shape, stream, MatMulKernel<W, kTiles, kEights, false>, args);
}

// With fewer blocks than this, multiprocessors of the devices in question would have nothing to do.
constexpr int kFewBlocks = 200;

// Two tiles in a block read x half as often; where there are few outputs, more blocks count more.
template <DeviceWeight W, int kTiles, int kEights>
Status LaunchEights(const MatMul& args, Stream stream) {
  if constexpr (kTiles > 1) {
    int tiles = 0;
    for (int i = 0; i < args.part_count; ++i) tiles += RowTiles(args.parts[i].w.rows);
    if (args.gate == Gate::kNone && tiles < kFewBlocks * kTiles) {
      return LaunchTiles<W, 1, kEights>(args, stream);
    }
  }
  return LaunchTiles<W, kTiles, kEights>(args, stream);
}

// The kernels of one type of weights; each type is compiled apart (matmul_type.cu), so that
// they compile in parallel. Three widths: one and two MMAs of eight rows, where decoding and
// verifying happen, and eight. fp32 weights are for models small enough not to care.
template <DeviceWeight W, int kTiles>
Status LaunchMatMul(const MatMul& args, Stream stream) {
  if (args.rows <= 8) return LaunchEights<W, kTiles, 1>(args, stream);
  if constexpr (W != DeviceWeight::kF32) {
    if (args.rows <= 16) return LaunchEights<W, kTiles, 2>(args, stream);
  }
  return LaunchTiles<W, 1, 8>(args, stream);
}

Status MatMulF32(const MatMul& args, Stream stream);
Status MatMulBf16(const MatMul& args, Stream stream);
Status MatMulF16(const MatMul& args, Stream stream);
Status MatMulFp8(const MatMul& args, Stream stream);
Status MatMulI8(const MatMul& args, Stream stream);
Status MatMulI4(const MatMul& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_MATMUL_CUH_
