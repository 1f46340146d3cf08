// Floats are copied row by row with their padding; integers are dealt out to the lanes that will
// read them, eight elements of a row at a time.
#include "kernels/cuda/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/cuda/float8.h"

namespace pawl {
namespace {

DeviceWeight TypeOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return DeviceWeight::kF32;
    case WeightType::kBf16:
      return DeviceWeight::kBf16;
    case WeightType::kF16:
      return DeviceWeight::kF16;
    case WeightType::kI8:
      return DeviceWeight::kI8;
    case WeightType::kI4:
      return DeviceWeight::kI4;
  }
  return DeviceWeight::kF32;
}

PackedMatrix Empty(DeviceWeight type, const Matrix& matrix) {
  PackedMatrix packed;
  packed.shape.type = type;
  packed.shape.rows = static_cast<int32_t>(matrix.rows);
  packed.shape.columns = static_cast<int32_t>(matrix.cols);
  packed.data.resize(
      static_cast<size_t>(MatrixBytes(type, packed.shape.rows, packed.shape.columns)));
  if (IsPacked(type)) {
    packed.shape.groups = type == DeviceWeight::kFp8 ? 1 : static_cast<int32_t>(matrix.groups);
    packed.shape.group_shift = type == DeviceWeight::kFp8 ? 30 : matrix.group_shift;
  }
  return packed;
}

size_t TableSize(const DeviceMatrix& shape, int32_t groups) {
  return static_cast<size_t>(RowTiles(shape.rows)) * kTileRows * static_cast<size_t>(groups);
}
size_t IndexIn(int32_t groups, int32_t row, int32_t group) {
  return static_cast<size_t>(TableIndex(groups, row, group));
}

// ---- The forms of scales ----

// The fp16 number that `value` is, if it is one; a NaN is.
std::optional<uint16_t> AsHalf(float value) {
  if (std::isnan(value)) return uint16_t{0x7e00};
  const float size = std::fabs(value);
  if (!(size <= 65504.0f)) return std::nullopt;
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  int exponent = 0;
  (void)std::frexp(size, &exponent);
  // Units in the last place: 2^-24 for subnormals, of which the smallest normal is the first.
  const int least = size == 0 || exponent < -13 ? -24 : exponent - 11;
  const float units = std::ldexp(size, -least);
  if (units != std::floor(units)) return std::nullopt;
  const auto fraction = static_cast<int>(units);
  if (least == -24 && fraction < 1024) return static_cast<uint16_t>(sign | fraction);
  return static_cast<uint16_t>(sign | (least + 25) << 10 | (fraction & 1023));
}

bool PutHalves(const Matrix& matrix, PackedMatrix& packed) {
  const DeviceMatrix& shape = packed.shape;
  std::vector<uint16_t> halves(TableSize(shape, shape.groups));
  for (int32_t r = 0; r < shape.rows; ++r) {
    for (int32_t g = 0; g < shape.groups; ++g) {
      const int64_t at = r * matrix.groups + g;
      const float scale = matrix.scales[at];
      const std::optional<uint16_t> half = AsHalf(scale);
      if (!half) return false;
      // The minimum of a group of NaNs does not matter.
      const bool minimum = matrix.type != WeightType::kI4 || std::isnan(scale) ||
                           matrix.minimums[at] == -8.0f * scale;
      if (!minimum) return false;
      halves[IndexIn(shape.groups, r, g)] = *half;
    }
  }
  packed.halves = std::move(halves);
  return true;
}

// An fp16 number of which eight numbers are multiples by 0 to 63.
struct Multiples {
  uint16_t unit = 0;
  uint32_t of[8] = {};
};
std::optional<Multiples> CommonUnit(const float* values, float sign) {
  Multiples found;
  const float most = *std::max_element(values, values + 8, [&](float a, float b) {
    return sign * a < sign * b;
  }) * sign;
  if (!std::all_of(values, values + 8, [&](float v) { return v * sign >= 0; })) return std::nullopt;
  if (most == 0) return found;
  for (int k = 63; k > 0; --k) {  // what makes such numbers gives the largest one the most
    const float unit = most / static_cast<float>(k);
    const std::optional<uint16_t> half = AsHalf(unit);
    if (!half) continue;
    found.unit = *half;
    const bool all = std::all_of(values, values + 8, [&](const float& v) {
      const float multiple = std::round(v * sign / unit);
      found.of[&v - values] = static_cast<uint32_t>(multiple);
      return unit * multiple == v * sign;
    });
    if (all) return found;
  }
  return std::nullopt;
}

bool PutNested(const Matrix& matrix, PackedMatrix& packed) {
  const DeviceMatrix& shape = packed.shape;
  if (matrix.type != WeightType::kI4 || matrix.group_shift != 5 || shape.groups % 8 != 0) {
    return false;
  }
  const int32_t blocks = shape.groups / 8;
  std::vector<uint32_t> nested(TableSize(shape, blocks) * 4);
  for (int32_t r = 0; r < shape.rows; ++r) {
    for (int32_t b = 0; b < blocks; ++b) {
      const int64_t at = r * matrix.groups + b * 8;
      const auto scales = CommonUnit(matrix.scales + at, 1.0f);
      const auto minimums = scales ? CommonUnit(matrix.minimums + at, -1.0f) : std::nullopt;
      if (!minimums) return false;
      uint32_t* words = nested.data() + 4 * IndexIn(blocks, r, b);
      words[0] = scales->unit | uint32_t{minimums->unit} << 16;
      for (int g = 0; g < 8; ++g) {
        const uint64_t code = uint64_t{scales->of[g] | minimums->of[g] << 6} << g * 12 % 32;
        words[1 + g * 12 / 32] |= static_cast<uint32_t>(code);
        if (code >> 32 != 0) words[2 + g * 12 / 32] |= static_cast<uint32_t>(code >> 32);
      }
    }
  }
  packed.nested = std::move(nested);
  return true;
}

void PutFloats(const Matrix& matrix, PackedMatrix& packed) {
  const DeviceMatrix& shape = packed.shape;
  packed.scales.resize(TableSize(shape, shape.groups));
  if (matrix.type == WeightType::kI4) packed.minimums.resize(packed.scales.size());
  for (int32_t r = 0; r < shape.rows; ++r) {
    for (int32_t g = 0; g < shape.groups; ++g) {
      const size_t at = IndexIn(shape.groups, r, g);
      packed.scales[at] = matrix.scales[r * matrix.groups + g];
      if (matrix.type == WeightType::kI4) {
        packed.minimums[at] = matrix.minimums[r * matrix.groups + g];
      }
    }
  }
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

PackedMatrix PackMatrix(const Matrix& matrix) {
  PackedMatrix packed = Empty(TypeOf(matrix.type), matrix);
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
  const int64_t stride = QuantStride(matrix.type, matrix.cols);
  std::vector<uint8_t> row(static_cast<size_t>(PaddedColumns(shape.columns)));
  for (int32_t r = 0; r < shape.rows; ++r) {
    const auto* from = static_cast<const uint8_t*>(matrix.data) + r * stride;
    for (size_t k = 0; k < row.size(); ++k) {
      if (matrix.type == WeightType::kI8) {
        row[k] = from[k];
      } else {
        const uint8_t byte = from[k / 32 * 16 + k % 16];
        row[k] = k % 32 < 16 ? byte & 15 : byte >> 4;
      }
    }
    PutRow(packed, r, row.data());
  }
  if (!PutHalves(matrix, packed) && !PutNested(matrix, packed)) PutFloats(matrix, packed);
  return packed;
}

PackedMatrix PackMatrixFp8(const Matrix& matrix, const KernelSet& kernels) {
  PackedMatrix packed = Empty(DeviceWeight::kFp8, matrix);
  const DeviceMatrix& shape = packed.shape;
  packed.scales.resize(TableSize(shape, 1));
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
    packed.scales[IndexIn(1, r, 0)] = finite ? scale : std::numeric_limits<float>::quiet_NaN();
  }
  return packed;
}

}  // namespace pawl
