// FP8 e4m3 (Micikevicius et al., "FP8 Formats for Deep Learning", 2022) as host and kernels write
// it: no infinities, the largest number is 448.
#ifndef PAWL_KERNELS_CUDA_FLOAT8_H_
#define PAWL_KERNELS_CUDA_FLOAT8_H_

#include <cstdint>

#include "src/base/random.h"  // PAWL_HOST_DEVICE

namespace pawl {

// To nearest even; beyond 448, and NaN, to 448.
PAWL_HOST_DEVICE inline uint8_t FloatToE4m3(float value) {
  const bool negative = value < 0;
  float size = negative ? -value : value;
  if (!(size < 464.0f)) size = 448.0f;
  // Adding a large power of two rounds to the last place: 2^-9 for subnormals, 2^(e-3) else.
  int exponent = -6;
  float step = 0.001953125f;  // 2^-9
  while (exponent < 8 && size >= step * 16.0f) {
    step *= 2.0f;
    ++exponent;
  }
  const float big = step * 8388608.0f;
  const float units = ((size + big) - big) / step;
  int code = static_cast<int>(units);
  if (code == 16) {
    code = 8;
    ++exponent;
  }
  if (code >= 8) code = (exponent + 7) << 3 | (code & 7);
  return static_cast<uint8_t>(code | (negative ? 0x80 : 0));
}

}  // namespace pawl

#endif  // PAWL_KERNELS_CUDA_FLOAT8_H_
