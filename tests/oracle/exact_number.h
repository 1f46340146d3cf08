// ExactNumber: a JSON number by pen and paper, for the validator. It shares nothing with the
// decimals of the product, which it helps to judge.
#ifndef PAWL_TESTS_ORACLE_EXACT_NUMBER_H_
#define PAWL_TESTS_ORACLE_EXACT_NUMBER_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::oracle {

class ExactNumber {
 public:
  // nullopt: no JSON number, or one too long to reckon with (more than 10,000 digits that matter,
  // or beyond 10^+-100,000).
  static std::optional<ExactNumber> Read(std::string_view text);

  bool IsZero() const { return digits_.empty(); }
  bool negative() const { return negative_; }
  bool IsInteger() const { return exponent_ >= 0; }
  // REQUIRES: divisor is not zero.
  bool IsMultipleOf(const ExactNumber& divisor) const;
  friend std::strong_ordering operator<=>(const ExactNumber& a, const ExactNumber& b);
  friend bool operator==(const ExactNumber& a, const ExactNumber& b) = default;

 private:
  // digits * 10^exponent; digits have no zeros at either end, and are none for zero.
  bool negative_ = false;
  std::string digits_;
  int64_t exponent_ = 0;
};

}  // namespace pawl::oracle

#endif  // PAWL_TESTS_ORACLE_EXACT_NUMBER_H_
