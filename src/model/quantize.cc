// Rounding to integers goes group by group: the scale first, rounded to a half, then each weight to
// the nearest multiple of that half. A matrix of integers is one piece of memory: the integers in
// tiles of sixteen rows (kernels/cpu/integers.h), then the scales, then the minimums; with steps
// both have their factors in front. Rows are stored one by one, and any rows may be stored at once
// by several threads.
#include "src/model/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu/integers.h"
#include "src/base/half.h"

namespace pawl {
namespace {

constexpr uint16_t kNanHalf = 0x7e00;

// The integer that a group's padding and weights of 0 have.
uint8_t ZeroOf(WeightType type) { return type == WeightType::kI8 ? 128 : 8; }

}  // namespace

void QuantizeRow(WeightType type, const float* weights, int64_t cols, PackedRow& row) {
  const int64_t groups = QuantBlocks(cols);
  row.values.assign(static_cast<size_t>(groups * kQuantBlock), ZeroOf(type));
  row.scales.resize(static_cast<size_t>(groups));
  row.minimums.clear();
  row.factors.clear();
  row.minimum_factors.clear();
  const bool bytes = type == WeightType::kI8;
  const float zero = ZeroOf(type), least = bytes ? 1.0f : 0.0f, most = bytes ? 255.0f : 15.0f;
  for (int64_t g = 0; g < groups; ++g) {
    const float* w = weights + g * kQuantBlock;
    const int count = static_cast<int>(std::min(kQuantBlock, cols - g * kQuantBlock));
    float low = 0.0f, high = 0.0f, nothing = 0.0f;
    for (int i = 0; i < count; ++i) {
      low = std::min(low, w[i]);
      high = std::max(high, w[i]);
      nothing += w[i] * 0.0f;  // NaN unless all are finite
    }
    const float extreme = -low > high ? low : high;
    const uint16_t scale = FloatToHalf(bytes ? std::fabs(extreme) / 127.0f : extreme / -8.0f);
    const float step = HalfToFloat(scale);
    const bool good = nothing == 0.0f && std::isfinite(step);
    row.scales[static_cast<size_t>(g)] = good ? scale : kNanHalf;
    if (!good || step == 0.0f) continue;
    uint8_t* out = row.values.data() + g * kQuantBlock;
    const float inverse = 1.0f / step;
    for (int i = 0; i < count; ++i) {
      // Adding 2^23 rounds to an integer.
      const float shifted = std::clamp(w[i] * inverse + zero, least, most) + 8388608.0f;
      out[i] = static_cast<uint8_t>(static_cast<int>(shifted - 8388608.0f));
    }
  }
}

void ReadPackedRow(const PackedFormat& format, const PackedRow& row, int64_t cols, float* out) {
  const Matrix shape = ShapeOf(format, 1, cols);
  for (int64_t k = 0; k < cols; ++k) {
    const auto group = static_cast<size_t>(k >> format.group_shift);
    const auto block = static_cast<size_t>(k / kStepsBlock);
    const auto number = [&](const std::vector<uint16_t>& halves,
                            const std::vector<float>& factors) {
      if (format.steps == StepKind::kNone) return double{HalfToFloat(halves[group])};
      return double{StepWorth(format.steps, static_cast<uint8_t>(halves[group]))} * factors[block];
    };
    const double minimum = format.minimums ? number(row.minimums, row.minimum_factors) : 0.0;
    const int worth = WorthOf(shape, row.values[static_cast<size_t>(k)]);
    out[k] = static_cast<float>(worth * number(row.scales, row.factors) + minimum);
  }
}

void ScalePacked(float factor, PackedRow& row) {
  if (!row.factors.empty()) {
    // To 15 bits, as kernels need them.
    const auto scaled = [factor](float number) {
      return std::bit_cast<float>((std::bit_cast<uint32_t>(number * factor) + 0x100u) & ~0x1ffu);
    };
    for (float& number : row.factors) number = scaled(number);
    for (float& number : row.minimum_factors) number = scaled(number);
    return;
  }
  for (uint16_t& scale : row.scales) scale = FloatToHalf(HalfToFloat(scale) * factor);
  for (uint16_t& minimum : row.minimums) minimum = FloatToHalf(HalfToFloat(minimum) * factor);
}

Matrix ShapeOf(const PackedFormat& format, int64_t rows, int64_t cols) {
  Matrix shape;
  shape.type = format.type;
  shape.rows = rows;
  shape.cols = cols;
  shape.table = format.table;
  shape.has_minimums = format.minimums;
  shape.step_kind = format.steps;
  shape.group_shift = format.group_shift;
  shape.groups = QuantBlocks(cols) * kQuantBlock >> format.group_shift;
  return shape;
}

void PlacePacked(std::byte* memory, Matrix& matrix) {
  const int64_t bytes = QuantBytes(matrix.type, matrix.rows, matrix.cols);
  const int64_t rows = QuantTiles(matrix.rows) * kQuantTile;
  std::memset(memory + bytes, 0, static_cast<size_t>(MatrixBytes(matrix) - bytes));
  // Integers of rows that are padding: whatever they are, their scales are 0.
  const int64_t last = bytes / std::max<int64_t>(QuantTiles(matrix.rows), 1);
  std::memset(memory + bytes - last, 0, static_cast<size_t>(last));
  matrix.data = memory;
  std::byte* next = memory + bytes;
  const auto place = [&next, rows]<typename T>(const T*& pointer, int64_t count) {
    pointer = reinterpret_cast<const T*>(next);
    next += rows * count * static_cast<int64_t>(sizeof(T));
  };
  if (HasSteps(matrix)) {
    place(matrix.factors, StepBlocks(matrix));
    if (matrix.has_minimums) place(matrix.minimum_factors, StepBlocks(matrix));
    place(matrix.steps, matrix.groups);
    if (matrix.has_minimums) place(matrix.minimum_steps, matrix.groups);
  } else {
    place(matrix.scales, matrix.groups);
    if (matrix.has_minimums) place(matrix.minimums, matrix.groups);
  }
}

void StoreRow(const PackedRow& row, int64_t index, const Matrix& matrix) {
  StoreIntegers(matrix.type, matrix.cols, index, row.values.data(), const_cast<void*>(matrix.data));
  // Numbers of a row are sixteen apart.
  const auto store = [index]<typename From, typename To>(const std::vector<From>& from,
                                                         const To* to, int64_t count) {
    To* at = const_cast<To*>(to) + index / kQuantTile * count * kQuantTile + index % kQuantTile;
    for (int64_t i = 0; i < count; ++i) {
      at[i * kQuantTile] = static_cast<To>(from[static_cast<size_t>(i)]);
    }
  };
  if (!HasSteps(matrix)) {
    store(row.scales, matrix.scales, matrix.groups);
    if (matrix.has_minimums) store(row.minimums, matrix.minimums, matrix.groups);
    return;
  }
  store(row.scales, matrix.steps, matrix.groups);
  store(row.factors, matrix.factors, StepBlocks(matrix));
  if (!matrix.has_minimums) return;
  store(row.minimums, matrix.minimum_steps, matrix.groups);
  store(row.minimum_factors, matrix.minimum_factors, StepBlocks(matrix));
}

}  // namespace pawl
