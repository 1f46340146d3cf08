// Matrix products with bf16 weights on the tile units of Intel's processors (AMX-BF16, from
// Sapphire Rapids on), ten times as fast as AVX-512; all else is the AVX-512 kernels'.
//
// TDPBF16PS adds to a tile of 16 x 16 sums the products of 16 rows of 32 bf16 numbers with 16
// columns of as many. The rows are weights where they lie (16 outputs, 32 inputs each), so nothing
// is repacked at load and a weight is read once for up to 16 columns. The columns are input rows,
// which are floats: an input is split into two bf16 numbers, hi = bf16(x) and lo = bf16(x - hi),
// |x - (hi + lo)| <= 2^-17 |x|, and a sum takes the products with 32 hi, then with 32 lo. Half of
// the unit's work goes into lo; without it an input would lose 256 times as much.
//
// Bits: a sum takes its terms in ascending order, 32 at a time, by what the instruction does with
// the terms of one column, whatever is in the other columns; chunks of kChunk terms are added in
// ascending order. So a row's results do not depend on its company. The instruction rounds to
// nearest and takes subnormal numbers as zero.
//
// Pack writes the inputs of R <= 16 rows, a group, as the instruction reads columns: for each pair
// of inputs (k, k + 1) the pairs of hi of all rows, then their pairs of lo: 8 R bytes, as much as
// the floats took. Behind other groups, tiles of a last one of fewer rows are loaded 64 bytes wide
// all the same: columns beyond R hold what comes next in memory, and their sums are dropped.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/variants.h"

namespace pawl {
namespace {

constexpr int kStep = 32;  // inputs that one instruction takes
constexpr int kOutputs = 16;
constexpr int kPanel = 2 * kOutputs;
// So many inputs are summed in tiles, and these sums in y: the packed inputs of 128 rows, for which
// weights are read once, then stay in a level 2 cache of 2 MiB.
constexpr int64_t kChunk = 2048;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

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
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// ---- Inputs ----

// v[i][j] -> v[j][i], 32 bits each.
inline void Transpose16(__m512i* v) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // v[4a + b] now holds in its 128-bit lane l the column 4l + b of rows 4a .. 4a+3.
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
    const __m512i even01 = _mm512_shuffle_i32x4(v[b], v[4 + b], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(v[b], v[4 + b], 0xdd);
    const __m512i even23 = _mm512_shuffle_i32x4(v[8 + b], v[12 + b], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(v[8 + b], v[12 + b], 0xdd);
    t[b] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    t[8 + b] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    t[4 + b] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    t[12 + b] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = t[i];
}

inline __m512i Brain(__m512 upper, __m512 lower) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(upper, lower));
}

// The 16 pairs of 32 inputs of a row, those beyond n being 0.
inline void Split(const float* x, int64_t n, __m512i& hi, __m512i& lo) {
  __m512 x0, x1;
  if (n >= kStep) {
    x0 = _mm512_loadu_ps(x);
    x1 = _mm512_loadu_ps(x + 16);
  } else {
    const uint32_t mask = (uint32_t{1} << n) - 1;
    x0 = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x);
    x1 = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + 16);
  }
  hi = Brain(x1, x0);
  const __m512i hi0 = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(hi));
  const __m512i hi1 = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(hi, 1));
  lo = Brain(_mm512_sub_ps(x1, _mm512_castsi512_ps(_mm512_slli_epi32(hi1, 16))),
             _mm512_sub_ps(x0, _mm512_castsi512_ps(_mm512_slli_epi32(hi0, 16))));
}

void PackGroup(const float* x, int64_t x_stride, int rows, int64_t n, char* out) {
  const int64_t pitch = 8 * rows;
  const auto columns = static_cast<__mmask16>((1u << (rows > 8 ? rows : 2 * rows)) - 1);
  for (int64_t k = 0; k < n; k += kStep, out += pitch * (kStep / 2)) {
    __m512i v[16], lo[16];
    if (rows == 1) {
      Split(x + k, n - k, v[0], lo[0]);
      const __m512i low = _mm512_unpacklo_epi32(v[0], lo[0]);
      const __m512i high = _mm512_unpackhi_epi32(v[0], lo[0]);
      const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
      const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
      _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
      _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi64(low, second, high));
      continue;
    }
    for (int r = 0; r < rows; ++r) Split(x + r * x_stride + k, n - k, v[r], lo[r]);
    for (int r = rows; r < 16; ++r) v[r] = lo[r] = _mm512_setzero_si512();
    if (rows <= 8) {  // hi and lo in one go
      for (int r = 0; r < rows; ++r) v[rows + r] = lo[r];
      Transpose16(v);
      for (int p = 0; p < 16; ++p) _mm512_mask_storeu_epi32(out + p * pitch, columns, v[p]);
      continue;
    }
    Transpose16(v);
    for (int p = 0; p < 16; ++p) _mm512_mask_storeu_epi32(out + p * pitch, columns, v[p]);
    Transpose16(lo);
    for (int p = 0; p < 16; ++p) {
      _mm512_mask_storeu_epi32(out + p * pitch + pitch / 2, columns, lo[p]);
    }
  }
}

void Pack(WeightType type, const float* x, int64_t x_stride, int rows, int64_t n, float* out) {
  if (type != WeightType::kBf16) return kAvx512VnniKernels.pack(type, x, x_stride, rows, n, out);
  for (int r = 0; r < rows; r += kPackRows) {
    const int group = rows - r < kPackRows ? rows - r : kPackRows;
    PackGroup(x + r * x_stride, x_stride, group, n,
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
// nobody's.
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

const char* Inputs(const MatMulArgs& args, int row, int rows, int64_t k) {
  return reinterpret_cast<const char*>(args.x + row * PackedWidth(args.w.cols)) + k / 2 * 8 * rows;
}

// Up to 16 rows; 16 outputs, or 32 for `Two`, which wait less for each other but for memory. Tiles
// 0 and 1 are sums, 4 and 5 weights, 6 and 7 inputs.
template <bool Two>
void Narrow(const MatMulArgs& args, int64_t output, int64_t end, int row, int rows, int64_t k_begin,
            int64_t k_end) {
  const Weights first(args.w, output, k_begin, k_end);
  const Weights second(args.w, Two ? output + kOutputs : output, k_begin, k_end);
  const auto pitch = static_cast<size_t>(8 * rows);
  const char* x = Inputs(args, row, rows, k_begin);
  const auto stride = static_cast<size_t>(first.stride) * 2;
  _tile_zero(0);
  if constexpr (Two) _tile_zero(1);
  const auto multiply = [&]() __attribute__((always_inline)) {
    _tile_loadd(6, x, pitch);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Two) _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(7, x + pitch / 2, pitch);
    _tile_dpbf16ps(0, 4, 7);
    if constexpr (Two) _tile_dpbf16ps(1, 5, 7);
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
    _tile_loadd(4, first.data + k, stride);
    if constexpr (Two) _tile_loadd(5, second.data + k, stride);
    multiply();
  }
  alignas(64) uint16_t copy[kOutputs * kStep];
  for (; k < first.inputs; k += kStep) {
    first.Copy(k, copy);
    _tile_loadd(4, copy, kStep * 2);
    if constexpr (Two) {
      second.Copy(k, copy);
      _tile_loadd(5, copy, kStep * 2);
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
  _tile_stored(0, sums, 64);
  finish(output);
  if constexpr (Two) {
    _tile_stored(1, sums, 64);
    finish(output + kOutputs);
  }
}

// 32 outputs, 32 rows: tiles 0 .. 3 are sums, 4 and 5 weights, 6 and 7 inputs, each used twice or
// more. Bringing sums to y takes the vector units as long as some steps take the tile unit, so it
// is put off and done in pieces between the steps of the next 32 x 32.
class Wide {
 public:
  static constexpr int kRows = 2 * kPackRows;

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
    const char* x = Inputs(args_, row, kPackRows, k_begin_);
    const char* y = Inputs(args_, row + kPackRows, kPackRows, k_begin_);
    constexpr size_t kPitch = 8 * kPackRows;
    const auto stride = static_cast<size_t>(first.stride) * 2;
    const auto multiply = [&]() __attribute__((always_inline)) {
      _tile_loadd(6, x, kPitch);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(2, 5, 6);
      _tile_loadd(7, y, kPitch);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
      _tile_loadd(6, x + kPitch / 2, kPitch);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(2, 5, 6);
      _tile_loadd(7, y + kPitch / 2, kPitch);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
      x += kPitch * (kStep / 2);
      y += kPitch * (kStep / 2);
    };
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    int64_t k = 0;
    for (; k < first.whole; k += kStep) {
      _tile_loadd(4, first.data + k, stride);
      _tile_loadd(5, second.data + k, stride);
      multiply();
      if (piece_ < kPieces) FinishPiece();
    }
    if (k < first.inputs) {
      alignas(64) uint16_t copy[kOutputs * kStep];
      first.Copy(k, copy);
      _tile_loadd(4, copy, kStep * 2);
      second.Copy(k, copy);
      _tile_loadd(5, copy, kStep * 2);
      multiply();
    }
    while (piece_ < kPieces) FinishPiece();
    _tile_stored(0, sums_[0], 64);
    _tile_stored(1, sums_[1], 64);
    _tile_stored(2, sums_[2], 64);
    _tile_stored(3, sums_[3], 64);
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

void NarrowRows(const MatMulArgs& args, int64_t output, int64_t end, int row, int64_t k_begin,
                int64_t k_end) {
  for (; row < args.rows; row += kPackRows) {
    const int rows = args.rows - row < kPackRows ? args.rows - row : kPackRows;
    if (rows == kPackRows && output + 2 * kOutputs <= end) {
      Narrow<true>(args, output, end, row, rows, k_begin, k_end);
    } else {
      for (int64_t o = output; o < end && o < output + kPanel; o += kOutputs) {
        Narrow<false>(args, o, end, row, rows, k_begin, k_end);
      }
    }
  }
}

void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  if (args.w.type != WeightType::kBf16) return kAvx512VnniKernels.matmul(args, begin, end);
  // A single group of fewer rows gets tiles that fit: rows of 64 bytes that overlap cross cache
  // lines.
  const Tiles tiles(args.rows < kPackRows ? args.rows : kPackRows);
  const int64_t inputs = args.w.cols;
  const auto chunk_end = [&](int64_t k) { return k + kChunk < inputs ? k + kChunk : inputs; };
  if (args.rows < Wide::kRows) {
    // Few rows wait for weights from memory, which come best one run of rows after the other.
    for (int64_t output = begin; output < end; output += kPanel) {
      for (int64_t k = 0; k < inputs; k += kChunk) {
        NarrowRows(args, output, end, 0, k, chunk_end(k));
      }
    }
    return;
  }
  const int whole = args.rows / Wide::kRows * Wide::kRows;
  for (int64_t k = 0; k < inputs; k += kChunk) {
    int64_t output = begin;
    Wide wide(args, k, chunk_end(k));
    for (; output + kPanel <= end; output += kPanel) {
      for (int row = 0; row < whole; row += Wide::kRows) wide.Multiply(output, row);
      NarrowRows(args, output, end, whole, k, chunk_end(k));
    }
    if (output < end) NarrowRows(args, output, end, 0, k, chunk_end(k));
  }
}

}  // namespace

const KernelSet& AmxKernels() {
  static const KernelSet kernels = [] {
    KernelSet set = kAvx512VnniKernels;
    set.name = "amx";
    set.pack = Pack;
    set.matmul = MatMul;
    return set;
  }();
  return kernels;
}

}  // namespace pawl
