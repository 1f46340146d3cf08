// Arithmetic modulo a machine word on numbers written in decimal. Pure functions, thread-safe.
#ifndef PAWL_SCHEMAS_NUMBER_MODULAR_H_
#define PAWL_SCHEMAS_NUMBER_MODULAR_H_

#include <cstdint>
#include <string_view>

namespace pawl {

// a * b mod m. REQUIRES: m > 0.
inline uint64_t MulMod(uint64_t a, uint64_t b, uint64_t m) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % m);
}

// 10^exponent mod m. REQUIRES: m > 0.
inline uint64_t Pow10Mod(uint64_t exponent, uint64_t m) {
  uint64_t result = 1 % m, base = 10 % m;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = MulMod(result, base, m);
    base = MulMod(base, base, m);
  }
  return result;
}

// The number that the decimal digits spell (empty: 0), mod m. REQUIRES: m > 0.
inline uint64_t DigitsMod(std::string_view digits, uint64_t m) {
  uint64_t result = 0;
  for (const char c : digits) {
    result = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(result) * 10 + static_cast<unsigned>(c - '0')) % m);
  }
  return result;
}

// REQUIRES: at most 18 digits.
inline uint64_t ToUint64(std::string_view digits) {
  uint64_t result = 0;
  for (const char c : digits) result = result * 10 + static_cast<uint64_t>(c - '0');
  return result;
}

}  // namespace pawl

#endif  // PAWL_SCHEMAS_NUMBER_MODULAR_H_
