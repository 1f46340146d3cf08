// From a matrix as the CPU kernels have it to one as the CUDA kernels want it (matrix.h), in host
// memory.
#ifndef PAWL_KERNELS_CUDA_PACK_H_
#define PAWL_KERNELS_CUDA_PACK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "kernels/cuda/matrix.h"

namespace pawl {

// The bytes that DeviceMatrix points to. Tables are empty where a type has none.
struct PackedMatrix {
  DeviceMatrix shape;  // its pointers are null
  std::vector<std::byte> data;
  std::vector<uint16_t> scales, minimums;
  std::vector<float> row_scales;
  int64_t bytes() const {
    return static_cast<int64_t>(data.size() + (scales.size() + minimums.size()) * sizeof(uint16_t) +
                                row_scales.size() * sizeof(float));
  }
};

// Whether the CUDA kernels have a matrix for these weights. Those of five and of two bits with
// minimums (Q5_1, Q5_K and Q2_K of GGUF) are for the CPU alone.
bool CanPack(const Matrix& matrix);

// Every weight keeps its value: integers that are no kI4 with minimums or without, those of tables
// included, become kI8. REQUIRES: CanPack; fewer than 2^31 rows and columns.
PackedMatrix PackMatrix(const Matrix& matrix);

// Rounded to e4m3 with a scale for each row, its largest weight / 448. Rows with a NaN or an
// infinity become NaN.
PackedMatrix PackMatrixFp8(const Matrix& matrix, const KernelSet& kernels);

}  // namespace pawl

#endif  // PAWL_KERNELS_CUDA_PACK_H_
