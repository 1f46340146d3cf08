// The products of integers.h, written once over the lanes of an instruction set. A variant
// (integers_portable.cc, integers_avx2.cc, integers_vnni.cc) defines in an unnamed namespace
//   kLanes         how many rows of a tile of weights are multiplied at a time: 8 or 16
//   Ints, Floats   that many 32-bit integers or floats
//   Bytes          that many fours of bytes
//   kRows          input rows that are multiplied with weights while these are in a register
//   Zero, Set1, SetInts, Load, Store, Halves (of half-precision numbers), ToFloats,
//   +, *, Fma(a, b, c) = ab + c of Floats
//   LoadBytes, SetBytes, &, | of Bytes
//   Shift<n>(a)    16-bit numbers to the right by n bits, to the left by -n: what crosses a byte is
//                  masked away behind it
//   LoadTable(p)   16 signed bytes; Lookup(table, index) those at the indices, each below 16
//   Wide(a)        bytes as kI8 has them, 128 too large
// The last three may leave bytes as they are, 128 too large, or bring them to their signed values.
//   kOffset8       whether they do the former
//   Factor<kMost>, Prepare<kMost>(a)
//                  bytes as they are multiplied: unsigned ones of at most kMost, or (kMost = 255)
//                  those of Lookup and Wide
//   Sum<kMost>     sums that are not widened to 32 bits yet, and how many products each may add:
//                  kRoom<kMost>
//   Begin<kMost>(ints), Add(sum, factor, input, j), End(sum, ints)
//                  a Sum beside the ints that it will be added to; the products with four j of an
//                  input added; the ints with the sum
//   LargestBits(x)  the largest of the bits of 32 floats, as integers without their signs
//   Round(x, factor, q)  32 floats times `factor` to the nearest integers, ties to even
// and includes this file, which defines everything inside that namespace too, for the reason that
// kernels_inl.h gives. A format of weights is one line of MatMul at the end.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/integers.h"

namespace pawl {
namespace {

// ---- Inputs ----

void Quantize(const float* x, InputBlock* block) {
  const int bits = LargestBits(x);
  float largest, factor = 0.0f;
  std::memcpy(&largest, &bits, sizeof largest);
  block->scale = largest / 127.0f;
  if (bits >= 0x7f800000) {
    block->scale = __builtin_nanf("");
  } else if (largest < 0x1p-100f) {  // 127 over it might be infinite
    block->scale = 0.0f;
  } else {
    factor = 127.0f / largest;
  }
  if (factor != 0.0f) {
    Round(x, factor, block->q);
  } else {
    std::memset(block->q, 0, sizeof block->q);
  }
  int sums[2] = {0, 0};
  for (int i = 0; i < kQuantBlock; ++i) sums[i / 16] += block->q[i];
  block->sum = static_cast<float>(sums[0] + sums[1]) * block->scale;
  block->start4 = (sums[0] + sums[1]) * -8;
  block->start5 = (sums[0] + sums[1]) * -16;
  block->start8 = (sums[0] + sums[1]) * -128;
  block->start6_half[0] = sums[0] * -32;
  block->start6_half[1] = sums[1] * -32;
  block->unused = 0;
}

// Blocks of the rows of a group of kPackRows lie one row behind the other.
void Pack(const float* x, int64_t x_stride, int rows, int64_t n, float* out) {
  const int64_t blocks = QuantBlocks(n);
  for (int r = 0; r < rows; ++r) {
    auto* block = reinterpret_cast<InputBlock*>(out + r / kPackRows * kPackRows * PackedWidth(n)) +
                  r % kPackRows * blocks;
    const float* row = x + r * x_stride;
    for (int64_t k = 0; k < n; k += kQuantBlock, ++block) {
      if (k + kQuantBlock <= n) {
        Quantize(row + k, block);
      } else {
        float padded[kQuantBlock] = {};
        for (int64_t i = k; i < n; ++i) padded[i - k] = row[i];
        Quantize(padded, block);
      }
    }
  }
}

// ---- Products ----

// What there is to know about a matrix while the code is compiled. kHalves: groups of 16.
template <int kBitsEach, bool kHalfGroups, bool kMinimums, bool kWithTable>
struct Format {
  static constexpr int kBits = kBitsEach;
  static constexpr bool kHalves = kHalfGroups, kMins = kMinimums, kTable = kWithTable;
  static constexpr bool kWide = kBits == 8 || kTable;
  static constexpr int kMost = kWide ? 255 : (1 << kBits) - 1;
  // What the bytes that are multiplied exceed the weights by.
  static constexpr int kOffset = kMins ? 0 : kWide ? (kOffset8 ? 128 : 0) : 1 << (kBits - 1);
  // The planes of integers.h, and the first vector of each.
  static constexpr bool kNibbles = kBits >= 4 && kBits < 8, kPairs = (kBits & 2) != 0;
  static constexpr bool kSingles = (kBits & 1) != 0;
  static constexpr int kPairsAt = kNibbles ? 4 : 0, kSinglesAt = kBits - 1;
};

// f(Number<first>()), ..., f(Number<last - 1>())
template <int kValue>
struct Number {
  static constexpr int value = kValue;
};
template <int kFirst, int kLast, typename F>
__attribute__((always_inline)) inline void For(const F& f) {
  if constexpr (kFirst < kLast) {
    f(Number<kFirst>());
    For<kFirst + 1, kLast>(f);
  }
}

// The bits of plane `vector` that begin at bit kFrom of a byte, kWidth of them, at bit kTo.
template <int kFrom, int kWidth, int kTo>
__attribute__((always_inline)) inline Bytes FieldOf(const uint8_t* vector) {
  constexpr int kMask = ((1 << kWidth) - 1) << kTo;
  Bytes bytes = LoadBytes(vector);
  if constexpr (kFrom != kTo) bytes = Shift<kFrom - kTo>(bytes);
  return bytes & SetBytes(kMask);
}

// The bytes of four j of a block.
template <typename F, int j>
__attribute__((always_inline)) inline Bytes BytesOf(const uint8_t* block, const Bytes& table) {
  if constexpr (F::kBits == 8) {
    return Wide(LoadBytes(block + j * 64));
  } else {
    Bytes bytes;
    if constexpr (F::kNibbles) {
      bytes = FieldOf<j / 4 * 4, 4, 0>(block + j % 4 * 64);
    }
    if constexpr (F::kPairs) {
      const Bytes pairs = FieldOf<j % 4 * 2, 2, F::kPairsAt>(block + (F::kPairsAt + j / 4) * 64);
      if constexpr (F::kNibbles) {
        bytes = bytes | pairs;
      } else {
        bytes = pairs;
      }
    }
    if constexpr (F::kSingles) {
      bytes = bytes | FieldOf<j, 1, F::kSinglesAt>(block + F::kSinglesAt * 64);
    }
    if constexpr (F::kTable) bytes = Lookup(table, bytes);
    return bytes;
  }
}

// Adds to sums[r] the exact sums over the fours kFirst .. kLast-1 of a block, for the R inputs x,
// x + pitch, ...
template <typename F, int kFirst, int kLast, int R>
__attribute__((always_inline)) inline void Dots(const uint8_t* block, const Bytes& table,
                                                const InputBlock* x, int64_t pitch, Ints* sums) {
  if constexpr (kFirst < kLast) {
    constexpr int kNext = kLast - kFirst < kRoom<F::kMost> ? kLast : kFirst + kRoom<F::kMost>;
    Sum<F::kMost> sum[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[r] = Begin<F::kMost>(sums[r]);
    For<kFirst, kNext>([&](auto j) __attribute__((always_inline)) {
      constexpr int kFour = decltype(j)::value;
      const Factor<F::kMost> weights = Prepare<F::kMost>(BytesOf<F, kFour>(block, table));
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) Add(sum[r], weights, x[r * pitch], kFour);
    });
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sums[r] = End(sum[r], sums[r]);
    Dots<F, kNext, kLast, R>(block, table, x, pitch, sums);
  }
}

// What the sums over half h of an input, or (h = 2) over all of it, start from.
template <typename F>
__attribute__((always_inline)) inline int StartOf(const InputBlock& input, int h) {
  if constexpr (F::kOffset == 0) return 0;
  if constexpr (F::kHalves) {
    if constexpr (F::kOffset > 32) return input.start6_half[h] * (F::kOffset / 32);
    return input.start6_half[h] / (F::kOffset < 32 ? 32 / F::kOffset : 1);  // without a rest
  }
  if constexpr (F::kOffset == 8) return input.start4;
  if constexpr (F::kOffset == 16) return input.start5;
  static_assert(F::kHalves || F::kOffset == 0 || F::kOffset == 8 || F::kOffset == 16 ||
                F::kOffset == 128);
  return input.start8;
}

// The sum of what half h of an input, or all of it, is worth.
template <typename F>
__attribute__((always_inline)) inline float WorthOf(const InputBlock& input, int h) {
  if constexpr (!F::kHalves) return input.sum;
  return static_cast<float>(input.start6_half[h] / -32) * input.scale;
}

// Weights are asked for before they are read. Where a tile is read once, so many bytes ahead, over
// the end of a tile into the next one, where the processor's own guesses begin anew with each page.
constexpr int64_t kAhead = 4096;

// What a pass over a tile asks memory for: `lines` cache lines from `from` on, for each block.
struct Ahead {
  int64_t from;
  int64_t lines;
};

constexpr int64_t PartOf(int64_t lines, int parts) { return (lines + parts - 1) / parts; }

// Passes over a tile: for some input rows, and for a part of its outputs where these are more than
// a vector has. Memory would be idle in all passes but the first, so each of them asks for its
// share of the next tile, or the first few do if there are many.
inline Ahead AheadOf(int pass, int passes, int64_t lines, int64_t blocks) {
  if (passes == 1) return {kAhead, lines};
  const int64_t share = PartOf(lines, passes <= 3 ? 2 : 4);
  return {(blocks * lines + pass * share) * 64, pass * share < lines ? share : 0};
}

template <int kLines>
inline void Prefetch(const uint8_t* weights) {
#pragma GCC unroll 8
  for (int line = 0; line < kLines; ++line) __builtin_prefetch(weights + line * 64, 0, 2);
}

// R input rows from `row` on times a part of the sixteen rows of a tile of weights. REQUIRES: the
// rows are of one group of kPackRows.
template <typename F, int R>
inline void Tile(const MatMulArgs& args, int64_t tile, int part, int row, Ahead ahead,
                 Floats* sums) {
  const Matrix& m = args.w;
  const int64_t blocks = QuantBlocks(m.cols);
  constexpr int kLines = F::kBits, kBytes = kLines * 64;
  const int lane = part * kLanes;
  const auto* weights = static_cast<const uint8_t*>(m.data) + tile * blocks * kBytes;
  const uint16_t* scales = m.scales + tile * m.groups * kQuantTile + lane;
  const uint16_t* minimums = F::kMins ? m.minimums + tile * m.groups * kQuantTile + lane : nullptr;
  const auto* x = reinterpret_cast<const InputBlock*>(args.x + row / kPackRows * kPackRows *
                                                                   PackedWidth(m.cols)) +
                  row % kPackRows * blocks;
  const int skip = F::kHalves ? 0 : m.group_shift - 5;
  Bytes table = {};
  if constexpr (F::kTable) table = LoadTable(m.table);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sums[r] = Zero();
  for (int64_t b = 0; b < blocks; ++b, weights += kBytes, ++x) {
    if (ahead.lines == kLines) {
      Prefetch<kLines>(weights + ahead.from);
    } else if (ahead.lines == PartOf(kLines, 2)) {
      Prefetch<PartOf(kLines, 2)>(weights + ahead.from);
    } else if (ahead.lines == PartOf(kLines, 4)) {
      Prefetch<PartOf(kLines, 4)>(weights + ahead.from);
    }
    // The fours kFirst .. kLast-1, which are of one group: half h of the block, or all of it.
    const auto add = [&](auto first, auto last, int h, int64_t group)
        __attribute__((always_inline)) {
      Ints dots[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) dots[r] = SetInts(StartOf<F>(x[r * blocks], h));
      Dots<F, decltype(first)::value, decltype(last)::value, R>(weights + lane * 4, table, x,
                                                                blocks, dots);
      const Floats scale = Halves(scales + group * kQuantTile);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        sums[r] = Fma(ToFloats(dots[r]), scale * Set1(x[r * blocks].scale), sums[r]);
      }
      if constexpr (F::kMins) {
        const Floats minimum = Halves(minimums + group * kQuantTile);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          sums[r] = Fma(minimum, Set1(WorthOf<F>(x[r * blocks], h)), sums[r]);
        }
      }
    };
    if constexpr (F::kHalves) {
      add(Number<0>(), Number<4>(), 0, 2 * b);
      add(Number<4>(), Number<8>(), 1, 2 * b + 1);
    } else {
      add(Number<0>(), Number<8>(), 2, b >> skip);
    }
  }
}

// Outputs, from begin to end - 1, of a matrix product.
struct Span {
  int64_t begin, end;
};

// The same for `count` rows, to y, as far as the outputs are asked for.
template <typename F, int R>
inline void TileToOutput(const MatMulArgs& args, int64_t tile, int part, int row, int count,
                         Ahead ahead, Span outputs) {
  if constexpr (R > 1) {
    if (count < R) {
      return TileToOutput<F, R - 1>(args, tile, part, row, count, ahead, outputs);
    }
  }
  Floats sums[R];
  Tile<F, R>(args, tile, part, row, ahead, sums);
  const int64_t first = tile * kQuantTile + part * kLanes;
  const bool whole = outputs.begin <= first && outputs.end >= first + kLanes;
  for (int r = 0; r < R; ++r) {
    const int64_t y_row = args.y_rows != nullptr ? args.y_rows[row + r] : row + r;
    float* y = args.y + y_row * args.y_stride + first;
    if (whole) {
      Floats value = sums[r];
      if (args.bias != nullptr) value = value + Load(args.bias + first);
      Store(y, args.add ? Load(y) + value : value);
      continue;
    }
    float values[kLanes];
    Store(values, sums[r]);
    for (int64_t o = outputs.begin > first ? outputs.begin - first : 0;
         o < kLanes && first + o < outputs.end; ++o) {
      float value = values[o];
      if (args.bias != nullptr) value += args.bias[first + o];
      y[o] = args.add ? y[o] + value : value;
    }
  }
}

template <typename F>
void MatMulAs(const MatMulArgs& args, int64_t begin, int64_t end) {
  static_assert(kPackRows % kRows == 0 && kQuantTile % kLanes == 0);
  constexpr int kParts = kQuantTile / kLanes;
  const int64_t blocks = QuantBlocks(args.w.cols);
  const int passes = kParts * ((args.rows + kRows - 1) / kRows);
  for (int64_t tile = begin / kQuantTile; tile * kQuantTile < end; ++tile) {
    int pass = 0;
    for (int row = 0; row < args.rows; row += kRows) {
      const int count = args.rows - row < kRows ? args.rows - row : kRows;
      for (int part = 0; part < kParts; ++part, ++pass) {
        TileToOutput<F, kRows>(args, tile, part, row, count,
                               AheadOf(pass, passes, F::kBits, blocks), {begin, end});
      }
    }
  }
}

template <int kBits, bool kHalves, bool kMins, bool kTable = false>
void MatMulOf(const MatMulArgs& args, int64_t begin, int64_t end) {
  MatMulAs<Format<kBits, kHalves, kMins, kTable>>(args, begin, end);
}

void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  const Matrix& w = args.w;
  const bool minimums = w.minimums != nullptr;
  switch (w.type) {
    case WeightType::kI6:
      return MatMulOf<6, true, false>(args, begin, end);
    case WeightType::kI5:
      if (minimums) return MatMulOf<5, false, true>(args, begin, end);
      return MatMulOf<5, false, false>(args, begin, end);
    case WeightType::kI4:
      if (w.table != nullptr && w.group_shift == 4) {
        return MatMulOf<4, true, false, true>(args, begin, end);
      }
      if (w.table != nullptr) return MatMulOf<4, false, false, true>(args, begin, end);
      if (minimums) return MatMulOf<4, false, true>(args, begin, end);
      return MatMulOf<4, false, false>(args, begin, end);
    case WeightType::kI3:
      return MatMulOf<3, true, false>(args, begin, end);
    case WeightType::kI2:
      return MatMulOf<2, true, true>(args, begin, end);
    default:
      return MatMulOf<8, false, false>(args, begin, end);
  }
}

}  // namespace
}  // namespace pawl
