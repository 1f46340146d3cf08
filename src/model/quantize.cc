// Rounding to integers goes group by group: the scale first, rounded to a half, then each weight to
// the nearest multiple of that half. A matrix of integers is one piece of memory: the integers in
// tiles of sixteen rows (kernels/cpu/integers.h), then the scales, then the minimums. Rows are
// stored one by one, and any rows may be stored at once by several threads.
#include "src/model/quantize.h"

#include <algorithm>
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
  const bool minimums = !row.minimums.empty();
  for (int64_t k = 0; k < cols; ++k) {
    const auto group = static_cast<size_t>(k >> format.group_shift);
    const int worth = minimums ? row.values[static_cast<size_t>(k)]
                               : WorthOf(shape, row.values[static_cast<size_t>(k)]);
    const double minimum = minimums ? double{HalfToFloat(row.minimums[group])} : 0.0;
    out[k] = static_cast<float>(worth * double{HalfToFloat(row.scales[group])} + minimum);
  }
}

void ScalePacked(float factor, PackedRow& row) {
  for (uint16_t& scale : row.scales) scale = FloatToHalf(HalfToFloat(scale) * factor);
  for (uint16_t& minimum : row.minimums) minimum = FloatToHalf(HalfToFloat(minimum) * factor);
}

Matrix ShapeOf(const PackedFormat& format, int64_t rows, int64_t cols) {
  Matrix shape;
  shape.type = format.type;
  shape.rows = rows;
  shape.cols = cols;
  shape.table = format.table;
  shape.group_shift = format.group_shift;
  shape.groups = QuantBlocks(cols) * kQuantBlock >> format.group_shift;
  return shape;
}

int64_t PackedBytes(const Matrix& shape, bool minimums) {
  const int64_t groups = QuantTiles(shape.rows) * kQuantTile * shape.groups;
  return QuantBytes(shape.type, shape.rows, shape.cols) + groups * (minimums ? 4 : 2);
}

void PlacePacked(std::byte* memory, bool minimums, Matrix& matrix) {
  const int64_t bytes = QuantBytes(matrix.type, matrix.rows, matrix.cols);
  const int64_t groups = QuantTiles(matrix.rows) * kQuantTile * matrix.groups;
  std::memset(memory + bytes, 0, static_cast<size_t>(PackedBytes(matrix, minimums) - bytes));
  // Integers of rows that are padding: whatever they are, their scales are 0.
  const int64_t last = bytes / std::max<int64_t>(QuantTiles(matrix.rows), 1);
  std::memset(memory + bytes - last, 0, static_cast<size_t>(last));
  matrix.data = memory;
  matrix.scales = reinterpret_cast<const uint16_t*>(memory + bytes);
  matrix.minimums = minimums ? matrix.scales + groups : nullptr;
}

void StoreRow(const PackedRow& row, int64_t index, const Matrix& matrix) {
  StoreIntegers(matrix.type, matrix.cols, index, row.values.data(), const_cast<void*>(matrix.data));
  for (int64_t g = 0; g < matrix.groups; ++g) {
    const int64_t to = GroupIndex(matrix, index, g);
    const_cast<uint16_t*>(matrix.scales)[to] = row.scales[static_cast<size_t>(g)];
    if (matrix.minimums == nullptr) continue;
    const_cast<uint16_t*>(matrix.minimums)[to] = row.minimums[static_cast<size_t>(g)];
  }
}

}  // namespace pawl
