// Lines end with "\n", "\r\n" or "\r" (Language Server Protocol 3.17, Text Documents). Most texts
// have no "\r", and are searched for "\n" alone, which the C library does many bytes at a time.
#include "src/completion/editor_text.h"

#include <algorithm>
#include <string>

namespace pawl::completion {
namespace {

// The byte behind the line that `at` stands in, with the end of the line; npos: it is the last one.
size_t NextLine(std::string_view text, size_t at, bool returns) {
  const size_t end = returns ? text.find_first_of("\r\n", at) : text.find('\n', at);
  if (end == std::string_view::npos) return end;
  return end + (text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n' ? 2 : 1);
}

// Bytes of the character that begins at `at`: what is no UTF-8 counts byte by byte.
size_t CharacterAt(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t size = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  size_t end = at + 1;
  while (end < text.size() && end < at + size &&
         (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    ++end;
  }
  return end - at;
}

int64_t UnitsOf(size_t bytes, ColumnUnit unit) {
  switch (unit) {
    case ColumnUnit::kUtf8:
      return static_cast<int64_t>(bytes);
    case ColumnUnit::kUtf16:
      return bytes == 4 ? 2 : 1;
    default:
      return 1;
  }
}

}  // namespace

size_t ByteAt(std::string_view text, EditorPosition position, ColumnUnit unit) {
  const bool returns = text.find('\r') != std::string_view::npos;
  size_t at = 0;
  for (int64_t i = 0; i < position.line; ++i) {
    at = NextLine(text, at, returns);
    if (at == std::string_view::npos) return text.size();
  }
  for (int64_t units = 0; at < text.size() && text[at] != '\n' && text[at] != '\r';) {
    const size_t size = CharacterAt(text, at);
    units += UnitsOf(size, unit);
    if (units > position.character) break;
    at += size;
  }
  return at;
}

EditorPosition PositionAt(std::string_view text, size_t byte, ColumnUnit unit) {
  const bool returns = text.find('\r') != std::string_view::npos;
  EditorPosition position;
  size_t line = 0;
  for (;;) {
    const size_t next = NextLine(text, line, returns);
    if (next == std::string_view::npos || next > byte) break;
    line = next;
    ++position.line;
  }
  for (size_t at = line; at < byte;) {
    const size_t size = CharacterAt(text, at);
    if (at + size > byte) break;
    position.character += UnitsOf(size, unit);
    at += size;
  }
  return position;
}

}  // namespace pawl::completion
