// Matrix products with bf16 weights on the tile units of Intel's processors (AMX-BF16, from
// Sapphire Rapids on), ten times as fast as AVX-512; all else is the AVX-512 kernels'.
//
// TDPBF16PS adds to a tile of 16 x 16 sums the products of 16 rows of 32 bf16 numbers with 16
// columns of as many. The rows are weights where they lie (16 outputs, 32 inputs each), so nothing
// is repacked at load and a weight is read once for up to 16 columns. The columns are inputs, which
// are floats: an input is split into two bf16 numbers, hi = bf16(x) and lo = bf16(x - hi), which
// together have 16 of its 24 bits, and each has a column. |x - (hi + lo)| <= 2^-17 |x|, less than
// what eight input rows of bf16 alone would lose by a factor of 256; the price is that a tile holds
// eight input rows instead of sixteen. Sums of hi and lo are added at the end.
//
// Bits: a sum takes its terms 32 at a time in ascending order, by what the instruction does with
// two terms of one column, whatever is in the other columns. So a row's results do not depend on
// its company. The instruction rounds to nearest and takes subnormal numbers as zero.
//
// Pack writes the inputs of up to 16 rows, a group, as the instruction reads columns: for each pair
// of inputs (k, k + 1) the pairs of hi of the first w = min(8, R) rows, their pairs of lo, then the
// same of rows 8 .. R-1. A pair of inputs takes 8 R bytes, as much as the floats did. A tile is
// always loaded 64 bytes wide: columns beyond 2 w hold what comes next in memory, and their sums
// are dropped.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/variants.h"

namespace pawl {
namespace {

constexpr int kStep = 32;  // inputs that one instruction takes
constexpr int kOutputs = 16;
constexpr int kTileRows = 8;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// All eight tiles are 16 rows of 64 bytes. Released at the end: a thread that stops with tiles in
// use has 8 KiB more to save.
class Tiles {
 public:
  Tiles() {
    TileConfig config;
    for (int i = 0; i < 8; ++i) {
      config.row_bytes[i] = 64;
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
  for (int64_t k = 0; k < n; k += kStep, out += pitch * (kStep / 2)) {
    if (rows == 1) {  // pairs of hi and of lo in turn
      __m512i hi, lo;
      Split(x + k, n - k, hi, lo);
      const __m512i low = _mm512_unpacklo_epi32(hi, lo), high = _mm512_unpackhi_epi32(hi, lo);
      const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
      const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
      _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
      _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi64(low, second, high));
      continue;
    }
    for (int tile = 0; tile < rows; tile += kTileRows) {
      const int w = rows - tile < kTileRows ? rows - tile : kTileRows;
      __m512i v[16];
      for (int r = 0; r < w; ++r) Split(x + (tile + r) * x_stride + k, n - k, v[r], v[w + r]);
      for (int r = 2 * w; r < 16; ++r) v[r] = _mm512_setzero_si512();
      Transpose16(v);
      const auto columns = static_cast<__mmask16>((1u << 2 * w) - 1);
      for (int p = 0; p < 16; ++p) {
        _mm512_mask_storeu_epi32(out + p * pitch + tile * 8, columns, v[p]);
      }
    }
  }
}

void Pack(WeightType type, const float* x, int64_t x_stride, int rows, int64_t n, float* out) {
  if (type != WeightType::kBf16) return kAvx512Kernels.pack(type, x, x_stride, rows, n, out);
  for (int r = 0; r < rows; r += kPackRows) {
    const int group = rows - r < kPackRows ? rows - r : kPackRows;
    PackGroup(x + r * x_stride, x_stride, group, n,
              reinterpret_cast<char*>(out + r * PackedWidth(n)));
  }
}

// ---- Results ----

// v[i][j] -> v[j][i] of 8 x 8 floats.
inline void Transpose8(__m256* v) {
  __m256 t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) v[i] = t[i];
}

inline float* OutputRow(const MatMulArgs& args, int row) {
  return args.y + (args.y_rows != nullptr ? args.y_rows[row] : row) * args.y_stride;
}

// From a tile of 16 outputs, sums of hi and of lo of w rows, to y.
void Finish(const MatMulArgs& args, const float* sums, int row, int w, int64_t output, int count) {
  if (w == kTileRows && count == kOutputs) {
    __m256 v[16];
#pragma GCC unroll 16
    for (int o = 0; o < 16; ++o) {
      v[o] = _mm256_add_ps(_mm256_load_ps(sums + o * 16), _mm256_load_ps(sums + o * 16 + 8));
    }
    Transpose8(v);
    Transpose8(v + 8);
    __m256 bias[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    if (args.bias != nullptr) {
      bias[0] = _mm256_loadu_ps(args.bias + output);
      bias[1] = _mm256_loadu_ps(args.bias + output + 8);
    }
    for (int r = 0; r < 8; ++r) {
      float* y = OutputRow(args, row + r) + output;
      for (int half = 0; half < 2; ++half) {
        __m256 value = v[half * 8 + r];
        if (args.bias != nullptr) value = _mm256_add_ps(value, bias[half]);
        if (args.add) value = _mm256_add_ps(_mm256_loadu_ps(y + half * 8), value);
        _mm256_storeu_ps(y + half * 8, value);
      }
    }
    return;
  }
  for (int r = 0; r < w; ++r) {
    float* y = OutputRow(args, row + r) + output;
    for (int o = 0; o < count; ++o) {
      float value = sums[o * 16 + r] + sums[o * 16 + w + r];
      if (args.bias != nullptr) value += args.bias[output + o];
      y[o] = args.add ? y[o] + value : value;
    }
  }
}

// ---- Products ----

// The weights of 16 outputs from `output` on. At the end of a row, and where there are fewer
// outputs, they are copied between zeros: what lies behind is another row's, or nobody's.
struct Weights {
  Weights(const Matrix& m, int64_t output) : Weights(m, output, m.rows - output) {}
  Weights(const Matrix& m, int64_t output, int64_t outputs)
      : data(static_cast<const uint16_t*>(m.data) + output * m.cols),
        cols(m.cols),
        rows(outputs < kOutputs ? static_cast<int>(outputs) : kOutputs),
        whole(rows == kOutputs ? m.cols / kStep * kStep : 0) {}
  const uint16_t* data;
  int64_t cols;
  int rows;
  int64_t whole;  // inputs that are loaded where they lie
  // REQUIRES: k >= whole.
  void Copy(int64_t k, uint16_t* out) const {
    std::memset(out, 0, kOutputs * kStep * 2);
    const size_t count = static_cast<size_t>(cols - k < kStep ? cols - k : kStep);
    for (int r = 0; r < rows; ++r) std::memcpy(out + r * kStep, data + r * cols + k, count * 2);
  }
};

// Tiles 0 .. 3 are sums, 4 and 5 weights, 6 and 7 inputs. `Wide`: 32 outputs; `Two`: more than 8
// rows.
template <bool Wide, bool Two>
inline void Multiply(const MatMulArgs& args, int64_t output, int64_t end, int row, int rows) {
  const Weights first(args.w, output);
  const Weights second(args.w, Wide ? output + kOutputs : output);
  const int64_t pitch = 8 * rows;
  const char* x = reinterpret_cast<const char*>(args.x + row * PackedWidth(args.w.cols));
  _tile_zero(0);
  if constexpr (Two) _tile_zero(1);
  if constexpr (Wide) _tile_zero(2);
  if constexpr (Wide && Two) _tile_zero(3);
  int64_t k = 0;
  const int64_t whole = Wide ? second.whole : first.whole;
  const auto row_bytes = static_cast<size_t>(args.w.cols) * 2;
  for (; k < whole; k += kStep, x += pitch * (kStep / 2)) {
    _tile_loadd(4, first.data + k, row_bytes);
    _tile_loadd(6, x, static_cast<size_t>(pitch));
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Two) {
      _tile_loadd(7, x + 64, static_cast<size_t>(pitch));
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (Wide) {
      _tile_loadd(5, second.data + k, row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (Two) _tile_dpbf16ps(3, 5, 7);
    }
  }
  alignas(64) uint16_t copy[kOutputs * kStep];
  for (; k < args.w.cols; k += kStep, x += pitch * (kStep / 2)) {
    _tile_loadd(6, x, static_cast<size_t>(pitch));
    if constexpr (Two) _tile_loadd(7, x + 64, static_cast<size_t>(pitch));
    first.Copy(k, copy);
    _tile_loadd(4, copy, kStep * 2);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Two) _tile_dpbf16ps(1, 4, 7);
    if constexpr (Wide) {
      second.Copy(k, copy);
      _tile_loadd(5, copy, kStep * 2);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (Two) _tile_dpbf16ps(3, 5, 7);
    }
  }
  alignas(64) float sums[16 * 16];
  const auto count = [&](int64_t from) {
    return static_cast<int>(end - from < kOutputs ? end - from : kOutputs);
  };
  const int w = Two ? kTileRows : rows;
  _tile_stored(0, sums, 64);
  Finish(args, sums, row, w, output, count(output));
  if constexpr (Two) {
    _tile_stored(1, sums, 64);
    Finish(args, sums, row + kTileRows, rows - kTileRows, output, count(output));
  }
  if constexpr (Wide) {
    _tile_stored(2, sums, 64);
    Finish(args, sums, row, w, output + kOutputs, count(output + kOutputs));
  }
  if constexpr (Wide && Two) {
    _tile_stored(3, sums, 64);
    Finish(args, sums, row + kTileRows, rows - kTileRows, output + kOutputs,
           count(output + kOutputs));
  }
}

template <bool Wide>
void Groups(const MatMulArgs& args, int64_t output, int64_t end) {
  for (int row = 0; row < args.rows; row += kPackRows) {
    const int rows = args.rows - row < kPackRows ? args.rows - row : kPackRows;
    if (rows > kTileRows) {
      Multiply<Wide, true>(args, output, end, row, rows);
    } else {
      Multiply<Wide, false>(args, output, end, row, rows);
    }
  }
}

void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  if (args.w.type != WeightType::kBf16) return kAvx512Kernels.matmul(args, begin, end);
  const Tiles tiles;
  int64_t output = begin;
  // Few rows wait for weights from memory, which come best one run of rows after the other; more
  // rows want each tile of inputs used twice.
  if (args.rows > kTileRows) {
    // Both halves whole: `whole` of the second says where copying starts for both.
    for (; output + 2 * kOutputs <= end; output += 2 * kOutputs) Groups<true>(args, output, end);
  }
  for (; output < end; output += kOutputs) Groups<false>(args, output, end);
}

}  // namespace

const KernelSet& AmxKernels() {
  static const KernelSet kernels = [] {
    KernelSet set = kAvx512Kernels;
    set.name = "amx";
    set.pack = Pack;
    set.matmul = MatMul;
    return set;
  }();
  return kernels;
}

}  // namespace pawl
