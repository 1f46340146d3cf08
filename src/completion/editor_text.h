// Positions of the language server protocol in a text: lines from 0, and columns that count units
// of an encoding.
//
//   std::string text = "a = 'é'\r\nb";
//   size_t byte = ByteAt(text, {.line = 1, .character = 0}, ColumnUnit::kUtf16);    // 10
//   EditorPosition back = PositionAt(text, byte, ColumnUnit::kUtf16);               // 1, 0
#ifndef PAWL_SRC_COMPLETION_EDITOR_TEXT_H_
#define PAWL_SRC_COMPLETION_EDITOR_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pawl::completion {

enum class ColumnUnit : uint8_t { kUtf8, kUtf16, kUtf32 };

struct EditorPosition {
  int64_t line = 0;
  int64_t character = 0;
  friend bool operator==(const EditorPosition&, const EditorPosition&) = default;
};

// A column behind the end of its line is that end, and a line behind the last one is the end of the
// text. A column in the middle of a character is its beginning.
size_t ByteAt(std::string_view text, EditorPosition position, ColumnUnit unit);
// REQUIRES: byte <= text.size().
EditorPosition PositionAt(std::string_view text, size_t byte, ColumnUnit unit);

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_EDITOR_TEXT_H_
