// A lexer of one byte of memory or two. It knows strings, comments, templates, regular expressions
// (by what stands before the slash) and brackets, and per bracket the few things that decide how an
// unfinished construct is closed: how many semicolons the head of a `for` has, whether a `?` still
// waits for its `:`, whether a `case` waits for one.
#include "plugins/monitors/scan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pawl::monitors {
namespace {

bool Space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Words behind which an expression begins, so that a slash begins a regular expression.
bool ExpressionFollows(const std::string& word) {
  static constexpr std::array<std::string_view, 12> kWords = {"return", "typeof", "case", "in",
                                                              "of",     "delete", "void", "throw",
                                                              "new",    "do",     "else", "await"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// f, F, rf, Fr, ...
bool FormatPrefix(std::string_view word) {
  return word.size() <= 2 && word.find_first_of("fF") != std::string_view::npos &&
         word.find_first_not_of("fFrR") == std::string_view::npos;
}

}  // namespace

bool EndsWithDeclared(std::string_view text, std::span<const std::string_view> words) {
  constexpr size_t kMostScanned = 200;  // longer ones are asked about
  text = text.substr(text.size() - std::min(text.size(), kMostScanned));
  const auto trim = [&] {
    const size_t before = text.size();
    while (!text.empty() && Space(text.back())) text.remove_suffix(1);
    return before != text.size();
  };
  trim();
  const size_t whole = text.size();
  while (!text.empty() && NameByte(text.back())) text.remove_suffix(1);
  if (text.size() == whole || !trim()) return false;
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.ends_with(word) &&
           (text.size() == word.size() ? whole < kMostScanned / 2
                                       : !NameByte(text[text.size() - word.size() - 1]) &&
                                             text[text.size() - word.size() - 1] != '.');
  });
}

void Scan::Add(char c) {
  ++bytes_;
  switch (mode_) {
    case Mode::kCode:
      Code(c);
      break;
    case Mode::kLineComment:
      if (c == '\n') mode_ = Mode::kCode;
      break;
    case Mode::kBlockComment:
      if (c == '/' && block_star_) {
        mode_ = Mode::kCode;
        before_ = last_ = ' ';
        return;
      }
      block_star_ = c == '*';
      break;
    case Mode::kSingle:
    case Mode::kDouble:
      if (OpenHole(c)) return;
      if (escape_) {
        escape_ = false;
        before_ = 0;
        last_ = 'x';  // no quote that could be one of three
        return;
      } else if (c == '\\') {
        escape_ = true;
      } else if (c == (mode_ == Mode::kSingle ? '\'' : '"') || c == '\n') {
        mode_ = Mode::kCode;
        significant_ = '"';
        before_ = last_;
        last_ = c == '\n' ? '"' : c;
        if (c == '\n') EndLine();
        return;
      }
      break;
    case Mode::kTripleSingle:
    case Mode::kTripleDouble: {
      const char quote = mode_ == Mode::kTripleSingle ? '\'' : '"';
      if (OpenHole(c)) return;
      if (escape_) {
        escape_ = false;
      } else if (c == '\\') {
        escape_ = true;
      } else if (c == quote && last_ == quote && before_ == quote) {
        mode_ = Mode::kCode;
        significant_ = '"';
        before_ = 0;
        last_ = ' ';
        return;
      }
      break;
    }
    case Mode::kFormat:
      if (OpenHole(c)) return;
      if (c == '\n') EndLine();
      if (c == '}') CloseBrace();
      break;
    case Mode::kTemplate:
      if (escape_) {
        escape_ = false;
      } else if (c == '\\') {
        escape_ = true;
      } else if (c == '`') {
        mode_ = Mode::kCode;
        significant_ = '"';
      } else if (c == '{' && last_ == '$') {
        if (!Push(Open{.bracket = '`'})) return;
        mode_ = Mode::kCode;
        significant_ = '{';
        last_word_.clear();
        word_.clear();
      }
      break;
    case Mode::kRegex:
      if (escape_) {
        escape_ = false;
      } else if (c == '\\') {
        escape_ = true;
      } else if (c == '[') {
        regex_class_ = true;
      } else if (c == ']') {
        regex_class_ = false;
      } else if ((c == '/' && !regex_class_) || c == '\n') {
        mode_ = Mode::kCode;
        significant_ = '"';
        before_ = last_ = '"';
        return;
      }
      break;
    case Mode::kTooDeep:
      return;
  }
  before_ = last_;
  last_ = c;
}

// f"{name}": the byte opens a hole in the text of an f-string. In f"{{" the second brace takes the
// hole back (Code).
bool Scan::OpenHole(char c) {
  if (!format_ || escape_ || c != '{') return false;
  const bool one_line = mode_ == Mode::kFormat ? !open_.empty() && open_.back().one_line
                                               : mode_ == Mode::kSingle || mode_ == Mode::kDouble;
  if (!Push(Open{.bracket = '`', .text = mode_, .one_line = one_line})) return true;
  mode_ = Mode::kCode;
  significant_ = '{';
  last_word_.clear();
  word_.clear();
  before_ = 0;
  last_ = '{';
  return true;
}

// The end of a line ends the strings of one line, whatever is open in their holes.
void Scan::EndLine() {
  const auto hole =
      std::find_if(open_.begin(), open_.end(), [](const Open& open) { return open.one_line; });
  if (hole == open_.end()) return;
  open_.erase(hole, open_.end());
  mode_ = Mode::kCode;
  significant_ = '"';
}

// A scan is copied with the state of a text, so it holds few brackets.
bool Scan::Push(Open open) {
  if (open_.size() >= most_brackets_) {
    too_deep_ = bytes_ - 1;
    mode_ = Mode::kTooDeep;
    return false;
  }
  open_.push_back(std::move(open));
  return true;
}

// A name, or the end of an expression; not the words in front of conditions, nor a name that is
// declared.
bool Scan::CalledBefore(char previous) const {
  if (!NameByte(previous)) return std::string_view(")]>\"}!.").find(previous) != std::string::npos;
  if (before_word_ == '.') return true;
  const auto is = [&](std::string_view word) { return last_word_ == word; };
  if (is("if") || is("while") || is("return")) return false;
  if (language_ == Language::kPython) {
    return !is("elif") && !is("and") && !is("or") && !is("not") && !is("in") &&
           word_before_ != "class" && word_before_ != "def";
  }
  return !is("for") && !is("switch") && !is("catch") && !is("throw") && !is("case") &&
         (language_ != Language::kTypeScript || word_before_ != "function");
}

void Scan::EndWord() {
  if (word_.empty()) return;
  Open& at = level();
  if (word_ == "case") at.label = true;
  if (word_ == "of" || word_ == "in") at.of = true;
  if (word_ == "class" || word_ == "interface") at.heritage = true;
  word_before_ = std::exchange(last_word_, std::move(word_));
  word_.clear();
}

// The byte behind a slash. True: it is not code.
bool Scan::BehindSlash(char c) {
  const Slash slash = std::exchange(slash_, Slash::kNone);
  if (c == '/') {
    mode_ = Mode::kLineComment;
    return true;
  }
  if (c == '*') {
    mode_ = Mode::kBlockComment;
    block_star_ = false;
    return true;
  }
  significant_ = '/';
  last_word_.clear();
  if (slash == Slash::kDivision) return false;
  mode_ = Mode::kRegex;
  regex_class_ = c == '[';
  escape_ = c == '\\';
  return true;
}

// A byte behind a question mark: "a ? b" waits for a ":", "a?.b", "a ?? b" and "a?: T" do not.
void Scan::BehindQuestion(char c) {
  if (Space(c)) {
    spaced_question_ = true;
    return;
  }
  question_ = false;
  const bool chain = !spaced_question_ && (c == '.' || c == '?');
  if (!chain && c != ':' && c != ')' && c != ',' && c != '=') ++level().ternaries;
}

// A comment, a division or a regular expression: the byte behind the slash tells.
Scan::Slash Scan::SlashBehind(char previous) const {
  if (language_ != Language::kTypeScript) return Slash::kDivision;
  if (NameByte(previous)) return ExpressionFollows(last_word_) ? Slash::kRegex : Slash::kDivision;
  return previous == ')' || previous == ']' || previous == '}' || previous == '"' ? Slash::kDivision
                                                                                  : Slash::kRegex;
}

void Scan::Quote(char c) {
  // Java's text blocks are like Python's long strings.
  const bool threefold =
      language_ == Language::kPython || (language_ == Language::kJava && c == '"');
  // f"": the third quote begins a long string of the same kind.
  const bool third = threefold && last_ == c && before_ == c;
  if (!third) {
    format_ = language_ == Language::kPython && NameByte(last_) && FormatPrefix(last_word_);
  }
  if (third) {
    mode_ = c == '"' ? Mode::kTripleDouble : Mode::kTripleSingle;
    before_ = last_ = 0;
    return;
  }
  mode_ = c == '"' ? Mode::kDouble : Mode::kSingle;
  escape_ = false;
}

bool Scan::OpenBracket(char c, char previous) {
  const bool java = language_ == Language::kJava;
  Open open{.bracket = c};
  open.word = last_word_;
  open.call = c == '(' && CalledBefore(previous);
  if (c == '{') {
    level().heritage = false;
    level().label = level().label && !java;
    // int[] a = {1, {2}}; @Names({"a"})
    open.array = java && (previous == '=' || previous == ']' || previous == '(' ||
                          (bracket() == '{' && open_.back().array));
    open.try_body = last_word_ == "try";
    open.do_body = last_word_ == "do";
  }
  return Push(std::move(open));
}

// False: the text of a template goes on.
bool Scan::CloseBrace() {
  if (open_.empty()) return true;
  const bool template_hole = open_.back().bracket == '`';
  const Mode text = open_.back().text;
  open_.pop_back();
  if (template_hole) {
    mode_ = text;
    format_ = text != Mode::kTemplate;
    escape_ = false;
    before_ = last_ = 0;
    return false;
  }
  if (bracket() == '{' || open_.empty()) level().ternaries = 0;
  return true;
}

void Scan::Code(char c) {
  if (slash_ != Slash::kNone && BehindSlash(c)) return;
  if (question_) BehindQuestion(c);
  if (NameByte(c)) {
    // Of a long name it is enough to know that it is no word of the language.
    constexpr size_t kMostWord = 24;
    if (word_.empty()) before_word_ = significant_;
    if (word_.size() < kMostWord) word_ += c;
    significant_ = c;
    return;
  }
  EndWord();
  if (c == '\n' && language_ == Language::kPython) EndLine();
  if (Space(c)) return;
  const bool python = language_ == Language::kPython;
  const bool java = language_ == Language::kJava;
  const char previous = significant_;
  significant_ = c;
  switch (c) {
    case '/':
      if (python) break;
      slash_ = SlashBehind(previous);
      significant_ = previous;
      return;
    case '#':
      if (python) mode_ = Mode::kLineComment;
      return;
    case '\'':
    case '"':
      Quote(c);
      return;
    case '`':
      if (language_ == Language::kTypeScript) mode_ = Mode::kTemplate;
      escape_ = false;
      last_word_.clear();
      return;
    case '(':
    case '[':
    case '{':
      if (python && bracket() == '`' && last_ == '{' && before_ == 0) {
        CloseBrace();  // f"{{"
        return;
      }
      if (!OpenBracket(c, previous)) return;
      break;
    case ')':
    case ']':
      if (!open_.empty()) open_.pop_back();
      break;
    case '}':
      if (!CloseBrace()) return;
      break;
    case ';':
      ++level().semicolons;
      level().ternaries = 0;
      if (java) level().label = false;
      break;
    case '>':
      if (java && last_ == '-') level().label = false;
      break;
    case '?':
      // List<?>, Map<String, ? extends T>
      if (java && (previous == '<' || (previous == ',' && bracket() != '('))) break;
      if (last_ == '?' && previous == '?') {
        question_ = false;
      } else if (!python) {
        question_ = true;
        spaced_question_ = false;
      }
      break;
    case ':':
      if (python && bracket() == '`') {
        mode_ = Mode::kFormat;
        format_ = true;
        escape_ = false;
      } else if (level().ternaries > 0) {
        --level().ternaries;
      } else {
        level().label = false;
        if (java && bracket() == '(') level().of = true;  // for (T x : all)
      }
      break;
    default:
      break;
  }
  last_word_.clear();
}

void Scan::CloseLevel(const Open& open, bool ternaries, std::string& out) const {
  if (language_ == Language::kPython) return;
  if (open.label) out += ":";
  if (open.heritage) out += " {}";
  if (ternaries) {
    for (int i = 0; i < open.ternaries; ++i) out += " : 0";
  }
}

bool Scan::has_ternary() const {
  return top_.ternaries > 0 ||
         std::any_of(open_.begin(), open_.end(), [](const Open& o) { return o.ternaries > 0; });
}

std::string Scan::Closers(bool ternaries) const {
  std::string out;
  for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
    CloseLevel(*open, ternaries, out);
    switch (open->bracket) {
      case '(':
        if (open->word == "for" && !open->of) {
          for (int i = open->semicolons; i < 2; ++i) out += ";";
        }
        out += ")";
        if (language_ == Language::kPython) break;
        if (open->word == "if" || open->word == "for" || open->word == "while" ||
            open->word == "switch" || open->word == "catch" || open->word == "synchronized" ||
            (open->word == "try" && language_ == Language::kJava)) {
          out += "{}";
        }
        break;
      case '[':
        out += "]";
        break;
      case '{':
        out += language_ == Language::kTypeScript              ? "\n}"
               : open->array || language_ == Language::kPython ? "}"
                                                               : ";}";
        if (language_ == Language::kPython) break;
        if (open->try_body) out += language_ == Language::kJava ? " finally {}" : " catch {}";
        if (open->do_body) out += " while (0)";
        break;
      case '`':
        out += open->text == Mode::kTemplate       ? "}`"
               : open->text == Mode::kSingle       ? "}'"
               : open->text == Mode::kDouble       ? "}\""
               : open->text == Mode::kTripleSingle ? "}'''"
               : open->text == Mode::kTripleDouble ? "}\"\"\""
                                                   : "}";
        break;
      default:
        break;
    }
  }
  CloseLevel(top_, ternaries, out);
  return out;
}

}  // namespace pawl::monitors
