// MarkedText: a text that remembers which of its bytes are data, that is, came from messages, tools
// or arguments rather than from a chat template.
//
// Pieces keep their marks through whatever a template does to them, so that in the rendered prompt
// a special token that a user spelled can be told from one that the template wrote.
#ifndef PAWL_SRC_TEXT_CHAT_MARKED_TEXT_H_
#define PAWL_SRC_TEXT_CHAT_MARKED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/tokenizer.h"

namespace pawl {

class MarkedText {
 public:
  MarkedText() = default;
  // All of it the template's.
  explicit MarkedText(std::string text) : bytes_(std::move(text)) {}
  // All of it data.
  static MarkedText Data(std::string text);

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Where the data is: sorted, disjoint, neither empty nor adjacent.
  const std::vector<TextRange>& data() const { return data_; }

  void Append(std::string_view text) { bytes_ += text; }
  void AppendData(std::string_view text);
  void Append(const MarkedText& other) { Append(other, 0, other.size()); }
  // The bytes [begin, end) of `other` with their marks; `other` may not be this text.
  void Append(const MarkedText& other, size_t begin, size_t end);
  // `text` in place of the bytes [begin, end) of `other`: data when any of those bytes is.
  void AppendInPlaceOf(const MarkedText& other, size_t begin, size_t end, std::string_view text);

  MarkedText Slice(size_t begin, size_t end) const;
  // Some byte of [begin, end) is data.
  bool HasData(size_t begin, size_t end) const;

 private:
  void Mark(size_t begin, size_t end);

  std::string bytes_;
  std::vector<TextRange> data_;
};

}  // namespace pawl

namespace pawl::jinja {

// What templates do to strings, in code points as Python counts them, with marks kept. Internal to
// src/text/chat; no state, thread-safe. All texts are UTF-8.

// White space as Python's str.isspace has it.
bool IsSpace(char32_t c);
// Bytes of white space at the front, at the end.
size_t SpacesAtStart(std::string_view text);
size_t SpacesAtEnd(std::string_view text);
size_t CountCodepoints(std::string_view text);
// The byte where the code point of that number begins; the size when there are fewer.
size_t ByteOfCodepoint(std::string_view text, size_t index);

// Strips white space, or the characters of `set`.
MarkedText Strip(const MarkedText& text, const MarkedText* set, bool left, bool right);
// At white space, or at `separator` (not empty). `most` splits; negative: any number.
std::vector<MarkedText> Split(const MarkedText& text, const MarkedText* separator, int64_t most,
                              bool from_right);
// Lines without their ends, as str.splitlines.
std::vector<MarkedText> SplitLines(const MarkedText& text, bool keep_ends);
MarkedText Replace(const MarkedText& text, const MarkedText& from, const MarkedText& to,
                   int64_t most);

enum class Case { kUpper, kLower, kTitle, kCapitalize, kJinjaTitle };
// nullopt when a letter outside of ASCII would have to change by more than the simple mappings say.
std::optional<MarkedText> WithCase(const MarkedText& text, Case how);

// As markupsafe.escape writes a text that is not safe: & < > " ' as entities.
MarkedText EscapeHtml(const MarkedText& text);
// As Python's repr writes a string, a float.
MarkedText Repr(const MarkedText& text);
std::string FloatRepr(double value);
// As Python's json.dumps writes it.
MarkedText JsonQuote(const MarkedText& text, bool ensure_ascii);

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_MARKED_TEXT_H_
