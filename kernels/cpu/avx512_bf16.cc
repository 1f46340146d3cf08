// Products and attention with VDPBF16PS of AVX-512 BF16, for those who ask for inputs that are
// rounded to one bf16 number: what amx-bf16 is for processors with AMX. All else is the kernels for
// AVX-512 and VNNI.
//
// The instruction adds to each of sixteen sums the products of two neighbouring bf16 numbers with
// two others, twice the work of a multiply-add. Weights are read where they lie, 32 of a row in one
// load and not widened; inputs are rounded once (Pack) and lie in the same order. The tiles of
// kernels_inl.h do the rest.
//
// Bits: lane i of a sum takes the elements 2i and 2i + 1 of each block of 32, in ascending order;
// lanes are folded as in all variants; chunks of kChunk terms are folded each on its own and added
// in ascending order. In attention, values are multiplied for two positions at once, of which the
// first one is even, and one that a row does not see counts as zero. So a row's results do not
// depend on its company. The instruction rounds to nearest and takes subnormal numbers as zero.
//
// Rows of a packed group, of at most 16, lie side by side, 2 bytes an input.
#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/amx_pack.h"
#include "kernels/cpu/avx512_inl.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/kernels_inl.h"

namespace pawl {
namespace {

// So many inputs are summed in registers, and these sums in y: the inputs of six rows and the
// weights of four outputs then stay in a level 1 cache of 48 KiB, the inputs of 128 rows in half a
// megabyte.
constexpr int64_t kChunk = 2048;

inline __m512bh Pairs(const Vec& v) { return reinterpret_cast<__m512bh>(v.lanes); }
inline Vec FromBits(__m512i bits) { return {_mm512_castsi512_ps(bits)}; }
inline Vec Dot(const Vec& a, const Vec& b, const Vec& sum) {
  return {_mm512_dpbf16_ps(sum.lanes, Pairs(a), Pairs(b))};
}

// 2 bytes for each of n inputs, with zeros up to the next block of 32.
void RoundRow(const float* x, int64_t n, float* out) {
  for (int64_t k = 0; k < n; k += amx::kStep) {
    __m512 x0, x1;
    amx::Load32(x + k, n - k, x0, x1);
    _mm512_storeu_si512(out + k / 2, amx::Brain(x1, x0));
  }
}

void PackRounded(WeightType type, const float* x, int64_t x_stride, int rows, int64_t n,
                 float* out) {
  if (type != WeightType::kBf16) return kAvx512VnniKernels.pack(type, x, x_stride, rows, n, out);
  const int64_t width = PackedWidth(n);
  for (int r = 0; r < rows; ++r) {
    RoundRow(x + r * x_stride, n,
             out + r / kPackRows * kPackRows * width + r % kPackRows * (width / 2));
  }
}

// ---- Products ----

// What both kinds of weights have in common: 32 inputs at once, behind which zeros follow.
struct Rounded {
  static constexpr bool kPairs = false;
  static constexpr int kStep = 2 * kLanes;
  static Vec LoadRest(const float* x, int) { return Vec::Load(x); }
  static Vec MultiplyAdd(const Vec& weight, const Vec& input, const Vec& sum) {
    return Dot(weight, input, sum);
  }
};

// A chunk of the inputs: n from `begin` on. With `InOrder` all chunks of some outputs come before
// the next outputs, else all outputs before the next chunk.
template <bool InOrder>
struct ChunkOfWeights : Rounded {
  ChunkOfWeights(const uint16_t* from, int64_t row, int64_t chunk_begin, int64_t count)
      : data(from), stride(row), begin(chunk_begin), n(count) {}
  const uint16_t* data;
  int64_t stride, begin, n;

  Vec Load(int o, int64_t k) const { return FromBits(_mm512_loadu_si512(data + o * stride + k)); }
  Vec LoadN(int o, int64_t k, int count) const {
    const __mmask32 mask = (__mmask32{1} << count) - 1;
    return FromBits(_mm512_maskz_loadu_epi16(mask, data + o * stride + k));
  }
  ChunkOfWeights Row(int64_t o) const { return {data + o * stride, stride, begin, n}; }
  Inputs InputsOf(const MatMulArgs& args, int row) const {
    const int64_t width = PackedWidth(args.w.cols);
    const int in_group = row % kPackRows;
    return {args.x + (row - in_group) * width + in_group * (width / 2) + begin / 2, width / 2, n};
  }
  // Asks for as much of the next O outputs: as Stored does, or the same inputs.
  template <int O, int Step>
  void Fetch(int64_t k) const {
    static_assert(Step * sizeof(*data) == 64);
    const uint16_t* from = data + O * stride + (InOrder ? (O - 1) * begin + O * k : k);
    const int64_t pitch = InOrder ? Step : stride;
#pragma GCC unroll 16
    for (int o = 0; o < O; ++o) __builtin_prefetch(from + o * pitch, 0, 3);
  }
};

// All rows for O outputs and one chunk. Tiles end where groups of packed rows do.
template <int O, int R, bool InOrder>
void Chunk(const MatMulArgs& args, int64_t output, int64_t begin) {
  MatMulArgs part = args;
  if (begin > 0) {
    part.bias = nullptr;
    part.add = true;
  }
  const int64_t cols = args.w.cols;
  using Weights = ChunkOfWeights<InOrder>;
  const Weights weights(static_cast<const uint16_t*>(args.w.data) + begin, cols, begin,
                        cols - begin < kChunk ? cols - begin : kChunk);
  for (int row = 0; row < args.rows; row += kPackRows) {
    const int end = row + kPackRows < args.rows ? row + kPackRows : args.rows;
    const int tiles = (end - row + R - 1) / R;
    const int most = (end - row + tiles - 1) / tiles;
    if (row == 0) {
      RowsFrom<Weights, O, R, true>(part, weights, output, row, end, most);
    } else {
      RowsFrom<Weights, O, R, false>(part, weights, output, row, end, most);
    }
  }
}

// All chunks for O outputs.
template <int O, int R>
void Chunks(const MatMulArgs& args, int64_t output) {
  for (int64_t k = 0; k < args.w.cols; k += kChunk) Chunk<O, R, true>(args, output, k);
}

void MatMulRounded(const MatMulArgs& args, int64_t begin, int64_t end) {
  if (args.w.type != WeightType::kBf16) return kAvx512VnniKernels.matmul(args, begin, end);
  constexpr int kWide = Vec::kOutputsFewRows, kOutputs = Vec::kOutputs;
  if (args.rows <= kPackRows) {
    // Few rows wait for weights from memory, which come best one row of them after the other.
    if (args.rows <= Vec::kFewRows) {
      for (; begin + kWide <= end; begin += kWide) Chunks<kWide, Vec::kFewRows>(args, begin);
    }
    for (; begin + kOutputs <= end; begin += kOutputs) Chunks<kOutputs, Vec::kRows>(args, begin);
    for (; begin < end; ++begin) Chunks<1, 1>(args, begin);
    return;
  }
  for (int64_t k = 0; k < args.w.cols; k += kChunk) {
    int64_t output = begin;
    for (; output + kOutputs <= end; output += kOutputs) {
      Chunk<kOutputs, Vec::kRows, false>(args, output, k);
    }
    for (; output < end; ++output) Chunk<1, 1, false>(args, output, k);
  }
}

// ---- Attention ----

struct RoundedKeys : Rounded {
  RoundedKeys(const float* from, int64_t row) : data(from), stride(row) {}
  const float* data;
  int64_t stride;
  Vec Load(int o, int64_t k) const { return LoadN(o, k, kStep); }
  Vec LoadN(int o, int64_t k, int n) const {
    __m512 x0, x1;
    amx::Load32(data + o * stride + k, n, x0, x1);
    return FromBits(amx::Brain(x1, x0));
  }
};

// Queries, keys, what softmax makes of their products, and values are rounded.
struct RoundedAttention {
  using Keys = RoundedKeys;
  static constexpr int64_t kPositions = 2;
  static int64_t QueryStride(int64_t head_dim) { return PackedWidth(head_dim) / 2; }
  static void PackQuery(const float* q, int64_t head_dim, float* out) {
    RoundRow(q, head_dim, out);
  }

  // Whether the first position is the second one of a pair.
  static int64_t Odd(const Query& query) { return (query.row->first + query.skipped) & 1; }

  // From n floats to as many bf16 numbers, behind a zero where the first one is of an odd position.
  // What is written never overtakes what is read.
  static void PackScores(const Query& query, int64_t n) {
    auto* out = reinterpret_cast<uint16_t*>(query.scores);
    __m512i last = _mm512_setzero_si512();
    const int64_t odd = Odd(query);
    for (int64_t k = 0; k < n + odd; k += amx::kStep) {
      __m512 x0, x1;
      amx::Load32(query.scores + k, n - k, x0, x1);
      const __m512i pairs = amx::Brain(x1, x0);
      if (odd != 0) {
        // One number further, after the last one of the block before.
        alignas(64) static constexpr uint16_t kOrder[32] = {
            63, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
            15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
        _mm512_storeu_si512(out + k,
                            _mm512_permutex2var_epi16(pairs, _mm512_load_si512(kOrder), last));
      } else {
        _mm512_storeu_si512(out + k, pairs);
      }
      last = pairs;
    }
  }

  // As Exact::WeightedSum.
  template <int R, int B>
  static void WeightedSum(const AttentionArgs& a, const Query* queries, int offset, int last,
                          int64_t begin, int64_t end) {
    alignas(64) static constexpr uint16_t kInterleave[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    alignas(64) static constexpr float kZeros[B * kLanes] = {};
    const char* p[R];  // the pair of position j at p + 2 * j
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      p[r] = reinterpret_cast<const char*>(queries[r].scores) -
             2 * (queries[r].row->first - Odd(queries[r]));
    }
    AddToOutputs<R, B>(
        queries, offset, last, [&](Vec * acc) __attribute__((always_inline)) {
          const __m512i interleave = _mm512_load_si512(kInterleave);
          const auto add = [&](const float* even, const float* odd, int64_t j)
              __attribute__((always_inline)) {
            Vec v[B];
#pragma GCC unroll 8
            for (int b = 0; b < B; ++b) {
              const int n = b == B - 1 ? last : kLanes;
              v[b] = FromBits(_mm512_permutexvar_epi16(
                  interleave, amx::Brain(LoadUpTo(odd + b * kLanes, n).lanes,
                                         LoadUpTo(even + b * kLanes, n).lanes)));
            }
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
              int32_t pair;
              __builtin_memcpy(&pair, p[r] + 2 * j, sizeof pair);
              const Vec weight = FromBits(_mm512_set1_epi32(pair));
#pragma GCC unroll 8
              for (int b = 0; b < B; ++b) acc[r * B + b] = Dot(weight, v[b], acc[r * B + b]);
            }
          };
          const float* values = a.values + offset;
          const AttentionRow& row = *queries[0].row;
          const auto at = [&](int64_t j) -> const float* {
            if (j < begin || j >= end) return kZeros;
            if (j >= row.prefix) return values + SlotOffset(a, row.extra[j - row.prefix]);
            return values + a.pages[j >> kKvPageShift] * a.page_stride +
                   (j & (kKvPage - 1)) * a.head_dim;
          };
          const int64_t whole = end < row.prefix ? end : row.prefix;
          for (int64_t j = begin - ((begin + queries[0].skipped) & 1); j < end;) {
            if (j >= begin && (j & (kKvPage - 1)) == 0 && j + kKvPage <= whole) {
              const float* value = at(j);
              for (const int64_t next = j + kKvPage; j < next; j += 2, value += 2 * a.head_dim) {
                add(value, value + a.head_dim, j);
              }
              continue;
            }
            add(at(j), at(j + 1), j);
            j += 2;
          }
        });
  }
};

constexpr KernelSet Table() {
  KernelSet set = TableNamed<kVnniIntegers>("avx512-bf16");
  set.pack = PackRounded;
  set.matmul = MatMulRounded;
  set.attention = Attention<RoundedAttention>;
  return set;
}

}  // namespace

const KernelSet kAvx512Bf16Kernels = Table();

}  // namespace pawl
