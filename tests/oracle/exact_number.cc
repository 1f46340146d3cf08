// Reading goes over the text once with one flag for each part; dividing is long division, one digit
// of the dividend at a time, the divisor taken away until it no longer fits.
#include "tests/oracle/exact_number.h"

#include <algorithm>

namespace pawl::oracle {
namespace {

constexpr int64_t kMostExponent = 100'000, kMostDigits = 10'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// a - b of whole numbers without leading zeros. REQUIRES: a >= b.
std::string Minus(const std::string& a, const std::string& b) {
  std::string out = a;
  int borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t at = a.size() - 1 - i;
    int digit = a[at] - '0' - borrow - (i < b.size() ? b[b.size() - 1 - i] - '0' : 0);
    borrow = digit < 0 ? 1 : 0;
    out[at] = static_cast<char>('0' + digit + 10 * borrow);
  }
  return out.substr(std::min(out.find_first_not_of('0'), out.size()));
}

bool AtLeast(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() > b.size() : a >= b;
}

}  // namespace

std::optional<ExactNumber> ExactNumber::Read(std::string_view text) {
  ExactNumber out;
  size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto digits = [&](std::string& to) {
    const size_t start = at;
    while (IsDigit(peek())) to.push_back(text[at++]);
    return at > start;
  };
  if (peek() == '-') {
    out.negative_ = true;
    ++at;
  }
  const size_t whole = at;
  if (!digits(out.digits_) || (text[whole] == '0' && at > whole + 1)) return std::nullopt;
  if (peek() == '.') {
    const size_t point = at++;
    if (!digits(out.digits_)) return std::nullopt;
    out.exponent_ = -static_cast<int64_t>(at - point - 1);
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at;
    const bool minus = peek() == '-';
    if (minus || peek() == '+') ++at;
    std::string power;
    if (!digits(power)) return std::nullopt;
    power.erase(0, std::min(power.find_first_not_of('0'), power.size()));
    if (power.size() > 12) power = "1000000000000";
    const int64_t value = power.empty() ? 0 : std::stoll(power);
    out.exponent_ += minus ? -value : value;
  }
  if (at != text.size()) return std::nullopt;
  while (!out.digits_.empty() && out.digits_.back() == '0') {
    out.digits_.pop_back();
    ++out.exponent_;
  }
  out.digits_.erase(0, std::min(out.digits_.find_first_not_of('0'), out.digits_.size()));
  if (out.digits_.empty()) return ExactNumber();
  if (static_cast<int64_t>(out.digits_.size()) > kMostDigits || out.exponent_ > kMostExponent ||
      out.exponent_ < -kMostExponent)
    return std::nullopt;
  return out;
}

bool ExactNumber::IsMultipleOf(const ExactNumber& divisor) const {
  if (IsZero()) return true;
  // The last digit is not 0, so nothing smaller than its place is a divisor's to give.
  if (exponent_ < divisor.exponent_) return false;
  std::string rest;
  const auto bring_down = [&](char digit) {
    if (!rest.empty() || digit != '0') rest.push_back(digit);
    while (AtLeast(rest, divisor.digits_)) rest = Minus(rest, divisor.digits_);
  };
  for (const char digit : digits_) bring_down(digit);
  for (int64_t i = divisor.exponent_; i < exponent_ && !rest.empty(); ++i) bring_down('0');
  return rest.empty();
}

std::strong_ordering operator<=>(const ExactNumber& a, const ExactNumber& b) {
  if (a.negative_ != b.negative_)
    return a.negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  if (a.IsZero() || b.IsZero()) {
    const auto order = !a.IsZero() <=> !b.IsZero();
    return a.negative_ ? 0 <=> order : order;
  }
  const auto top = [](const ExactNumber& n) {
    return static_cast<int64_t>(n.digits_.size()) + n.exponent_;
  };
  std::strong_ordering order = top(a) <=> top(b);
  if (order == 0) {
    std::string x = a.digits_, y = b.digits_;
    x.resize(std::max(x.size(), y.size()), '0');
    y.resize(x.size(), '0');
    order = x.compare(y) <=> 0;
  }
  return a.negative_ ? 0 <=> order : order;
}

}  // namespace pawl::oracle
