// A recursive-descent parser for ECMA-262 patterns (section 22.2.1 and Annex B.1.2). The depth of
// recursion is the nesting of groups, which is limited. Case folding is applied to the sets here,
// so the later stages know no flags.
//
// Where ECMA-262 leaves a construct undefined that other engines define (\A, (?i), [[:alpha:]],
// ...) their meaning is taken when it is the same in all of them; docs/regex.md has the list.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "grammar/regex/ecma_ast.h"
#include "src/base/utf8.h"

namespace pawl {

// The classes (section 22.2.2.9) as sets of code points, \w and \d by UTS #18, and pairs of
// surrogates as what they mean.

CodepointSet EcmaDigit(bool unicode) {
  return unicode ? CodepointSet::FromRanges(UnicodeProperty("Nd")) : CodepointSet::Of('0', '9');
}

CodepointSet EcmaWord(bool unicode) {
  const CodepointRange ascii[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  CodepointSet set = CodepointSet::FromRanges(ascii);
  if (!unicode) return set;
  for (const char* name : {"Alphabetic", "M", "Nd", "Pc", "Join_Control"}) {
    set = set.Union(CodepointSet::FromRanges(UnicodeProperty(name)));
  }
  return set;
}

CodepointSet EcmaSpace() {
  const CodepointRange controls[] = {{'\t', '\r'}, {0x2028, 0x2029}, {0xFEFF, 0xFEFF}};
  return CodepointSet::FromRanges(controls).Union(CodepointSet::FromRanges(UnicodeProperty("Zs")));
}

CodepointSet EcmaLineTerminator() {
  const CodepointRange ranges[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return CodepointSet::FromRanges(ranges);
}

void JoinSurrogates(EcmaTree& tree, std::vector<uint32_t>& list) {
  const auto surrogates = [&](uint32_t id, char32_t lo, char32_t hi) {
    const EcmaNode& node = tree.nodes[id];
    CodepointSet set;
    if (node.kind == EcmaNode::Kind::kChar) set = CodepointSet::Of(node.a);
    if (node.kind == EcmaNode::Kind::kSet) set = tree.sets[node.a];
    const bool all = !set.empty() && set.ranges().front().lo >= lo && set.ranges().back().hi <= hi;
    return all ? set : CodepointSet();
  };
  const auto maybe = [&](uint32_t id) {
    const EcmaNode& node = tree.nodes[id];
    return (node.kind == EcmaNode::Kind::kChar && node.a >= 0xD800 && node.a < 0xDC00) ||
           (node.kind == EcmaNode::Kind::kSet && !tree.sets[node.a].empty() &&
            tree.sets[node.a].ranges().front().lo >= 0xD800 &&
            tree.sets[node.a].ranges().back().hi < 0xDC00);
  };
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    if (!maybe(list[i])) continue;
    const CodepointSet high = surrogates(list[i], 0xD800, 0xDBFF);
    const CodepointSet low = surrogates(list[i + 1], 0xDC00, 0xDFFF);
    if (high.empty() || low.empty()) continue;
    std::vector<CodepointRange> ranges;
    for (const CodepointRange& h : high.ranges()) {
      for (char32_t unit = h.lo; unit <= h.hi; ++unit) {
        for (const CodepointRange& l : low.ranges()) {
          const char32_t base = 0x10000 + ((unit - 0xD800) << 10);
          ranges.push_back({base + (l.lo - 0xDC00), base + (l.hi - 0xDC00)});
        }
      }
    }
    EcmaNode joined;
    joined.kind = EcmaNode::Kind::kSet;
    joined.a = static_cast<uint32_t>(tree.sets.size());
    joined.place = tree.nodes[list[i]].place;
    tree.sets.push_back(CodepointSet::FromRanges(ranges));
    list[i] = static_cast<uint32_t>(tree.nodes.size());
    tree.nodes.push_back(joined);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

namespace {

using Kind = EcmaNode::Kind;

struct SyntaxFlags {
  bool ignore_case;
  bool dot_all;
  bool multi_line;
};

// What an escape stands for: a code point or a set.
struct Escape {
  bool is_set = false;
  char32_t codepoint = 0;
  CodepointSet set;
};

class EcmaSyntax {
 public:
  EcmaSyntax(std::string_view text, const RegexSyntaxOptions& options)
      : text_(text),
        options_(options),
        flags_{options.ignore_case, options.dot_all, options.multi_line} {}

  // `captures`: groups and back references stay in the tree.
  Result<EcmaTree> Parse(bool captures = false) {
    captures_ = captures;
    if (text_.size() > options_.max_pattern_bytes) {
      return Error{
          ErrorCode::kLimit,
          "the pattern is longer than " + std::to_string(options_.max_pattern_bytes) + " bytes",
          ""};
    }
    if (const size_t bad = FindInvalidUtf8(text_); bad != std::string_view::npos) {
      return Error{ErrorCode::kInvalid, "the pattern is not valid UTF-8", Place(bad)};
    }
    const std::optional<uint32_t> root = Disjunction(0);
    if (root && !AtEnd()) Fail("unmatched ')'", at_);
    if (error_) return *error_;
    if (captures_ && !NameReferences()) return *error_;
    tree_.root = *root;
    return std::move(tree_);
  }

 private:
  static std::string Place(size_t at) { return "byte " + std::to_string(at); }
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool LooksAt(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool Take(std::string_view what) {
    if (!LooksAt(what)) return false;
    at_ += what.size();
    return true;
  }
  std::nullopt_t Fail(std::string message, size_t at, ErrorCode code = ErrorCode::kInvalid) {
    if (!error_) error_ = Error{code, std::move(message), Place(at)};
    return std::nullopt;
  }

  uint32_t Add(EcmaNode node, size_t place) {
    node.place = static_cast<uint32_t>(place);
    return tree_.Add(node);
  }
  uint32_t AddList(Kind kind, const std::vector<uint32_t>& list, size_t place) {
    return tree_.AddList(kind, list, static_cast<uint32_t>(place));
  }
  uint32_t AddSet(CodepointSet set, size_t place) {
    return tree_.AddSet(std::move(set), static_cast<uint32_t>(place));
  }
  uint32_t AddChar(char32_t codepoint, size_t place) {
    if (flags_.ignore_case) {
      CodepointSet set = CodepointSet::Of(codepoint).CaseClosure();
      if (set.size() > 1) return AddSet(std::move(set), place);
    }
    return Add({.kind = Kind::kChar, .a = codepoint}, place);
  }
  CodepointSet Folded(CodepointSet set) const {
    return flags_.ignore_case ? set.CaseClosure() : set;
  }

  std::optional<uint32_t> Disjunction(int depth);
  std::optional<uint32_t> Sequence(int depth);
  std::optional<uint32_t> Group(int depth);
  // The atom or assertion at the cursor; `quantifiable` says whether a quantifier may follow.
  std::optional<uint32_t> Term(int depth, bool& quantifiable);
  std::optional<uint32_t> EscapedTerm(bool& quantifiable);
  uint32_t AddReference(uint32_t number, size_t place);
  // The name at the cursor, up to `close`.
  std::optional<uint32_t> NamedReference(char close, size_t start);
  // Groups may stand behind references to them: their numbers are known at the end.
  bool NameReferences();
  std::optional<uint32_t> Quantified(uint32_t atom, bool quantifiable);
  // {m}, {m,} or {m,n} at the cursor; nullopt (and the cursor kept) when it is none.
  std::optional<std::pair<uint32_t, uint32_t>> Braces();
  bool TakeFlags(size_t behind, char close);
  std::optional<Escape> ReadEscape(bool in_class);
  std::optional<Escape> ReadProperty(size_t start, bool negative);
  std::optional<char32_t> ReadHex(size_t start, int digits);
  std::optional<char32_t> ReadUnicodeEscape(size_t start);
  std::optional<uint32_t> Class();
  std::optional<Escape> ClassAtom();

  std::string_view text_;
  const RegexSyntaxOptions& options_;
  SyntaxFlags flags_;
  EcmaTree tree_;
  std::optional<Error> error_;
  size_t at_ = 0;
  static constexpr uint32_t kMostGroups = 1'000'000;
  bool captures_ = false;
  uint32_t groups_ = 0;
  std::map<std::string, uint32_t> names_;
  std::map<uint32_t, std::string> references_;  // by node, of those by name
};

uint32_t EcmaSyntax::AddReference(uint32_t number, size_t place) {
  tree_.has_references = true;
  return Add({.kind = Kind::kReference, .negative = flags_.ignore_case, .b = number}, place);
}

std::optional<uint32_t> EcmaSyntax::NamedReference(char close, size_t start) {
  const size_t end = text_.find(close, at_);
  if (end == std::string_view::npos || end == at_) return Fail("expected a group name", at_);
  const uint32_t node = AddReference(0, start);
  references_[node] = text_.substr(at_, end - at_);
  at_ = end + 1;
  return node;
}

bool EcmaSyntax::NameReferences() {
  for (const auto& [node, name] : references_) {
    const auto group = names_.find(name);
    if (group == names_.end()) {
      Fail("there is no group '" + name + "'", tree_.nodes[node].place);
      return false;
    }
    tree_.nodes[node].b = group->second;
  }
  for (const EcmaNode& node : tree_.nodes) {
    if (node.kind != Kind::kReference || node.b <= groups_) continue;
    Fail("there is no group " + std::to_string(node.b), node.place);
    return false;
  }
  return true;
}

std::optional<uint32_t> EcmaSyntax::Disjunction(int depth) {
  const size_t start = at_;
  const SyntaxFlags outer = flags_;
  std::vector<uint32_t> alternatives;
  do {
    const auto sequence = Sequence(depth);
    if (!sequence) return std::nullopt;
    alternatives.push_back(*sequence);
  } while (Take("|"));
  flags_ = outer;
  return AddList(Kind::kAlternation, alternatives, start);
}

std::optional<uint32_t> EcmaSyntax::Sequence(int depth) {
  const size_t start = at_;
  std::vector<uint32_t> terms;
  while (!AtEnd() && Peek() != '|' && Peek() != ')') {
    if (Take("\\Q")) {
      const size_t end = std::min(text_.find("\\E", at_), text_.size());
      const size_t before = terms.size();
      while (at_ < end) {
        const DecodedCodepoint c = DecodeUtf8(text_.substr(at_));
        terms.push_back(AddChar(c.codepoint, at_));
        at_ += c.length;
      }
      Take("\\E");
      if (terms.size() > before) {
        const auto last = Quantified(terms.back(), true);
        if (!last) return std::nullopt;
        terms.back() = *last;
      }
      continue;
    }
    if (LooksAt("(?")) {
      if (LooksAt("(?#")) {
        const size_t end = text_.find(')', at_);
        if (end == std::string_view::npos) return Fail("expected ')' to end the comment", at_);
        at_ = end + 1;
        continue;
      }
      if (TakeFlags(2, ')')) continue;  // up to the end of the group around it
      if (error_) return std::nullopt;
    }
    bool quantifiable = true;
    const auto term = Term(depth, quantifiable);
    if (!term) return std::nullopt;
    const auto quantified = Quantified(*term, quantifiable);
    if (!quantified) return std::nullopt;
    terms.push_back(*quantified);
  }
  JoinSurrogates(tree_, terms);
  return AddList(Kind::kConcat, terms, start);
}

// The letters of flags that begin `behind` the cursor; whether `close` ends them, and they are
// read. Leaves the cursor when there are none, or another sign ends them.
bool EcmaSyntax::TakeFlags(size_t behind, char close) {
  const size_t start = at_ + behind;
  size_t end = start;
  while (end < text_.size() && (IsLetter(text_[end]) || text_[end] == '-')) ++end;
  if (end == start || end == text_.size() || text_[end] != close) return false;
  bool on = true;
  for (size_t at = start; at < end; ++at) {
    const char c = text_[at];
    if (c == '-') {
      on = false;
    } else if (c == 'i' || c == 's' || c == 'm') {
      (c == 'i' ? flags_.ignore_case : c == 's' ? flags_.dot_all : flags_.multi_line) = on;
    } else if (c != 'u') {
      Fail(std::string("unsupported flag '") + c + "'", at, ErrorCode::kUnsupported);
    }
  }
  at_ = end + 1;
  return !error_;
}

std::optional<uint32_t> EcmaSyntax::Group(int depth) {
  const size_t start = at_;
  if (depth >= options_.max_nesting) {
    return Fail("groups nest deeper than " + std::to_string(options_.max_nesting), start,
                ErrorCode::kLimit);
  }
  const SyntaxFlags outer = flags_;
  EcmaNode look;
  uint32_t capture = 0;
  ++at_;
  if (!Take("?")) {
    capture = ++groups_;
  } else {
    if (Take("=") || Take("!")) {
      look.kind = Kind::kLook;
      look.negative = text_[at_ - 1] == '!';
    } else if (Take("<=") || Take("<!")) {
      look.kind = Kind::kLook;
      look.behind = true;
      look.negative = text_[at_ - 1] == '!';
    } else if (Take(":")) {
    } else if (Take(">")) {
      return Fail("atomic groups are not supported", start, ErrorCode::kUnsupported);
    } else if (Take("P=")) {
      return NamedReference(')', start);
    } else if (Take("P<") || Take("<") || Take("'")) {
      const char close = text_[at_ - 1] == '\'' ? '\'' : '>';
      const size_t end = text_.find(close, at_);
      if (end == std::string_view::npos || end == at_) return Fail("expected a group name", at_);
      const std::string_view name = text_.substr(at_, end - at_);
      const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
        return IsLetter(c) || IsDigit(c) || c == '_' || c == '$' || (c & 0x80) != 0;
      });
      if (!plain || IsDigit(name[0])) return Fail("not a group name", at_);
      names_[std::string(name)] = groups_ + 1;
      at_ = end + 1;
      capture = ++groups_;
    } else if (IsLetter(Peek()) || Peek() == '-') {
      if (!TakeFlags(0, ':')) return Fail("expected ':' after the flags of a group", at_);
    } else if (Peek() == '(' || Peek() == '|' || Peek() == '&') {
      return Fail("this kind of group is not supported", start, ErrorCode::kUnsupported);
    } else {
      return Fail("expected ':', '=', '!', '<' or flags after '(?'", at_);
    }
  }
  const auto body = Disjunction(depth + 1);
  flags_ = outer;
  if (!body) return std::nullopt;
  if (!Take(")")) return Fail("expected ')'", at_);
  if (capture != 0 && captures_) {
    return Add({.kind = Kind::kCapture, .a = *body, .b = capture}, start);
  }
  if (look.kind != Kind::kLook) return body;
  look.a = *body;
  return Add(look, start);
}

std::optional<uint32_t> EcmaSyntax::Term(int depth, bool& quantifiable) {
  const size_t start = at_;
  switch (Peek()) {
    case '(': {
      const auto group = Group(depth);
      if (group) {
        // A lookbehind takes no quantifier; a lookahead does by Annex B.
        const EcmaNode& node = tree_.nodes[*group];
        quantifiable = node.kind != Kind::kLook || !node.behind || node.place != start;
      }
      return group;
    }
    case '^':
      ++at_;
      quantifiable = false;
      return Add({.kind = flags_.multi_line ? Kind::kLineStart : Kind::kTextStart}, start);
    case '$':
      ++at_;
      quantifiable = false;
      return Add({.kind = flags_.multi_line ? Kind::kLineEnd : Kind::kTextEnd}, start);
    case '.':
      ++at_;
      return AddSet(flags_.dot_all ? CodepointSet::All() : EcmaLineTerminator().Complement(),
                    start);
    case '[':
      return Class();
    case '*':
    case '+':
    case '?':
      return Fail(std::string("nothing before '") + Peek() + "' to repeat", start);
    case '{':
      if (Braces()) return Fail("nothing before '{' to repeat", start);
      ++at_;
      return AddChar('{', start);
    case '\\':
      return EscapedTerm(quantifiable);
    default: {
      const DecodedCodepoint c = DecodeUtf8(text_.substr(at_));
      at_ += c.length;
      return AddChar(c.codepoint, start);
    }
  }
}

std::optional<uint32_t> EcmaSyntax::EscapedTerm(bool& quantifiable) {
  const size_t start = at_;
  const char c = Peek(1);
  Kind assertion = Kind::kEmpty;
  switch (c) {
    case 'b':
    case 'B':
      assertion = Kind::kWordBoundary;
      break;
    case 'A':
      assertion = Kind::kTextStart;
      break;
    case 'z':
    case 'Z':
      assertion = Kind::kTextEnd;
      break;
    case 'k':
      if (Peek(2) == '<' || Peek(2) == '{' || Peek(2) == '\'') {
        const char open = Peek(2);
        at_ += 3;
        return NamedReference(open == '<' ? '>' : open == '{' ? '}' : '\'', start);
      }
      break;
    case 'G':
    case 'K':
    case 'X':
    case 'C':
      return Fail(std::string("'\\") + c + "' is not supported", start, ErrorCode::kUnsupported);
    case 'R': {
      at_ += 2;
      const CodepointRange breaks[] = {{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}};
      const std::vector<uint32_t> crlf{AddChar('\r', start), AddChar('\n', start)};
      const std::vector<uint32_t> either{AddList(Kind::kConcat, crlf, start),
                                         AddSet(CodepointSet::FromRanges(breaks), start)};
      return AddList(Kind::kAlternation, either, start);
    }
    default:
      if (c >= '1' && c <= '9') {
        uint32_t number = 0;
        for (++at_; IsDigit(Peek()); ++at_) {
          number = std::min(number * 10 + static_cast<uint32_t>(Peek() - '0'), kMostGroups);
        }
        return AddReference(number, start);
      }
  }
  if (assertion != Kind::kEmpty) {
    at_ += 2;
    quantifiable = false;
    return Add({.kind = assertion, .negative = c == 'B'}, start);
  }
  auto escape = ReadEscape(/*in_class=*/false);
  if (!escape) return std::nullopt;
  return escape->is_set ? AddSet(std::move(escape->set), start) : AddChar(escape->codepoint, start);
}

std::optional<std::pair<uint32_t, uint32_t>> EcmaSyntax::Braces() {
  size_t i = at_ + 1;
  const auto number = [&]() -> std::optional<uint64_t> {
    const size_t first = i;
    uint64_t value = 0;
    for (; i < text_.size() && IsDigit(text_[i]); ++i) {
      value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(text_[i] - '0'), UINT32_MAX);
    }
    if (i == first) return std::nullopt;
    return value;
  };
  const auto min = number();
  if (!min) return std::nullopt;
  std::optional<uint64_t> max = min;
  if (i < text_.size() && text_[i] == ',') {
    ++i;
    max = number();
  }
  if (i >= text_.size() || text_[i] != '}') return std::nullopt;
  if (*min > options_.max_repeat || (max && *max > options_.max_repeat)) {
    Fail("a number in '{}' is larger than " + std::to_string(options_.max_repeat), at_,
         ErrorCode::kLimit);
  } else if (max && *max < *min) {
    Fail("the numbers in '{}' are out of order", at_);
  }
  at_ = i + 1;
  return std::pair{static_cast<uint32_t>(*min), max ? static_cast<uint32_t>(*max) : kEcmaInfinite};
}

std::optional<uint32_t> EcmaSyntax::Quantified(uint32_t atom, bool quantifiable) {
  const size_t start = at_;
  EcmaNode node;
  node.kind = Kind::kRepeat;
  node.a = atom;
  if (Take("*")) {
    node.max = kEcmaInfinite;
  } else if (Take("+")) {
    node.min = 1;
    node.max = kEcmaInfinite;
  } else if (Take("?")) {
    node.max = 1;
  } else {
    if (Peek() != '{') return atom;
    const auto braces = Braces();
    if (error_) return std::nullopt;
    if (!braces) return atom;
    node.min = braces->first;
    node.max = braces->second;
  }
  if (!quantifiable) return Fail("an assertion cannot be repeated", start);
  if (Peek() == '+') {
    return Fail("possessive quantifiers are not supported", at_, ErrorCode::kUnsupported);
  }
  Take("?");
  if (Peek() == '*' || Peek() == '+' || Peek() == '?') {
    return Fail("a quantifier follows a quantifier", at_);
  }
  if (Peek() == '{') {
    const size_t second = at_;
    if (Braces()) return Fail("a quantifier follows a quantifier", second);
  }
  return Add(node, start);
}

std::optional<char32_t> EcmaSyntax::ReadHex(size_t start, int digits) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const int digit = HexDigit(Peek());
    if (digit < 0) {
      return Fail("expected " + std::to_string(digits) + " hexadecimal digits", start);
    }
    value = value * 16 + static_cast<char32_t>(digit);
    ++at_;
  }
  return value;
}

std::optional<Escape> EcmaSyntax::ReadProperty(size_t start, bool negative) {
  const auto property = TakePropertyName(text_, at_);
  if (!property) return Fail("expected a property's name: a letter, or a name in braces", start);
  const std::string_view name = property->name;
  auto ranges = UnicodeProperty(name == "L&" ? std::string_view("LC") : name);
  if (ranges.empty() && (name.starts_with("Is") || name.starts_with("is"))) {
    ranges = UnicodeProperty(name.substr(2));
  }
  if (ranges.empty()) {
    return Fail("unknown Unicode property '" + std::string(name.substr(0, 80)) + "'", start);
  }
  Escape escape;
  escape.is_set = true;
  escape.set = Folded(CodepointSet::FromRanges(ranges));
  if (negative != property->negative) escape.set = escape.set.Complement();
  return escape;
}

// Behind "\\u": braces around any code point, or four digits, and four more of a surrogate's other
// half.
std::optional<char32_t> EcmaSyntax::ReadUnicodeEscape(size_t start) {
  if (Take("{")) {
    char32_t value = 0;
    size_t digits = 0;
    for (; HexDigit(Peek()) >= 0; ++at_, ++digits) {
      value = value * 16 + static_cast<char32_t>(HexDigit(Peek()));
      if (value > kMaxCodepoint) return Fail("no code point is that large", start);
    }
    if (digits == 0 || !Take("}")) return Fail("expected hexadecimal digits and '}'", start);
    return value;
  }
  const auto value = ReadHex(start, 4);
  if (!value || *value < 0xD800 || *value >= 0xDC00 || !LooksAt("\\u")) return value;
  const size_t second = at_;
  at_ += 2;
  char32_t low = 0;
  int digits = 0;
  for (; digits < 4 && HexDigit(Peek()) >= 0; ++digits, ++at_)
    low = low * 16 + static_cast<char32_t>(HexDigit(Peek()));
  if (digits == 4 && low >= 0xDC00 && low < 0xE000)
    return 0x10000 + ((*value - 0xD800) << 10) + (low - 0xDC00);
  at_ = second;
  return value;
}

// At a backslash.
std::optional<Escape> EcmaSyntax::ReadEscape(bool in_class) {
  const size_t start = at_++;
  if (AtEnd()) return Fail("expected a character after '\\'", start);
  Escape escape;
  const auto set = [&](CodepointSet positive, bool negative) {
    escape.is_set = true;
    escape.set = Folded(std::move(positive));
    if (negative) escape.set = escape.set.Complement();
    return escape;
  };
  const auto codepoint = [&](char32_t value) {
    escape.codepoint = value;
    return escape;
  };
  const DecodedCodepoint decoded = DecodeUtf8(text_.substr(at_));
  at_ += decoded.length;
  const char32_t c = decoded.codepoint;
  const bool unicode = options_.unicode_classes;
  switch (c) {
    case 'd':
    case 'D':
      return set(EcmaDigit(unicode), c == 'D');
    case 'w':
    case 'W':
      return set(EcmaWord(unicode), c == 'W');
    case 's':
    case 'S':
      return set(EcmaSpace(), c == 'S');
    case 'h':
    case 'H':
      return set(CodepointSet::Of('\t').Union(CodepointSet::FromRanges(UnicodeProperty("Zs"))),
                 c == 'H');
    case 'p':
    case 'P':
      return ReadProperty(start, c == 'P');
    case 'b':
      if (in_class) return codepoint('\b');
      break;
    case 'c':
      if (IsLetter(Peek())) return codepoint(static_cast<char32_t>(text_[at_++]) % 32);
      return Fail("expected a letter after '\\c'", start);
    case '0': {
      // \0, and the octal escapes of Annex B that start with it.
      char32_t value = 0;
      for (int i = 0; i < 2 && Peek() >= '0' && Peek() <= '7'; ++i) {
        value = value * 8 + static_cast<char32_t>(text_[at_++] - '0');
      }
      return codepoint(value);
    }
    case 'x':
    case 'u': {
      const bool two = c == 'x' && Peek() != '{';
      const auto value = two ? ReadHex(start, 2) : ReadUnicodeEscape(start);
      if (!value) return std::nullopt;
      return codepoint(*value);
    }
    default:
      break;
  }
  constexpr std::u32string_view kControls = U"tnvfre", kMeant = U"\t\n\v\f\r\x1B";
  if (const size_t control = kControls.find(c); control != kControls.npos) {
    return codepoint(kMeant[control]);
  }
  // Any other sign stands for itself; an unknown letter or digit is more likely a mistake.
  if (c < 0x80 && (IsLetter(static_cast<char>(c)) || IsDigit(static_cast<char>(c)))) {
    return Fail(std::string("unknown escape '\\") + static_cast<char>(c) + "'", start);
  }
  return codepoint(c);
}

std::optional<Escape> EcmaSyntax::ClassAtom() {
  if (Peek() == '\\') return ReadEscape(/*in_class=*/true);
  Escape atom;
  if (auto posix = TakePosixClass(text_, at_, flags_.ignore_case)) {
    atom.is_set = true;
    atom.set = std::move(*posix);
    return atom;
  }
  const DecodedCodepoint c = DecodeUtf8(text_.substr(at_));
  at_ += c.length;
  atom.codepoint = c.codepoint;
  return atom;
}

std::optional<uint32_t> EcmaSyntax::Class() {
  const size_t start = at_++;
  const bool negative = Take("^");
  std::vector<CodepointRange> ranges;
  const auto add = [&](const Escape& atom) {
    if (atom.is_set) {
      ranges.insert(ranges.end(), atom.set.ranges().begin(), atom.set.ranges().end());
    } else {
      ranges.push_back({atom.codepoint, atom.codepoint});
    }
  };
  for (;;) {
    if (AtEnd()) return Fail("expected ']' to end the class", start);
    if (Take("]")) break;
    const size_t at = at_;
    const auto low = ClassAtom();
    if (!low) return std::nullopt;
    if (Peek() == '-' && at_ + 1 < text_.size() && Peek(1) != ']') {
      ++at_;
      const auto high = ClassAtom();
      if (!high) return std::nullopt;
      if (low->is_set || high->is_set) {
        // [\w-.]: the '-' is itself (Annex B).
        add(*low);
        add(*high);
        ranges.push_back({'-', '-'});
      } else if (low->codepoint > high->codepoint) {
        return Fail("the range in the class is out of order", at);
      } else {
        ranges.push_back({low->codepoint, high->codepoint});
      }
      continue;
    }
    add(*low);
  }
  CodepointSet set = Folded(CodepointSet::FromRanges(ranges));
  return AddSet(negative ? set.Complement() : std::move(set), start);
}

}  // namespace

Result<EcmaTree> ParseEcmaSyntax(std::string_view pattern, const RegexSyntaxOptions& options) {
  Result<EcmaTree> tree = EcmaSyntax(pattern, options).Parse();
  if (!tree.ok() || !tree->has_references) return tree;
  tree = EcmaSyntax(pattern, options).Parse(/*captures=*/true);
  if (!tree.ok()) return tree;
  if (Status status = ResolveReferences(*tree); !status.ok()) return status.error();
  return tree;
}

}  // namespace pawl
