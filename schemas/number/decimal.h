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

class Decimal {
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

}  // namespace pawl

#endif  // PAWL_SCHEMAS_NUMBER_DECIMAL_H_
