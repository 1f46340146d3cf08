// Classes of bytes that most automata treat alike, as bits of a word: what a subtree of the
// vocabulary's trie consists of, and what a state of an automaton loops on.
#ifndef PAWL_GRAMMAR_BYTE_CLASS_H_
#define PAWL_GRAMMAR_BYTE_CLASS_H_

#include <array>
#include <cstdint>

namespace pawl {

// The letters of either case, the digits, and the control characters but three are a class each;
// every other ASCII character has its own.
inline constexpr int kAsciiClasses = 40;
// Characters beyond ASCII in well-formed UTF-8, whole or cut off at the end of the text.
inline constexpr int kBeyondAsciiClass = 62;
// Any other byte.
inline constexpr int kMalformedClass = 63;

inline constexpr std::array<uint8_t, 128> kAsciiClass = [] {
  std::array<uint8_t, 128> out = {};
  uint8_t next = 4;
  for (int c = 0; c < 128; ++c) {
    if (c >= 'a' && c <= 'z') {
      out[static_cast<size_t>(c)] = 0;
    } else if (c >= 'A' && c <= 'Z') {
      out[static_cast<size_t>(c)] = 1;
    } else if (c >= '0' && c <= '9') {
      out[static_cast<size_t>(c)] = 2;
    } else if (c == 0x7F || (c < ' ' && c != '\t' && c != '\n' && c != '\r')) {
      out[static_cast<size_t>(c)] = 3;
    } else {
      out[static_cast<size_t>(c)] = next++;
    }
  }
  return out;
}();

// The members of each class, as two words of bits.
inline constexpr std::array<std::array<uint64_t, 2>, kAsciiClasses> kAsciiMembers = [] {
  std::array<std::array<uint64_t, 2>, kAsciiClasses> out = {};
  for (size_t c = 0; c < 128; ++c) out[kAsciiClass[c]][c / 64] |= uint64_t{1} << (c % 64);
  return out;
}();

}  // namespace pawl

#endif  // PAWL_GRAMMAR_BYTE_CLASS_H_
