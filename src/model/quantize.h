// Weights as integers with a scale for each group: made from floats at load, or from the blocks of
// a GGUF file (gguf_blocks.h), and their place in matrices.
#ifndef PAWL_SRC_MODEL_QUANTIZE_H_
#define PAWL_SRC_MODEL_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernels.h"
#include "src/model/gguf_blocks.h"

namespace pawl {

// Rounds floats to integers in groups of 32, padding with zeros.
//   kI8: scale = max |w| / 127                              |w - q scale| <= scale / 2
//   kI4: scale = w' / -8 for the w' of the largest |w'|     |w - q scale| <= scale / 2, or scale
//   where
//        that makes q 8, which is one too many
// up to the rounding of the scale to 11 bits; weights below 2^-18 may be lost. A group with a NaN,
// an infinity or a scale that is too large for a half becomes NaN.
constexpr int kQuantGroupShift = 5;
void QuantizeRow(WeightType type, const float* weights, int64_t cols, PackedRow& row);

// What a row of integers is worth.
void ReadPackedRow(const PackedFormat& format, const PackedRow& row, int64_t cols, float* out);

// All scales and minimums times a number, rounded to halves; with factors these alone.
void ScalePacked(float factor, PackedRow& row);

// A matrix of that format, without memory.
Matrix ShapeOf(const PackedFormat& format, int64_t rows, int64_t cols);
// Sets data, scales and minimums of a matrix whose other fields are set, in MatrixBytes of memory
// that begins at a multiple of four bytes, and fills the padding.
void PlacePacked(std::byte* memory, Matrix& matrix);
// REQUIRES: memory of PlacePacked.
void StoreRow(const PackedRow& row, int64_t index, const Matrix& matrix);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_QUANTIZE_H_
