// Characters: letters and digits of ASCII whatever the locale, UTF-8 (RFC 3629: strict decoding,
// encoding, counting), and what Unicode 15.0 says about code points. No state, thread-safe.
//
//   for (CodepointRange range : UnicodeProperty("Script=Greek")) Use(range.lo, range.hi);
#ifndef PAWL_SRC_BASE_UTF8_H_
#define PAWL_SRC_BASE_UTF8_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The value of a hexadecimal digit, -1 where it is none.
inline int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

inline constexpr char32_t kMaxCodepoint = 0x10FFFF;
inline constexpr char32_t kReplacement = 0xFFFD;

struct DecodedCodepoint {
  char32_t codepoint;  // kReplacement when not valid
  int length;          // bytes read, at least 1; for an invalid byte 1
  bool valid;          // false for overlong forms, surrogates, truncation, stray bytes
};

// The code point at the front of `text`. REQUIRES: !text.empty().
DecodedCodepoint DecodeUtf8(std::string_view text);
// Appends the UTF-8 of `codepoint` (surrogates are written as they are: callers decide).
void AppendUtf8(char32_t codepoint, std::string& out);
// Whole texts; invalid bytes decode to kReplacement each.
std::string EncodeCodepoints(std::u32string_view codepoints);
std::u32string DecodeCodepoints(std::string_view utf8);
// Offset of the first byte that is not part of valid UTF-8, npos when all is valid.
size_t FindInvalidUtf8(std::string_view text);
// kInvalid with the place "byte N" when `text` is not UTF-8.
Status CheckUtf8(std::string_view text);
// Length of the longest prefix of `text` that ends at a code point boundary; a sequence cut short
// at the end is left out, invalid bytes inside count as complete.
size_t CompleteUtf8Prefix(std::string_view text);

struct CodepointRange {
  char32_t lo;
  char32_t hi;  // inclusive
  friend bool operator==(const CodepointRange&, const CodepointRange&) = default;
};

// The code points that have a property, as sorted, disjoint, non-adjacent ranges; empty when the
// name is unknown (no property is empty). Surrogates count as code points here. Names, matched
// without regard to case, spaces, '-' and '_':
//   general categories     "Lu", "L", "LC", "Uppercase_Letter", "gc=Lu", "General_Category=Letter"
//   scripts                "Greek", "Grek", "sc=Greek", "Script=Grek", "scx=Greek",
//   "Script_Extensions=.." binary properties      "Alphabetic", "Uppercase", "White_Space",
//   "ID_Start", "Emoji", ... and "Any", "ASCII", "Assigned"
std::span<const CodepointRange> UnicodeProperty(std::string_view name);

// One line of the simple case folding: `from` folds to `to`.
struct CaseFold {
  char32_t from;
  char32_t to;
};

// All code points whose simple folding is another code point, sorted by `from`. Two code points are
// equal without regard to case when their foldings are equal; `to` never folds further.
std::span<const CaseFold> SimpleCaseFolds();
// The simple case folding of one code point: 'A' -> 'a'; itself when it has none. O(log n).
char32_t SimpleFold(char32_t codepoint);

}  // namespace pawl

#endif  // PAWL_SRC_BASE_UTF8_H_
