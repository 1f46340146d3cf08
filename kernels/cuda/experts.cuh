// Products of experts: each slot's row with the matrices of its expert. A block computes 16 outputs
// of one expert for all slots that have it, so an expert's weights come from memory once, and those
// of experts that no row has chosen never do. Which experts these are is read from device memory:
// the grid has as many runs as there can be, and blocks beyond those that there are end at once.
//
// A block goes through a run's slots by eights, or by eight eights where runs are long; the weights
// of later passes come from the L2 cache. Sums are those of matmul.cuh, in its order, so a slot has
// the same bits whatever its run's length and its place there.
#ifndef PAWL_KERNELS_CUDA_EXPERTS_CUH_
#define PAWL_KERNELS_CUDA_EXPERTS_CUH_

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/matmul.cuh"

namespace pawl::PAWL_GPU {

__device__ __forceinline__ DeviceMatrix MatrixOf(const ExpertMatrices& all, int expert) {
  DeviceMatrix matrix = all.first;
  const int64_t e = expert;
  matrix.data = static_cast<const char*>(matrix.data) + e * all.data_stride;
  if (matrix.scales != nullptr) matrix.scales += e * all.scales_stride;
  if (matrix.minimums != nullptr) matrix.minimums += e * all.scales_stride;
  if (matrix.row_scales != nullptr) matrix.row_scales += e * all.row_scales_stride;
  return matrix;
}

// act(gate) . up, clamped or not. What is not a number stays so.
__device__ __forceinline__ float GateOf(const ExpertProducts& p, float gate, float up) {
  if (p.clamp == 0.0f) return Activate(p.gate, gate) * up;
  gate = gate > p.clamp ? p.clamp : gate;
  up = up > p.clamp ? p.clamp : up < -p.clamp ? -p.clamp : up;
  return (up + 1.0f) * (gate / (1.0f + expf(-1.702f * gate)));
}

// Blocks that a multiprocessor should have registers for: with three, some of them would be in
// memory.
template <DeviceWeight W, int kEights, bool kGated>
constexpr int kExpertBlocks = BlocksTogether(W, kGated ? 2 : 1, kEights) < 2 ? 1 : 2;

// Grid: tiles of 16 outputs, runs. With a gate the second tile is the other factor's.
template <DeviceWeight W, int kEights, bool kGated>
__global__ __launch_bounds__(
    kMatMulThreads, (kExpertBlocks<W, kEights, kGated>)) void ExpertsKernel(ExpertProducts p) {
  constexpr int kTiles = kGated ? 2 : 1, kRows = kEights * 8;
  PAWL_SHARED(float, sums, kMatMulWarps* kTiles* kTileRows * 8);
  PAWL_SHARED(float, squares_of_warps, kMatMulWarps* kEights * 8);
  PAWL_SHARED(float, inverse_norms, kEights * 8);
  DependencyWait();
  if (static_cast<int>(blockIdx.y) >= *p.run_count) return;
  const ExpertRun run = p.runs[blockIdx.y];
  MatMulPart part;
  part.w = MatrixOf(p.w, run.expert);
  part.up = MatrixOf(p.up, run.expert);
  const float* bias = p.w.bias != nullptr ? p.w.bias + run.expert * p.w.bias_stride : nullptr;
  const float* up_bias = p.up.bias != nullptr ? p.up.bias + run.expert * p.up.bias_stride : nullptr;
  const int outputs = part.w.rows, tile = static_cast<int>(blockIdx.x);
  const int g = static_cast<int>(threadIdx.x) % kWarpSize / 4;
  int row_of[kTiles][2];
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = tile * kTileRows + h * 8 + g;
      // Packed weights have memory for all rows of the last tile.
      row_of[t][h] = IsPacked(W) || row < outputs ? row : outputs - 1;
    }
  }
  for (int first = 0; first < run.count; first += kRows) {
    MatMul rows;
    rows.x = p.x;
    rows.x_stride = p.x_stride;
    rows.x_rows = p.x_rows + run.begin + first;
    rows.rows = run.count - first < kRows ? run.count - first : kRows;
    rows.norm = p.norm;
    rows.epsilon = p.epsilon;
    float acc[kTiles][kEights][4];
    float squares[kEights];
    TileProduct<W, kTiles, kEights, kGated> product(part, row_of, IsPacked(W));
    product.Sums(rows, acc, squares);
    InverseNorms<kEights>(rows, part.w.columns, squares, squares_of_warps, inverse_norms);
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      __syncthreads();
      ShareSums<kTiles, kEights>(acc, n, sums);
      __syncthreads();
      const auto total = [&](int t, int row, int column) {
        const float sum = TileTotal<kTiles>(sums, t, row, column);
        return p.norm != nullptr ? sum * inverse_norms[n * 8 + column] : sum;
      };
      const int i = static_cast<int>(threadIdx.x);
      const int row = i % kTileRows, column = i / kTileRows, r = n * 8 + column;
      const int output = tile * kTileRows + row;
      if (column >= 8 || output >= outputs || r >= rows.rows) continue;
      float value = total(0, row, column);
      if constexpr (W == DeviceWeight::kFp8) value *= part.w.row_scales[output];
      if (bias != nullptr) value += bias[output];
      if constexpr (kGated) {
        float factor = total(1, row, column);
        if constexpr (W == DeviceWeight::kFp8) factor *= part.up.row_scales[output];
        if (up_bias != nullptr) factor += up_bias[output];
        value = GateOf(p, value, factor);
      }
      const int slot = p.slots[run.begin + first + r];
      p.y[static_cast<int64_t>(slot) * p.y_stride + output] = value;
    }
    __syncthreads();
  }
}

template <DeviceWeight W, int kEights>
Status LaunchExpertsOf(const ExpertProducts& args, Stream stream) {
  Shape shape;
  shape.threads = kMatMulThreads;
  shape.x = static_cast<unsigned>(RowTiles(args.w.first.rows));
  shape.y = static_cast<unsigned>(args.most_runs);
  if (args.gate != Gate::kNone) {
    return Launch("experts.gated", shape, stream, ExpertsKernel<W, kEights, true>, args);
  }
  return Launch("experts", shape, stream, ExpertsKernel<W, kEights, false>, args);
}

template <DeviceWeight W>
Status LaunchExperts(const ExpertProducts& args, Stream stream) {
  return args.slots_a_run <= 8 ? LaunchExpertsOf<W, 1>(args, stream)
                               : LaunchExpertsOf<W, 8>(args, stream);
}

Status ExpertsF32(const ExpertProducts& args, Stream stream);
Status ExpertsBf16(const ExpertProducts& args, Stream stream);
Status ExpertsF16(const ExpertProducts& args, Stream stream);
Status ExpertsFp8(const ExpertProducts& args, Stream stream);
Status ExpertsI8(const ExpertProducts& args, Stream stream);
Status ExpertsI4(const ExpertProducts& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_EXPERTS_CUH_
