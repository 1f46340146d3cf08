// Reading of EBNF and GBNF by recursive descent, straight from the text (neither language needs
// more than a name's end to know where a rule begins). Groups are the only recursion, and counted.
//
// Each expression is made as it is read. Pieces that are regular are joined to one regex where they
// stand in one rule, `[a-z] [a-z0-9]*` as well as `("a" | "b")+`: a terminal is the cheapest thing
// that the engine can run. References stay references. What joining costs is bounded; beyond that
// the pieces stay pieces, which means the same.
#include "grammar/languages/bnf_reader.h"

#include "grammar/languages/language_options.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {

// The characters of EBNF and GBNF: places, white space, names, escapes, classes. Columns count
// characters; a line ends at \n, \r or both together.

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
  // llama.cpp takes an empty class for the empty text, which cannot have been meant.
  if (gbnf() && ranges.empty()) Expected("a character");
  ++at_;
  const CodepointSet set = CodepointSet::FromRanges(ranges);
  return ir_.Regex(arena().Set(negated ? set.Complement() : set));
}

namespace {

constexpr uint64_t kMaxCount = 1'000'000'000;
constexpr uint64_t kFoldSteps = 4'000'000;
constexpr uint64_t kFoldStepsPerByte = 16;

std::string Quoted(std::string_view name) {
  constexpr size_t kShown = 80;
  return "\"" + std::string(name.substr(0, kShown)) + (name.size() > kShown ? "...\"" : "\"");
}

}  // namespace

BnfReader::BnfReader(std::string_view text, const LanguageOptions& options, Dialect dialect)
    : text_(WithoutByteOrderMark(text)),
      options_(options),
      dialect_(dialect),
      fold_steps_(kFoldSteps + kFoldStepsPerByte * text.size()) {}

Result<GrammarIr> BnfReader::Read() {
  if (text_.size() > options_.max_bytes) {
    return Error{ErrorCode::kLimit,
                 "a grammar of more than " + std::to_string(options_.max_bytes) + " bytes", ""};
  }
  if (const size_t bad = FindInvalidUtf8(text_); bad != std::string_view::npos) {
    Fail(ErrorCode::kInvalid, bad, "expected UTF-8, found a byte that is not");
    return *error_;
  }
  SkipSpace(true);
  while (!AtEnd() && !failed()) ReadRule();
  Finish();
  if (failed()) {
    error_->message += LanguageHint(text_, /*read_as_lark=*/false);
    return *error_;
  }
  return std::move(ir_);
}

void BnfReader::ReadRule() {
  const size_t name_at = at_;
  const std::string_view name = ReadName("a rule name");
  if (failed()) return;
  RuleOptions options;
  if (!gbnf() && Peek() == '[') options = ReadRuleOptions(name);
  if (failed()) return;
  SkipSpace(!gbnf());
  if (!Consume("::=", "\"::=\" after the rule name")) return;
  if (!gbnf() && !FirstOnLine(name_at)) {
    Fail(ErrorCode::kInvalid, name_at,
         "expected the rule " + Quoted(name) + " at the beginning of a line");
    return;
  }
  const RuleId rule = RuleNamed(name, name_at);
  if (ir_.rule(rule).defined) {
    Fail(ErrorCode::kInvalid, name_at,
         "rule " + Quoted(name) + " is defined a second time; the first is at " +
             ir_.rule(rule).place);
    return;
  }
  ir_.SetPlace(rule, PlaceOf(name_at));
  SkipSpace(true);
  const size_t body_at = at_;
  const ExprId body = ReadChoices(false);
  if (failed()) return;
  ir_.Define(rule, ApplyOptions(options, body, body_at));
  ir_.SetAttributes(rule, options.attributes);
  if (failed()) return;
  if (gbnf()) {
    if (!AtEnd() && Peek() != '\n' && Peek() != '\r') Expected("an element or the end of the line");
  } else if (Peek() == '(' && Peek(1) == '=') {
    // What follows the rule anyway, as its author says, for XGrammar's tables of tokens. It has no
    // part in the language: read for its errors only.
    at_ += 2;
    SkipSpace(true);
    ReadChoices(true);
    Consume(")", "')'");
  }
  SkipSpace(true);
}

GrammarIr::ExprId BnfReader::ReadChoices(bool nested) {
  std::vector<ExprId> alternatives;
  while (true) {
    alternatives.push_back(ReadSequence(nested));
    if (failed()) return GrammarIr::kNever;
    if (Peek() != '|' || AtEnd()) break;
    ++at_;
    SkipSpace(true);
  }
  return Choice(alternatives);
}

GrammarIr::ExprId BnfReader::ReadSequence(bool nested) {
  std::vector<ExprId> parts;
  const bool newlines = nested || !gbnf();
  bool any = false;
  while (!failed()) {
    const char c = Peek();
    if (AtEnd() || c == '|' || c == ')' || c == '\n' || c == '\r') break;
    if (!gbnf() && ((c == '(' && Peek(1) == '=') || AtRuleStart())) break;
    if (gbnf() && c == ':') break;
    const ExprId element = ReadElement(nested);
    if (failed()) break;
    SkipSpace(newlines);
    parts.push_back(ReadQuantifiers(element, nested));
    any = true;
  }
  if (failed()) return GrammarIr::kNever;
  if (!any && !gbnf()) Expected("a string, a class, a rule name, a macro or '('");
  return Sequence(parts);
}

GrammarIr::ExprId BnfReader::ReadElement(bool nested) {
  StopScope::Step();
  const char c = Peek();
  if (c == '"') return ir_.Regex(arena().Literal(ReadString()));
  if (c == '[') return ReadClass();
  if (c == '(') {
    if (depth_ >= options_.max_nesting) {
      return Fail(
          ErrorCode::kLimit, at_,
          "groups inside groups more than " + std::to_string(options_.max_nesting) + " deep");
    }
    const size_t open = at_++;
    SkipSpace(true);
    if (!gbnf() && Peek() == ')') {
      ++at_;
      return GrammarIr::kEmpty;
    }
    ++depth_;
    const ExprId group = ReadChoices(true);
    --depth_;
    if (!failed() && Peek() != ')')
      Expected("')' to end the group that begins at " + PlaceOf(open));
    ++at_;
    return group;
  }
  if (gbnf() && c == '.') {
    ++at_;
    return ir_.Regex(RegexArena::kAnyChar);
  }
  if (gbnf() && (c == '<' || c == '!')) return ReadToken();
  const size_t start = at_;
  const std::string_view name = ReadName(nested ? "a string, a class, a rule name or ')'"
                                                : "a string, a class or a rule name");
  if (failed()) return GrammarIr::kNever;
  if (!gbnf() && IsMacro(name)) return ReadMacro(name, start);
  return ir_.Call(RuleNamed(name, start));
}

GrammarIr::ExprId BnfReader::ReadQuantifiers(ExprId element, bool nested) {
  const bool newlines = nested || !gbnf();
  // GBNF takes several, each for all that stands before; XGrammar takes one.
  while (!failed() && !AtEnd()) {
    const size_t start = at_;
    uint32_t min = 0, max = GrammarIr::kUnbounded;
    const char c = Peek();
    if (c == '{') {
      if (!ReadCounts(nested, min, max)) break;
    } else if (c == '*' || c == '+' || c == '?') {
      ++at_;
      if (c == '+') min = 1;
      if (c == '?') max = 1;
    } else {
      break;
    }
    element = Repeat(element, min, max);
    SkipSpace(newlines);
    const char next = Peek();
    if (!gbnf() && (next == '*' || next == '+' || next == '?' || next == '{') && !AtEnd()) {
      Fail(ErrorCode::kInvalid, at_,
           "expected an element, found a second quantifier; the first is at " + PlaceOf(start) +
               ": use parentheses");
    }
  }
  return element;
}

bool BnfReader::ReadCounts(bool nested, uint32_t& min, uint32_t& max) {
  const bool newlines = nested || !gbnf();
  const size_t start = at_++;
  SkipSpace(newlines);
  const std::optional<uint64_t> low = ReadNumber(kMaxCount);
  if (!low.has_value()) return false;
  min = max = static_cast<uint32_t>(*low);
  SkipSpace(newlines);
  if (Peek() == ',') {
    ++at_;
    SkipSpace(newlines);
    max = GrammarIr::kUnbounded;
    if (!gbnf() && text_.substr(at_, 2) == "-1") {  // XGrammar prints "no limit" like this
      at_ += 2;
    } else if (Peek() != '}') {
      const std::optional<uint64_t> high = ReadNumber(kMaxCount);
      if (!high.has_value()) return false;
      max = static_cast<uint32_t>(*high);
    }
    SkipSpace(newlines);
    if (!Consume("}", "a number or '}'")) return false;
  } else if (!Consume("}", "',' or '}'")) {
    return false;
  }
  if (max < min) {
    return Fail(ErrorCode::kInvalid, start,
                "expected counts from low to high, found " + std::to_string(min) + " to " +
                    std::to_string(max));
  }
  return true;
}

bool BnfReader::AtRuleStart() const {
  size_t end = NameEnd(at_);
  if (end == at_) return false;
  if (end < text_.size() && text_[end] == '[') {
    // name[options] ::=, or a reference and a class.
    bool quoted = false;
    for (++end; end < text_.size(); ++end) {
      const char c = text_[end];
      if (c == '\n' || c == '\r') return false;
      if (c == '"') quoted = !quoted;
      if (c == ']' && !quoted) break;
    }
    if (end == text_.size()) return false;
    ++end;
  }
  return text_.substr(SpaceEnd(end, true), 3) == "::=";
}

bool BnfReader::FirstOnLine(size_t offset) const {
  while (offset > 0 && (text_[offset - 1] == ' ' || text_[offset - 1] == '\t')) --offset;
  return offset == 0 || text_[offset - 1] == '\n' || text_[offset - 1] == '\r';
}

GrammarIr::RuleId BnfReader::RuleNamed(std::string_view name, size_t offset) {
  const auto [it, added] = rules_.try_emplace(std::string(name), NamedRule{0, offset});
  if (added) it->second.rule = ir_.AddRule(it->first);
  return it->second.rule;
}

void BnfReader::Finish() {
  if (failed()) return;
  if (arena().overflow()) {
    error_ = Error{ErrorCode::kLimit, "the regular parts of the grammar are too large", ""};
    return;
  }
  const NamedRule* missing = nullptr;
  for (const auto& [name, known] : rules_) {
    if (ir_.rule(known.rule).defined) continue;
    if (missing == nullptr || known.first_use < missing->first_use) missing = &known;
  }
  if (missing != nullptr) {
    Fail(ErrorCode::kInvalid, missing->first_use,
         "rule " + Quoted(ir_.rule(missing->rule).name) + " is not defined");
    return;
  }
  const auto root = rules_.find(options_.root);
  if (root == rules_.end()) {
    Fail(ErrorCode::kInvalid, text_.size(),
         "expected a rule named " + Quoted(options_.root) + ", found the end of the grammar");
    return;
  }
  ir_.SetRoot(root->second.rule);
}

GrammarIr::ExprId BnfReader::Sequence(const std::vector<ExprId>& parts) {
  std::vector<ExprId> out;
  std::vector<ReId> run;
  for (size_t i = 0; i < parts.size();) {
    run.clear();
    size_t end = i;
    for (; end < parts.size() && (IsPlain(parts[end]) || parts[end] == GrammarIr::kEmpty); ++end) {
      if (parts[end] != GrammarIr::kEmpty) run.push_back(ir_.expr(parts[end]).index);
    }
    std::optional<ExprId> joined;
    if (run.size() > 1) {
      joined = Fold([&] { return arena().Concat(std::span<const ReId>(run)); });
    }
    if (end == i) {
      out.push_back(parts[i++]);
    } else if (joined.has_value()) {
      out.push_back(*joined);
    } else {
      out.insert(out.end(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                 parts.begin() + static_cast<std::ptrdiff_t>(end));
    }
    i = std::max(i, end);
  }
  return ir_.Sequence(out);
}

GrammarIr::ExprId BnfReader::Choice(const std::vector<ExprId>& alternatives) {
  if (alternatives.size() == 1) return alternatives[0];
  std::vector<ReId> regexes;
  for (const ExprId id : alternatives) {
    if (IsPlain(id)) regexes.push_back(ir_.expr(id).index);
    if (id == GrammarIr::kEmpty) regexes.push_back(RegexArena::kEpsilon);
    if (id == GrammarIr::kNever) regexes.push_back(RegexArena::kNothing);
  }
  if (regexes.size() == alternatives.size()) {
    const auto joined = Fold([&] { return arena().Or(regexes); });
    if (joined.has_value()) return *joined;
  }
  return ir_.Choice(alternatives);
}

GrammarIr::ExprId BnfReader::Repeat(ExprId operand, uint32_t min, uint32_t max) {
  if (IsPlain(operand)) {
    const auto joined = Fold([&] {
      return arena().Repeat(ir_.expr(operand).index, min,
                            max == GrammarIr::kUnbounded ? std::nullopt : std::optional(max));
    });
    if (joined.has_value()) return *joined;
  }
  return ir_.Repeat(operand, min, max);
}

}  // namespace pawl
