// A single weight of a matrix, for kernels that are not products.
#ifndef PAWL_KERNELS_CUDA_WEIGHT_CUH_
#define PAWL_KERNELS_CUDA_WEIGHT_CUH_

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/matrix.h"

namespace pawl::PAWL_GPU {

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
  const int group = w.type == DeviceWeight::kFp8 ? 0 : column >> w.group_shift;
  const int64_t table =
      (static_cast<int64_t>(row / kTileRows) * w.groups + group) * kTileRows + row % kTileRows;
  const float scale = w.scales[table];
  if (w.type == DeviceWeight::kFp8) return E4m3ToFloat(at[e]) * scale;
  if (w.type == DeviceWeight::kI8) return static_cast<float>(static_cast<int8_t>(at[e])) * scale;
  const int nibble = PackedNibble(e);
  const int q = at[nibble / 2] >> 4 * (nibble % 2) & 15;
  return Fma(static_cast<float>(q), scale, w.minimums[table]);
}

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_WEIGHT_CUH_
