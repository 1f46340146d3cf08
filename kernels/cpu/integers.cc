// Writing and reading rows of integers in their tiles, for loading and for looking tokens up.
#include "kernels/cpu/integers.h"

#include <cstddef>

#include "src/base/half.h"

namespace pawl {
namespace {

// Where four neighbours of a row start, and in which half of their bytes they are.
struct Place {
  size_t byte;
  bool upper;
};
Place PlaceOf(WeightType type, int64_t cols, int64_t row, int64_t k) {
  const int64_t block = row / kQuantTile * QuantBlocks(cols) + k / kQuantBlock;
  const int64_t four = k % kQuantBlock / 4, lane = row % kQuantTile * 4;
  if (type == WeightType::kI8) return {static_cast<size_t>((block * 8 + four) * 64 + lane), false};
  return {static_cast<size_t>((block * 4 + four % 4) * 64 + lane), four >= 4};
}

}  // namespace

void StoreIntegers(WeightType type, int64_t cols, int64_t row, const uint8_t* values, void* data) {
  auto* bytes = static_cast<uint8_t*>(data);
  for (int64_t k = 0; k < QuantBlocks(cols) * kQuantBlock; k += 4) {
    const Place place = PlaceOf(type, cols, row, k);
    uint8_t* to = bytes + place.byte;
    for (int i = 0; i < 4; ++i) {
      if (type == WeightType::kI8) {
        to[i] = values[k + i];
      } else if (place.upper) {
        to[i] = static_cast<uint8_t>((to[i] & 15) | values[k + i] << 4);
      } else {
        to[i] = static_cast<uint8_t>((to[i] & 0xf0) | (values[k + i] & 15));
      }
    }
  }
}

void LoadIntegers(const Matrix& matrix, int64_t row, uint8_t* values) {
  const auto* bytes = static_cast<const uint8_t*>(matrix.data);
  for (int64_t k = 0; k < QuantBlocks(matrix.cols) * kQuantBlock; k += 4) {
    const Place place = PlaceOf(matrix.type, matrix.cols, row, k);
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t byte = bytes[place.byte + i];
      const bool whole = matrix.type == WeightType::kI8;
      values[k + static_cast<int64_t>(i)] = whole         ? byte
                                            : place.upper ? static_cast<uint8_t>(byte >> 4)
                                                          : static_cast<uint8_t>(byte & 15);
    }
  }
}

void ReadIntegerRow(const Matrix& matrix, int64_t row, float* out) {
  const auto* bytes = static_cast<const uint8_t*>(matrix.data);
  const int zero = matrix.type == WeightType::kI8 ? 128 : matrix.minimums != nullptr ? 0 : 8;
  for (int64_t k = 0; k < matrix.cols; k += 4) {
    const Place place = PlaceOf(matrix.type, matrix.cols, row, k);
    const int64_t group = GroupIndex(matrix, row, k >> matrix.group_shift);
    // In double precision nothing is rounded before the end.
    const double scale = HalfToFloat(matrix.scales[group]);
    const double minimum =
        matrix.minimums != nullptr ? double{HalfToFloat(matrix.minimums[group])} : 0.0;
    for (int64_t i = 0; i < 4 && k + i < matrix.cols; ++i) {
      int q = bytes[place.byte + static_cast<size_t>(i)];
      if (matrix.type == WeightType::kI4) q = place.upper ? q >> 4 : q & 15;
      out[k + i] = static_cast<float>(static_cast<double>(q - zero) * scale + minimum);
    }
  }
}

}  // namespace pawl
