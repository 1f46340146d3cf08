// Letters and digits of ASCII, whatever the locale.
#ifndef PAWL_SRC_BASE_ASCII_H_
#define PAWL_SRC_BASE_ASCII_H_

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

}  // namespace pawl

#endif  // PAWL_SRC_BASE_ASCII_H_
