// The block types are ggml's (ggml-quants.c): Q8_0 and Q4_0 have a half-precision scale for 32
// weights; Q4_K has 256 weights in eight groups with 6-bit scales and minimums of half-precision
// ones; Q6_K has 256 weights in sixteen groups with 8-bit scales of a half-precision one. Such a
// product is a multiple of the smallest half, so rounding it to a half costs 2^-11 of it at most.
#include "src/model/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/integers.h"
#include "src/base/half.h"

namespace pawl {
namespace {

constexpr uint16_t kNanHalf = 0x7e00;

uint16_t BitsAt(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}
float HalfAt(const uint8_t* p) { return HalfToFloat(BitsAt(p)); }

void PackQ4K(const uint8_t* block, uint8_t* out, uint16_t* scales, uint16_t* minimums) {
  const float d = HalfAt(block), dmin = HalfAt(block + 2);
  const uint8_t* packed = block + 4;
  const uint8_t* q = block + 16;
  for (int g = 0; g < 8; ++g) {
    int scale = packed[g] & 63, minimum = packed[g + 4] & 63;
    if (g >= 4) {
      scale = (packed[g + 4] & 15) | (packed[g - 4] >> 6) << 4;
      minimum = packed[g + 4] >> 4 | (packed[g] >> 6) << 4;
    }
    scales[g] = FloatToHalf(d * static_cast<float>(scale));
    minimums[g] = FloatToHalf(-(dmin * static_cast<float>(minimum)));
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = q[g / 2 * 32 + i];
      out[g * 32 + i] = g % 2 == 0 ? byte & 15 : byte >> 4;
    }
  }
}

void PackQ6K(const uint8_t* block, uint8_t* out, uint16_t* scales) {
  const uint8_t* low = block;
  const uint8_t* high = block + 128;
  const auto* group_scales = reinterpret_cast<const int8_t*>(block + 192);
  const float d = HalfAt(block + 208);
  for (int g = 0; g < 16; ++g) scales[g] = FloatToHalf(d * static_cast<float>(group_scales[g]));
  for (int i = 0; i < 256; ++i) {
    // Halves of 128; in each, four runs of 32 share the bytes of `high`.
    const int half = i / 128, run = i % 128 / 32, at = i % 32;
    const uint8_t byte = low[half * 64 + run % 2 * 32 + at];
    const int four = run < 2 ? byte & 15 : byte >> 4;
    const int two = high[half * 32 + at] >> 2 * run & 3;
    out[i] = static_cast<uint8_t>((four | two << 4) - 32 + 128);
  }
}

// The integer that a group's padding and weights of 0 have.
uint8_t ZeroOf(WeightType type) { return type == WeightType::kI8 ? 128 : 8; }

}  // namespace

std::optional<PackedFormat> FormatOfBlocks(std::string_view dtype) {
  if (dtype == "Q8_0") return PackedFormat{WeightType::kI8, 5, false, 32, 34};
  if (dtype == "Q4_0") return PackedFormat{WeightType::kI4, 5, false, 32, 18};
  if (dtype == "Q4_K") return PackedFormat{WeightType::kI4, 5, true, 256, 144};
  if (dtype == "Q6_K") return PackedFormat{WeightType::kI8, 4, false, 256, 210};
  return std::nullopt;
}

void PackBlocks(std::string_view dtype, const std::byte* blocks, int64_t cols, PackedRow& row) {
  const PackedFormat format = *FormatOfBlocks(dtype);
  row.values.resize(static_cast<size_t>(cols));
  row.scales.resize(static_cast<size_t>(cols >> format.group_shift));
  row.minimums.resize(format.minimums ? row.scales.size() : 0);
  for (int64_t b = 0; b < cols / format.block_elements; ++b) {
    const auto* block = reinterpret_cast<const uint8_t*>(blocks) + b * format.block_bytes;
    uint8_t* out = row.values.data() + b * format.block_elements;
    if (dtype == "Q8_0") {
      row.scales[static_cast<size_t>(b)] = BitsAt(block);
      for (int i = 0; i < 32; ++i) out[i] = block[2 + i] ^ 128;
    } else if (dtype == "Q4_0") {
      row.scales[static_cast<size_t>(b)] = BitsAt(block);
      for (int i = 0; i < 16; ++i) {
        out[i] = block[2 + i] & 15;
        out[i + 16] = block[2 + i] >> 4;
      }
    } else if (dtype == "Q4_K") {
      PackQ4K(block, out, row.scales.data() + b * 8, row.minimums.data() + b * 8);
    } else {
      PackQ6K(block, out, row.scales.data() + b * 16);
    }
  }
}

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
