// Matrix products with bf16 weights by BFMMLA of 64-bit ARM (FEAT_BF16); all else is the kernels
// for NEON with i8mm.
//
// The instruction adds to four sums the products of four inputs of two rows with those of two
// columns, of bf16 numbers. The rows are two outputs' weights, where they lie. Inputs are floats:
// one is split into two bf16 numbers, hi = bf16(x) and lo = bf16(x - hi), |x - (hi + lo)| <= 2^-17
// |x|, and these are the two columns. So an output of an input row is the sum of two sums, which
// add four inputs at a time in ascending order and never depend on other rows or outputs. The
// instruction rounds sums in its own manner (to odd) and takes subnormal numbers as zero.
//
// Pack writes for each four inputs of a row their hi, then their lo: 16 bytes, as much as the
// floats took, with zeros up to a multiple of eight inputs.
#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels.h"

namespace pawl {
namespace {

constexpr int kStep = 8;  // inputs
constexpr int kPairs = 4, kRows = 4;

void PackFour(float32x4_t x, uint16_t* out) {
  const bfloat16x4_t hi = vcvt_bf16_f32(x);
  const bfloat16x4_t lo = vcvt_bf16_f32(vsubq_f32(x, vcvt_f32_bf16(hi)));
  vst1q_u16(out, vcombine_u16(vreinterpret_u16_bf16(hi), vreinterpret_u16_bf16(lo)));
}

void Pack(WeightType type, const float* x, int64_t x_stride, int rows, int64_t n, float* out) {
  if (type != WeightType::kBf16) return kNeonI8mmKernels.pack(type, x, x_stride, rows, n, out);
  for (int r = 0; r < rows; ++r, x += x_stride, out += PackedWidth(n)) {
    auto* halves = reinterpret_cast<uint16_t*>(out);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) PackFour(vld1q_f32(x + k), halves + 2 * k);
    for (const int64_t end = (n + kStep - 1) / kStep * kStep; k < end; k += 4) {
      float padded[4] = {};
      for (int64_t i = k; i < n; ++i) padded[i - k] = x[i];
      PackFour(vld1q_f32(padded), halves + 2 * k);
    }
  }
}

inline bfloat16x8_t Brains(uint64x2_t bits) { return vreinterpretq_bf16_u64(bits); }
inline uint64x2_t Load8(const uint16_t* p) { return vreinterpretq_u64_u16(vld1q_u16(p)); }

// Where a tile is: the weights of two outputs for each pair, packed inputs, what is asked for.
struct Place {
  const uint16_t* weights;  // of the first output
  int64_t second;           // from an output to the second one of its pair; 0: there is none
  int64_t stride;           // from a pair to the next
  const float* x;
  int64_t x_stride, n;
};

// Adds one step: eight weights of an output are at weights(offset).
template <int P, int R, typename Weights>
__attribute__((always_inline)) inline void Multiply(const Place& at, int64_t k,
                                                    const Weights& weights, float32x4_t* sums) {
  uint64x2_t low[P], high[P];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
    const uint64x2_t a = weights(p * at.stride), b = weights(p * at.stride + at.second);
    low[p] = vtrn1q_u64(a, b);
    high[p] = vtrn2q_u64(a, b);
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const auto* x = reinterpret_cast<const uint16_t*>(at.x + r * at.x_stride + k);
    const bfloat16x8_t x0 = Brains(Load8(x)), x1 = Brains(Load8(x + 8));
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      float32x4_t& sum = sums[r * P + p];
      sum = vbfmmlaq_f32(sum, Brains(low[p]), x0);
      sum = vbfmmlaq_f32(sum, Brains(high[p]), x1);
    }
  }
}

// P pairs of outputs for R rows: sums[r * P + p] of hi and lo, of the first output, the second.
template <int P, int R>
inline void Tile(const Place& at, float32x4_t* sums) {
#pragma GCC unroll 16
  for (int i = 0; i < P * R; ++i) sums[i] = vdupq_n_f32(0.0f);
  int64_t k = 0;
  for (; k + kStep <= at.n; k += kStep) {
    // Of the next outputs as much, in the order of addresses.
    for (int i = 0; P > 1 && i < 2 * P * kStep; i += 32) {
      __builtin_prefetch(at.weights + P * at.stride + P * 2 * k + i, 0, 3);
    }
    Multiply<P, R>(
        at, k, [&](int64_t o) { return Load8(at.weights + o + k); }, sums);
  }
  if (k < at.n) {
    const auto rest = static_cast<size_t>(at.n - k) * sizeof(uint16_t);
    Multiply<P, R>(
        at, k,
        [&](int64_t o) {
          uint16_t padded[kStep] = {};
          std::memcpy(padded, at.weights + o + k, rest);
          return Load8(padded);
        },
        sums);
  }
}

// Pairs of outputs from `output` on, rows from `row` on.
template <int P, int R>
void TileToOutput(const MatMulArgs& args, int64_t output, bool has_second, int row) {
  const int64_t cols = args.w.cols, width = PackedWidth(cols);
  const Place at = {static_cast<const uint16_t*>(args.w.data) + output * cols,
                    has_second ? cols : 0,
                    2 * cols,
                    args.x + row * width,
                    width,
                    cols};
  float32x4_t sums[P * R];
  Tile<P, R>(at, sums);
  for (int r = 0; r < R; ++r) {
    const int64_t y_row = args.y_rows != nullptr ? args.y_rows[row + r] : row + r;
    float* y = args.y + y_row * args.y_stride + output;
    for (int p = 0; p < P; ++p) {
      float values[4];
      vst1q_f32(values, vpaddq_f32(sums[r * P + p], sums[r * P + p]));
      for (int i = 0; i < (has_second ? 2 : 1); ++i) {
        const int o = 2 * p + i;
        float value = values[i];
        if (args.bias != nullptr) value += args.bias[output + o];
        y[o] = args.add ? y[o] + value : value;
      }
    }
  }
}

template <int P, int R>
void RowsFrom(const MatMulArgs& args, int64_t output, bool has_second, int row, int end) {
  for (; row + R <= end; row += R) TileToOutput<P, R>(args, output, has_second, row);
  if constexpr (R > 1) {
    if (row < end) RowsFrom<P, R - 1>(args, output, has_second, row, end);
  }
}

// So many bytes of inputs stay in a level 2 cache while weights pass by.
constexpr int64_t kInputBytes = int64_t{1} << 19;

void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  if (args.w.type != WeightType::kBf16) return kNeonI8mmKernels.matmul(args, begin, end);
  const int64_t row_bytes = PackedWidth(args.w.cols) * static_cast<int64_t>(sizeof(float));
  const int64_t fit = kInputBytes / row_bytes / kRows * kRows;
  const int rows = static_cast<int>(fit < kRows ? kRows : fit < args.rows ? fit : args.rows);
  for (int row = 0; row < args.rows; row += rows) {
    const int row_end = row + rows < args.rows ? row + rows : args.rows;
    int64_t output = begin;
    for (; output + 2 * kPairs <= end; output += 2 * kPairs) {
      RowsFrom<kPairs, kRows>(args, output, true, row, row_end);
    }
    for (; output < end; output += 2) {
      RowsFrom<1, kRows>(args, output, output + 1 < end, row, row_end);
    }
  }
}

}  // namespace

const KernelSet& NeonBfmmlaKernels() {
  static const KernelSet kernels = [] {
    KernelSet set = kNeonI8mmKernels;
    set.name = "neon-bfmmla";
    set.pack = Pack;
    set.matmul = MatMul;
    return set;
  }();
  return kernels;
}

}  // namespace pawl
