// Hexadecimal digits.
#ifndef PAWL_SRC_BASE_HEX_H_
#define PAWL_SRC_BASE_HEX_H_

namespace pawl {

// The value of a digit, -1 where it is none.
inline int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_HEX_H_
