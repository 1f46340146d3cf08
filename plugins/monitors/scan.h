// Where in an unfinished text the cursor stands, byte by byte: in a comment, in a string, in which
// brackets. What closes them makes of the text so far one that a parser takes.
#ifndef PAWL_PLUGINS_MONITORS_SCAN_H_
#define PAWL_PLUGINS_MONITORS_SCAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/syntax.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors {

inline bool NameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}
inline bool NameStart(char c) { return NameByte(c) && !(c >= '0' && c <= '9'); }

// Whether the text ends with `words NAME`, with one of the words and white space between them: the
// name is declared there, and a "=" behind it assigns to nothing that was there before.
bool EndsWithDeclared(std::string_view text, std::span<const std::string_view> words);

// A value: copying it forks.
class Scan {
 public:
  explicit Scan(Language language, size_t most_brackets = MonitorLimits{}.brackets)
      : language_(language), most_brackets_(most_brackets) {}
  void Add(char c);
  void Add(std::string_view text) {
    for (const char c : text) Add(c);
  }
  // Where more brackets are open than the limits allow: the number of bytes before the last of
  // them. Nothing behind is looked at. SIZE_MAX: there are not.
  size_t too_deep() const { return too_deep_; }
  // In code: not in a comment, string, character or regex.
  bool in_code() const { return mode_ == Mode::kCode && slash_ == Slash::kNone; }
  // Whether the innermost bracket is the "(" of a call, as far as the bytes before it tell.
  bool in_call() const { return !open_.empty() && open_.back().call; }
  // The innermost open bracket, 0: none. '`' stands for the ${ of a template and the { of an
  // f-string.
  char bracket() const { return open_.empty() ? 0 : open_.back().bracket; }
  // The last byte of code that is no white space, 0: none.
  char significant() const { return significant_; }
  // How many brackets are open.
  size_t depth() const { return open_.size(); }
  // What to write behind a name at the cursor so that everything open is closed. `ternaries`: also
  // the second half of conditional expressions.
  std::string Closers(bool ternaries) const;
  bool has_ternary() const;

 private:
  enum class Mode : uint8_t {
    kCode,
    kLineComment,
    kBlockComment,
    kSingle,
    kDouble,
    kTemplate,
    kRegex,
    kTripleSingle,
    kTripleDouble,
    kFormat,  // behind the ":" in a hole of an f-string
    kTooDeep
  };
  struct Open {
    char bracket = 0;
    std::string word;  // before "(": if, for, while, ...
    uint8_t semicolons = 0;
    uint8_t ternaries = 0;
    bool of = false;
    bool label = false;     // behind `case`
    bool heritage = false;  // behind `class`, before its body
    bool try_body = false;
    bool do_body = false;
    bool array = false;  // the braces of a list of values
    bool call = false;   // "(" behind what can be called
    // Of a hole: what goes on behind its "}", and whether that ends with the line.
    Mode text = Mode::kTemplate;
    bool one_line = false;
  };
  enum class Slash : uint8_t { kNone, kDivision, kRegex };
  Slash SlashBehind(char previous) const;
  bool Push(Open open);
  bool CalledBefore(char previous) const;
  void Code(char c);
  bool BehindSlash(char c);
  void BehindQuestion(char c);
  void Quote(char c);
  bool OpenBracket(char c, char previous);
  bool CloseBrace();
  bool OpenHole(char c);
  void EndLine();
  void EndWord();
  Open& level() { return open_.empty() ? top_ : open_.back(); }
  const Open& level() const { return open_.empty() ? top_ : open_.back(); }
  void CloseLevel(const Open& open, bool ternaries, std::string& out) const;

  Language language_;
  size_t most_brackets_;
  size_t bytes_ = 0;
  size_t too_deep_ = SIZE_MAX;
  Mode mode_ = Mode::kCode;
  Slash slash_ = Slash::kNone;  // a slash whose meaning the next byte tells
  bool block_star_ = false;
  bool escape_ = false;
  bool regex_class_ = false;
  bool format_ = false;    // the string is an f-string, with holes
  char last_ = 0;          // the last byte
  char before_ = 0;        // the one before it
  char significant_ = 0;   // the last byte of code that is no white space
  bool question_ = false;  // a "?" whose meaning the next byte tells
  bool spaced_question_ = false;
  std::string word_;         // the name being written
  std::string last_word_;    // the name before the last other byte of code
  char before_word_ = 0;     // the last byte of code before it that is no white space
  std::string word_before_;  // the one before that, where only white space is between them
  Open top_;
  std::vector<Open> open_;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_SCAN_H_
