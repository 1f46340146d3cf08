// White space and comments (// and #) separate words; the ends of lines are words, since they end a
// rule. What stands behind %json is JSON, whose end is found by its own brackets and strings.
#include <algorithm>
#include <array>
#include <optional>

#include "grammar/languages/lark_ast.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::lark {
namespace {

constexpr size_t kStride = 256;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsOneOf(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
bool IsLead(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }
bool IsName(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '-'; }

class Lexer {
 public:
  Lexer(std::string_view text, const SourceMap& map) : text_(text), map_(map) {}

  Result<std::vector<Token>> Run() {
    while (Skip(), at_ < text_.size()) {
      StopScope::Step();
      if (!Next()) return *error_;
    }
    Add(Word::kEnd, at_);
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool LooksAt(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool Fail(std::string message, size_t at) {
    error_ = Error{ErrorCode::kInvalid, std::move(message), map_.Place(at)};
    return false;
  }
  bool Add(Word word, size_t begin) {
    tokens_.push_back({word, static_cast<uint32_t>(begin), static_cast<uint32_t>(at_)});
    return true;
  }
  // A newline in a row of newlines adds nothing.
  void Skip() {
    for (;;) {
      const char c = Peek();
      if (at_ >= text_.size()) return;
      if (c == ' ' || c == '\t' || c == '\f') {
        ++at_;
      } else if (c == '#' || LooksAt("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '\n' || LooksAt("\r\n")) {
        const size_t begin = at_;
        at_ += c == '\n' ? 1 : 2;
        if (tokens_.empty() || tokens_.back().word != Word::kNewline) Add(Word::kNewline, begin);
      } else {
        return;
      }
    }
  }

  // Whether a rule may begin here; only there are ! and ? parts of its name.
  bool AtStatement() const {
    if (tokens_.empty() || tokens_.back().word == Word::kNewline) return true;
    const Token& last = tokens_.back();
    return last.word == Word::kKeyword || text_[last.begin] == '{';
  }

  bool Next();
  bool Name();
  bool String();
  bool Regex();
  bool Number();
  bool SpecialToken();
  bool Keyword();
  bool Json(size_t keyword);

  std::string_view text_;
  const SourceMap& map_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
  std::optional<Error> error_;
};

bool Lexer::Next() {
  const size_t begin = at_;
  const char c = Peek();
  const char next = Peek(1);
  if (IsLetter(c) || (c == '_' && IsLetter(next))) return Name();
  if ((c == '!' || c == '?') && AtStatement() && (IsName(next) || next == '?' || next == '!'))
    return Name();
  if (IsDigit(c) || ((c == '-' || c == '+') && IsDigit(next))) return Number();
  switch (c) {
    case '"':
      return String();
    case '/':
      return Regex();
    case '<':
      return SpecialToken();
    case '%':
      return Keyword();
    case '@':
      ++at_;
      while (IsName(Peek())) ++at_;
      if (at_ == begin + 1) return Fail("expected the name of a grammar after '@'", begin);
      return Add(Word::kGrammarRef, begin);
    default:
      break;
  }
  for (const std::string_view sign : {"::", "..", "->", ":", "=", ",", ".", "(", ")", "{",
                                      "}",  "[",  "]",  "~", "|", "&", "_", "+", "*", "?"}) {
    if (!LooksAt(sign)) continue;
    at_ += sign.size();
    return Add(Word::kSign, begin);
  }
  const DecodedCodepoint strange = DecodeUtf8(text_.substr(at_));
  std::string message = "expected a rule, a terminal or a sign of Lark, found ";
  if (strange.codepoint < ' ') {
    message += "a control character";
  } else {
    message += "'" + std::string(text_.substr(at_, static_cast<size_t>(strange.length))) + "'";
  }
  if (c == '\'') message += " (strings stand in double quotes)";
  return Fail(std::move(message), begin);
}

// A name is a rule's when its letters are small and a terminal's when they are large. A '-' that
// begins "->" is not part of it.
bool Lexer::Name() {
  const size_t begin = at_;
  while (Peek() == '!' || Peek() == '?') ++at_;
  const size_t name = at_;
  while (IsName(Peek()) && !LooksAt("->")) ++at_;
  const std::string_view letters = text_.substr(name, at_ - name);
  const bool lower = std::any_of(letters.begin(), letters.end(), IsLower);
  const bool upper = std::any_of(letters.begin(), letters.end(), IsUpper);
  if (lower && upper) {
    return Fail(
        "expected a name in small letters (a rule) or in capital letters (a terminal), "
        "found '" +
            std::string(letters.substr(0, 80)) + "'",
        name);
  }
  if (!lower && !upper) return Fail("expected a name with letters", name);
  const size_t marks = name - begin;
  const std::string_view written = text_.substr(begin, marks);
  constexpr std::array<std::string_view, 5> kMarks = {"", "!", "?", "!?", "?!"};
  if (upper ? marks > 0 : std::ranges::find(kMarks, written) == kMarks.end()) {
    return Fail("expected a name, found '" + std::string(written.substr(0, 80)) + "'", begin);
  }
  return Add(lower ? Word::kRule : Word::kTerminal, begin);
}

// Strings are written as in JSON, with \xHH as well.
bool Lexer::String() {
  const size_t begin = at_++;
  for (;; ++at_) {
    const char c = Peek();
    if (at_ >= text_.size() || c == '\n') {
      return Fail("expected '\"' to end the string before the end of the line", begin);
    }
    if (c == '"') break;
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) {
      return Fail("expected no control character in a string", at_);
    }
    if (c != '\\') continue;
    const size_t escape = at_++;
    const char kind = Peek();
    const size_t digits = kind == 'u' ? 4 : kind == 'x' ? 2 : 0;
    if (digits == 0 && (kind == '\0' || !IsOneOf(kind, "\"\\/bfnrt"))) {
      return Fail("expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uHHHH \\xHH", escape);
    }
    for (size_t i = 0; i < digits; ++i, ++at_) {
      if (HexDigit(Peek(1)) < 0) return Fail("expected hexadecimal digits", escape);
    }
  }
  ++at_;
  if (Peek() == 'i' && !IsName(Peek(1))) ++at_;
  return Add(Word::kString, begin);
}

bool Lexer::Regex() {
  const size_t begin = at_++;
  while (at_ < text_.size() && Peek() != '/') {
    if (Peek() == '\\' && Peek(1) != '\n') ++at_;
    ++at_;
  }
  if (at_ >= text_.size()) {
    at_ = text_.size();
    return Fail("expected '/' to end the regular expression", begin);
  }
  ++at_;
  while (IsLower(Peek()) || Peek() == 'U') ++at_;
  return Add(Word::kRegex, begin);
}

bool Lexer::Number() {
  const size_t begin = at_++;
  if (text_[begin] == '0' && (Peek() == 'x' || Peek() == 'X')) {
    ++at_;
    const size_t digits = at_;
    while (HexDigit(Peek()) >= 0) ++at_;
    if (at_ == digits) return Fail("expected hexadecimal digits", begin);
    return Add(Word::kNumber, begin);
  }
  while (IsDigit(Peek())) ++at_;
  if (Peek() == '.' && Peek(1) != '.') {
    ++at_;
    while (IsDigit(Peek())) ++at_;
  }
  if (Peek() == 'e' || Peek() == 'E') {
    const size_t sign = Peek(1) == '-' || Peek(1) == '+' ? 1 : 0;
    if (IsDigit(Peek(1 + sign))) {
      at_ += 1 + sign;
      while (IsDigit(Peek())) ++at_;
    }
  }
  return Add(Word::kNumber, begin);
}

bool Lexer::SpecialToken() {
  const size_t begin = at_++;
  while (at_ < text_.size() && Peek() != '>') {
    const auto c = static_cast<unsigned char>(Peek());
    if (c <= ' ' || c == '<' || c == 0x7F) {
      return Fail("expected '>' to end the special token, without white space or '<' before it",
                  at_);
    }
    ++at_;
  }
  if (at_ >= text_.size()) return Fail("expected '>' to end the special token", begin);
  ++at_;
  if (at_ == begin + 2) return Fail("expected a name between '<' and '>'", begin);
  return Add(Word::kSpecialToken, begin);
}

bool Lexer::Keyword() {
  const size_t begin = at_++;
  while (IsLower(Peek()) || Peek() == '_') ++at_;
  const std::string_view name = text_.substr(begin, at_ - begin);
  for (const std::string_view known :
       {"%ignore", "%import", "%override", "%declare", "%json", "%regex", "%llguidance",
        "%grammar_options", "%if", "%lark"}) {
    if (known != name) continue;
    Add(Word::kKeyword, begin);
    const bool json =
        name == "%json" || name == "%regex" || name == "%llguidance" || name == "%grammar_options";
    return json ? Json(begin) : true;
  }
  return Fail("expected one of %ignore %import %json %regex %lark %llguidance %if, found '" +
                  std::string(name.substr(0, 80)) + "'",
              begin);
}

// One JSON value: to the bracket that closes its first one, or one string or other scalar. Whether
// it is JSON is found out by who reads it.
bool Lexer::Json(size_t keyword) {
  while (at_ < text_.size() && IsOneOf(Peek(), " \t\r\n")) ++at_;
  const size_t begin = at_;
  size_t open = 0;
  while (at_ < text_.size()) {
    const char c = Peek();
    if (c == '"') {
      const size_t string = at_++;
      while (at_ < text_.size() && Peek() != '"') at_ += Peek() == '\\' ? 2 : 1;
      if (at_ >= text_.size()) {
        at_ = text_.size();
        return Fail("expected '\"' to end the string in JSON", string);
      }
    } else if (c == '{' || c == '[') {
      ++open;
    } else if (c == '}' || c == ']') {
      if (open == 0) break;
      --open;
    } else if (open == 0 && !IsName(c) && c != '.' && c != '+') {
      break;
    } else if (open == 0) {
      while (IsName(Peek()) || Peek() == '.' || Peek() == '+') ++at_;
      break;
    }
    ++at_;
    if (open == 0) break;
  }
  if (at_ >= text_.size() && open > 0) {
    return Fail("expected '" + std::string(text_[begin] == '[' ? "]" : "}") +
                    "' to end this JSON, found the end of the text",
                begin);
  }
  if (at_ == begin) {
    return Fail("expected JSON after '" +
                    std::string(text_.substr(keyword, tokens_.back().end - keyword)) + "'",
                begin);
  }
  return Add(Word::kJson, begin);
}

}  // namespace

SourceMap::SourceMap(std::string_view text) : text_(text), lines_{0} {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    lines_.push_back(at + 1);
  }
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % kStride == 0) counts_.push_back(count);
    if (IsLead(text[i])) ++count;
  }
  counts_.push_back(count);
}

size_t SourceMap::CodepointsBefore(size_t at) const {
  size_t count = counts_[at / kStride];
  for (size_t i = at - at % kStride; i < at; ++i) {
    if (IsLead(text_[i])) ++count;
  }
  return count;
}

std::string SourceMap::Place(size_t at) const {
  at = std::min(at, text_.size());
  const auto next = std::upper_bound(lines_.begin(), lines_.end(), at);
  const size_t column = CodepointsBefore(at) - CodepointsBefore(*std::prev(next)) + 1;
  return std::to_string(next - lines_.begin()) + ":" + std::to_string(column);
}

Result<std::vector<Token>> Tokenize(std::string_view text, const SourceMap& map) {
  return Lexer(text, map).Run();
}

std::string Describe(const Token& token, std::string_view text) {
  if (token.word == Word::kEnd) return "the end of the text";
  if (token.word == Word::kNewline) return "the end of the line";
  if (token.word == Word::kJson) return "JSON";
  std::string_view written = text.substr(token.begin, token.end - token.begin);
  const bool cut = written.size() > 40;
  if (cut) written = written.substr(0, CompleteUtf8Prefix(written.substr(0, 40)));
  return "'" + std::string(written) + (cut ? "..." : "") + "'";
}

}  // namespace pawl::lark
