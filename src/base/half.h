// Half-precision numbers (IEEE binary16) in software, rounding to nearest, ties to even.
#ifndef PAWL_SRC_BASE_HALF_H_
#define PAWL_SRC_BASE_HALF_H_

#include <cstdint>

namespace pawl {

float HalfToFloat(uint16_t bits);
// Beyond the largest half: infinity. NaN becomes a quiet one.
uint16_t FloatToHalf(float value);

}  // namespace pawl

#endif  // PAWL_SRC_BASE_HALF_H_
