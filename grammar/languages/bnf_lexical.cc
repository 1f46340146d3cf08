// The characters of EBNF and GBNF: places, white space, names, escapes, classes. Columns count
// characters; a line ends at \n, \r or both together.
#include "grammar/languages/bnf_reader.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

// The characters that a backslash makes of a letter; 0 where there is none ('0' is apart).
char32_t ControlEscape(char c, bool gbnf) {
  constexpr std::string_view kLetters = "nrtabfve", kMeant = "\n\r\t\a\b\f\v\x1B";
  const size_t at = kLetters.substr(0, gbnf ? 3 : kLetters.size()).find(c);
  return at == std::string_view::npos ? 0 : static_cast<char32_t>(kMeant[at]);
}

}  // namespace

std::string BnfReader::PlaceOf(size_t offset) {
  if (offset < place_offset_) place_offset_ = 0, place_line_ = place_column_ = 1;
  for (; place_offset_ < offset && place_offset_ < text_.size(); ++place_offset_) {
    const char c = text_[place_offset_];
    const char next = place_offset_ + 1 < text_.size() ? text_[place_offset_ + 1] : '\0';
    if (c == '\n' || (c == '\r' && next != '\n')) {
      ++place_line_;
      place_column_ = 1;
    } else if ((next & 0xC0) != 0x80) {
      ++place_column_;
    }
  }
  return std::to_string(place_line_) + ":" + std::to_string(place_column_);
}

std::string BnfReader::FoundAt(size_t offset) const {
  if (offset >= text_.size()) return "the end of the grammar";
  const char c = text_[offset];
  if (c == '\n' || c == '\r') return "the end of the line";
  if (const size_t end = NameEnd(offset); end > offset) {
    constexpr size_t kShown = 40;
    const bool cut = end - offset > kShown;
    return "\"" + std::string(text_.substr(offset, cut ? kShown : end - offset)) +
           (cut ? "...\"" : "\"");
  }
  if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    return std::string("U+00") + kDigits[c >> 4] + kDigits[c & 15];
  }
  return "'" + std::string(text_.substr(offset, DecodeUtf8(text_.substr(offset)).length)) + "'";
}

BnfReader::NoExpr BnfReader::Fail(ErrorCode code, size_t offset, std::string message) {
  if (!failed()) error_ = Error{code, std::move(message), PlaceOf(offset)};
  return {};
}

BnfReader::NoExpr BnfReader::Expected(std::string_view what, size_t offset) {
  return Fail(ErrorCode::kInvalid, offset,
              "expected " + std::string(what) + ", found " + FoundAt(offset));
}

size_t BnfReader::SpaceEnd(size_t offset, bool newlines) const {
  for (; offset < text_.size(); ++offset) {
    const char c = text_[offset];
    if (c == '#') {
      while (offset < text_.size() && text_[offset] != '\n' && text_[offset] != '\r') ++offset;
      if (!newlines || offset == text_.size()) break;
    } else if (c != ' ' && c != '\t' && !(newlines && (c == '\n' || c == '\r'))) {
      break;
    }
  }
  return offset;
}

bool BnfReader::Consume(std::string_view token, std::string_view what) {
  if (failed()) return false;
  if (text_.substr(at_, token.size()) != token) return Expected(what);
  at_ += token.size();
  return true;
}

bool BnfReader::IsNameChar(char c, bool first) const {
  if (IsLetter(c) || c == '-' || c == '_') return true;
  if (IsDigit(c)) return gbnf() || !first;
  return c == '.' && !gbnf();
}

size_t BnfReader::NameEnd(size_t offset) const {
  const size_t start = offset;
  while (offset < text_.size() && IsNameChar(text_[offset], offset == start)) ++offset;
  return offset;
}

std::string_view BnfReader::ReadName(std::string_view what) {
  const size_t end = NameEnd(at_);
  if (end == at_) Expected(what);
  const std::string_view name = text_.substr(at_, end - at_);
  at_ = end;
  return name;
}

std::optional<uint64_t> BnfReader::ReadNumber(uint64_t max) {
  const size_t start = at_;
  uint64_t value = 0;
  while (IsDigit(Peek())) {
    value = value * 10 + static_cast<uint64_t>(Peek() - '0');
    if (value > max)
      return Fail(ErrorCode::kLimit, start, "expected a number up to " + std::to_string(max));
    ++at_;
  }
  if (at_ == start) return Expected("a number");
  return value;
}

char32_t BnfReader::ReadCharacter(bool in_class) {
  const size_t start = at_;
  if (Peek() != '\\') {
    const DecodedCodepoint decoded = DecodeUtf8(text_.substr(at_));
    at_ += static_cast<size_t>(decoded.length);
    return decoded.codepoint;
  }
  const char letter = Peek(1);
  at_ += 2;
  if (letter == 'x' || letter == 'u' || letter == 'U') {
    // In EBNF \x takes all the hexadecimal digits that follow.
    const bool open_ended = letter == 'x' && !gbnf();
    const int wanted = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    char32_t value = 0;
    int digits = 0;
    while ((open_ended || digits < wanted) && !AtEnd() && HexDigit(Peek()) >= 0) {
      value = std::min<char32_t>(value * 16 + static_cast<char32_t>(HexDigit(Peek())), 0x1000000);
      ++at_;
      ++digits;
    }
    if (open_ended ? digits == 0 : digits != wanted) {
      Expected(open_ended ? "a hexadecimal digit"
                          : std::to_string(wanted) + " hexadecimal digits after \\" + letter);
      return 0;
    }
    if (value > kMaxCodepoint || (value >= 0xD800 && value <= 0xDFFF)) {
      Fail(ErrorCode::kInvalid, start,
           "expected the code point of a Unicode character, found \"" +
               std::string(text_.substr(start, std::min<size_t>(at_ - start, 20))) + "\"");
    }
    return value;
  }
  if (const char32_t control = ControlEscape(letter, gbnf());
      control != 0 && start + 1 < text_.size())
    return control;
  if (letter == '0' && !gbnf()) return 0;
  if (gbnf()) {
    if (letter != '\0' && std::string_view("\\\"[]-").find(letter) != std::string_view::npos)
      return static_cast<char32_t>(letter);
  } else if (letter != '\0') {
    constexpr std::string_view kAnywhere = "'\"?\\/", kInClass = "^$.*+()[]{}|-";
    if (kAnywhere.find(letter) != std::string_view::npos ||
        (in_class && kInClass.find(letter) != std::string_view::npos))
      return static_cast<char32_t>(letter);
    if (in_class && std::string_view("dDsSwW").find(letter) != std::string_view::npos) {
      Fail(ErrorCode::kInvalid, start,
           std::string("expected a character, found the shorthand \\") + letter +
               ", which this language does not have: write the ranges");
      return 0;
    }
  }
  at_ = std::min(at_, text_.size());
  Expected("an escape sequence", start + 1);
  return 0;
}

std::u32string BnfReader::ReadString() {
  const size_t start = at_++;
  std::u32string out;
  while (!failed()) {
    const char c = Peek();
    if (AtEnd() || (!gbnf() && (c == '\n' || c == '\r'))) {
      Fail(ErrorCode::kInvalid, at_,
           "expected '\"' to end the string that begins at " + PlaceOf(start) + ", found " +
               FoundAt(at_));
      break;
    }
    if (c == '"') {
      ++at_;
      break;
    }
    out.push_back(ReadCharacter(false));
  }
  return out;
}

GrammarIr::ExprId BnfReader::ReadClass() {
  const size_t start = at_++;
  const bool negated = Peek() == '^';
  if (negated) ++at_;
  std::vector<CodepointRange> ranges;
  while (!failed()) {
    const char c = Peek();
    if (AtEnd() || (!gbnf() && (c == '\n' || c == '\r'))) {
      Fail(ErrorCode::kInvalid, at_,
           "expected ']' to end the class that begins at " + PlaceOf(start) + ", found " +
               FoundAt(at_));
      break;
    }
    if (c == ']') break;
    const size_t first_at = at_;
    const char32_t first = ReadCharacter(true);
    char32_t last = first;
    if (!failed() && Peek() == '-' && Peek(1) != ']' && at_ + 1 < text_.size() &&
        (gbnf() || (Peek(1) != '\n' && Peek(1) != '\r'))) {
      ++at_;
      last = ReadCharacter(true);
      if (!failed() && last < first) {
        Fail(ErrorCode::kInvalid, first_at,
             "expected a range from low to high, found one from high to low");
      }
    }
    ranges.push_back({first, last});
  }
  if (failed()) return GrammarIr::kNever;
  // llama.cpp takes an empty class for the empty text, which nobody can have meant.
  if (gbnf() && ranges.empty()) Expected("a character");
  ++at_;
  const CodepointSet set = CodepointSet::FromRanges(ranges);
  return ir_.Regex(arena().Set(negated ? set.Complement() : set));
}

}  // namespace pawl
