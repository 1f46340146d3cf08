// Decimal: an exact decimal number, the value of a JSON number text whatever its length.
//
//   auto a = Decimal::Parse("0.10");           // digits "1", exponent -1
//   a->IsMultipleOf(*Decimal::Parse("1e-2"));  // true
//
// A value type, immutable after Parse: any number of threads may read one.
#ifndef PAWL_SCHEMAS_NUMBER_DECIMAL_H_
#define PAWL_SCHEMAS_NUMBER_DECIMAL_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/base/memory_size.h"
#include "src/base/utf8.h"

namespace pawl {

// "e3", "e-3"; nothing for 0.
inline std::string ExponentText(int64_t exponent) {
  return exponent == 0 ? "" : "e" + std::to_string(exponent);
}

class PAWL_EXPORT Decimal {
 public:
  Decimal() = default;  // zero
  explicit Decimal(int64_t value);

  // A JSON number (RFC 8259 section 6), nothing around it. Errors: kInvalid with place "byte N";
  // kLimit for more than limits::kDecimalDigits significant digits or an exponent (of digits())
  // beyond
  // +-limits::kDecimalExponent.
  static Result<Decimal> Parse(std::string_view text);
  // digits * 10^exponent; the digits may begin and end with zeros, and be none. No limits.
  static Decimal Of(bool negative, std::string digits, int64_t exponent);

  // The value is (negative ? -1 : 1) * digits * 10^exponent. `digits` has neither leading nor
  // trailing zeros; it is empty, with exponent 0 and no sign, for zero (also for "-0").
  size_t MemoryBytes() const { return HeapBytes(digits_); }
  bool negative() const { return negative_; }
  const std::string& digits() const { return digits_; }
  int64_t exponent() const { return exponent_; }
  bool is_zero() const { return digits_.empty(); }

  // The n with 10^(n-1) <= |value| < 10^n. REQUIRES: not zero.
  int64_t order() const { return static_cast<int64_t>(digits_.size()) + exponent_; }

  bool IsInteger() const { return exponent_ >= 0; }
  // value / divisor is an integer. REQUIRES: divisor is not zero.
  bool IsMultipleOf(const Decimal& divisor) const;

  Decimal Negated() const;
  // The value times 10^places.
  Decimal Shifted(int64_t places) const;
  Decimal Abs() const { return negative_ ? Negated() : *this; }

  // Canonical text, equal for equal values: plain for moderate exponents, else "d.ddde+x".
  std::string ToString() const;

  // The least positive number that is a multiple of both. Errors: kInvalid unless both are
  // positive; kLimit when an operand or the result has more than limits::kDivisorDigits digits.
  static Result<Decimal> Lcm(const Decimal& a, const Decimal& b);

  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
  friend bool operator==(const Decimal& a, const Decimal& b) = default;

 private:
  void Normalize();

  bool negative_ = false;
  std::string digits_;
  int64_t exponent_ = 0;
};

// Arithmetic modulo a machine word on numbers written in decimal. Pure functions, thread-safe.

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

#endif  // PAWL_SCHEMAS_NUMBER_DECIMAL_H_
