// A single weight of a matrix, and the scale of a group of them.
#ifndef PAWL_KERNELS_CUDA_WEIGHT_CUH_
#define PAWL_KERNELS_CUDA_WEIGHT_CUH_

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/matrix.h"

namespace pawl::PAWL_GPU {

// What a group of kI8 or kI4 is worth: q scale + minimum.
struct GroupScale {
  float scale, minimum;
};
__device__ __forceinline__ GroupScale ScaleOf(const DeviceMatrix& w, int row, int group) {
  if (w.halves != nullptr) {
    const float scale = HalfToFloat(w.halves[TableIndex(w.groups, row, group)]);
    return {scale, -8.0f * scale};
  }
  if (w.nested != nullptr) {
    const int64_t at = 4 * TableIndex(w.groups / 8, row, group / 8);
    const uint4 all = *reinterpret_cast<const uint4*>(w.nested + at);
    const int bit = group % 8 * 12;
    // Three words of codes; a code may lie across two of them.
    const uint32_t low = bit < 32 ? all.y : bit < 64 ? all.z : all.w;
    const uint32_t high = bit < 32 ? all.z : all.w;
    const auto code =
        static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> bit % 32) & 0xfffu;
    return {HalfToFloat(static_cast<uint16_t>(all.x)) * static_cast<float>(code & 63u),
            -(HalfToFloat(static_cast<uint16_t>(all.x >> 16)) * static_cast<float>(code >> 6))};
  }
  const int64_t at = TableIndex(w.groups, row, group);
  return {w.scales[at], w.minimums != nullptr ? w.minimums[at] : 0.0f};
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
  if (w.type == DeviceWeight::kFp8) return E4m3ToFloat(at[e]) * w.scales[row];
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
