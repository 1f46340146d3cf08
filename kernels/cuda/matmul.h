// Products of weights with few rows of activations (decode, verify, small chunks), with what comes
// before and after them in a transformer layer folded in. Kernels: matmul.cuh.
#ifndef PAWL_KERNELS_CUDA_MATMUL_H_
#define PAWL_KERNELS_CUDA_MATMUL_H_

#include <cstdint>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/matrix.h"
#include "kernels/cuda/runtime.h"

namespace pawl::PAWL_GPU {

constexpr int kMostSkinnyRows = 64;

enum class Gate : uint8_t { kNone, kSilu, kGeluTanh };

// y[r] = w x[r] (+ bias), for one of up to three matrices that read the same x.
struct MatMulPart {
  DeviceMatrix w;
  const float* bias = nullptr;  // or none
  DeviceMatrix up;              // with a gate: y = act(w x + bias) . (up x + up_bias)
  const float* up_bias = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;  // floats from row to row
};

struct MatMul {
  MatMulPart parts[3];
  int part_count = 1;  // of one type of weights
  // Row r at x + r * x_stride, 16-byte aligned; floats.
  const float* x = nullptr;
  int64_t x_stride = 0;
  const int32_t* x_rows = nullptr;  // not null: row r is row x_rows[r] of x
  int rows = 0;                     // at most kMostSkinnyRows
  // Not null: x is normed first, x / sqrt(mean(x^2) + epsilon) * norm. [columns, padded to 32]
  const float* norm = nullptr;
  float epsilon = 0.0f;
  Gate gate = Gate::kNone;
  bool add = false;       // y += instead of y =
  float soft_cap = 0.0f;  // c: results v become c tanh(v / c)
  // Not null: only these rows of w, ascending, results in the order of the list; how many is read
  // from the device. One part, no gate.
  const int32_t* row_list = nullptr;
  const int32_t* row_list_count = nullptr;
  // Not null: not_finite[r] is set to 1 when a result of row r is NaN or infinite.
  int32_t* not_finite = nullptr;
};

// Errors: kInternal when the launch fails.
Status RunMatMul(const MatMul& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_MATMUL_H_
