// UTF-8 (RFC 3629): strict decoding, encoding, counting. No state, thread-safe.
#ifndef PAWL_SRC_BASE_UTF8_H_
#define PAWL_SRC_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

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

}  // namespace pawl

#endif  // PAWL_SRC_BASE_UTF8_H_
