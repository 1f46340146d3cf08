// Exact decimals. A JSON number denotes sign * digits * 10^exponent; with leading and trailing
// zeros of the digits removed that form is unique, so equality is equality of fields and nothing is
// rounded.
//
// Divisibility needs no big rationals. Let v = S * 10^w and m = D * 10^e with S and D not divisible
// by 10. If w >= e, v/m = S * 10^(w-e) / D. If w < e, v/m = S / (D * 10^(e-w)) would need 10 | S,
// which is false. So v is a multiple of m exactly when v = 0, or w >= e and S * 10^(w-e) = 0 (mod
// D).
//
// The least common multiple works on 2- and 5-adic exponents: m = c * 2^i * 5^j with c coprime to
// 10 and i, j possibly negative; lcm takes lcm of the c and the maxima of i and j.
#include "schemas/number/decimal.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "schemas/limits.h"

namespace pawl {
namespace {

Error Malformed(size_t byte) {
  return {ErrorCode::kInvalid, "not a JSON number", "byte " + std::to_string(byte)};
}

// Digit strings of equal meaning have equal length here: no leading zeros.
bool GreaterOrEqual(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() > b.size() : a >= b;
}

// a -= b. REQUIRES: a >= b, both without leading zeros; the result has none either.
void Subtract(std::string& a, const std::string& b) {
  int borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t at = a.size() - 1 - i;
    int digit = a[at] - '0' - borrow - (i < b.size() ? b[b.size() - 1 - i] - '0' : 0);
    borrow = digit < 0;
    if (borrow) digit += 10;
    a[at] = static_cast<char>('0' + digit);
  }
  a.erase(0, std::min(a.find_first_not_of('0'), a.size()));
}

// digits * 10^zeros mod divisor == 0 by long division, for divisors too long for machine words.
bool LongDivides(const std::string& digits, int64_t zeros, const std::string& divisor) {
  std::string remainder;
  const auto feed = [&](char digit) {
    if (remainder.empty() && digit == '0') return;
    remainder += digit;
    while (GreaterOrEqual(remainder, divisor)) Subtract(remainder, divisor);
  };
  for (const char digit : digits) feed(digit);
  for (int64_t i = 0; i < zeros && !remainder.empty(); ++i) feed('0');
  return remainder.empty();
}

}  // namespace

Decimal::Decimal(int64_t value) : negative_(value < 0) {
  digits_ = std::to_string(value);
  if (negative_) digits_.erase(0, 1);
  Normalize();
}

void Decimal::Normalize() {
  digits_.erase(0, std::min(digits_.find_first_not_of('0'), digits_.size()));
  const size_t keep = digits_.find_last_not_of('0') + 1;  // npos + 1 == 0
  exponent_ += static_cast<int64_t>(digits_.size() - keep);
  digits_.resize(keep);
  if (digits_.empty()) {
    exponent_ = 0;
    negative_ = false;
  }
}

Result<Decimal> Decimal::Parse(std::string_view text) {
  Decimal out;
  size_t at = 0;
  if (at < text.size() && text[at] == '-') {
    out.negative_ = true;
    ++at;
  }
  if (at >= text.size() || !IsDigit(text[at])) return Malformed(at);
  const size_t first = at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  if (text[first] == '0' && at > first + 1) return Malformed(first + 1);
  out.digits_ = text.substr(first, at - first);
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = ++at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    if (at == fraction) return Malformed(at);
    out.digits_ += text.substr(fraction, at - fraction);
    out.exponent_ = -static_cast<int64_t>(at - fraction);
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool negative = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const size_t start = at;
    int64_t exponent = 0;
    for (; at < text.size() && IsDigit(text[at]); ++at) {
      // Saturates far above every limit; texts are shorter than 10^15 bytes.
      if (exponent < int64_t{1'000'000'000'000'000}) exponent = exponent * 10 + (text[at] - '0');
    }
    if (at == start) return Malformed(at);
    out.exponent_ += negative ? -exponent : exponent;
  }
  if (at != text.size()) return Malformed(at);
  out.Normalize();
  if (out.digits_.size() > limits::kDecimalDigits) {
    return Error{ErrorCode::kLimit,
                 "a number with " + std::to_string(out.digits_.size()) +
                     " significant digits, more than the limit of " +
                     std::to_string(limits::kDecimalDigits),
                 ""};
  }
  if (out.exponent_ > limits::kDecimalExponent || out.exponent_ < -limits::kDecimalExponent) {
    return Error{ErrorCode::kLimit,
                 "a number with a decimal exponent beyond the limit of " +
                     std::to_string(limits::kDecimalExponent),
                 ""};
  }
  return out;
}

Decimal Decimal::Of(bool negative, std::string digits, int64_t exponent) {
  Decimal out;
  out.negative_ = negative;
  out.digits_ = std::move(digits);
  out.exponent_ = exponent;
  out.Normalize();
  return out;
}

bool Decimal::IsMultipleOf(const Decimal& divisor) const {
  if (is_zero()) return true;
  const int64_t zeros = exponent_ - divisor.exponent_;
  if (zeros < 0) return false;
  if (divisor.digits_.size() > limits::kDivisorDigits) {
    return LongDivides(digits_, zeros, divisor.digits_);
  }
  const uint64_t d = ToUint64(divisor.digits_);
  return MulMod(DigitsMod(digits_, d), Pow10Mod(static_cast<uint64_t>(zeros), d), d) == 0;
}

Decimal Decimal::Negated() const {
  Decimal out = *this;
  out.negative_ = !negative_ && !is_zero();
  return out;
}

Decimal Decimal::Shifted(int64_t places) const {
  Decimal out = *this;
  if (!is_zero()) out.exponent_ += places;
  return out;
}

std::string Decimal::ToString() const {
  if (is_zero()) return "0";
  std::string out = digits_;
  const int64_t point = order();  // digits before the decimal point
  const auto size = static_cast<int64_t>(digits_.size());
  if (point > 30 || point < -15) {
    if (size > 1) out.insert(1, 1, '.');
    out += point > 0 ? "e+" : "e";
    out += std::to_string(point - 1);
  } else if (point <= 0) {
    out.insert(0, static_cast<size_t>(-point), '0');
    out.insert(0, "0.", 2);
  } else if (size <= point) {
    out.append(static_cast<size_t>(point - size), '0');
  } else {
    out.insert(static_cast<size_t>(point), 1, '.');
  }
  if (negative_) out.insert(0, 1, '-');
  return out;
}

Result<Decimal> Decimal::Lcm(const Decimal& a, const Decimal& b) {
  if (a.is_zero() || b.is_zero() || a.negative_ || b.negative_) {
    return Error{ErrorCode::kInvalid, "a divisor must be greater than 0", ""};
  }
  const Error too_long{ErrorCode::kLimit,
                       "a divisor (or a common multiple of two) with more than " +
                           std::to_string(limits::kDivisorDigits) + " significant digits",
                       ""};
  if (a == b) return a;
  if (a.digits_.size() > limits::kDivisorDigits || b.digits_.size() > limits::kDivisorDigits)
    return too_long;
  struct Factors {
    uint64_t rest;
    int64_t twos, fives;
  };
  const auto factor = [](const Decimal& d) {
    Factors f{ToUint64(d.digits_), d.exponent_, d.exponent_};
    for (; f.rest % 2 == 0; f.rest /= 2) ++f.twos;
    for (; f.rest % 5 == 0; f.rest /= 5) ++f.fives;
    return f;
  };
  const Factors fa = factor(a), fb = factor(b);
  const int64_t twos = std::max(fa.twos, fb.twos), fives = std::max(fa.fives, fb.fives);
  constexpr uint64_t kLimit = 1'000'000'000'000'000'000u;  // 10^limits::kDivisorDigits
  unsigned __int128 product =
      static_cast<unsigned __int128>(fa.rest / std::gcd(fa.rest, fb.rest)) * fb.rest;
  const int64_t exponent = std::min(twos, fives);
  for (int64_t i = exponent; i < twos && product < kLimit; ++i) product *= 2;
  for (int64_t i = exponent; i < fives && product < kLimit; ++i) product *= 5;
  if (product >= kLimit) return too_long;
  return Of(false, std::to_string(static_cast<uint64_t>(product)), exponent);
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.negative_ != b.negative_) {
    return a.negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  const auto magnitudes = [](const Decimal& x, const Decimal& y) {
    if (x.is_zero() || y.is_zero()) return y.is_zero() <=> x.is_zero();
    if (x.order() != y.order()) return x.order() <=> y.order();
    // Same order: the digits compare as fractions, and a proper prefix is the smaller one.
    return x.digits_.compare(y.digits_) <=> 0;
  };
  return a.negative_ ? magnitudes(b, a) : magnitudes(a, b);
}

}  // namespace pawl
