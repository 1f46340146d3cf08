// Weights as integers with a scale for each group: made from floats at load, or from the blocks of
// a GGUF file, whose values are kept exactly.
#ifndef PAWL_SRC_MODEL_QUANTIZE_H_
#define PAWL_SRC_MODEL_QUANTIZE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/cpu/kernels.h"

namespace pawl {

// Where a row of integers goes; sizes by QuantStride and PackedFormat.
struct PackedRow {
  std::byte* data;
  float* scales;
  float* minimums;  // kI4
};

// The matrix that blocks of a GGUF type become.
struct PackedFormat {
  WeightType type;
  int group_shift;
  int64_t block_elements, block_bytes;  // of the source
};
// nullopt for types other than Q8_0, Q4_0, Q4_K and Q6_K.
std::optional<PackedFormat> FormatOfBlocks(std::string_view dtype);
// One row of `cols` weights, a multiple of the block's elements. Every weight keeps its value: the
// integers are those of the blocks, the scales products that float holds exactly.
void PackBlocks(std::string_view dtype, const std::byte* blocks, int64_t cols, PackedRow row);

// Rounds floats to integers in groups of 32, padding with zeros. Scales are fp16 numbers (where
// they fit), so that a device stores 8.5 and 4.5 bits for a weight; w is the group's weight that is
// farthest from zero.
//   kI8: scale = |w| / 127, minimum 0:      |error| <= scale / 2
//   kI4: scale = w / -8, minimum -8 scale:  |error| <= |scale| / 2, and up to |scale| for weights
//        near -w, as the integers from -8 to 7 reach farther on w's side
// each up to a rounding of float. A group with a NaN or an infinity becomes NaN.
constexpr int kQuantGroupShift = 5;
void QuantizeRow(WeightType type, const float* weights, int64_t cols, PackedRow row);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_QUANTIZE_H_
