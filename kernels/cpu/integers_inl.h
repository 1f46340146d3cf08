// The products of integers.h, written once over the lanes of an instruction set. A variant
// (integers_portable.cc, integers_avx2.cc, integers_vnni.cc, integers_neon*.cc) defines in an
// unnamed namespace
//   kLanes         how many rows of a tile of weights are multiplied at a time: 8 or 16
//   Ints, Floats   that many 32-bit integers or floats
//   Bytes          that many fours of bytes
//   kRows          input rows that are multiplied with weights while these are in a register
//   Zero, Set1, SetInts, Load, Store, Halves (of half-precision numbers),
//   StepIntegers, StepE4m3, StepPowers   what the bytes of steps stand for (StepKind)
//   +, -, *, Fma(a, b, c) = ab + c of Floats
//   Scaled(ints, scale, shift)
//                  ints above kZero as floats, times scale, rounded once; shift is -kZeroFloat
//                  scale
//   LoadBytes, StoreBytes, SetBytes, &, |, Plus of Bytes
//   Shift<n>(a)    16-bit numbers to the right by n bits, to the left by -n: what crosses a byte is
//                  masked away behind it
//   LoadTable(p)   16 signed bytes; Lookup(table, index) those at the indices, each below 16
//   Wide(a)        bytes as kI8 has them, 128 too large
// The last three may leave bytes as they are, 128 too large, or bring them to their signed values.
//   kOffset8       whether they do the former
//   kHalfOffset    what the bytes of groups of 16 that are no table's exceed the weights by, at
//   least
//                  32
//   Factor<kMost>, Prepare<kMost>(a)
//                  bytes as they are multiplied: unsigned ones of at most kMost, or (kMost = 255)
//                  those of Lookup and Wide
//   Sum<kMost>     sums that are not widened to 32 bits yet, and how many products each may add:
//                  kRoom<kMost>
//   Begin<kMost>(ints), Add(sum, factor, input, j), End(sum, ints)
//                  a Sum next to the ints that it will be added to; the products with four j of an
//                  input added; the ints with the sum
//   kRowPairs      whether two input rows are multiplied at a time where there are so many, with
//                  JoinFours(bytes, bytes) of two fours: two Bytes, `half`; BeginPair(rows),
//                  AddPair(sum, weights, input, input, j) and EndPair(sum, ints, ints)
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
  const int sum = sums[0] + sums[1];
  block->sum = static_cast<float>(sum) * block->scale;
  block->sum_second = static_cast<float>(sums[1]) * block->scale;
  block->start4 = kZero - 8 * sum;
  block->start5 = kZero - 16 * sum;
  block->start8 = kZero - 128 * sum;
  for (int h = 0; h < 2; ++h) block->start_half[h] = kZero - kHalfOffset * sums[h];
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

// What there is to know about a matrix while the code is compiled: its bits, and these.
enum : int {
  kPlain = 0,
  kGroupsOf16 = 1,
  kWithMinimums = 2,
  kWithTable = 4,
  kWithIntegers = 8,  // as steps; so are the next two
  kWithE4m3 = 16,
  kWithPowers = 32
};
template <int kBitsEach, int kTraits>
struct Format {
  static constexpr int kBits = kBitsEach;
  static constexpr bool kHalves = kTraits & kGroupsOf16, kMins = kTraits & kWithMinimums;
  static constexpr bool kTable = kTraits & kWithTable;
  static constexpr bool kE4m3 = kTraits & kWithE4m3, kPowers = kTraits & kWithPowers;
  static constexpr bool kSteps = kE4m3 || kPowers || (kTraits & kWithIntegers);
  static constexpr bool kWide = kBits == 8 || kTable;
  // What the bytes that are multiplied exceed the weights by, and the stored integers.
  static constexpr int kOffset = kMins     ? 0
                                 : kWide   ? (kOffset8 ? 128 : 0)
                                 : kHalves ? kHalfOffset
                                           : 1 << (kBits - 1);
  static constexpr int kAdded = kHalves && !kMins && !kWide ? kOffset - (1 << (kBits - 1)) : 0;
  static constexpr int kMost = kWide ? 255 : (1 << kBits) - 1 + kAdded;
  // The planes of integers.h, and the first vector of each.
  static constexpr bool kNibbles = kBits >= 4 && kBits < 8, kPairs = (kBits & 2) != 0;
  static constexpr bool kSingles = (kBits & 1) != 0;
  static constexpr int kPairsAt = kNibbles ? 4 : 0, kSinglesAt = kBits - 1;
  static constexpr bool kUnpacked = false;
  static constexpr int kBlockBytes = kBits * 64;
};

// The same after `Unpack`: bytes.
template <typename F>
struct Unpacked : F {
  static constexpr bool kUnpacked = true;
  static constexpr int kBlockBytes = 8 * 64;
};

// f(Number<first>()), ..., f(Number<last - 1>())
template <int kValue>
struct Number {
  static constexpr int value = kValue;
  constexpr operator int() const { return kValue; }
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
  if constexpr (F::kUnpacked) {
    return LoadBytes(block + j * 64);
  } else if constexpr (F::kBits == 8) {
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
    if constexpr (F::kAdded != 0) bytes = Plus(bytes, SetBytes(F::kAdded));
    return bytes;
  }
}

// Two fours of a block, for two input rows at a time. Unpacked ones lie so.
template <typename F, int kFour>
__attribute__((always_inline)) inline auto PairOf(const uint8_t* block, const Bytes& table) {
  const auto even = BytesOf<F, kFour>(block, table), odd = BytesOf<F, kFour + 1>(block, table);
  if constexpr (F::kUnpacked) {
    return decltype(JoinFours(even, odd)){{even, odd}};
  } else {
    return JoinFours(even, odd);
  }
}

// Adds to sums[r] the exact sums over the fours kFirst .. kLast-1 of a block, for the R inputs x,
// x + pitch, ...
template <typename F, int kFirst, int kLast, int R>
__attribute__((always_inline)) inline void Dots(const uint8_t* block, const Bytes& table,
                                                const InputBlock* x, int64_t pitch, Ints* sums) {
  if constexpr (kRowPairs && R % 2 == 0) {
    decltype(BeginPair(Number<R>())) sum[R / 2];
#pragma GCC unroll 16
    for (int r = 0; r < R / 2; ++r) sum[r] = BeginPair(Number<R>());
    For<kFirst / 2, kLast / 2>([&](auto two) __attribute__((always_inline)) {
      constexpr int kFour = 2 * decltype(two)::value;
      const auto weights = PairOf<F, kFour>(block, table);
#pragma GCC unroll 16
      for (int r = 0; r < R; r += 2) {
        AddPair(sum[r / 2], weights, x[r * pitch], x[(r + 1) * pitch], kFour);
      }
    });
#pragma GCC unroll 16
    for (int r = 0; r < R; r += 2) EndPair(sum[r / 2], sums[r], sums[r + 1]);
  } else if constexpr (kFirst < kLast) {
    constexpr int kNext = kLast - kFirst < kRoom<F::kMost> ? kLast : kFirst + kRoom<F::kMost>;
    Sum<F::kMost> sum[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[r] = Begin<F::kMost>(sums[r]);
    For<kFirst, kNext>([&](auto j) __attribute__((always_inline)) {
      constexpr int kFour = decltype(j)::value;
      const Factor<F::kMost> weights = Prepare<F::kMost>(BytesOf<F, kFour>(block, table));
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) Add(sum[r], weights, x[r * pitch], j);
    });
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sums[r] = End(sum[r], sums[r]);
    Dots<F, kNext, kLast, R>(block, table, x, pitch, sums);
  }
}

// What the sums over half h of an input, or (h = 2) over all of it, start from.
template <typename F>
__attribute__((always_inline)) inline int StartOf(const InputBlock& input, int h) {
  if constexpr (F::kOffset == 0) return kZero;
  if constexpr (F::kHalves) return input.start_half[h];
  if constexpr (F::kOffset == 8) return input.start4;
  if constexpr (F::kOffset == 16) return input.start5;
  static_assert(F::kHalves ? F::kOffset == 0 || F::kOffset == kHalfOffset
                           : F::kOffset % 8 == 0 && (F::kOffset <= 16 || F::kOffset == 128));
  return input.start8;
}

// Weights are asked for before they are read. Where a tile is read once, so many bytes ahead, over
// the end of a tile into the next one, where the processor's own guesses start again with each
// page.
constexpr int64_t kAhead = 8192;

// What a pass over a tile asks memory for: `lines` cache lines for each block, those of the first
// one from `from` on.
struct Ahead {
  const uint8_t* from;
  int64_t lines;
};

constexpr int64_t PartOf(int64_t lines, int parts) { return (lines + parts - 1) / parts; }

// Passes over a tile: for some input rows, and for a part of its outputs where these are more than
// a vector has. Memory would be idle in all passes but the first, so each of them asks for its
// share of the weights behind these blocks, or the first few do if there are many.
inline Ahead AheadOf(int pass, int passes, int64_t lines, const uint8_t* weights, int64_t blocks) {
  if (passes == 1) return {weights + kAhead, lines};
  const int64_t share = PartOf(lines, passes <= 3 ? 2 : 4);
  return {weights + (blocks * lines + pass * share) * 64, pass * share < lines ? share : 0};
}

// To the first level of cache (kLevel 3), or to the second, where more lines are asked for than the
// first one holds until they are read (kLevel 2).
template <int kLines, int kLevel = 2>
inline void Prefetch(const uint8_t* weights) {
#pragma GCC unroll 8
  for (int line = 0; line < kLines; ++line) __builtin_prefetch(weights + line * 64, 0, kLevel);
}

// Blocks of a matrix, or outputs of a product, from begin to end - 1.
struct Span {
  int64_t begin, end;
};

// Adds to `sums` R input rows from `row` on times some blocks of a part of the sixteen rows of a
// tile. `weights` are those of the first block. REQUIRES: the rows are of one group of kPackRows.
template <typename F, int R>
inline void Tile(const MatMulArgs& args, const uint8_t* weights, Span blocks, int64_t tile,
                 int part, int row, Ahead ahead, Floats* sums) {
  const Matrix& m = args.w;
  const int64_t pitch = QuantBlocks(m.cols);
  constexpr int kLines = F::kBits;
  const int lane = part * kLanes;
  const int64_t tables = tile * m.groups * kQuantTile + lane;
  // Of group g, a scale or a minimum.
  Floats factor = {}, minimum_factor = {};
  const auto number = [&](const uint16_t* halves, const uint8_t* steps, const Floats& by, int64_t g)
      __attribute__((always_inline)) {
    if constexpr (!F::kSteps) return Halves(halves + tables + g * kQuantTile);
    const uint8_t* from = steps + tables + g * kQuantTile;
    if constexpr (F::kE4m3) return StepE4m3(from) * by;
    if constexpr (F::kPowers) return StepPowers(from) * by;
    return StepIntegers(from) * by;
  };
  const auto* x = reinterpret_cast<const InputBlock*>(args.x + row / kPackRows * kPackRows *
                                                                   PackedWidth(m.cols)) +
                  row % kPackRows * pitch + blocks.begin;
  const int skip = F::kHalves ? 0 : m.group_shift - 5;
  Bytes table = {};
  if constexpr (F::kTable && !F::kUnpacked) table = LoadTable(m.table);
  for (int64_t b = blocks.begin; b < blocks.end; ++b, weights += F::kBlockBytes, ++x) {
    if (ahead.lines == kLines) {
      Prefetch<kLines, 3>(ahead.from);
    } else if (ahead.lines == PartOf(kLines, 2)) {
      Prefetch<PartOf(kLines, 2)>(ahead.from);
    } else if (ahead.lines == PartOf(kLines, 4)) {
      Prefetch<PartOf(kLines, 4)>(ahead.from);
    }
    ahead.from += kLines * 64;
    if (F::kSteps && b % (kStepsBlock / kQuantBlock) == 0) {
      const int64_t at = (tile * StepBlocks(m) + b * kQuantBlock / kStepsBlock) * kQuantTile + lane;
      factor = Load(m.factors + at);
      if constexpr (F::kMins) minimum_factor = Load(m.minimum_factors + at);
    }
    // The fours kFirst .. kLast-1, which are of one group: half h of the block, or all of it.
    const auto add = [&](auto first, auto last, int h, int64_t group)
        __attribute__((always_inline)) {
      Ints dots[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) dots[r] = SetInts(StartOf<F>(x[r * pitch], h));
      Dots<F, decltype(first)::value, decltype(last)::value, R>(weights + lane * 4, table, x, pitch,
                                                                dots);
      const Floats scale = number(m.scales, m.steps, factor, group);
      const Floats shift = scale * Set1(-kZeroFloat);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        sums[r] = Fma(Scaled(dots[r], scale, shift), Set1(x[r * pitch].scale), sums[r]);
      }
    };
    // The minimum of a group times the sum of its inputs.
    const auto add_minimum = [&](const Floats& minimum, float InputBlock::*sum)
        __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sums[r] = Fma(minimum, Set1(x[r * pitch].*sum), sums[r]);
    };
    if constexpr (F::kHalves) {
      add(Number<0>(), Number<4>(), 0, 2 * b);
      add(Number<4>(), Number<8>(), 1, 2 * b + 1);
    } else {
      add(Number<0>(), Number<8>(), 2, b >> skip);
    }
    if constexpr (F::kMins) {
      const auto minimum = [&](int64_t g) __attribute__((always_inline)) {
        return number(m.minimums, m.minimum_steps, minimum_factor, g);
      };
      const Floats first = minimum(F::kHalves ? 2 * b : b >> skip);
      add_minimum(first, &InputBlock::sum);
      if constexpr (F::kHalves) add_minimum(minimum(2 * b + 1) - first, &InputBlock::sum_second);
    }
  }
}

// Sums of one row, to y, as far as the outputs are asked for.
inline void Output(const MatMulArgs& args, int64_t first, int row, const Floats& sums,
                   Span outputs) {
  const int64_t y_row = args.y_rows != nullptr ? args.y_rows[row] : row;
  float* y = args.y + y_row * args.y_stride + first;
  if (outputs.begin <= first && outputs.end >= first + kLanes) {
    Floats value = sums;
    if (args.bias != nullptr) value = value + Load(args.bias + first);
    return Store(y, args.add ? Load(y) + value : value);
  }
  float values[kLanes];
  Store(values, sums);
  for (int64_t o = outputs.begin > first ? outputs.begin - first : 0;
       o < kLanes && first + o < outputs.end; ++o) {
    float value = values[o];
    if (args.bias != nullptr) value += args.bias[first + o];
    y[o] = args.add ? y[o] + value : value;
  }
}

template <typename F>
const uint8_t* WeightsOf(const Matrix& m, int64_t tile) {
  return static_cast<const uint8_t*>(m.data) + tile * QuantBlocks(m.cols) * F::kBlockBytes;
}

// `count` rows times a part of a tile.
template <typename F, int R>
inline void TileToOutput(const MatMulArgs& args, int64_t tile, int part, int row, int count,
                         Ahead ahead, Span outputs) {
  if constexpr (R > 1) {
    if (count < R) {
      return TileToOutput<F, R - 1>(args, tile, part, row, count, ahead, outputs);
    }
  }
  Floats sums[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sums[r] = Zero();
  Tile<F, R>(args, WeightsOf<F>(args.w, tile), {0, QuantBlocks(args.w.cols)}, tile, part, row,
             ahead, sums);
  for (int r = 0; r < R; ++r) {
    Output(args, tile * kQuantTile + part * kLanes, row + r, sums[r], outputs);
  }
}

constexpr int kParts = kQuantTile / kLanes;

// Where many rows come, integers are unpacked once for all of them: so many blocks at a time, which
// stay in the first level cache, and for so many rows at most.
constexpr int kPanelBlocks = 16, kPanelRows = 128;
static_assert(kPanelBlocks % (kStepsBlock / kQuantBlock) == 0);

template <typename F>
void Unpack(const Matrix& m, const uint8_t* weights, int64_t blocks, uint8_t* panel) {
  Bytes table = {};
  if constexpr (F::kTable) table = LoadTable(m.table);
  for (int64_t b = 0; b < blocks; ++b, weights += F::kBlockBytes) {
    for (int lane = 0; lane < kQuantTile; lane += kLanes, panel += kLanes * 4) {
      For<0, 8>([&](auto j) __attribute__((always_inline)) {
        constexpr int kFour = decltype(j)::value;
        if constexpr (!kRowPairs) {
          StoreBytes(panel + kFour * 64, BytesOf<F, kFour>(weights + lane * 4, table));
        } else if constexpr (kFour % 2 == 0) {
          const auto pair = PairOf<F, kFour>(weights + lane * 4, table);
          StoreBytes(panel + kFour * 64, pair.half[0]);
          StoreBytes(panel + kFour * 64 + 64, pair.half[1]);
        }
      });
    }
    panel += Unpacked<F>::kBlockBytes - 64;
  }
}

// The rows of `rows` times a tile. REQUIRES: they are at most kPanelRows, a multiple of kRows.
template <typename F>
void PanelToOutput(const MatMulArgs& args, int64_t tile, Span rows, Span outputs) {
  alignas(64) uint8_t panel[kPanelBlocks * Unpacked<F>::kBlockBytes];
  float kept[kPanelRows * kQuantTile];
  const int64_t blocks = QuantBlocks(args.w.cols);
  const int passes = static_cast<int>(kParts * (rows.end - rows.begin) / kRows);
  const uint8_t* weights = WeightsOf<F>(args.w, tile);
  for (int64_t b = 0; b < blocks; b += kPanelBlocks) {
    const int64_t end = b + kPanelBlocks < blocks ? b + kPanelBlocks : blocks;
    Unpack<F>(args.w, weights, end - b, panel);
    float* from = kept;
    for (int pass = 0; pass < passes; ++pass, from += kRows * kLanes) {
      Floats sums[kRows];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) sums[r] = b == 0 ? Zero() : Load(from + r * kLanes);
      const int row = static_cast<int>(rows.begin) + pass / kParts * kRows;
      Tile<Unpacked<F>, kRows>(args, panel, {b, end}, tile, pass % kParts, row,
                               AheadOf(pass, passes, F::kBits, weights, end - b), sums);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) Store(from + r * kLanes, sums[r]);
    }
    weights += (end - b) * F::kBlockBytes;
  }
  const float* from = kept;
  for (int pass = 0; pass < passes; ++pass) {
    const int row = static_cast<int>(rows.begin) + pass / kParts * kRows;
    for (int r = 0; r < kRows; ++r, from += kLanes) {
      Output(args, tile * kQuantTile + pass % kParts * kLanes, row + r, Load(from), outputs);
    }
  }
}

template <typename F>
void MatMulAs(const MatMulArgs& args, int64_t begin, int64_t end) {
  static_assert(kPackRows % kRows == 0 && kQuantTile % kLanes == 0 && kPanelRows % kRows == 0);
  const int64_t blocks = QuantBlocks(args.w.cols);
  const int in_panels = F::kBits < 8 && args.rows >= 2 * kRows ? args.rows / kRows * kRows : 0;
  const int passes = kParts * ((args.rows - in_panels + kRows - 1) / kRows);
  for (int64_t tile = begin / kQuantTile; tile * kQuantTile < end; ++tile) {
    if constexpr (F::kBits < 8) {
      for (int row = 0; row < in_panels; row += kPanelRows) {
        const int row_end = row + kPanelRows < in_panels ? row + kPanelRows : in_panels;
        PanelToOutput<F>(args, tile, {row, row_end}, {begin, end});
      }
    }
    int pass = 0;
    for (int row = in_panels; row < args.rows; row += kRows) {
      const int count = args.rows - row < kRows ? args.rows - row : kRows;
      for (int part = 0; part < kParts; ++part, ++pass) {
        TileToOutput<F, kRows>(args, tile, part, row, count,
                               AheadOf(pass, passes, F::kBits, WeightsOf<F>(args.w, tile), blocks),
                               {begin, end});
      }
    }
  }
}

template <int kBits, int kTraits>
void MatMulOf(const MatMulArgs& args, int64_t begin, int64_t end) {
  MatMulAs<Format<kBits, kTraits>>(args, begin, end);
}

void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  constexpr int kSteppedMinimums = kWithMinimums | kWithIntegers;
  const Matrix& w = args.w;
  switch (w.type) {
    case WeightType::kI6:
      return MatMulOf<6, kGroupsOf16 | kWithIntegers>(args, begin, end);
    case WeightType::kI5:
      if (HasSteps(w)) return MatMulOf<5, kSteppedMinimums>(args, begin, end);
      if (w.has_minimums) return MatMulOf<5, kWithMinimums>(args, begin, end);
      return MatMulOf<5, kPlain>(args, begin, end);
    case WeightType::kI4:
      if (w.table != nullptr && w.group_shift == 4)
        return MatMulOf<4, kGroupsOf16 | kWithTable | kWithE4m3>(args, begin, end);
      if (w.table != nullptr) {
        if (w.step_kind == StepKind::kPower)
          return MatMulOf<4, kWithTable | kWithPowers>(args, begin, end);
        if (HasSteps(w)) return MatMulOf<4, kWithTable | kWithIntegers>(args, begin, end);
        return MatMulOf<4, kWithTable>(args, begin, end);
      }
      if (HasSteps(w)) return MatMulOf<4, kSteppedMinimums>(args, begin, end);
      if (w.has_minimums) return MatMulOf<4, kWithMinimums>(args, begin, end);
      return MatMulOf<4, kPlain>(args, begin, end);
    case WeightType::kI3:
      if (w.table != nullptr && w.group_shift == 4)
        return MatMulOf<3, kGroupsOf16 | kWithTable | kWithIntegers>(args, begin, end);
      if (w.table != nullptr) return MatMulOf<3, kWithTable | kWithIntegers>(args, begin, end);
      return MatMulOf<3, kGroupsOf16 | kWithIntegers>(args, begin, end);
    case WeightType::kI2:
      return MatMulOf<2, kGroupsOf16 | kSteppedMinimums>(args, begin, end);
    default:
      return MatMulOf<8, kPlain>(args, begin, end);
  }
}

}  // namespace
}  // namespace pawl
