// UnitSet: a set of code points and invalid bytes with constant-time lookup, for the classes of a
// Split pattern.
#ifndef PAWL_SRC_TEXT_CODEPOINT_SET_H_
#define PAWL_SRC_TEXT_CODEPOINT_SET_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/utf8.h"

namespace pawl {

// Text is matched as code points in which a byte that is no part of valid UTF-8 is kInvalidByte +
// byte. No property holds such a unit, so exactly the complements ("\S", "[^a]") match it.
inline constexpr char32_t kInvalidByte = 0x110000;
inline constexpr char32_t kMaxUnit = kInvalidByte + 0xFF;

// The units of `text`, appended to `out`.
void DecodeUnits(std::string_view text, std::vector<char32_t>& out);
// Bytes that a unit takes in the text.
inline size_t UnitLength(char32_t unit) {
  return unit < 0x80 || unit >= kInvalidByte ? 1 : unit < 0x800 ? 2 : unit < 0x10000 ? 3 : 4;
}

class UnitSet {
 public:
  UnitSet() = default;
  // Any order, overlaps allowed.
  explicit UnitSet(std::vector<CodepointRange> ranges);

  bool Contains(char32_t unit) const {
    if (unit < 128) return (ascii_[unit >> 6] >> (unit & 63)) & 1;
    return (pages_[page_of_[unit >> 8]][(unit >> 6) & 3] >> (unit & 63)) & 1;
  }
  std::span<const CodepointRange> ranges() const { return ranges_; }
  friend bool operator==(const UnitSet& a, const UnitSet& b) { return a.ranges_ == b.ranges_; }

 private:
  using Page = std::array<uint64_t, 4>;  // 256 units
  std::vector<CodepointRange> ranges_;
  std::array<uint64_t, 2> ascii_{};
  std::vector<uint16_t> page_of_;
  std::vector<Page> pages_;
};

// Sorted, disjoint and non-adjacent ranges of the same set.
std::vector<CodepointRange> NormalizeRanges(std::vector<CodepointRange> ranges);
// All units from 0 to kMaxUnit that are not in `ranges`.
std::vector<CodepointRange> ComplementRanges(std::vector<CodepointRange> ranges);
// `ranges` and everything equal to a member without regard to case (simple case folding).
std::vector<CodepointRange> FoldCaseRanges(std::vector<CodepointRange> ranges);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_CODEPOINT_SET_H_
