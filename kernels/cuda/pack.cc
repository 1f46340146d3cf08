// Floats are copied row by row with their padding; integers are dealt out to the lanes that will
// read them, eight elements of a row at a time.
#include "kernels/cuda/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/integers.h"
#include "kernels/cuda/matrix.h"
#include "src/base/half.h"

namespace pawl {
namespace {

DeviceWeight TypeOf(const Matrix& matrix) {
  switch (matrix.type) {
    case WeightType::kF32:
      return DeviceWeight::kF32;
    case WeightType::kBf16:
      return DeviceWeight::kBf16;
    case WeightType::kF16:
      return DeviceWeight::kF16;
    case WeightType::kI4:
      return matrix.table != nullptr ? DeviceWeight::kI8 : DeviceWeight::kI4;
    default:
      return DeviceWeight::kI8;
  }
}

PackedMatrix Empty(DeviceWeight type, const Matrix& matrix) {
  PackedMatrix packed;
  packed.shape.type = type;
  packed.shape.rows = static_cast<int32_t>(matrix.rows);
  packed.shape.columns = static_cast<int32_t>(matrix.cols);
  packed.data.resize(
      static_cast<size_t>(MatrixBytes(type, packed.shape.rows, packed.shape.columns)));
  return packed;
}

// One row of bytes (kI4: of values 0 to 15, a byte each), padded with zeros to whole blocks.
void PutRow(PackedMatrix& packed, int32_t row, const uint8_t* values) {
  const DeviceMatrix& shape = packed.shape;
  auto* out = reinterpret_cast<uint8_t*>(packed.data.data());
  for (int32_t block = 0; block < PaddedColumns(shape.columns) / kTileColumns; ++block) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      uint8_t* to = out + PackedOffset(shape.type, shape.columns, row, block, quarter);
      for (int e = 0; e < 8; ++e) {
        const uint8_t value = values[block * kTileColumns + PackedColumn(quarter, e)];
        if (shape.type == DeviceWeight::kI4) {
          const int nibble = PackedNibble(e);
          to[nibble / 2] = static_cast<uint8_t>(to[nibble / 2] | value << 4 * (nibble % 2));
        } else {
          to[e] = value;
        }
      }
    }
  }
}

}  // namespace

bool CanPack(const Matrix& matrix) {
  return !matrix.has_minimums || matrix.type == WeightType::kI4;
}

PackedMatrix PackMatrix(const Matrix& matrix) {
  PackedMatrix packed = Empty(TypeOf(matrix), matrix);
  const DeviceMatrix& shape = packed.shape;
  if (!IsQuantized(matrix.type)) {
    const auto from = static_cast<size_t>(matrix.cols * WeightBytes(matrix.type));
    const auto to = static_cast<size_t>(PaddedColumns(shape.columns)) *
                    static_cast<size_t>(WeightBytes(matrix.type));
    const auto* data = static_cast<const std::byte*>(matrix.data);
    for (size_t r = 0; r < static_cast<size_t>(matrix.rows); ++r) {
      std::memcpy(packed.data.data() + r * to, data + r * from, from);
    }
    return packed;
  }
  static_assert(kTileRows == kQuantTile);
  packed.shape.groups = static_cast<int32_t>(matrix.groups);
  packed.shape.group_shift = matrix.group_shift;
  const auto table = RowTiles(shape.rows) * kTileRows * matrix.groups;
  packed.scales.assign(static_cast<size_t>(table), 0);
  packed.minimums.assign(matrix.has_minimums ? packed.scales.size() : 0, 0);
  for (int32_t r = 0; r < shape.rows; ++r) {
    for (int32_t g = 0; g < shape.groups; ++g) {
      const auto at = static_cast<size_t>(TableIndex(shape.groups, r, g));
      packed.scales[at] = FloatToHalf(ScaleAt(matrix, r, g));
      if (matrix.has_minimums) packed.minimums[at] = FloatToHalf(MinimumAt(matrix, r, g));
    }
  }
  const auto padded = static_cast<size_t>(PaddedColumns(shape.columns));
  const auto stored = static_cast<size_t>(QuantBlocks(matrix.cols) * kQuantBlock);
  std::vector<uint8_t> row(std::max(padded, stored));
  for (int32_t r = 0; r < shape.rows; ++r) {
    LoadIntegers(matrix, r, row.data());
    for (size_t k = 0; k < stored && shape.type == DeviceWeight::kI8; ++k) {
      row[k] = static_cast<uint8_t>(WorthOf(matrix, row[k]));
    }
    PutRow(packed, r, row.data());
  }
  return packed;
}

PackedMatrix PackMatrixFp8(const Matrix& matrix, const KernelSet& kernels) {
  PackedMatrix packed = Empty(DeviceWeight::kFp8, matrix);
  const DeviceMatrix& shape = packed.shape;
  packed.row_scales.resize(static_cast<size_t>(shape.rows));
  std::vector<float> row(static_cast<size_t>(matrix.cols));
  std::vector<uint8_t> codes(static_cast<size_t>(PaddedColumns(shape.columns)));
  for (int32_t r = 0; r < shape.rows; ++r) {
    kernels.read_row(matrix, r, row.data());
    float largest = 0;
    bool finite = true;
    for (const float v : row) {
      largest = std::max(largest, std::fabs(v));
      finite = finite && std::isfinite(v);
    }
    const float scale = largest / 448.0f;
    for (size_t k = 0; k < row.size(); ++k) {
      codes[k] = scale > 0 && finite ? FloatToE4m3(row[k] / scale) : uint8_t{0};
    }
    PutRow(packed, r, codes.data());
    packed.row_scales[static_cast<size_t>(r)] =
        finite ? scale : std::numeric_limits<float>::quiet_NaN();
  }
  return packed;
}

}  // namespace pawl
