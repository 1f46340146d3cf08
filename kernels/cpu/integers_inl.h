// The products of integers.h, written once over the lanes of an instruction set. A variant
// (integers_portable.cc, integers_avx2.cc, integers_vnni.cc) defines in an unnamed namespace
//   kLanes         how many rows of a tile of weights are multiplied at a time: 8 or 16
//   Ints, Floats   that many 32-bit integers or floats
//   kRows          input rows that are multiplied with weights while these are in a register
//   Zero, Set1, SetInts, Load, Store, Halves (of half-precision numbers),
//   ToFloats,
//   +, *, Fma(a, b, c) = ab + c of Floats
//   Dots<kFour, kFirst, kLast, R>(weights, x, pitch, sums)
//                  adds to sums[r] the exact sums over the fours kFirst .. kLast-1 of a block, for
//                  the R inputs x, x + pitch, ...
//   kOffset8       whether Dots takes kI8's weights as they are stored, and not minus 128
//   LargestBits(x)  the largest of the bits of 32 floats, as integers without their signs
//   Round(x, factor, q)  32 floats times `factor` to the nearest integers, ties to even
// and includes this file, which defines everything inside that namespace too, for the reason that
// kernels_inl.h gives.

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
  block->start8 = (sums[0] + sums[1]) * -128;
  block->start8_half[0] = sums[0] * -128;
  block->start8_half[1] = sums[1] * -128;
  block->unused[0] = block->unused[1] = 0;
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

// What there is to know about a matrix while the code is compiled.
template <bool kFourBits, bool kHalfGroups, bool kMinimums>
struct Format {
  static constexpr bool kFour = kFourBits, kHalves = kHalfGroups, kMins = kMinimums;
};

// Weights are asked for before they are read. Where a tile is read once, so many bytes ahead, over
// the end of a tile into the next one, where the processor's own guesses begin anew with each page.
constexpr int64_t kAhead = 4096;

// What a pass over a tile asks memory for: `lines` cache lines from `from` on, for each block.
struct Ahead {
  int64_t from;
  int64_t lines;
};

// Passes over a tile: for some input rows, and for a part of its outputs where these are more than
// a vector has. Memory would be idle in all passes but the first, so each of them asks for its
// share of the next tile, or the first few do if there are many.
inline Ahead AheadOf(int pass, int passes, int64_t bytes, int64_t blocks) {
  if (passes == 1) return {kAhead, bytes / 64};
  const int64_t lines = bytes / (passes <= 3 ? 128 : 256);
  return {blocks * bytes + pass * lines * 64, pass * lines < bytes / 64 ? lines : 0};
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
  constexpr int kBytes = F::kFour ? 256 : 512, kLines = kBytes / 64;
  const int lane = part * kLanes;
  const auto* weights = static_cast<const uint8_t*>(m.data) + tile * blocks * kBytes;
  const uint16_t* scales = m.scales + tile * m.groups * kQuantTile + lane;
  const uint16_t* minimums = F::kMins ? m.minimums + tile * m.groups * kQuantTile + lane : nullptr;
  const auto* x = reinterpret_cast<const InputBlock*>(args.x + row / kPackRows * kPackRows *
                                                                   PackedWidth(m.cols)) +
                  row % kPackRows * blocks;
  const int skip = F::kHalves ? 0 : m.group_shift - 5;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sums[r] = Zero();
  for (int64_t b = 0; b < blocks; ++b, weights += kBytes, ++x) {
    if (ahead.lines == kLines) {
      Prefetch<kLines>(weights + ahead.from);
    } else if (ahead.lines == kLines / 2) {
      Prefetch<kLines / 2>(weights + ahead.from);
    } else if (ahead.lines == kLines / 4) {
      Prefetch<kLines / 4>(weights + ahead.from);
    }
    const uint8_t* mine = weights + lane * 4;
    Ints dots[R];
    const auto start = [&](const auto& value) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) dots[r] = SetInts(value(x[r * blocks]));
    };
    const auto add = [&](int64_t group) __attribute__((always_inline)) {
      const Floats scale = Halves(scales + group * kQuantTile);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        sums[r] = Fma(ToFloats(dots[r]), scale * Set1(x[r * blocks].scale), sums[r]);
      }
      if constexpr (F::kMins) {
        const Floats minimum = Halves(minimums + group * kQuantTile);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) sums[r] = Fma(minimum, Set1(x[r * blocks].sum), sums[r]);
      }
    };
    if constexpr (F::kHalves) {
      start([](const InputBlock& input) { return kOffset8 ? input.start8_half[0] : 0; });
      Dots<false, 0, 4, R>(mine, x, blocks, dots);
      add(2 * b);
      start([](const InputBlock& input) { return kOffset8 ? input.start8_half[1] : 0; });
      Dots<false, 4, 8, R>(mine, x, blocks, dots);
      add(2 * b + 1);
    } else {
      start([](const InputBlock& input) {
        if constexpr (F::kMins) return 0;
        if constexpr (F::kFour) return input.start4;
        return kOffset8 ? input.start8 : 0;
      });
      Dots<F::kFour, 0, 8, R>(mine, x, blocks, dots);
      add(b >> skip);
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
                               AheadOf(pass, passes, F::kFour ? 256 : 512, blocks), {begin, end});
      }
    }
  }
}

void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  if (args.w.type == WeightType::kI8) {
    if (args.w.group_shift == 4) return MatMulAs<Format<false, true, false>>(args, begin, end);
    return MatMulAs<Format<false, false, false>>(args, begin, end);
  }
  if (args.w.minimums != nullptr) return MatMulAs<Format<true, false, true>>(args, begin, end);
  MatMulAs<Format<true, false, false>>(args, begin, end);
}

}  // namespace
}  // namespace pawl
