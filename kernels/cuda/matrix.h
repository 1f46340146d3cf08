// Weights on a device, and how they are packed for the kernels. Host code and kernels share this.
//
// Floats stay row-major, rows padded with zeros to whole blocks of 32, so that the same memory
// serves the kernels here and library products. One-byte and half-byte weights are packed in tiles
// of 16 rows and 32 columns, as a warp reads them: lane l of a warp finds at l times the
// lane's share the elements of the rows l / 4 and l / 4 + 8 of the tile. Of the 32 columns a lane
// takes eight, e = 0 .. 7 being column 16 (e / 4) + 4 (l % 4) + e % 4: the first four of each lane
// make up the first sixteen columns, so that groups of 16 columns stay apart.
#ifndef PAWL_KERNELS_CUDA_MATRIX_H_
#define PAWL_KERNELS_CUDA_MATRIX_H_

#include <cstdint>
#include <cstring>

#include "src/base/random.h"  // PAWL_HOST_DEVICE

namespace pawl {

// kFp8: e4m3 with one scale for each row. kI8, kI4: as WeightType of kernels/cpu/kernels.h, but the
// integers of kI8 are signed: a weight is worth q * scale, or q * scale + minimum.
enum class DeviceWeight : uint8_t { kF32, kBf16, kF16, kFp8, kI8, kI4 };

constexpr int kTileRows = 16;
constexpr int kTileColumns = 32;

PAWL_HOST_DEVICE constexpr bool IsPacked(DeviceWeight type) { return type >= DeviceWeight::kFp8; }

struct DeviceMatrix {
  const void* data = nullptr;
  DeviceWeight type = DeviceWeight::kBf16;
  int32_t rows = 0, columns = 0;
  // kI8, kI4: fp16 scales and, of kI4, fp16 minimums, or none, then the minimum is -8 times the
  // scale. Of group g of row r at TableIndex(groups, r, g), for all rows of the last tile.
  const uint16_t* scales = nullptr;
  const uint16_t* minimums = nullptr;
  const float* row_scales = nullptr;  // kFp8
  int32_t groups = 0;                 // of a row; kFp8: none
  int32_t group_shift = 0;            // 2^shift columns are a group
};

// The rows r and r + 8 of a tile, which a lane has both, are neighbours: one load.
PAWL_HOST_DEVICE constexpr int64_t TableIndex(int32_t groups, int32_t row, int32_t group) {
  return (int64_t{row / kTileRows} * groups + group) * kTileRows + row % 8 * 2 +
         row % kTileRows / 8;
}

PAWL_HOST_DEVICE constexpr int32_t PaddedColumns(int32_t columns) {
  return (columns + kTileColumns - 1) / kTileColumns * kTileColumns;
}
PAWL_HOST_DEVICE constexpr int32_t RowTiles(int32_t rows) {
  return (rows + kTileRows - 1) / kTileRows;
}

// Bytes of `data` in whole.
PAWL_HOST_DEVICE constexpr int64_t MatrixBytes(DeviceWeight type, int32_t rows, int32_t columns) {
  const int64_t row = type == DeviceWeight::kF32   ? PaddedColumns(columns) * int64_t{4}
                      : type == DeviceWeight::kI4  ? PaddedColumns(columns) / int64_t{2}
                      : type >= DeviceWeight::kFp8 ? int64_t{PaddedColumns(columns)}
                                                   : PaddedColumns(columns) * int64_t{2};
  return row * (IsPacked(type) ? int64_t{RowTiles(rows)} * kTileRows : int64_t{rows});
}

// Where the eight elements of a row that belong to the lanes l with l % 4 == `quarter` begin in a
// packed matrix, for the block of 32 columns `block`. kI4: four bytes, else eight.
PAWL_HOST_DEVICE constexpr int64_t PackedOffset(DeviceWeight type, int32_t columns, int32_t row,
                                                int32_t block, int quarter) {
  const int64_t share = type == DeviceWeight::kI4 ? 8 : 16;  // of a lane: two rows
  const int64_t tile = int64_t{row / kTileRows} * (PaddedColumns(columns) / kTileColumns) + block;
  const int64_t lane = (row % 8) * 4 + quarter;
  return (tile * 32 + lane) * share + (row % kTileRows) / 8 * (share / 2);
}
// The column of element e of that quarter within its block.
PAWL_HOST_DEVICE constexpr int PackedColumn(int quarter, int e) {
  return e / 4 * 16 + quarter * 4 + e % 4;
}
// kI4: element e is the half-byte PackedNibble(e) of a 32-bit word, counted from the lowest.
// Masking the word, moved by 4 i, with 0x000f000f gives the elements 2i and 2i + 1 in its halves.
PAWL_HOST_DEVICE constexpr int PackedNibble(int e) { return e / 2 + 4 * (e % 2); }

// FP8 e4m3 (Micikevicius et al., "FP8 Formats for Deep Learning", 2022) as host and kernels write
// it: no infinities, the largest number is 448.

// To nearest even; beyond 448, and NaN, to 448.
PAWL_HOST_DEVICE inline uint8_t FloatToE4m3(float value) {
  const bool negative = value < 0;
  float size = negative ? -value : value;
  if (!(size < 464.0f)) size = 448.0f;
  uint32_t bits;
  if (size < 0.015625f) {
    // Subnormal: a multiple of 2^-9, the last place of a number between 2^14 and 2^15.
    const float rounded = size + 16384.0f;
    memcpy(&bits, &rounded, sizeof bits);
    bits &= 0xffffu;
  } else {
    // Three of 23 digits stay, to nearest even; a carry goes on into the exponent.
    memcpy(&bits, &size, sizeof bits);
    bits += 0x7ffffu + (bits >> 20 & 1u);
    bits = (bits >> 20) - ((127u - 7u) << 3);
  }
  return static_cast<uint8_t>(bits | (negative ? 0x80u : 0u));
}

}  // namespace pawl

#endif  // PAWL_KERNELS_CUDA_MATRIX_H_
