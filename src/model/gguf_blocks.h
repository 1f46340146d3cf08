// The quantized tensor types of GGUF files, unpacked to rows of integers with a scale, and perhaps
// a minimum, for each group: what the kernels' matrices of integers hold.
//
//   const PackedFormat format = *FormatOfBlocks("Q5_K");  // five bits, groups of 32, minimums
//   PackBlocks("Q5_K", blocks, cols, row);
#ifndef PAWL_SRC_MODEL_GGUF_BLOCKS_H_
#define PAWL_SRC_MODEL_GGUF_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace pawl {

// A row of integers: a byte for each, as matrices store them (without minimums or table: q +
// 2^(bits - 1)), padded to whole blocks; halves for each group. With steps these are bytes, for
// numbers times the factor of their 256 neighbours (Matrix).
struct PackedRow {
  std::vector<uint8_t> values;
  std::vector<uint16_t> scales;
  std::vector<uint16_t> minimums;               // or none
  std::vector<float> factors, minimum_factors;  // or none
};

// The matrix that blocks of a type become.
struct PackedFormat {
  WeightType type = WeightType::kI8;
  int group_shift = 5;
  bool minimums = false;
  const int8_t* table = nullptr;
  int64_t block_elements = 0, block_bytes = 0;  // of the source
  StepKind steps = StepKind::kNone;             // in place of halves
};
// nullopt for types that are not quantized, or not known.
std::optional<PackedFormat> FormatOfBlocks(std::string_view dtype);
// The names of the types, as errors list them.
std::string_view NamesOfBlocks();

// One row of `cols` weights, a multiple of the block's elements. The integers are those of the
// blocks. So are the scales and minimums of types that state them as halves (Q8_0, Q5_0, Q5_1,
// Q4_0, Q4_1, IQ4_NL, TQ1_0, TQ2_0), as steps of a factor (the K types, IQ4_XS, NVFP4, those with
// grids), or as powers of two (MXFP4) from 2^-24 on; MXFP4's weights under that are rounded to
// multiples of 2^-24, and those of scales above 2^100 are infinite.
void PackBlocks(std::string_view dtype, const std::byte* blocks, int64_t cols, PackedRow& row);

// Where one block's integers, scales and minimums go, and how one type's blocks are unpacked.
struct BlockOut {
  uint8_t* values;
  uint16_t* scales;
  uint16_t* minimums;
  float *factor, *minimum_factor;  // with steps
};
struct BlockType {
  const char* name;
  PackedFormat format;
  void (*unpack)(const uint8_t* block, const BlockOut& out);
};
// The types whose weights come from a grid of vectors (gguf_blocks.cc), nullptr for others.
const BlockType* FindGridType(std::string_view dtype);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_BLOCKS_H_
