// FP8 e4m3 (Micikevicius et al., "FP8 Formats for Deep Learning", 2022) as host and kernels write
// it: no infinities, the largest number is 448.
#ifndef PAWL_KERNELS_CUDA_FLOAT8_H_
#define PAWL_KERNELS_CUDA_FLOAT8_H_

#include <cstdint>
#include <cstring>

#include "src/base/random.h"  // PAWL_HOST_DEVICE

namespace pawl {

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

#endif  // PAWL_KERNELS_CUDA_FLOAT8_H_
