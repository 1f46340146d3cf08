// Rust's regular expressions differ from ECMA-262's in how they are written, hardly in what they
// can say: so a pattern is rewritten to ECMA-262 and read by ParseEcma. The rewriting resolves
// flags and classes (with their set operations) to plain sets, drops the white space of (?x), and
// spells the anchors that mean something else there. Which byte of the pattern each piece came from
// is kept, so that errors name the right place.
//
// Syntax: https://docs.rs/regex/latest/regex/#syntax.
#include "grammar/languages/rust_regex.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/regex/codepoint_set.h"
#include "grammar/regex/ecma_parser.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr int kMaxClassNesting = 50;
constexpr size_t kMaxRewritten = size_t{4} << 20;
constexpr size_t kMaxRanges = 1'000'000;  // read in classes, all together

CodepointSet Property(std::string_view name) {
  return CodepointSet::FromRanges(UnicodeProperty(name));
}

CodepointSet Difference(const CodepointSet& a, const CodepointSet& b) {
  return a.Intersect(b.Complement());
}

CodepointSet MakePerlClass(char letter) {
  CodepointSet set;
  switch (letter) {
    case 'd':
    case 'D':
      set = Property("Nd");
      break;
    case 's':
    case 'S':
      set = Property("White_Space");
      break;
    default:
      for (const char* name : {"Alphabetic", "M", "Nd", "Pc", "Join_Control"}) {
        set = set.Union(Property(name));
      }
  }
  return letter < 'a' ? set.Complement() : set;
}

class RustRegex {
 public:
  explicit RustRegex(std::string_view text) : text_(text) {}

  bool Rewrite(std::string_view flags) {
    Flags initial;
    for (const char flag : flags) {
      if (!SetFlag(initial, flag, true, 0)) return false;
    }
    flags_ = initial;
    while (at_ < text_.size()) {
      if (out_.size() > kMaxRewritten || work_ > kMaxRanges) {
        return Fail("the pattern is too large with its classes written out", at_,
                    ErrorCode::kLimit);
      }
      if (!Next()) return false;
    }
    return groups_.empty() ? true : Fail("expected ')' to close this group", groups_.back().place);
  }

  const std::string& out() const { return out_; }
  const Error& error() const { return error_; }
  // The byte of the pattern that byte `at` of the output came from.
  size_t Origin(size_t at) const {
    auto it = std::upper_bound(origins_.begin(), origins_.end(), std::pair{at, SIZE_MAX});
    return it == origins_.begin() ? 0 : std::prev(it)->second;
  }

 private:
  struct Flags {
    bool ignore_case = false, multi_line = false, dot_all = false, extended = false;
  };
  struct Group {
    Flags outer;
    size_t place;
  };
  // A character or a set, out of an escape or a class.
  struct Item {
    bool is_set = false;
    char32_t codepoint = 0;
    CodepointSet set;
  };

  bool Fail(std::string message, size_t at, ErrorCode code = ErrorCode::kInvalid) {
    error_ = Error{code, std::move(message), "byte " + std::to_string(at)};
    return false;
  }
  bool LooksAt(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool Take(std::string_view what) {
    if (!LooksAt(what)) return false;
    at_ += what.size();
    return true;
  }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char32_t TakeCodepoint() {
    const DecodedCodepoint c = DecodeUtf8(text_.substr(at_));
    at_ += c.length;
    return c.codepoint;
  }

  void Emit(std::string_view what, size_t from) {
    origins_.emplace_back(out_.size(), from);
    out_ += what;
  }
  static void AppendCodepoint(char32_t c, std::string& out) {
    char digits[8];
    const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<uint32_t>(c), 16);
    out += "\\u{";
    out.append(digits, end.ptr);
    out += '}';
  }
  void EmitSet(const CodepointSet& set, size_t from) {
    std::string text = "[";
    for (const CodepointRange& range : set.ranges()) {
      AppendCodepoint(range.lo, text);
      if (range.hi == range.lo) continue;
      text += '-';
      AppendCodepoint(range.hi, text);
    }
    text += ']';
    Emit(text, from);
  }
  void EmitItem(const Item& item, size_t from) {
    if (item.is_set) {
      EmitSet(Folded(item.set), from);
      return;
    }
    if (const CodepointSet& set = FoldedChar(item.codepoint); set.size() > 1) {
      EmitSet(set, from);
    } else if (item.codepoint < 0x80 && (IsLetter(static_cast<char>(item.codepoint)) ||
                                         IsDigit(static_cast<char>(item.codepoint)))) {
      Emit(std::string(1, static_cast<char>(item.codepoint)), from);
    } else {
      std::string text;
      AppendCodepoint(item.codepoint, text);
      Emit(text, from);
    }
  }
  CodepointSet Folded(const CodepointSet& set) const {
    return flags_.ignore_case ? set.CaseClosure() : set;
  }

  // `c` and, without regard to case, what is equal to it; empty where case matters.
  const CodepointSet& FoldedChar(char32_t c) {
    if (!flags_.ignore_case) return none_;
    const auto [it, fresh] = folded_.try_emplace(c);
    if (fresh) {
      it->second = CodepointSet::Of(c).CaseClosure();
      work_ += 100;
    }
    return it->second;
  }

  bool SetFlag(Flags& flags, char flag, bool on, size_t at) {
    switch (flag) {
      case 'i':
        flags.ignore_case = on;
        return true;
      case 'm':
        flags.multi_line = on;
        return true;
      case 's':
        flags.dot_all = on;
        return true;
      case 'x':
        flags.extended = on;
        return true;
      case 'U':  // which of the matches is taken, not which texts match
        return true;
      case 'u':
        if (on) return true;
        return Fail("patterns over bytes ('-u') are not supported", at, ErrorCode::kUnsupported);
      case 'R':
        return Fail("the flag 'R' is not supported", at, ErrorCode::kUnsupported);
      default:
        return Fail(std::string("expected one of the flags \"imsxuU\", found '") + flag + "'", at);
    }
  }

  bool Next();
  bool OpenGroup();
  bool Quantifier();
  bool EscapedTerm();
  bool ReadEscape(Item& item, bool in_class);
  bool ReadHex(size_t start, char kind, Item& item);
  bool ReadProperty(size_t start, bool negative, Item& item);
  bool ReadClass(int depth, CodepointSet& set);
  bool ReadClassItem(int depth, Item& item);
  void SkipExtended();
  const CodepointSet& PerlClass(char letter) {
    const auto [it, fresh] = perl_.try_emplace(letter);
    if (fresh) it->second = MakePerlClass(letter);
    return it->second;
  }

  std::string_view text_;
  size_t at_ = 0;
  Flags flags_;
  std::vector<Group> groups_;
  std::string out_;
  std::vector<std::pair<size_t, size_t>> origins_;  // output byte, pattern byte
  std::map<char, CodepointSet> perl_;
  std::map<char32_t, CodepointSet> folded_;
  const CodepointSet none_;
  size_t work_ = 0;  // ranges read
  Error error_;
};

// White space and comments, under (?x).
void RustRegex::SkipExtended() {
  while (at_ < text_.size() && flags_.extended) {
    const DecodedCodepoint c = DecodeUtf8(text_.substr(at_));
    const char32_t space[] = {' ', 0x85, 0x200E, 0x200F, 0x2028, 0x2029};
    if ((c.codepoint >= '\t' && c.codepoint <= '\r') ||
        std::find(std::begin(space), std::end(space), c.codepoint) != std::end(space)) {
      at_ += c.length;
    } else if (c.codepoint == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool RustRegex::Next() {
  SkipExtended();
  if (at_ >= text_.size()) return true;
  const size_t start = at_;
  switch (text_[at_]) {
    case '(':
      return OpenGroup();
    case ')':
      if (groups_.empty()) return Fail("unmatched ')'", at_);
      flags_ = groups_.back().outer;
      groups_.pop_back();
      ++at_;
      Emit(")", start);
      return Quantifier();
    case '|':
      ++at_;
      Emit("|", start);
      return true;
    case '^':
      ++at_;
      Emit(flags_.multi_line ? "(?<![^\\n])" : "^", start);
      return true;
    case '$':
      ++at_;
      Emit(flags_.multi_line ? "(?![^\\n])" : "$", start);
      return true;
    case '.':
      ++at_;
      EmitSet(flags_.dot_all ? CodepointSet::All() : CodepointSet::Of('\n').Complement(), start);
      return Quantifier();
    case '*':
    case '+':
    case '?':
    case '{':
      return Fail(std::string("nothing before '") + text_[at_] + "' to repeat", at_);
    case '[': {
      CodepointSet set;
      if (!ReadClass(0, set)) return false;
      EmitSet(set, start);
      return Quantifier();
    }
    case '\\':
      return EscapedTerm();
    default: {
      Item item;
      item.codepoint = TakeCodepoint();
      EmitItem(item, start);
      return Quantifier();
    }
  }
}

bool RustRegex::OpenGroup() {
  const size_t start = at_++;
  Group group{flags_, start};
  std::string_view open = "(?:";
  if (Take("?")) {
    for (const std::string_view look : {"<=", "<!", "=", "!"}) {
      if (!Take(look)) continue;
      // Not in Rust; what they mean is the same everywhere.
      Emit("(?" + std::string(look), start);
      groups_.push_back(group);
      return true;
    }
    if (Take("P<") || Take("<")) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos || end == at_) return Fail("expected a group name", at_);
      at_ = end + 1;
    } else {
      bool on = true;
      Flags flags = flags_;
      for (; Peek() != ':' && Peek() != ')'; ++at_) {
        if (at_ >= text_.size()) return Fail("expected ':' or ')' after the flags", at_);
        if (Peek() == '-' && on) {
          on = false;
        } else if (!SetFlag(flags, Peek(), on, at_)) {
          return false;
        }
      }
      flags_ = flags;
      if (Take(")")) {
        if (at_ == start + 3) return Fail("expected flags after '(?'", start);
        return true;  // for the rest of the group around it
      }
      ++at_;
    }
  }
  groups_.push_back(group);
  Emit(open, start);
  return true;
}

// What follows an atom. Rust lets quantifiers follow each other: of *, + and ? any two different
// ones are *, and a ? that makes a quantifier lazy changes nothing about which texts match.
bool RustRegex::Quantifier() {
  SkipExtended();
  const size_t start = at_;
  if (Take("{")) {
    const auto number = [&](uint64_t& value) {
      const size_t first = at_;
      for (value = 0; IsDigit(Peek()); ++at_) {
        value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(Peek() - '0'), UINT32_MAX);
      }
      return at_ > first;
    };
    uint64_t min = 0, max = 0;
    const bool has_min = number(min);
    const bool comma = Take(",");
    const bool has_max = comma && number(max);
    if (!Take("}") || (!has_min && !has_max)) {
      return Fail("expected a count such as {2}, {2,} or {2,5}", start);
    }
    std::string text = "{" + std::to_string(min);
    if (comma) text += ',';
    if (has_max) text += std::to_string(max);
    Emit(text + "}", start);
    Take("?");
    SkipExtended();
    if (Peek() == '*' || Peek() == '+' || Peek() == '?' || Peek() == '{') {
      return Fail("a quantifier after a count needs a group", at_, ErrorCode::kUnsupported);
    }
    return true;
  }
  char sum = '\0';
  while (Peek() == '*' || Peek() == '+' || Peek() == '?') {
    sum = sum == '\0' || sum == Peek() ? Peek() : '*';
    ++at_;
    Take("?");
    SkipExtended();
  }
  if (sum == '\0') return true;
  Emit(std::string(1, sum), start);
  if (Peek() == '{') {
    return Fail("a count after a quantifier needs a group", at_, ErrorCode::kUnsupported);
  }
  return true;
}

bool RustRegex::EscapedTerm() {
  const size_t start = at_;
  const auto assertion = [&](std::string_view written, std::string_view meaning) {
    if (!Take(written)) return false;
    Emit(meaning, start);
    return true;
  };
  if (assertion("\\b{start}", "\\b(?=\\w)") || assertion("\\b{end}", "\\b(?!\\w)") ||
      assertion("\\b{start-half}", "(?<!\\w)") || assertion("\\b{end-half}", "(?!\\w)") ||
      assertion("\\<", "\\b(?=\\w)") || assertion("\\>", "\\b(?!\\w)") || assertion("\\b", "\\b") ||
      assertion("\\B", "\\B") || assertion("\\A", "\\A") || assertion("\\z", "\\z")) {
    return true;
  }
  Item item;
  if (!ReadEscape(item, false)) return false;
  const char letter = text_[start + 1];
  // Large sets keep their short names.
  if (item.is_set && (letter == 'd' || letter == 'D' || letter == 'w' || letter == 'W')) {
    Emit(text_.substr(start, 2), start);
  } else {
    EmitItem(item, start);
  }
  return Quantifier();
}

// At a backslash.
bool RustRegex::ReadEscape(Item& item, bool in_class) {
  const size_t start = at_++;
  if (at_ >= text_.size()) return Fail("expected a character after '\\'", start);
  const char32_t c = TakeCodepoint();
  switch (c) {
    case 'd':
    case 'D':
    case 's':
    case 'S':
    case 'w':
    case 'W':
      item.is_set = true;
      item.set = PerlClass(static_cast<char>(c));
      return true;
    case 'p':
    case 'P':
      return ReadProperty(start, c == 'P', item);
    case 'x':
    case 'u':
    case 'U':
      return ReadHex(start, static_cast<char>(c), item);
    default:
      break;
  }
  constexpr std::u32string_view kControls = U"aftnrv", kMeant = U"\a\f\t\n\r\v";
  if (const size_t control = kControls.find(c); control != kControls.npos) {
    item.codepoint = kMeant[control];
    return true;
  }
  if (c < 0x80 && IsDigit(static_cast<char>(c))) {
    return Fail("back references and octal escapes are not supported", start,
                ErrorCode::kUnsupported);
  }
  if (c < 0x80 && IsLetter(static_cast<char>(c))) {
    return Fail(std::string("unknown escape '\\") + static_cast<char>(c) + "'" +
                    (in_class ? " in a class" : ""),
                start);
  }
  item.codepoint = c;
  return true;
}

bool RustRegex::ReadHex(size_t start, char kind, Item& item) {
  const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  uint64_t value = 0;
  int count = 0;
  const bool braces = Take("{");
  for (; (braces || count < digits) && HexDigit(Peek()) >= 0; ++at_, ++count) {
    value = std::min<uint64_t>(value * 16 + static_cast<uint64_t>(HexDigit(Peek())), UINT32_MAX);
  }
  if (braces ? count == 0 || !Take("}") : count < digits) {
    return Fail("expected hexadecimal digits", start);
  }
  if (value > kMaxCodepoint || (value >= 0xD800 && value < 0xE000)) {
    return Fail("no character has that code point", start);
  }
  item.codepoint = static_cast<char32_t>(value);
  return true;
}

bool RustRegex::ReadProperty(size_t start, bool negative, Item& item) {
  const auto property = TakePropertyName(text_, at_);
  if (!property) return Fail("expected a property's name: a letter, or a name in braces", start);
  item.is_set = true;
  item.set = Folded(Property(property->name));
  work_ += item.set.ranges().size();
  if (item.set.empty()) {
    return Fail("unknown Unicode property '" + std::string(property->name.substr(0, 80)) + "'",
                start);
  }
  if (negative != property->negative) item.set = item.set.Complement();
  return true;
}

bool RustRegex::ReadClassItem(int depth, Item& item) {
  if (Peek() == '[') {
    item.is_set = true;
    if (auto posix = TakePosixClass(text_, at_, flags_.ignore_case)) {
      item.set = std::move(*posix);
      return true;
    }
    return ReadClass(depth + 1, item.set);
  }
  if (Peek() == '\\') return ReadEscape(item, true);
  item.codepoint = TakeCodepoint();
  return true;
}

// A class with the cursor on its '['. Union binds tighter than the set operations && -- ~~, which
// are of one precedence and go from left to right.
bool RustRegex::ReadClass(int depth, CodepointSet& set) {
  const size_t start = at_++;
  if (depth > kMaxClassNesting) {
    return Fail("classes nest too deep", start, ErrorCode::kLimit);
  }
  const bool negative = Take("^");
  std::optional<CodepointSet> left;
  char operation = '\0';
  std::vector<CodepointRange> ranges;
  const auto finish_operand = [&] {
    CodepointSet operand = Folded(CodepointSet::FromRanges(ranges));
    ranges.clear();
    work_ += operand.ranges().size() + (left ? left->ranges().size() : 0);
    if (operation == '&') operand = left->Intersect(operand);
    if (operation == '-') operand = Difference(*left, operand);
    if (operation == '~') {
      operand = Difference(left->Union(operand), left->Intersect(operand));
    }
    left = std::move(operand);
  };
  const auto add = [&](const Item& item) {
    if (!item.is_set) {
      ranges.push_back({item.codepoint, item.codepoint});
      return;
    }
    ranges.insert(ranges.end(), item.set.ranges().begin(), item.set.ranges().end());
    work_ += item.set.ranges().size();
  };
  for (bool first = true;; first = false) {
    SkipExtended();
    if (work_ > kMaxRanges) {
      return Fail("the classes are too large", start, ErrorCode::kLimit);
    }
    if (at_ >= text_.size()) return Fail("expected ']' to end the class", start);
    if (!first && Take("]")) break;
    if (Peek() == Peek(1) && (Peek() == '&' || Peek() == '~' || (Peek() == '-' && !first))) {
      finish_operand();
      operation = Peek();
      at_ += 2;
      continue;
    }
    const size_t at = at_;
    Item low;
    if (!ReadClassItem(depth, low)) return false;
    SkipExtended();
    // '-' is a range unless it stands last or begins the operator "--".
    if (!low.is_set && Peek() == '-' && Peek(1) != ']' && Peek(1) != '-' && Peek(1) != '\0') {
      ++at_;
      SkipExtended();
      Item high;
      if (!ReadClassItem(depth, high)) return false;
      if (high.is_set) return Fail("expected a character at the end of the range", at);
      if (low.codepoint > high.codepoint) {
        return Fail("the range in the class is out of order", at);
      }
      ranges.push_back({low.codepoint, high.codepoint});
      continue;
    }
    add(low);
  }
  finish_operand();
  set = negative ? left->Complement() : std::move(*left);
  return true;
}

}  // namespace

Result<ReId> ParseRustRegex(RegexArena& arena, std::string_view pattern, std::string_view flags) {
  if (const size_t bad = FindInvalidUtf8(pattern); bad != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, "the pattern is not valid UTF-8",
                 "byte " + std::to_string(bad)};
  }
  RustRegex rewriter(pattern);
  if (!rewriter.Rewrite(flags)) return rewriter.error();
  RegexSyntaxOptions options;
  options.search = false;
  options.unicode_classes = true;
  Result<ReId> id = ParseEcma(arena, rewriter.out(), options);
  if (id.ok()) return id;
  Error error = id.error();
  size_t at = 0;
  constexpr std::string_view kByte = "byte ";
  if (error.place.starts_with(kByte)) {
    std::from_chars(error.place.data() + kByte.size(), error.place.data() + error.place.size(), at);
    error.place = "byte " + std::to_string(rewriter.Origin(at));
  }
  return error;
}

}  // namespace pawl
