// Matrix products with bf16 weights on the tile units of Intel's processors (AMX-BF16, from
// Sapphire Rapids on), ten times as fast as AVX-512; all else is the AVX-512 kernels'.
//
// TDPBF16PS adds to a tile of 16 x 16 sums the products of 16 rows of 32 bf16 numbers with 16
// columns of as many. The rows are weights where they lie (16 outputs, 32 inputs each), so nothing
// is repacked at load and a weight is read once for up to 16 columns. The columns are input rows,
// which are floats: an input is split into two bf16 numbers, hi = bf16(x) and lo = bf16(x - hi),
// |x - (hi + lo)| <= 2^-17 |x|, and a sum takes the products with 32 hi, then with 32 lo. Half of
// the unit's work goes into lo. The variant amx-bf16 leaves it out, and loses 256 times as much of
// an input; `Terms` is 2 or 1.
//
// Bits: a sum takes its terms in ascending order, 32 at a time, by what the instruction does with
// the terms of one column, whatever is in the other columns; chunks of kChunk terms are added in
// ascending order. So a row's results do not depend on its company. The instruction rounds to
// nearest and takes subnormal numbers as zero.
//
// Pack writes the inputs of R <= 16 rows, a group, as the instruction reads columns: for each pair
// of inputs (k, k + 1) the pairs of hi of all rows, then their pairs of lo: 8 R bytes, as much as
// the floats took (with hi alone, half of that). Behind other groups, tiles of a last one of fewer
// rows are loaded 64 bytes wide all the same: columns beyond R hold what comes next in memory, and
// their sums are dropped.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/amx_pack.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/tiles.h"

namespace pawl {
namespace {

using amx::kStep;
using amx::PackGroup;
using amx::Transpose16;

constexpr int kOutputs = 16;
constexpr int kPanel = 2 * kOutputs;
// So many inputs are summed in tiles, and these sums in y: the packed inputs of 128 rows, for which
// weights are read once, then stay in a level 2 cache of 2 MiB.
constexpr int64_t kChunk = 2048;

// All eight tiles have 16 rows; those of weights, 4 and 5, are 64 bytes wide, the others have that
// many columns of four bytes. Released at the end: a thread that stops with tiles in use has 8 KiB
// more to save.
class Tiles {
 public:
  explicit Tiles(int columns) {
    TileConfig config;
    for (int i = 0; i < 8; ++i) {
      config.row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? 64 : columns * 4);
      config.rows[i] = 16;
    }
    TileConfigure(config);
  }
  ~Tiles() { TileRelease(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// ---- Inputs ----

template <int Terms>
void Pack(WeightType type, const float* x, int64_t x_stride, int rows, int64_t n, float* out) {
  if (type != WeightType::kBf16) return kAvx512VnniKernels.pack(type, x, x_stride, rows, n, out);
  for (int r = 0; r < rows; r += kPackRows) {
    const int group = rows - r < kPackRows ? rows - r : kPackRows;
    PackGroup<Terms>(x + r * x_stride, x_stride, group, n,
                     reinterpret_cast<char*>(out + r * PackedWidth(n)));
  }
}

// ---- Results ----

// What becomes of the sums of one chunk of inputs: the first one gets the bias and goes to y, or is
// added to it; later ones are added.
struct Target {
  Target(const MatMulArgs& matmul, int64_t k)
      : args(matmul), bias(k == 0 ? matmul.bias : nullptr), add(matmul.add || k > 0) {}
  const MatMulArgs& args;
  const float* bias;
  bool add;
  float* Row(int row) const {
    return args.y + (args.y_rows != nullptr ? args.y_rows[row] : row) * args.y_stride;
  }
};

// From a tile, sums of R rows for up to 16 outputs, to y.
void Finish(const Target& to, const float* sums, int row, int rows, int64_t output, int count) {
  for (int r = 0; r < rows; ++r) {
    float* y = to.Row(row + r) + output;
    for (int o = 0; o < count; ++o) {
      float value = sums[o * 16 + r];
      if (to.bias != nullptr) value += to.bias[output + o];
      y[o] = to.add ? y[o] + value : value;
    }
  }
}

// The same for 16 rows and 16 outputs.
inline void FinishWhole(const Target& to, const float* sums, int row, int64_t output) {
  __m512i v[16];
#pragma GCC unroll 16
  for (int o = 0; o < 16; ++o) v[o] = _mm512_load_si512(sums + o * 16);
  Transpose16(v);
  __m512 bias = _mm512_setzero_ps();
  if (to.bias != nullptr) bias = _mm512_loadu_ps(to.bias + output);
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    float* y = to.Row(row + r) + output;
    __m512 value = _mm512_castsi512_ps(v[r]);
    if (to.bias != nullptr) value = _mm512_add_ps(value, bias);
    if (to.add) value = _mm512_add_ps(_mm512_loadu_ps(y), value);
    _mm512_storeu_ps(y, value);
  }
}

// ---- Products ----

// The weights of 16 outputs from `output` on, inputs begin .. end-1. At the end of a row, and where
// there are fewer outputs, they are copied between zeros: what lies behind is another row's, or
// no thread's.
struct Weights {
  Weights(const Matrix& m, int64_t output, int64_t k_begin, int64_t k_end)
      : data(static_cast<const uint16_t*>(m.data) + output * m.cols + k_begin),
        stride(m.cols),
        inputs(k_end - k_begin),
        rows(m.rows - output < kOutputs ? static_cast<int>(m.rows - output) : kOutputs),
        whole(rows == kOutputs ? inputs / kStep * kStep : 0) {}
  const uint16_t* data;
  int64_t stride, inputs;
  int rows;
  int64_t whole;  // inputs that are loaded where they lie
  // REQUIRES: k >= whole.
  void Copy(int64_t k, uint16_t* out) const {
    std::memset(out, 0, kOutputs * kStep * 2);
    const size_t count = static_cast<size_t>(inputs - k < kStep ? inputs - k : kStep);
    for (int r = 0; r < rows; ++r) std::memcpy(out + r * kStep, data + r * stride + k, count * 2);
  }
};

// Bytes from one pair of inputs to the next, of groups of that many rows.
constexpr int64_t Pitch(int terms, int rows) { return int64_t{4} * terms * rows; }

template <int Terms>
const char* Inputs(const MatMulArgs& args, int row, int rows, int64_t k) {
  return reinterpret_cast<const char*>(args.x + row * PackedWidth(args.w.cols)) +
         k / 2 * Pitch(Terms, rows);
}

// Up to 16 rows; 16 outputs, or 32 for `Two`, which wait less for each other but for memory. Tiles
// 0 and 1 are sums, 4 and 5 weights, 6 and 7 inputs.
template <int Terms, bool Two>
void Narrow(const MatMulArgs& args, int64_t output, int64_t end, int row, int rows, int64_t k_begin,
            int64_t k_end) {
  const Weights first(args.w, output, k_begin, k_end);
  const Weights second(args.w, Two ? output + kOutputs : output, k_begin, k_end);
  const auto pitch = static_cast<size_t>(Pitch(Terms, rows));
  const char* x = Inputs<Terms>(args, row, rows, k_begin);
  const auto stride = static_cast<size_t>(first.stride) * 2;
  TileZero<0>();
  if constexpr (Two) TileZero<1>();
  const auto multiply = [&]() __attribute__((always_inline)) {
    TileLoad<6>(x, pitch);
    TileMultiply<0, 4, 6>();
    if constexpr (Two) TileMultiply<1, 5, 6>();
    if constexpr (Terms == 2) {
      TileLoad<7>(x + pitch / 2, pitch);
      TileMultiply<0, 4, 7>();
      if constexpr (Two) TileMultiply<1, 5, 7>();
    }
    x += pitch * (kStep / 2);
  };
  int64_t k = 0;
  // The weights of the outputs after these lie behind them. They are asked for in the order of
  // their addresses while these are used in another.
  const char* ahead =
      reinterpret_cast<const char*>(first.data + (Two ? 2 : 1) * kOutputs * first.stride +
                                    k_begin * (kOutputs - 1) * (Two ? 2 : 1));
  for (const int64_t whole = Two ? second.whole : first.whole; k < whole; k += kStep) {
    for (int i = 0; i < (Two ? 2 : 1) * kOutputs; ++i) {
      _mm_prefetch(ahead, _MM_HINT_T1);
      ahead += 64;
    }
    TileLoad<4>(first.data + k, stride);
    if constexpr (Two) TileLoad<5>(second.data + k, stride);
    multiply();
  }
  alignas(64) uint16_t copy[kOutputs * kStep];
  for (; k < first.inputs; k += kStep) {
    first.Copy(k, copy);
    TileLoad<4>(copy, kStep * 2);
    if constexpr (Two) {
      second.Copy(k, copy);
      TileLoad<5>(copy, kStep * 2);
    }
    multiply();
  }
  const Target to(args, k_begin);
  alignas(64) float sums[16 * 16];
  const auto finish = [&](int64_t from) {
    const int count = end - from < kOutputs ? static_cast<int>(end - from) : kOutputs;
    if (rows == kPackRows && count == kOutputs) return FinishWhole(to, sums, row, from);
    Finish(to, sums, row, rows, from, count);
  };
  TileStore<0>(sums, 64);
  finish(output);
  if constexpr (Two) {
    TileStore<1>(sums, 64);
    finish(output + kOutputs);
  }
}

// 32 outputs, 32 rows: tiles 0 .. 3 are sums, 4 and 5 weights, 6 and 7 inputs, each used twice or
// more. Bringing sums to y takes the vector units as long as some steps take the tile unit, so it
// is put off and done in pieces between the steps of the next 32 x 32.
constexpr int kWideRows = 2 * kPackRows;

template <int Terms>
class Wide {
 public:
  Wide(const MatMulArgs& args, int64_t k_begin, int64_t k_end)
      : args_(args), to_(args, k_begin), k_begin_(k_begin), k_end_(k_end) {}
  ~Wide() {
    while (piece_ < kPieces) FinishPiece();
  }
  Wide(const Wide&) = delete;
  Wide& operator=(const Wide&) = delete;

  // REQUIRES: there are 32 outputs from `output` on, and 32 rows from `row` on.
  void Multiply(int64_t output, int row) {
    const Weights first(args_.w, output, k_begin_, k_end_);
    const Weights second(args_.w, output + kOutputs, k_begin_, k_end_);
    const char* x = Inputs<Terms>(args_, row, kPackRows, k_begin_);
    const char* y = Inputs<Terms>(args_, row + kPackRows, kPackRows, k_begin_);
    constexpr size_t kPitch = Pitch(Terms, kPackRows);
    const auto stride = static_cast<size_t>(first.stride) * 2;
    const auto multiply = [&]() __attribute__((always_inline)) {
      TileLoad<6>(x, kPitch);
      TileMultiply<0, 4, 6>();
      TileMultiply<2, 5, 6>();
      TileLoad<7>(y, kPitch);
      TileMultiply<1, 4, 7>();
      TileMultiply<3, 5, 7>();
      if constexpr (Terms == 2) {
        TileLoad<6>(x + kPitch / 2, kPitch);
        TileMultiply<0, 4, 6>();
        TileMultiply<2, 5, 6>();
        TileLoad<7>(y + kPitch / 2, kPitch);
        TileMultiply<1, 4, 7>();
        TileMultiply<3, 5, 7>();
      }
      x += kPitch * (kStep / 2);
      y += kPitch * (kStep / 2);
    };
    TileZero<0>();
    TileZero<1>();
    TileZero<2>();
    TileZero<3>();
    int64_t k = 0;
    for (; k < first.whole; k += kStep) {
      TileLoad<4>(first.data + k, stride);
      TileLoad<5>(second.data + k, stride);
      multiply();
      if (piece_ < kPieces) FinishPiece();
    }
    if (k < first.inputs) {
      alignas(64) uint16_t copy[kOutputs * kStep];
      first.Copy(k, copy);
      TileLoad<4>(copy, kStep * 2);
      second.Copy(k, copy);
      TileLoad<5>(copy, kStep * 2);
      multiply();
    }
    while (piece_ < kPieces) FinishPiece();
    TileStore<0>(sums_[0], 64);
    TileStore<1>(sums_[1], 64);
    TileStore<2>(sums_[2], 64);
    TileStore<3>(sums_[3], 64);
    output_ = output;
    row_ = row;
    piece_ = 0;
  }

 private:
  static constexpr int kPieces = 4;
  void FinishPiece() {
    FinishWhole(to_, sums_[piece_], row_ + piece_ % 2 * kPackRows, output_ + piece_ / 2 * kOutputs);
    ++piece_;
  }

  const MatMulArgs& args_;
  const Target to_;
  const int64_t k_begin_, k_end_;
  int64_t output_ = 0;
  int row_ = 0;
  int piece_ = kPieces;  // the next one of those put off
  alignas(64) float sums_[kPieces][16 * 16];
};

template <int Terms>
void NarrowRows(const MatMulArgs& args, int64_t output, int64_t end, int row, int64_t k_begin,
                int64_t k_end) {
  for (; row < args.rows; row += kPackRows) {
    const int rows = args.rows - row < kPackRows ? args.rows - row : kPackRows;
    if (rows == kPackRows && output + 2 * kOutputs <= end) {
      Narrow<Terms, true>(args, output, end, row, rows, k_begin, k_end);
    } else {
      for (int64_t o = output; o < end && o < output + kPanel; o += kOutputs) {
        Narrow<Terms, false>(args, o, end, row, rows, k_begin, k_end);
      }
    }
  }
}

template <int Terms>
void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  if (args.w.type != WeightType::kBf16) return kAvx512VnniKernels.matmul(args, begin, end);
  // A single group of fewer rows gets tiles that fit: rows of 64 bytes that overlap cross cache
  // lines.
  const Tiles tiles(args.rows < kPackRows ? args.rows : kPackRows);
  const int64_t inputs = args.w.cols;
  const auto chunk_end = [&](int64_t k) { return k + kChunk < inputs ? k + kChunk : inputs; };
  if (args.rows < kWideRows) {
    // Few rows wait for weights from memory, which come best one run of rows after the other.
    for (int64_t output = begin; output < end; output += kPanel) {
      for (int64_t k = 0; k < inputs; k += kChunk) {
        NarrowRows<Terms>(args, output, end, 0, k, chunk_end(k));
      }
    }
    return;
  }
  const int whole = args.rows / kWideRows * kWideRows;
  for (int64_t k = 0; k < inputs; k += kChunk) {
    int64_t output = begin;
    Wide<Terms> wide(args, k, chunk_end(k));
    for (; output + kPanel <= end; output += kPanel) {
      for (int row = 0; row < whole; row += kWideRows) wide.Multiply(output, row);
      NarrowRows<Terms>(args, output, end, whole, k, chunk_end(k));
    }
    if (output < end) NarrowRows<Terms>(args, output, end, 0, k, chunk_end(k));
  }
}

}  // namespace

const KernelSet& AmxKernels() {
  static const KernelSet kernels = [] {
    KernelSet set = kAvx512VnniKernels;
    set.name = "amx";
    set.pack = Pack<2>;
    set.matmul = MatMul<2>;
    return set;
  }();
  return kernels;
}

const KernelSet& AmxBf16Kernels() {
  static const KernelSet kernels = [] {
    KernelSet set = kAvx512VnniKernels;
    set.name = "amx-bf16";
    set.pack = Pack<1>;
    set.matmul = MatMul<1>;
    set.attention = amx::Attention;
    return set;
  }();
  return kernels;
}

}  // namespace pawl
