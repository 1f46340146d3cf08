// A template alternates between text and tags. The text is cut at the first "{{", "{%" or "{#";
// white space around tags goes away as the marks on them say, and as trim_blocks and lstrip_blocks
// say, which transformers sets for chat templates:
//   "{%-" and "-%}" take all white space on their side along;
//   without a sign, "{%" and "{#" take the blanks before them when nothing else stands before them
//   on the line, and "%}" and "#}" the line end behind them; "+" keeps both.
// Inside of tags the end is only looked for outside of all brackets, so that "}}" may close two
// dictionaries.
#include <algorithm>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/text/chat/jinja_parser.h"
#include "src/text/chat/marked_text.h"

namespace pawl::jinja {
namespace {

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool IsNameStart(char c) { return IsLetter(c) || c == '_'; }
bool IsNameByte(char c) { return IsNameStart(c) || IsDigit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size() && !error_) Text();
    if (error_) return *error_;
    Add(Token::Kind::kEnd, "", source_.size());
    return std::move(tokens_);
  }

 private:
  void Add(Token::Kind kind, std::string text, size_t offset) {
    tokens_.push_back({kind, std::move(text), offset});
  }
  void Fail(size_t offset, std::string message) {
    if (!error_) error_ = Error{ErrorCode::kInvalid, std::move(message), PlaceOf(source_, offset)};
  }
  bool StartsWith(std::string_view word) const { return source_.substr(at_).starts_with(word); }
  void SkipSpace() { at_ += SpacesAtStart(source_.substr(at_)); }
  void SkipLineEnd() {
    if (StartsWith("\n")) ++at_;
  }

  // The text from `begin` to a tag at `tag`, less what the tag's sign takes away.
  void AddText(size_t begin, size_t tag, char sign, bool strips_line) {
    std::string_view text = source_.substr(begin, tag - begin);
    if (sign == '-') {
      text.remove_suffix(SpacesAtEnd(text));
    } else if (sign != '+' && strips_line) {
      const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      const bool from_start = line > 0 || line_starting_;
      if (from_start && line < text.size() &&
          SpacesAtStart(text.substr(line)) == text.size() - line) {
        text = text.substr(0, line);
      }
    }
    if (!text.empty()) Add(Token::Kind::kText, std::string(text), begin);
  }

  static char SignAt(std::string_view text, size_t at) {
    return at < text.size() && (text[at] == '-' || text[at] == '+') ? text[at] : '\0';
  }

  void Text() {
    const size_t begin = at_;
    size_t tag = begin;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        AddText(begin, source_.size(), '+', false);
        at_ = source_.size();
        return;
      }
      if (std::string_view("{%#").find(source_[tag + 1]) != std::string_view::npos) break;
    }
    const char kind = source_[tag + 1];
    const char sign = SignAt(source_, tag + 2);
    AddText(begin, tag, sign, kind != '{');
    at_ = tag + (sign != '\0' ? 3 : 2);
    if (kind == '#') {
      Comment(tag);
    } else if (kind == '%' && !Raw(tag)) {
      Add(Token::Kind::kTagBegin, "{%", tag);
      Inside(tag, true);
    } else if (kind == '{') {
      Add(Token::Kind::kOutputBegin, "{{", tag);
      Inside(tag, false);
    }
    line_starting_ = at_ > 0 && at_ <= source_.size() && source_[at_ - 1] == '\n';
  }

  void Comment(size_t tag) {
    const size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) return Fail(tag, "the comment is not closed; expected '#}'");
    const char sign = end > at_ ? SignAt(source_, end - 1) : '\0';
    at_ = end + 2;
    if (sign == '-') SkipSpace();
    if (sign == '\0') SkipLineEnd();
  }

  // "{% raw %}" with all up to its end; at_ is behind the sign of the tag.
  bool Raw(size_t tag) {
    const size_t start = at_;
    SkipSpace();
    if (!StartsWith("raw")) return at_ = start, false;
    at_ += 3;
    SkipSpace();
    const bool strips = StartsWith("-%}");
    if (!strips && !StartsWith("%}")) return at_ = start, false;
    at_ += strips ? 3 : 2;
    if (strips) SkipSpace();
    line_starting_ = source_[at_ - 1] == '\n';
    const size_t begin = at_;
    for (size_t end = source_.find("{%", at_); end != std::string_view::npos;
         end = source_.find("{%", end + 2)) {
      const char sign = SignAt(source_, end + 2);
      at_ = end + (sign != '\0' ? 3 : 2);
      SkipSpace();
      if (!StartsWith("endraw")) continue;
      at_ += 6;
      SkipSpace();
      const char close = SignAt(source_, at_);
      if (close != '\0') ++at_;
      if (!StartsWith("%}")) continue;
      at_ += 2;
      if (close == '-') SkipSpace();
      if (close == '\0') SkipLineEnd();
      AddText(begin, end, sign, true);
      return true;
    }
    Fail(tag, "'raw' is not closed; expected {% endraw %}");
    return true;
  }

  // Up to the end of a tag. `block`: of "{%", else of "{{".
  void Inside(size_t tag, bool block) {
    const std::string_view close = block ? "%}" : "}}";
    std::string brackets;  // the closing ones that are due
    while (!error_) {
      SkipSpace();
      if (at_ >= source_.size()) {
        return Fail(tag, std::string("the tag is not closed; expected '") +
                             (brackets.empty() ? std::string(close)
                                               : brackets.substr(brackets.size() - 1)) +
                             "'");
      }
      if (brackets.empty()) {
        const char sign = SignAt(source_, at_);
        const bool signed_end = sign == '-' || (sign == '+' && block);
        if (source_.substr(at_ + (signed_end ? 1 : 0)).starts_with(close)) {
          Add(block ? Token::Kind::kTagEnd : Token::Kind::kOutputEnd, std::string(close), at_);
          at_ += signed_end ? 3 : 2;
          if (sign == '-') SkipSpace();
          if (block && !signed_end) SkipLineEnd();
          return;
        }
      }
      const char c = source_[at_];
      if (IsDigit(c)) {
        Number();
      } else if (IsNameStart(c)) {
        const size_t begin = at_;
        while (at_ < source_.size() && IsNameByte(source_[at_])) ++at_;
        Add(Token::Kind::kName, std::string(source_.substr(begin, at_ - begin)), begin);
      } else if (c == '\'' || c == '"') {
        String();
      } else {
        Operator(brackets);
      }
    }
  }

  void Operator(std::string& brackets) {
    for (const std::string_view op : kOperators) {
      if (!StartsWith(op)) continue;
      if (op == "(") brackets += ')';
      if (op == "[") brackets += ']';
      if (op == "{") brackets += '}';
      if (op == ")" || op == "]" || op == "}") {
        if (brackets.empty() || brackets.back() != op[0]) {
          return Fail(at_,
                      "found '" + std::string(op) + "'; expected " +
                          (brackets.empty() ? std::string("no closing bracket here")
                                            : "'" + brackets.substr(brackets.size() - 1) + "'"));
        }
        brackets.pop_back();
      }
      Add(Token::Kind::kOperator, std::string(op), at_);
      at_ += op.size();
      return;
    }
    const int length = DecodeUtf8(source_.substr(at_)).length;
    Fail(at_, "the character " + json::Quote(source_.substr(at_, static_cast<size_t>(length))) +
                  " cannot stand in a tag; expected a name, a number, a string or an operator");
  }

  size_t Digits(size_t at) const {
    while (
        at < source_.size() &&
        (IsDigit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                  IsDigit(source_[at + 1]) && at > 0 && IsDigit(source_[at - 1]))))
      ++at;
    return at;
  }

  void Number() {
    const size_t begin = at_;
    size_t end = Digits(begin);
    bool is_float = false;
    const auto digit_at = [&](size_t at) { return at < source_.size() && IsDigit(source_[at]); };
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      is_float = true;
      end = Digits(end + 1);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t sign = end + 1 < source_.size() && SignAt(source_, end + 1) != '\0' ? 1 : 0;
      if (digit_at(end + 1 + sign)) {
        is_float = true;
        end = Digits(end + 1 + sign);
      }
    }
    std::string text(source_.substr(begin, end - begin));
    std::erase(text, '_');
    if (end < source_.size() && IsNameByte(source_[end])) {
      return Fail(begin, "numbers are decimal; expected an operator after " + json::Quote(text));
    }
    if (!is_float && text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of('0') != std::string::npos) {
      return Fail(begin, "an integer cannot begin with 0");
    }
    at_ = end;
    Add(is_float ? Token::Kind::kFloat : Token::Kind::kInteger, std::move(text), begin);
  }

  void String() {
    const size_t begin = at_;
    const char quote = source_[at_++];
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\') {
        Escape(text);
        if (error_) return;
      } else {
        text += source_[at_++];
      }
    }
    if (at_ >= source_.size()) {
      return Fail(begin, std::string("the string is not closed; expected ") + quote);
    }
    ++at_;
    Add(Token::Kind::kString, std::move(text), begin);
  }

  // Those of Python's strings, less \N{...}.
  void Escape(std::string& text) {
    const size_t begin = at_++;
    if (at_ >= source_.size()) return;
    const char c = source_[at_++];
    static constexpr std::string_view kNames = "\\'\"abfnrtv", kValues = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      text += kValues[i];
      return;
    }
    size_t digits = 0;
    int base = 16;
    if (c == 'x') digits = 2;
    if (c == 'u') digits = 4;
    if (c == 'U') digits = 8;
    if (c == '\n') return;  // a line that goes on
    if (c == 'N') return Fail(begin, "\\N{...} is not supported; expected another escape");
    bool exact = digits > 0;
    if (c >= '0' && c <= '7') {
      digits = 3;
      base = 8;
      --at_;
    }
    if (digits == 0) {  // an unknown escape stands for itself
      text += '\\';
      --at_;
      return;
    }
    uint32_t value = 0;
    size_t read = 0;
    for (; read < digits && at_ < source_.size(); ++read) {
      const char d = source_[at_];
      const int digit = IsDigit(d)               ? d - '0'
                        : (d >= 'a' && d <= 'f') ? d - 'a' + 10
                        : (d >= 'A' && d <= 'F') ? d - 'A' + 10
                                                 : 99;
      if (digit >= base) break;
      value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
      ++at_;
    }
    if (exact && read < digits) {
      return Fail(begin, "the escape is cut short; expected " + std::to_string(digits) +
                             " hexadecimal digits");
    }
    if (value > kMaxCodepoint || (value >= 0xD800 && value < 0xE000)) {
      return Fail(begin, "the escape stands for no character; expected a code point");
    }
    AppendUtf8(value, text);
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  std::optional<Error> error_;
};

}  // namespace

std::string NormalizedSource(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') continue;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string PlaceOf(std::string_view source, size_t offset) {
  const std::string_view before = source.substr(0, offset);
  const size_t line = before.rfind('\n') + 1;  // npos + 1 is 0
  return std::to_string(std::count(before.begin(), before.end(), '\n') + 1) + ":" +
         std::to_string(CountCodepoints(before.substr(line)) + 1);
}

Result<std::vector<Token>> Tokenize(std::string_view source) { return Lexer(source).Run(); }

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kText:
      return "text";
    case Token::Kind::kEnd:
      return "the end of the template";
    case Token::Kind::kString:
      return "a string";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace pawl::jinja
