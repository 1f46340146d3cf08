// What matmul.cuh, head.cuh and the library's products compute, in double precision, one output at
// a time, the obvious way. Arguments are those of the kernels with host memory behind their
// pointers. The tests (tests/cuda/matmul_test.cc) and the benchmark (bench/kernel_matmul.cc)
// compare with it.
#ifndef PAWL_KERNELS_CUDA_REFERENCE_MATMUL_H_
#define PAWL_KERNELS_CUDA_REFERENCE_MATMUL_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/matmul.h"

namespace pawl::PAWL_GPU::reference {

inline double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31, low = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(low, -24) : std::ldexp(1024 + low, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}
inline double Bf16Value(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
inline double E4m3Value(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const double size =
      exponent == 0 ? std::ldexp(code & 7, -9) : std::ldexp(8 + (code & 7), exponent - 10);
  return code >> 7 != 0 ? -size : size;
}

// What a weight is worth.
inline double WeightAt(const DeviceMatrix& w, int row, int column) {
  const int64_t plain = int64_t{row} * PaddedColumns(w.columns) + column;
  const auto* halves = static_cast<const uint16_t*>(w.data);
  if (w.type == DeviceWeight::kF32) return static_cast<const float*>(w.data)[plain];
  if (w.type == DeviceWeight::kBf16) return Bf16Value(halves[plain]);
  if (w.type == DeviceWeight::kF16) return HalfValue(halves[plain]);
  // Which quarter of its block of columns it belongs to, and which of the quarter's elements it is.
  struct Place {
    int quarter = 0, element = 0;
  };
  static const std::array<Place, kTileColumns> places = [] {
    std::array<Place, kTileColumns> made;
    for (int q = 0; q < 4; ++q) {
      for (int e = 0; e < 8; ++e) made[static_cast<size_t>(PackedColumn(q, e))] = {q, e};
    }
    return made;
  }();
  const auto [quarter, e] = places[static_cast<size_t>(column % kTileColumns)];
  const auto* at = static_cast<const uint8_t*>(w.data) +
                   PackedOffset(w.type, w.columns, row, column / kTileColumns, quarter);
  if (w.type == DeviceWeight::kFp8) return E4m3Value(at[e]) * w.row_scales[row];
  const int64_t group = TableIndex(w.groups, row, column >> w.group_shift);
  const double scale = HalfValue(w.scales[group]);
  if (w.type == DeviceWeight::kI8) return static_cast<int8_t>(at[e]) * scale;
  const int nibble = PackedNibble(e);
  const int q = at[nibble / 2] >> 4 * (nibble % 2) & 15;
  return q * scale + (w.minimums != nullptr ? HalfValue(w.minimums[group]) : -8 * scale);
}

inline double Activation(Gate gate, double v) {
  if (gate == Gate::kSilu) return v / (1 + std::exp(-v));
  const double u = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
  return v * (1 + std::tanh(u)) / 2;
}

// Result `output` of row r of x, of one of the parts. `before`: what y holds, for products that
// add. `terms`, if it is asked for, gains the sum of the squares of all that was added up: the
// scale that errors are to be measured by.
inline double MatMulAt(const MatMul& p, int part_index, int r, int output, double before = 0,
                       double* terms = nullptr) {
  const MatMulPart& part = p.parts[part_index];
  const int columns = part.w.columns;
  const float* x = p.x + int64_t{p.x_rows != nullptr ? p.x_rows[r] : r} * p.x_stride;
  double factor = 1;
  if (p.norm != nullptr) {
    double squares = 0;
    for (int k = 0; k < columns; ++k) squares += double{x[k]} * x[k];
    factor = 1 / std::sqrt(squares / columns + double{p.epsilon});
  }
  const int row = p.row_list != nullptr ? p.row_list[output] : output;
  double size = 1;
  const auto sum = [&](const DeviceMatrix& w, const float* bias) {
    double total = bias != nullptr ? bias[row] : 0;
    for (int k = 0; k < columns; ++k) {
      const double term = WeightAt(w, row, k) * x[k] * factor * (p.norm != nullptr ? p.norm[k] : 1);
      total += term;
      size += term * term;
    }
    return total;
  };
  double value = sum(part.w, part.bias);
  if (p.gate != Gate::kNone) {
    const double up = sum(part.up, part.up_bias);
    value = Activation(p.gate, value) * up;
    size *= std::fmax(1.0, up * up);
  }
  if (terms != nullptr) *terms += size;
  if (p.soft_cap > 0) value = p.soft_cap * std::tanh(value / p.soft_cap);
  return p.add ? before + value : value;
}

}  // namespace pawl::PAWL_GPU::reference

#endif  // PAWL_KERNELS_CUDA_REFERENCE_MATMUL_H_
