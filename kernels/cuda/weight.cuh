// A single weight of a matrix, and the scale of a group of them.
#ifndef PAWL_KERNELS_CUDA_WEIGHT_CUH_
#define PAWL_KERNELS_CUDA_WEIGHT_CUH_

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/matrix.h"

namespace pawl::PAWL_GPU {

// What a group is worth: kI8 q scale, kI4 q scale + minimum.
struct GroupScale {
  float scale, minimum;
};
__device__ __forceinline__ GroupScale ScaleOf(const DeviceMatrix& w, int row, int group) {
  const int64_t at = TableIndex(w.groups, row, group);
  const float scale = HalfToFloat(w.scales[at]);
  return {scale, w.minimums != nullptr ? HalfToFloat(w.minimums[at]) : -8.0f * scale};
}

// One weight, as the products see it.
__device__ inline float WeightAt(const DeviceMatrix& w, int row, int column) {
  const int64_t plain = static_cast<int64_t>(row) * PaddedColumns(w.columns) + column;
  if (w.type == DeviceWeight::kF32) return static_cast<const float*>(w.data)[plain];
  if (w.type == DeviceWeight::kBf16) {
    return Bf16ToFloat(static_cast<const uint16_t*>(w.data)[plain]);
  }
  if (w.type == DeviceWeight::kF16) {
    return HalfToFloat(static_cast<const uint16_t*>(w.data)[plain]);
  }
  const int within = column % kTileColumns;
  const int quarter = within % 16 / 4, e = within / 16 * 4 + within % 4;
  const uint8_t* at = static_cast<const uint8_t*>(w.data) +
                      PackedOffset(w.type, w.columns, row, column / kTileColumns, quarter);
  if (w.type == DeviceWeight::kFp8) return E4m3ToFloat(at[e]) * w.row_scales[row];
  const GroupScale group = ScaleOf(w, row, column >> w.group_shift);
  if (w.type == DeviceWeight::kI8) {
    return static_cast<float>(static_cast<int8_t>(at[e])) * group.scale;
  }
  const int nibble = PackedNibble(e);
  const int q = at[nibble / 2] >> 4 * (nibble % 2) & 15;
  return Fma(static_cast<float>(q), group.scale, group.minimum);
}

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_WEIGHT_CUH_
