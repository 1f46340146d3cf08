// After `bytes_to_unicode` as published with GPT-2 (Radford et al., 2019): 33..126, 161..172 and
// 174..255 stand for themselves. What remains is 0..32, 127..160 and 173, so the numbering from
// U+0100 on is arithmetic.
#include "src/text/tokenizer_steps.h"

#include "src/base/utf8.h"

namespace pawl {

char32_t ByteToAlphabet(unsigned char byte) {
  if (byte <= 32) return 0x100 + byte;
  if (byte >= 127 && byte <= 160) return 0x100 + 33 + (byte - 127u);
  if (byte == 173) return 0x100 + 67;
  return byte;
}

int AlphabetToByte(char32_t c) {
  if (c >= 0x100 && c < 0x100 + 68) {
    const int k = static_cast<int>(c - 0x100);
    return k <= 32 ? k : k < 67 ? 127 + (k - 33) : 173;
  }
  if ((c >= 33 && c <= 126) || (c >= 161 && c <= 255 && c != 173)) return static_cast<int>(c);
  return -1;
}

std::optional<std::string> AlphabetToBytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    const int byte = d.valid ? AlphabetToByte(d.codepoint) : -1;
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    i += static_cast<size_t>(d.length);
  }
  return out;
}

std::string BytesToAlphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) AppendUtf8(ByteToAlphabet(static_cast<unsigned char>(c)), out);
  return out;
}

int ByteFallbackValue(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    int digit;
    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if (c >= 'A' && c <= 'F')
      digit = c - 'A' + 10;
    else if (c >= 'a' && c <= 'f')
      digit = c - 'a' + 10;
    else
      return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace pawl
