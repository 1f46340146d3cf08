// What templates do to strings, in code points as Python counts them, with marks kept. Internal to
// src/text/chat; no state, thread-safe. All texts are UTF-8.
#ifndef PAWL_SRC_TEXT_CHAT_JINJA_TEXT_H_
#define PAWL_SRC_TEXT_CHAT_JINJA_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/chat/marked_text.h"

namespace pawl::jinja {

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

// As Python's repr writes a string, a float.
MarkedText Repr(const MarkedText& text);
std::string FloatRepr(double value);
// As Python's json.dumps writes it.
MarkedText JsonQuote(const MarkedText& text, bool ensure_ascii);

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_JINJA_TEXT_H_
