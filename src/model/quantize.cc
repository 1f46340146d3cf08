// The block types are ggml's (ggml-quants.c): Q8_0 and Q4_0 have a half-precision scale for 32
// weights; Q4_K has 256 weights in eight groups with 6-bit scales and minimums of half-precision
// ones; Q6_K has 256 weights in sixteen groups with 8-bit scales of a half-precision one. A product
// of an 11-bit and an 8-bit fraction fits float's 24 bits, so nothing is rounded here.
#include "src/model/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pawl {
namespace {

float HalfAt(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023u;
  uint32_t wide = sign | (exponent + 112) << 23 | fraction << 13;
  if (exponent == 31) wide = sign | 0x7f800000u | fraction << 13;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  if (exponent == 0) value = std::ldexp(static_cast<float>(fraction), -24) * (sign != 0 ? -1 : 1);
  return value;
}

// To the nearest fp16 number away from zero, so that what a scale is made from stays within reach.
// Beyond fp16 it stays as it is.
float RoundToHalf(float value) {
  const float size = std::fabs(value);
  if (size == 0 || !(size <= 65504.0f)) return value;
  int exponent = 0;
  (void)std::frexp(size, &exponent);
  const int least = std::max(exponent - 11, -24);
  return std::copysign(std::ldexp(std::ceil(std::ldexp(size, -least)), least), value);
}

// Element i of a block of 32 in the layout of kI4.
void PutHalf(uint8_t* block, int i, int value) {
  block[i % 16] = static_cast<uint8_t>(block[i % 16] | value << (i < 16 ? 0 : 4));
}

void PackQ4K(const uint8_t* block, uint8_t* out, float* scales, float* minimums) {
  const float d = HalfAt(block), dmin = HalfAt(block + 2);
  const uint8_t* packed = block + 4;
  const uint8_t* q = block + 16;
  for (int g = 0; g < 8; ++g) {
    int scale = packed[g] & 63, minimum = packed[g + 4] & 63;
    if (g >= 4) {
      scale = (packed[g + 4] & 15) | (packed[g - 4] >> 6) << 4;
      minimum = packed[g + 4] >> 4 | (packed[g] >> 6) << 4;
    }
    scales[g] = d * static_cast<float>(scale);
    minimums[g] = -(dmin * static_cast<float>(minimum));
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = q[g / 2 * 32 + i];
      PutHalf(out + g * 16, i, g % 2 == 0 ? byte & 15 : byte >> 4);
    }
  }
}

void PackQ6K(const uint8_t* block, int8_t* out, float* scales) {
  const uint8_t* low = block;
  const uint8_t* high = block + 128;
  const auto* group_scales = reinterpret_cast<const int8_t*>(block + 192);
  const float d = HalfAt(block + 208);
  for (int g = 0; g < 16; ++g) scales[g] = d * static_cast<float>(group_scales[g]);
  for (int i = 0; i < 256; ++i) {
    // Halves of 128; in each, four runs of 32 share the bytes of `high`.
    const int half = i / 128, run = i % 128 / 32, at = i % 32;
    const uint8_t byte = low[half * 64 + run % 2 * 32 + at];
    const int four = run < 2 ? byte & 15 : byte >> 4;
    const int two = high[half * 32 + at] >> 2 * run & 3;
    out[i] = static_cast<int8_t>((four | two << 4) - 32);
  }
}

}  // namespace

std::optional<PackedFormat> FormatOfBlocks(std::string_view dtype) {
  if (dtype == "Q8_0") return PackedFormat{WeightType::kI8, 5, 32, 34};
  if (dtype == "Q4_0") return PackedFormat{WeightType::kI4, 5, 32, 18};
  if (dtype == "Q4_K") return PackedFormat{WeightType::kI4, 5, 256, 144};
  if (dtype == "Q6_K") return PackedFormat{WeightType::kI8, 4, 256, 210};
  return std::nullopt;
}

void PackBlocks(std::string_view dtype, const std::byte* blocks, int64_t cols, PackedRow row) {
  const PackedFormat format = *FormatOfBlocks(dtype);
  auto* bytes = reinterpret_cast<uint8_t*>(row.data);
  std::memset(bytes, 0, static_cast<size_t>(QuantStride(format.type, cols)));
  for (int64_t b = 0; b < cols / format.block_elements; ++b) {
    const auto* block = reinterpret_cast<const uint8_t*>(blocks) + b * format.block_bytes;
    if (dtype == "Q8_0") {
      row.scales[b] = HalfAt(block);
      std::memcpy(bytes + b * 32, block + 2, 32);
    } else if (dtype == "Q4_0") {
      row.scales[b] = HalfAt(block);
      row.minimums[b] = -8.0f * row.scales[b];
      std::memcpy(bytes + b * 16, block + 2, 16);  // the layout is the same
    } else if (dtype == "Q4_K") {
      PackQ4K(block, bytes + b * 128, row.scales + b * 8, row.minimums + b * 8);
    } else {
      PackQ6K(block, reinterpret_cast<int8_t*>(bytes) + b * 256, row.scales + b * 16);
    }
  }
}

void QuantizeRow(WeightType type, const float* weights, int64_t cols, PackedRow row) {
  auto* bytes = reinterpret_cast<uint8_t*>(row.data);
  std::memset(bytes, 0, static_cast<size_t>(QuantStride(type, cols)));
  for (int64_t g = 0; g * kQuantBlock < cols; ++g) {
    const float* w = weights + g * kQuantBlock;
    const int count = static_cast<int>(std::min(kQuantBlock, cols - g * kQuantBlock));
    float low = w[0], high = w[0];
    bool finite = true;
    for (int i = 0; i < count; ++i) {
      low = std::min(low, w[i]);
      high = std::max(high, w[i]);
      finite = finite && std::isfinite(w[i]);
    }
    // kI4 counts from -8 to 7: the weight that is farthest from zero is -8, and the rest follows.
    const float farthest = -low > high ? low : high;
    const float scale =
        RoundToHalf(type == WeightType::kI8 ? std::fabs(farthest) / 127.0f : farthest / -8.0f);
    row.scales[g] = finite ? scale : std::numeric_limits<float>::quiet_NaN();
    if (type == WeightType::kI4) row.minimums[g] = -8.0f * scale;
    if (!finite || scale == 0) {
      if (finite && type == WeightType::kI4) row.minimums[g] = 0;
      continue;
    }
    for (int i = 0; i < count; ++i) {
      const auto q = static_cast<int>(std::lround(w[i] / scale));
      if (type == WeightType::kI8) {
        bytes[g * kQuantBlock + i] = static_cast<uint8_t>(std::clamp(q, -127, 127));
      } else {
        PutHalf(bytes + g * 16, i, std::clamp(q + 8, 0, 15));
      }
    }
  }
}

}  // namespace pawl
