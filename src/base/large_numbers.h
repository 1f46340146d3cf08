// Numbers beyond a double's range (1e400) are legal JSON, and nlohmann's parser, which makes a
// double of each, reads none. What it gets instead is a number of the same length, "1e000", and the
// one who gets the numbers that it has read puts back what stood there. Numbers are told from their
// digits, since a long double is no more than a double on some systems.
//
//   LargeNumbers numbers(text);
//   parse(numbers.Replaced(text));      // for each number: numbers.Next(what the parser has read)
//
// Numbers beyond 10^4932 stay as they are. Not thread-safe.
#ifndef PAWL_SRC_BASE_LARGE_NUMBERS_H_
#define PAWL_SRC_BASE_LARGE_NUMBERS_H_

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "src/base/utf8.h"

namespace pawl::json {

class LargeNumbers {
 public:
  explicit LargeNumbers(std::string_view text) {
    bool string = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '"') string = !string;
      if (string && c == '\\') ++i;
      if (string || !(IsDigit(c) || c == '-')) continue;
      i = Look(text, i) - 1;
    }
  }

  // The text to parse. REQUIRES: `text` is that of the constructor.
  std::string_view Replaced(std::string_view text) const {
    return replaced_.empty() ? text : std::string_view(replaced_);
  }
  // The number that stands in the text where the next number of the form of a replacement is read.
  std::string Next(const std::string& read) {
    if (!IsReplacement(read) || next_ == numbers_.size()) return read;
    return numbers_[next_++];
  }

 private:
  static constexpr int64_t kMostExponent = 4932;
  static constexpr int64_t kOfDoubles = 308;

  static bool IsReplacement(std::string_view number) {
    if (number.starts_with('-')) number.remove_prefix(1);
    return number.starts_with("1e0") && number.find_first_not_of('0', 2) == std::string_view::npos;
  }

  // A number at the beginning of a text: its length; the power of ten of its first digit that is
  // not 0; whether that digit is 1, and all after it are 0.
  struct Size {
    size_t length;
    int64_t exponent;
    bool power;
  };
  // nullopt: 0, or no number of JSON.
  static std::optional<Size> SizeOf(std::string_view text) {
    size_t at = text.starts_with('-') ? 1 : 0;
    std::optional<Size> size;
    int64_t whole = 0, zeros = 0;  // digits from the first that is not 0; zeros before it
    const auto read = [&](bool fraction) {
      const size_t begin = at;
      for (; at < text.size() && IsDigit(text[at]); ++at) {
        if (!size && text[at] != '0') {
          size = Size{0, 0, text[at] == '1'};
        } else if (text[at] != '0') {
          size->power = false;
        }
        if (!fraction && size) ++whole;
        if (fraction && !size) ++zeros;
        if (!fraction && at == begin && text[at] == '0') return ++at, true;
      }
      return at > begin;
    };
    if (!read(false)) return std::nullopt;
    if (at < text.size() && text[at] == '.' && (++at, !read(true))) return std::nullopt;
    int64_t exponent = 0;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
      ++at;
      const bool minus = at < text.size() && text[at] == '-';
      if (minus || (at < text.size() && text[at] == '+')) ++at;
      const size_t first = at;
      for (; at < text.size() && IsDigit(text[at]); ++at)
        exponent = std::min<int64_t>(exponent * 10 + (text[at] - '0'), int64_t{1} << 50);
      if (at == first) return std::nullopt;
      if (minus) exponent = -exponent;
    }
    if (!size) return std::nullopt;
    size->length = at;
    size->exponent = exponent + (whole > 0 ? whole - 1 : -zeros - 1);
    return size;
  }

  // The end of the number that begins there.
  size_t Look(std::string_view text, size_t begin) {
    const std::optional<Size> size = SizeOf(text.substr(begin));
    if (!size) return begin + 1;
    const std::string_view number = text.substr(begin, size->length);
    const bool large =
        size->exponent > kOfDoubles || (size->exponent == kOfDoubles && !FitsDouble(number));
    const bool fits =
        size->exponent < kMostExponent || (size->exponent == kMostExponent && size->power);
    // What does not fit stays, and is the parser's error.
    if (large && fits) {
      Replace(text, begin, begin + size->length);
    } else if (IsReplacement(number)) {
      numbers_.emplace_back(number);
    }
    return begin + size->length;
  }

  static bool FitsDouble(std::string_view number) {
    double value = 0;
    return std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc();
  }

  void Replace(std::string_view text, size_t begin, size_t end) {
    if (replaced_.empty()) replaced_ = text;
    numbers_.emplace_back(text.substr(begin, end - begin));
    if (text[begin] == '-') ++begin;
    replaced_[begin] = '1';
    replaced_[begin + 1] = 'e';
    std::fill(replaced_.begin() + static_cast<ptrdiff_t>(begin) + 2,
              replaced_.begin() + static_cast<ptrdiff_t>(end), '0');
  }

  std::string replaced_;  // empty: as it is
  std::vector<std::string> numbers_;
  size_t next_ = 0;
};

}  // namespace pawl::json

#endif  // PAWL_SRC_BASE_LARGE_NUMBERS_H_
