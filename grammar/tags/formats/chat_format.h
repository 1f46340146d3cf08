// ChatFormat: how a family of models writes thoughts, answers and calls of tools. One table for
// structural tags (ToolCallTag) and for the outputs of chats (src/engine/output_plan.h).
//
//   const ChatFormat* format = FormatOf(chat_template);   // nullptr: none that is known
//   const ChatFormat* same = ChatFormatNamed("hermes");
//   for (const ChatFormat* one : ChatFormats()) ...       // in the order of recognition
//
// A format is data. In its texts stand for something else:
//
//   $NAME    the tool's name
//   $QUOTED  the tool's name as a JSON string
//   $INDEX   a number
//   $ID9     letters and digits, so many of them (also $ID10)
//
// An output is [thoughts] (answer | text with calls | calls). Where `answer_open` is empty, the
// answer and the text around calls stand free. Otherwise each part is a message between marks, and
// nothing stands outside.
//
// Thread safety: constant data.
#ifndef PAWL_GRAMMAR_TAGS_FORMATS_CHAT_FORMAT_H_
#define PAWL_GRAMMAR_TAGS_FORMATS_CHAT_FORMAT_H_

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl {

// Up to four texts; what is empty ends the list. An alternative that is empty itself is kNoText.
using FormatTexts = std::array<std::string_view, 4>;
inline constexpr std::string_view kNoText = "$";

struct ChatFormat {
  std::string_view name;  // of --tool-syntax
  FormatTexts aliases = {};
  std::string_view models;  // for people
  // A template that has all of `marks` and none of `without` is of this format. No marks: the
  // format is asked for by name only.
  FormatTexts marks = {}, without = {};

  // Around the thoughts; empty: <think> or [THINK], where the template has such marks.
  std::string_view think_open = {}, think_close = {};
  bool thinks_often = false;  // several blocks of thoughts may come

  // Around the answer, and around text before calls where that stands in marks of its own.
  FormatTexts answer_open = {};
  std::string_view answer_close = {};
  std::string_view note_open = {}, note_close = {};
  std::string_view next = {};  // between the messages of an output
  std::string_view tail = {};  // what may end the output

  // A call: call_open ARGUMENTS call_close, in a list where list_open is given. `trigger` begins
  // each call or list that stands in free text.
  std::string_view trigger = {};
  FormatTexts list_open = {}, list_close = {};
  std::string_view separator = {};
  bool text_behind = false;  // more text, and more lists, may follow a list
  FormatTexts call_open = {}, call_close = {};
  // The same of tools whose input is a text that no JSON can hold; empty: as above.
  std::string_view raw_open = {}, raw_close = {};
  std::string_view style = {};   // of the arguments (argument_style.h); empty: JSON
  bool values_on_lines = false;  // the template writes each value on lines of its own

  // Tokens that end a turn, apart from the tokenizer's own.
  FormatTexts stops = {};

  bool marked() const { return !answer_open[0].empty(); }
  bool in_list() const { return !list_open[0].empty(); }
};

// All formats, in the order in which templates are tried.
std::span<const ChatFormat* const> ChatFormats();
// By name or alias; nullptr for other names.
const ChatFormat* ChatFormatNamed(std::string_view name);
// The format of a chat template, or of all its literals; nullptr where none fits.
PAWL_EXPORT const ChatFormat* FormatOf(std::string_view chat_template);

// The marks around thoughts in this template; empty where it has none. `format` may be nullptr.
struct ThinkMarks {
  std::string_view open, close;
};
PAWL_EXPORT ThinkMarks ThinkMarksOf(std::string_view chat_template, const ChatFormat* format);

// A text of a format taken apart.
struct FormatPiece {
  enum class Kind { kText, kIndex, kId };
  Kind kind = Kind::kText;
  std::string text;   // kText
  size_t length = 0;  // kId
};
PAWL_EXPORT std::vector<FormatPiece> PiecesOf(std::string_view text, std::string_view tool_name);

// The texts of a list that are given, with "" for kNoText.
PAWL_EXPORT std::vector<std::string_view> TextsOf(const FormatTexts& texts);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_TAGS_FORMATS_CHAT_FORMAT_H_
