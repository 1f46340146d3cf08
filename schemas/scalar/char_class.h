// CharClass: characters that most regular expressions treat alike.
//
// Patterns speak of letters, digits and single punctuation marks. The tokens of a vocabulary, told
// apart only that far, are some thousand kinds (class_trie.h), which is what makes wide masks
// cheap.
#ifndef PAWL_SCHEMAS_SCALAR_CHAR_CLASS_H_
#define PAWL_SCHEMAS_SCALAR_CHAR_CLASS_H_

#include <cstdint>

namespace pawl::schema {

// What a JSON string may hold as itself: all but quotes, backslashes and control characters, which
// have no class.
using CharClass = uint8_t;
inline constexpr CharClass kLowerClass = 0, kUpperClass = 1, kDigitClass = 2;
inline constexpr CharClass kBeyondClass = 3;  // any code point beyond ASCII that is not SetApart
inline constexpr CharClass kFirstSingle = 4;  // from here on one ASCII character each
inline constexpr int kCharClasses = 36;

// Stands for itself in a JSON string.
inline bool IsPlainAscii(uint8_t byte) {
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

// REQUIRES: IsPlainAscii(byte).
inline CharClass ClassOfAscii(uint8_t byte) {
  if (byte >= 'a' && byte <= 'z') return kLowerClass;
  if (byte >= 'A' && byte <= 'Z') return kUpperClass;
  if (byte >= '0' && byte <= '9') return kDigitClass;
  const int skipped =
      (byte > '"') + (byte > '9') * 10 + (byte > 'Z') * 26 + (byte > '\\') + (byte > 'z') * 26;
  return static_cast<CharClass>(kFirstSingle + byte - 0x20 - skipped);
}

// Beyond ASCII, but not alike: white space and line ends in the sense of \s and '.'.
inline bool IsSetApart(char32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 || c == 0xFEFF;
}
// For code points lo..hi. Of the runs of such code points none is longer than that.
inline constexpr char32_t kLongestApart = 11;
inline bool AllSetApart(char32_t lo, char32_t hi) {
  if (hi - lo >= kLongestApart) return false;
  for (char32_t c = lo; c <= hi; ++c) {
    if (!IsSetApart(c)) return false;
  }
  return true;
}
inline bool AnySetApart(char32_t lo, char32_t hi) {
  for (const char32_t c : {0x85, 0xA0, 0x1680, 0x2000, 0x2028, 0x202F, 0x205F, 0x3000, 0xFEFF}) {
    if (c <= hi && (c >= lo || (c == 0x2000 && lo <= 0x200A) || (c == 0x2028 && lo == 0x2029)))
      return true;
  }
  return false;
}

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_CHAR_CLASS_H_
