// Weights as integers with a scale for each group: made from floats at load, or from the blocks of
// a GGUF file.
#ifndef PAWL_SRC_MODEL_QUANTIZE_H_
#define PAWL_SRC_MODEL_QUANTIZE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace pawl {

// A row of integers: a byte for each, as matrices store them (kI8: q + 128), padded to whole
// blocks; halves for each group.
struct PackedRow {
  std::vector<uint8_t> values;
  std::vector<uint16_t> scales;
  std::vector<uint16_t> minimums;  // or none
};

// The matrix that blocks of a GGUF type become.
struct PackedFormat {
  WeightType type;
  int group_shift;
  bool minimums;
  int64_t block_elements, block_bytes;  // of the source
};
// nullopt for types other than Q8_0, Q4_0, Q4_K and Q6_K.
std::optional<PackedFormat> FormatOfBlocks(std::string_view dtype);
// One row of `cols` weights, a multiple of the block's elements. The integers are those of the
// blocks. So are the scales of Q8_0 and Q4_0; those of Q4_K and Q6_K, which are products of two
// numbers, are rounded to 11 bits.
void PackBlocks(std::string_view dtype, const std::byte* blocks, int64_t cols, PackedRow& row);

// Rounds floats to integers in groups of 32, padding with zeros.
//   kI8: scale = max |w| / 127                              |w - q scale| <= scale / 2
//   kI4: scale = w' / -8 for the w' of the largest |w'|     |w - q scale| <= scale / 2, or scale
//   where
//        that makes q 8, which is one too many
// up to the rounding of the scale to 11 bits; weights below 2^-18 may be lost. A group with a NaN,
// an infinity or a scale that is too large for a half becomes NaN.
constexpr int kQuantGroupShift = 5;
void QuantizeRow(WeightType type, const float* weights, int64_t cols, PackedRow& row);

// The memory of a matrix of integers: its scales and minimums lie behind the integers.
int64_t PackedBytes(const Matrix& shape, bool minimums);
// Sets data, scales and minimums of a matrix whose other fields are set, and fills the padding.
void PlacePacked(std::byte* memory, bool minimums, Matrix& matrix);
// REQUIRES: memory of PlacePacked.
void StoreRow(const PackedRow& row, int64_t index, const Matrix& matrix);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_QUANTIZE_H_
