// Pattern text -> syntax tree -> program of SplitRegex. The tree lives in one vector and is built
// by recursive descent with a limit on nesting; repetitions of groups are expanded by emitting the
// group again, under a limit on the size of the program. Syntax and meaning follow Oniguruma's RE
// document (doc/RE), because that is the library that tokenizer.json files are written for.
#include <algorithm>
#include <limits>
#include <optional>

#include "src/base/utf8.h"
#include "src/text/split_regex.h"

namespace pawl {
namespace {

constexpr int kMaxRegexNesting = 32;
constexpr size_t kMaxProgram = 20'000;
constexpr size_t kMaxPattern = 20'000;
constexpr uint32_t kMaxRepeat = 100'000;
constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

// Pairs of ASCII letters that full case folding equates with one character ("ss" and U+00DF, "st"
// and U+FB06, ...): only simple folding is done here, so such a pair is refused where case is
// ignored.
bool IsMultiFold(char32_t a, char32_t b) {
  return (a == 's' && (b == 's' || b == 't')) || (a == 'f' && (b == 'f' || b == 'i' || b == 'l'));
}

}  // namespace

class SplitRegexCompiler {
 public:
  explicit SplitRegexCompiler(std::string_view pattern) : pattern_(pattern) {}

  Result<SplitRegex> Compile() {
    if (pattern_.size() > kMaxPattern) Fail(ErrorCode::kLimit, "the pattern is too long", 0);
    if (const size_t bad = FindInvalidUtf8(pattern_); bad != std::string_view::npos) {
      Fail(ErrorCode::kInvalid, "the pattern is not UTF-8", bad);
    }
    const int root = error_ ? 0 : ParseAlternation(0, false);
    if (!error_ && at_ < pattern_.size()) Fail(ErrorCode::kInvalid, "')' without '('", at_);
    if (!error_) Emit(root);
    if (error_) return *error_;
    Add({.op = Op::kAccept});
    return std::move(regex_);
  }

  static SplitRegex Literal(std::string_view text) {
    SplitRegexCompiler compiler("");
    std::vector<char32_t> units;
    DecodeUnits(text, units);
    for (const char32_t unit : units) {
      compiler.Add({.op = Op::kSet, .set = compiler.SetIndex({{unit, unit}})});
    }
    compiler.Add({.op = Op::kAccept});
    return std::move(compiler.regex_);
  }

 private:
  using Op = SplitRegex::Op;
  using Mode = SplitRegex::Mode;
  using Ranges = std::vector<CodepointRange>;
  enum class Kind { kEmpty, kSet, kConcat, kAlternate, kRepeat, kLook, kAtomic, kAssert };
  struct Node {
    Kind kind = Kind::kEmpty;
    std::vector<int> children = {};
    uint32_t set = 0;
    uint32_t min = 0, max = 0;
    Mode mode = Mode::kGreedy;
    bool negative = false;
    Op assertion = Op::kAccept;
    size_t offset = 0;
  };

  int Fail(ErrorCode code, std::string message, size_t offset) {
    if (!error_) error_ = Error{code, std::move(message), "byte " + std::to_string(offset)};
    return 0;
  }
  int Make(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  bool At(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool Take(std::string_view text) {
    if (!At(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t TakeCodepoint() {
    const DecodedCodepoint d = DecodeUtf8(pattern_.substr(at_));
    at_ += static_cast<size_t>(d.length);
    return d.codepoint;
  }
  uint32_t SetIndex(Ranges ranges) {
    UnitSet set(std::move(ranges));
    for (size_t i = 0; i < regex_.sets_.size(); ++i) {
      if (regex_.sets_[i] == set) return static_cast<uint32_t>(i);
    }
    regex_.sets_.push_back(std::move(set));
    return static_cast<uint32_t>(regex_.sets_.size() - 1);
  }
  int MakeSet(Ranges ranges, size_t offset) {
    return Make({.kind = Kind::kSet, .set = SetIndex(std::move(ranges)), .offset = offset});
  }

  int ParseAlternation(int depth, bool fold) {
    if (depth > kMaxRegexNesting)
      return Fail(ErrorCode::kLimit, "groups are nested too deeply", at_);
    Node node{.kind = Kind::kAlternate, .offset = at_};
    do {
      node.children.push_back(ParseConcat(depth, fold));
    } while (!error_ && Take("|"));
    return node.children.size() == 1 ? node.children[0] : Make(std::move(node));
  }

  int ParseConcat(int depth, bool fold) {
    Node node{.kind = Kind::kConcat, .offset = at_};
    char32_t previous = 0;  // the literal just before, where case is ignored
    while (!error_ && at_ < pattern_.size() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      const size_t offset = at_;
      char32_t literal = 0;
      const int atom = ParseAtom(depth, fold, literal);
      if (fold && literal != 0) {
        literal = SimpleFold(literal);
        if (IsMultiFold(previous, literal)) {
          Fail(ErrorCode::kUnsupported, "these letters have a ligature when case is ignored",
               offset);
        }
      }
      previous = fold ? literal : 0;
      if (!error_) node.children.push_back(ParseQuantifiers(atom, offset));
    }
    return Make(std::move(node));
  }

  int ParseAtom(int depth, bool fold, char32_t& literal) {
    const size_t offset = at_;
    if (Take("(")) return ParseGroup(depth, fold, offset);
    if (Take("[")) {
      Ranges ranges = ParseClass(0, fold, offset);
      return error_ ? 0 : MakeSet(std::move(ranges), offset);
    }
    if (Take(".")) return MakeSet(ComplementRanges({{'\n', '\n'}}), offset);
    if (Take("^"))
      return Make({.kind = Kind::kAssert, .assertion = Op::kBeginLine, .offset = offset});
    if (Take("$"))
      return Make({.kind = Kind::kAssert, .assertion = Op::kEndLine, .offset = offset});
    if (Take("\\A"))
      return Make({.kind = Kind::kAssert, .assertion = Op::kBeginText, .offset = offset});
    if (Take("\\z"))
      return Make({.kind = Kind::kAssert, .assertion = Op::kEndText, .offset = offset});
    if (At("\\b") || At("\\B")) {
      const bool negative = At("\\B");
      at_ += 2;
      return Make({.kind = Kind::kAssert,
                   .set = SetIndex(WordRanges()),
                   .negative = negative,
                   .assertion = Op::kWordBoundary,
                   .offset = offset});
    }
    if (At("*") || At("+") || At("?")) {
      return Fail(ErrorCode::kInvalid, "nothing to repeat", offset);
    }
    if (At("{")) return Fail(ErrorCode::kUnsupported, "'{' that repeats nothing", offset);
    if (Take("\\")) {
      Ranges ranges = ParseEscape(offset, literal);
      if (error_) return 0;
      if (literal == 0) {
        return MakeSet(fold ? FoldCaseRanges(std::move(ranges)) : std::move(ranges), offset);
      }
    } else {
      literal = TakeCodepoint();
    }
    if (fold && literal >= 128) {
      return Fail(ErrorCode::kUnsupported, "a letter outside ASCII where case is ignored", offset);
    }
    Ranges ranges{{literal, literal}};
    return MakeSet(fold ? FoldCaseRanges(std::move(ranges)) : std::move(ranges), offset);
  }

  int ParseGroup(int depth, bool fold, size_t offset) {
    Node node{.kind = Kind::kLook, .offset = offset};
    bool wrap = false;
    if (Take("?:")) {
    } else if (Take("?i:")) {
      fold = true;
    } else if (Take("?-i:")) {
      fold = false;
    } else if (Take("?=")) {
      wrap = true;
    } else if (Take("?!")) {
      wrap = true;
      node.negative = true;
    } else if (Take("?>")) {
      wrap = true;
      node.kind = Kind::kAtomic;
    } else if (At("?")) {
      return Fail(ErrorCode::kUnsupported, "a group of this kind", offset);
    }
    const int inner = ParseAlternation(depth + 1, fold);
    if (error_) return 0;
    if (!Take(")")) return Fail(ErrorCode::kInvalid, "'(' without ')'", offset);
    if (!wrap) return inner;
    node.children = {inner};
    return Make(std::move(node));
  }

  // A decimal number, kUnbounded when there is none.
  uint32_t ParseNumber() {
    uint64_t value = 0;
    const size_t start = at_;
    while (at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
      value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(pattern_[at_++] - '0'),
                                 kUnbounded - 1);
    }
    return at_ == start ? kUnbounded : static_cast<uint32_t>(value);
  }

  int ParseQuantifiers(int atom, size_t atom_offset) {
    const size_t offset = at_;
    Node node{.kind = Kind::kRepeat, .children = {atom}, .max = kUnbounded, .offset = atom_offset};
    bool braces = false;
    if (Take("*")) {
    } else if (Take("+")) {
      node.min = 1;
    } else if (Take("?")) {
      node.max = 1;
    } else if (Take("{")) {
      braces = true;
      const uint32_t low = ParseNumber();
      uint32_t high = low;
      if (Take(","))
        high = ParseNumber();
      else if (low == kUnbounded)
        return Fail(ErrorCode::kUnsupported, "'{' that repeats nothing", offset);
      if (!Take("}") || (low == kUnbounded && high == kUnbounded)) {
        return Fail(ErrorCode::kUnsupported, "'{' that repeats nothing", offset);
      }
      node.min = low == kUnbounded ? 0 : low;
      node.max = high;
      if (node.min > kMaxRepeat || (high != kUnbounded && high > kMaxRepeat)) {
        return Fail(ErrorCode::kLimit, "more repetitions than the limit of 100,000", offset);
      }
      if (high != kUnbounded && node.min > high) {
        return Fail(ErrorCode::kInvalid, "the least number of repetitions is above the greatest",
                    offset);
      }
    } else {
      return atom;
    }
    if (braces && (At("?") || At("+"))) {
      return Fail(ErrorCode::kUnsupported, "a lazy or possessive counted repetition", at_);
    }
    if (Take("?"))
      node.mode = Mode::kLazy;
    else if (Take("+"))
      node.mode = Mode::kPossessive;
    if (At("*") || At("+") || At("?") || At("{")) {
      return Fail(ErrorCode::kUnsupported, "a repetition of a repetition", at_);
    }
    return Make(std::move(node));
  }

  // After "\\". A single code point goes to `literal`, a class is returned.
  Ranges ParseEscape(size_t offset, char32_t& literal) {
    if (at_ >= pattern_.size()) {
      Fail(ErrorCode::kInvalid, "the pattern ends with '\\'", offset);
      return {};
    }
    const auto property = [](std::string_view name) {
      const auto span = UnicodeProperty(name);
      return Ranges(span.begin(), span.end());
    };
    const char32_t c = TakeCodepoint();
    switch (c) {
      case 'n':
        literal = '\n';
        return {};
      case 'r':
        literal = '\r';
        return {};
      case 't':
        literal = '\t';
        return {};
      case 'f':
        literal = '\f';
        return {};
      case 'v':
        literal = '\v';
        return {};
      case 'a':
        literal = '\a';
        return {};
      case 'e':
        literal = 0x1B;
        return {};
      case 's':
        return property("White_Space");
      case 'S':
        return ComplementRanges(property("White_Space"));
      case 'd':
        return property("Nd");
      case 'D':
        return ComplementRanges(property("Nd"));
      case 'w':
        return WordRanges();
      case 'W':
        return ComplementRanges(WordRanges());
      case 'x':
        literal = ParseHex(offset, Take("{") ? 0 : 2);
        return {};
      case 'u':
        literal = ParseHex(offset, 4);
        return {};
      case 'p':
      case 'P':
        return ParseProperty(offset, c == 'P');
      default:
        break;
    }
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      Fail(ErrorCode::kUnsupported, "the escape \\" + std::string(1, static_cast<char>(c)), offset);
      return {};
    }
    literal = c;
    return {};
  }

  // Oniguruma keeps the superscripts and fractions of Latin-1 among the word characters.
  static Ranges WordRanges() {
    Ranges out = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};
    for (const std::string_view name : {"Alphabetic", "M", "Nd", "Pc"}) {
      const auto span = UnicodeProperty(name);
      out.insert(out.end(), span.begin(), span.end());
    }
    return NormalizeRanges(std::move(out));
  }

  // `digits` hexadecimal digits, or (0) up to eight and a closing brace.
  char32_t ParseHex(size_t offset, int digits) {
    uint64_t value = 0;
    int count = 0;
    for (; at_ < pattern_.size() && count < (digits == 0 ? 8 : digits); ++count) {
      const char c = pattern_[at_];
      if (c >= '0' && c <= '9')
        value = value * 16 + static_cast<uint64_t>(c - '0');
      else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        value = value * 16 + static_cast<uint64_t>((c | 0x20) - 'a' + 10);
      else
        break;
      ++at_;
    }
    const bool complete = digits == 0 ? count > 0 && Take("}") : count == digits;
    if (!complete) Fail(ErrorCode::kInvalid, "an unfinished hexadecimal escape", offset);
    // \x80 to \xFF would be bytes in Oniguruma, and 0 is this parser's "no literal".
    if (value == 0 || value > kMaxCodepoint || (digits == 2 && value >= 0x80)) {
      Fail(ErrorCode::kUnsupported, "a hexadecimal escape of this value", offset);
      return 1;
    }
    return static_cast<char32_t>(value);
  }

  Ranges ParseProperty(size_t offset, bool negative) {
    std::string_view name;
    if (Take("{")) {
      if (Take("^")) negative = !negative;
      const size_t close = pattern_.find('}', at_);
      if (close != std::string_view::npos) {
        name = pattern_.substr(at_, close - at_);
        at_ = close + 1;
      }
    }
    const auto span = UnicodeProperty(name);
    if (name.empty() || span.empty()) {
      Fail(name.empty() ? ErrorCode::kInvalid : ErrorCode::kUnsupported,
           "unknown property \\p{" + std::string(name) + "}", offset);
      return {};
    }
    Ranges ranges(span.begin(), span.end());
    return negative ? ComplementRanges(std::move(ranges)) : ranges;
  }

  static Ranges IntersectRanges(Ranges a, Ranges b) {
    Ranges neither = ComplementRanges(std::move(a));
    const Ranges others = ComplementRanges(std::move(b));
    neither.insert(neither.end(), others.begin(), others.end());
    return ComplementRanges(std::move(neither));
  }

  // After "[".
  Ranges ParseClass(int depth, bool fold, size_t offset) {
    if (depth > kMaxRegexNesting) {
      Fail(ErrorCode::kLimit, "classes are nested too deeply", offset);
      return {};
    }
    const bool negative = Take("^");
    Ranges out;
    std::optional<Ranges> left;  // of the last "&&", with all that is left of it
    bool first = true;
    for (;; first = false) {
      if (error_) return {};
      if (at_ >= pattern_.size()) {
        Fail(ErrorCode::kInvalid, "'[' without ']'", offset);
        return {};
      }
      const size_t item = at_;
      if (At("]")) {
        if (first) {
          Fail(ErrorCode::kUnsupported, "']' first in a class (write \\])", item);
          return {};
        }
        ++at_;
        break;
      }
      if (At("[:")) Fail(ErrorCode::kUnsupported, "a POSIX bracket", item);
      if (error_) return {};
      if (Take("&&")) {
        if (fold) Fail(ErrorCode::kUnsupported, "'&&' where case is ignored", item);
        if (first || At("]") || At("&&")) Fail(ErrorCode::kUnsupported, "'&&' of nothing", item);
        left = left ? IntersectRanges(*left, std::move(out)) : std::move(out);
        out.clear();
        continue;
      }
      if (Take("[")) {
        const Ranges inner = ParseClass(depth + 1, fold, item);
        out.insert(out.end(), inner.begin(), inner.end());
        continue;
      }
      char32_t low = 0;
      const Ranges escape = ClassUnit(item, low);
      if (error_) return {};
      if (low == 0) {
        out.insert(out.end(), escape.begin(), escape.end());
        if (At("-") && !At("-]"))
          Fail(ErrorCode::kInvalid, "a range cannot begin with a class", at_);
        continue;
      }
      char32_t high = low;
      if (At("-") && !At("-]")) {
        ++at_;
        high = 0;
        if (At("["))
          Fail(ErrorCode::kInvalid, "a range cannot end with a class", at_);
        else if (at_ < pattern_.size())
          ClassUnit(at_, high);
        if (!error_ && high == 0) Fail(ErrorCode::kInvalid, "a range without an end", item);
        if (!error_ && high < low) Fail(ErrorCode::kInvalid, "a range that runs backwards", item);
      }
      if (!error_ && fold && high >= 128) {
        Fail(ErrorCode::kUnsupported, "a letter outside ASCII where case is ignored", item);
      }
      out.push_back({low, high});
    }
    if (left) out = IntersectRanges(*left, std::move(out));
    if (fold) out = FoldCaseRanges(std::move(out));
    return negative ? ComplementRanges(std::move(out)) : NormalizeRanges(std::move(out));
  }

  Ranges ClassUnit(size_t offset, char32_t& literal) {
    if (Take("\\")) {
      if (Take("b")) {
        literal = '\b';
        return {};
      }
      return ParseEscape(offset, literal);
    }
    literal = TakeCodepoint();
    return {};
  }

  uint32_t Add(SplitRegex::Instruction instruction) {
    if (regex_.program_.size() >= kMaxProgram) {
      Fail(ErrorCode::kLimit, "the pattern is too large", 0);
      return 0;
    }
    regex_.program_.push_back(instruction);
    return static_cast<uint32_t>(regex_.program_.size() - 1);
  }
  uint32_t Here() const { return static_cast<uint32_t>(regex_.program_.size()); }

  bool MatchesEmpty(int index) const {
    const Node& node = nodes_[static_cast<size_t>(index)];
    const auto child = [this](int i) { return MatchesEmpty(i); };
    switch (node.kind) {
      case Kind::kSet:
        return false;
      case Kind::kConcat:
        return std::all_of(node.children.begin(), node.children.end(), child);
      case Kind::kAlternate:
        return std::any_of(node.children.begin(), node.children.end(), child);
      case Kind::kRepeat:
        return node.min == 0 || MatchesEmpty(node.children[0]);
      case Kind::kAtomic:
        return MatchesEmpty(node.children[0]);
      case Kind::kEmpty:
      case Kind::kLook:
      case Kind::kAssert:
        return true;
    }
    return true;
  }

  void Emit(int index) {
    if (error_) return;
    // Counted apart from the program, for repeating what is empty adds nothing to that.
    if (++emitted_ > 10 * kMaxProgram) {
      Fail(ErrorCode::kLimit, "the pattern is too large", 0);
      return;
    }
    const Node& node = nodes_[static_cast<size_t>(index)];
    switch (node.kind) {
      case Kind::kEmpty:
        return;
      case Kind::kSet:
        Add({.op = Op::kSet, .set = node.set});
        return;
      case Kind::kConcat:
        for (const int child : node.children) Emit(child);
        return;
      case Kind::kAlternate: {
        std::vector<uint32_t> jumps;
        for (size_t i = 0; i < node.children.size() && !error_; ++i) {
          const bool last = i + 1 == node.children.size();
          const uint32_t split = last ? 0 : Add({.op = Op::kSplit, .x = Here() + 1});
          Emit(node.children[i]);
          if (last || error_) break;
          jumps.push_back(Add({.op = Op::kJump}));
          regex_.program_[split].y = Here();
        }
        for (const uint32_t jump : jumps) regex_.program_[jump].x = Here();
        return;
      }
      case Kind::kRepeat:
        EmitRepeat(node);
        return;
      case Kind::kLook:
      case Kind::kAtomic:
        EmitNested(node.kind == Kind::kLook ? Op::kLook : Op::kAtomic, node);
        return;
      case Kind::kAssert:
        Add({.op = node.assertion, .negative = node.negative, .set = node.set});
        return;
    }
  }

  void EmitNested(Op op, const Node& node) {
    const uint32_t start = Add({.op = op, .negative = node.negative});
    Emit(node.children[0]);
    Add({.op = Op::kAccept});
    if (!error_) regex_.program_[start].x = Here();
  }

  void EmitRepeat(const Node& node) {
    int child = node.children[0];
    const Node& body = nodes_[static_cast<size_t>(child)];
    if (body.kind == Kind::kSet) {
      Add({.op = Op::kSetLoop,
           .mode = node.mode,
           .set = body.set,
           .min = node.min,
           .max = node.max});
      return;
    }
    if (MatchesEmpty(child) && node.max == kUnbounded) {
      Fail(ErrorCode::kUnsupported, "an unbounded repetition of what may be empty", node.offset);
      return;
    }
    uint32_t atomic = 0;
    if (node.mode == Mode::kPossessive) atomic = Add({.op = Op::kAtomic});
    const auto split = [&] { return Add({.op = Op::kSplit}); };
    const auto patch = [&](uint32_t at, uint32_t enter, uint32_t leave) {
      if (error_) return;
      auto& in = regex_.program_[at];
      in.x = node.mode == Mode::kLazy ? leave : enter;
      in.y = node.mode == Mode::kLazy ? enter : leave;
    };
    for (uint32_t i = 0; i < node.min && !error_; ++i) Emit(child);
    if (node.max == kUnbounded) {
      const uint32_t loop = split();
      Emit(child);
      Add({.op = Op::kJump, .x = loop});
      patch(loop, loop + 1, Here());
    } else {
      std::vector<uint32_t> splits;
      for (uint32_t i = node.min; i < node.max && !error_; ++i) {
        splits.push_back(split());
        Emit(child);
      }
      for (const uint32_t at : splits) patch(at, at + 1, Here());
    }
    if (node.mode == Mode::kPossessive) {
      Add({.op = Op::kAccept});
      if (!error_) regex_.program_[atomic].x = Here();
    }
  }

  const std::string_view pattern_;
  size_t at_ = 0;
  size_t emitted_ = 0;
  std::vector<Node> nodes_;
  std::optional<Error> error_;
  SplitRegex regex_;
};

Result<SplitRegex> SplitRegex::Compile(std::string_view pattern) {
  return SplitRegexCompiler(pattern).Compile();
}

SplitRegex SplitRegex::Literal(std::string_view text) { return SplitRegexCompiler::Literal(text); }

}  // namespace pawl
