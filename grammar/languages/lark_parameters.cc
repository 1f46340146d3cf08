// The small things inside a rule: strings, numbers, JSON, the parameters of parametric rules and
// their conditions, the terminals of `%import common`.
#include <bit>
#include <charconv>
#include <limits>

#include "grammar/languages/lark_parser.h"
#include "src/base/utf8.h"

namespace pawl::lark {
namespace {

// As in Lark's grammars/common.lark.
struct Common {
  std::string_view name, pattern;
};
constexpr Common kCommon[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9A-Fa-f]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"_EXP", "[eE][+-]?[0-9]+"},
    {"FLOAT", "([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"},
    {"SIGNED_FLOAT", "[+-]?(([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"},
    {"NUMBER", "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"ESCAPED_STRING", "\"([^\"\\\\]|\\\\.)*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[A-Za-z_][A-Za-z0-9_]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"},
    {"SQL_COMMENT", "--[^\\n]*"},
};

}  // namespace

std::string_view CommonTerminal(std::string_view name) {
  for (const Common& common : kCommon) {
    if (common.name == name) return common.pattern;
  }
  return {};
}

std::string CommonTerminalNames() {
  std::string names;
  for (const Common& common : kCommon) {
    if (!names.empty()) names += ' ';
    names += common.name;
  }
  return names;
}

uint64_t ParameterExpr::Of(uint64_t self) const {
  switch (kind) {
    case Kind::kConstant:
      return value;
    case Kind::kSelf:
      return self;
    case Kind::kIncrement:
      return bits.Of(self) == bits.mask() ? self : self + (uint64_t{1} << bits.lo);
    case Kind::kDecrement:
      return bits.Of(self) == 0 ? self : self - (uint64_t{1} << bits.lo);
    case Kind::kAnd:
      return self & value;
    case Kind::kOr:
      return self | value;
  }
  return 0;
}

// Recursion is limited by ParseCondition.
bool Tree::Holds(uint32_t condition, uint64_t parameter) const {
  const Condition& c = conditions[condition];
  uint64_t value = c.bits.Of(parameter);
  if (c.count) value = static_cast<uint64_t>(std::popcount(value));
  switch (c.kind) {
    case Condition::Kind::kTrue:
      return true;
    case Condition::Kind::kNe:
      return value != c.value;
    case Condition::Kind::kEq:
      return value == c.value;
    case Condition::Kind::kLt:
      return value < c.value;
    case Condition::Kind::kLe:
      return value <= c.value;
    case Condition::Kind::kGt:
      return value > c.value;
    case Condition::Kind::kGe:
      return value >= c.value;
    case Condition::Kind::kAnd:
      return Holds(c.a, parameter) && Holds(c.b, parameter);
    case Condition::Kind::kOr:
      return Holds(c.a, parameter) || Holds(c.b, parameter);
    case Condition::Kind::kNot:
      return !Holds(c.a, parameter);
  }
  return false;
}

// What a string means. The lexer has checked its form.
std::optional<std::string> LarkParser::Decoded(const Token& token, bool& ignore_case) {
  std::string_view written = Text(token);
  ignore_case = written.ends_with('i');
  written = written.substr(1, written.size() - (ignore_case ? 3 : 2));
  std::string out;
  const auto hex = [&](size_t at, size_t digits) {
    uint32_t value = 0;
    std::from_chars(written.data() + at, written.data() + at + digits, value, 16);
    return static_cast<char32_t>(value);
  };
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i] != '\\') {
      out += written[i];
      continue;
    }
    const size_t escape = i++;
    const char kind = written[i];
    switch (kind) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'x':
        AppendUtf8(hex(i + 1, 2), out);
        i += 2;
        break;
      case 'u': {
        char32_t c = hex(i + 1, 4);
        i += 4;
        if (c >= 0xD800 && c < 0xDC00 && written.substr(i + 1).starts_with("\\u")) {
          const char32_t low = hex(i + 3, 4);
          if (low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            i += 6;
          }
        }
        if (c >= 0xD800 && c < 0xE000) {
          return Fail("a surrogate alone is no character", token.begin + 1 + escape);
        }
        AppendUtf8(c, out);
        break;
      }
      default:
        out += kind;
    }
  }
  return out;
}

std::optional<std::string> LarkParser::PlainString() {
  if (!Is(Word::kString)) return Expected("a string");
  bool ignore_case = false;
  auto text = Decoded(Peek(), ignore_case);
  if (!text) return std::nullopt;
  if (ignore_case) return Fail("expected no flag after this string", Peek().begin);
  ++at_;
  return text;
}

std::optional<int64_t> LarkParser::Integer(std::string_view what, int64_t min, int64_t max) {
  if (!Is(Word::kNumber)) return Expected(what);
  std::string_view written = Text(Peek());
  if (written.starts_with('+')) written.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (error != std::errc() || end != written.data() + written.size() || value < min ||
      value > max) {
    return Expected(std::string(what) + " between " + std::to_string(min) + " and " +
                    std::to_string(max));
  }
  ++at_;
  return value;
}

std::optional<uint64_t> LarkParser::Unsigned64() {
  if (!Is(Word::kNumber)) return Expected("a number");
  std::string_view written = Text(Peek());
  int base = 10;
  if (written.starts_with("0x") || written.starts_with("0X")) {
    written.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(written.data(), written.data() + written.size(), value, base);
  if (error != std::errc() || end != written.data() + written.size()) {
    return Expected("a whole number of 64 bits");
  }
  ++at_;
  return value;
}

std::optional<double> LarkParser::Real() {
  if (!Is(Word::kNumber)) return Expected("a number");
  std::string_view written = Text(Peek());
  if (written.starts_with('+')) written.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (error != std::errc() || end != written.data() + written.size() || !(value >= 0) ||
      value > std::numeric_limits<float>::max()) {
    return Expected("a temperature of 0 or more that a float can hold");
  }
  ++at_;
  return value;
}

// _ or [lo:hi]
std::optional<BitRange> LarkParser::Bits() {
  BitRange bits;
  if (Take("_")) return bits;
  if (!Take("[")) return Expected("'_' or '[first:end]'");
  const size_t place = Peek().begin;
  const auto lo = Integer("a bit", 0, 63);
  if (!lo || !Require(":")) return std::nullopt;
  const auto hi = Integer("a bit", 0, 64);
  if (!hi || !Require("]")) return std::nullopt;
  if (*hi <= *lo) return Fail("expected an end bit above the first one", place);
  bits.lo = static_cast<uint8_t>(*lo);
  bits.hi = static_cast<uint8_t>(*hi);
  return bits;
}

std::optional<uint32_t> LarkParser::Parameter() {
  ParameterExpr parameter;
  using Kind = ParameterExpr::Kind;
  if (Is(Word::kNumber)) {
    const auto value = Unsigned64();
    if (!value) return std::nullopt;
    parameter.value = *value;
  } else if (Take("_")) {
    parameter.kind = Kind::kSelf;
  } else {
    const std::string_view name = Is(Word::kRule) ? Text(Peek()) : std::string_view();
    struct Function {
      std::string_view name;
      Kind kind;
      enum { kBits, kBit, kValue } argument;
    };
    static constexpr Function kFunctions[] = {
        {"incr", Kind::kIncrement, Function::kBits}, {"decr", Kind::kDecrement, Function::kBits},
        {"bit_and", Kind::kAnd, Function::kValue},   {"bit_or", Kind::kOr, Function::kValue},
        {"set_bit", Kind::kOr, Function::kBit},      {"clear_bit", Kind::kAnd, Function::kBit}};
    const Function* function = nullptr;
    for (const Function& candidate : kFunctions) {
      if (candidate.name == name) function = &candidate;
    }
    if (function == nullptr) {
      return Expected("a number, '_' or one of incr decr set_bit clear_bit bit_and bit_or");
    }
    ++at_;
    parameter.kind = function->kind;
    if (!Require("(")) return std::nullopt;
    if (function->argument == Function::kBits) {
      const auto bits = Bits();
      if (!bits) return std::nullopt;
      parameter.bits = *bits;
    } else if (function->argument == Function::kBit) {
      const auto bit = Integer("a bit", 0, 63);
      if (!bit) return std::nullopt;
      parameter.value = uint64_t{1} << *bit;
      if (parameter.kind == Kind::kAnd) parameter.value = ~parameter.value;
    } else {
      const auto value = Unsigned64();
      if (!value) return std::nullopt;
      parameter.value = *value;
    }
    if (!Require(")")) return std::nullopt;
  }
  tree_.parameters.push_back(parameter);
  return static_cast<uint32_t>(tree_.parameters.size() - 1);
}

std::optional<uint32_t> LarkParser::ParseCondition(int depth) {
  if (depth > options_.max_nesting) {
    return Fail("conditions nest deeper than " + std::to_string(options_.max_nesting), Peek().begin,
                ErrorCode::kLimit);
  }
  using Kind = Condition::Kind;
  Condition condition;
  std::string_view name = Is(Word::kRule) ? Text(Peek()) : std::string_view();
  const auto add = [&] {
    tree_.conditions.push_back(condition);
    return static_cast<uint32_t>(tree_.conditions.size() - 1);
  };
  struct Comparison {
    std::string_view name;
    Kind kind;
  };
  static constexpr Comparison kComparisons[] = {{"ne", Kind::kNe}, {"eq", Kind::kEq},
                                                {"lt", Kind::kLt}, {"le", Kind::kLe},
                                                {"gt", Kind::kGt}, {"ge", Kind::kGe}};
  if (name == "true") {
    ++at_;
    if (Take("(") && !Require(")")) return std::nullopt;
    return add();
  }
  const bool connects = name == "and" || name == "or" || name == "not";
  const bool tests_bit = name == "bit_clear" || name == "bit_set";
  const bool tests_bits = name == "is_zeros" || name == "is_ones";
  condition.count = name.starts_with("bit_count_");
  const std::string_view compare = condition.count ? name.substr(10) : name;
  bool known = connects || tests_bit || tests_bits;
  for (const Comparison& comparison : kComparisons) {
    if (comparison.name != compare) continue;
    condition.kind = comparison.kind;
    known = true;
  }
  if (!known) {
    return Expected(
        "a condition (one of true and or not eq ne lt le gt ge bit_count_eq bit_count_ne "
        "bit_count_lt bit_count_le bit_count_gt bit_count_ge bit_clear bit_set is_zeros is_ones)");
  }
  ++at_;
  if (!Require("(")) return std::nullopt;
  if (connects) {
    condition.kind = name == "and" ? Kind::kAnd : name == "or" ? Kind::kOr : Kind::kNot;
    const auto a = ParseCondition(depth + 1);
    if (!a) return std::nullopt;
    condition.a = *a;
    if (condition.kind != Kind::kNot) {
      if (!Require(",")) return std::nullopt;
      const auto b = ParseCondition(depth + 1);
      if (!b) return std::nullopt;
      condition.b = *b;
    }
  } else if (tests_bit) {
    const auto bit = Integer("a bit", 0, 63);
    if (!bit) return std::nullopt;
    condition.kind = Kind::kEq;
    condition.bits = {static_cast<uint8_t>(*bit), static_cast<uint8_t>(*bit + 1)};
    condition.value = name == "bit_set" ? 1 : 0;
  } else {
    const auto bits = Bits();
    if (!bits) return std::nullopt;
    condition.bits = *bits;
    if (tests_bits) {
      condition.kind = Kind::kEq;
      condition.value = name == "is_ones" ? bits->mask() : 0;
    } else {
      if (!Require(",")) return std::nullopt;
      const auto value = Unsigned64();
      if (!value) return std::nullopt;
      condition.value = *value;
    }
  }
  if (!Require(")")) return std::nullopt;
  return add();
}

// JSON in the grammar; the place of an error is in the grammar.
std::optional<json::Value> LarkParser::Json(const Token& token) {
  Result<json::Value> value = json::Parse(Text(token));
  if (value.ok()) return std::move(*value);
  const Error& error = value.error();
  size_t at = 0;
  constexpr std::string_view kByte = "byte ";
  if (error.place.starts_with(kByte)) {
    std::from_chars(error.place.data() + kByte.size(), error.place.data() + error.place.size(), at);
  }
  return Fail(error.message, std::min<size_t>(token.begin + at, token.end), error.code);
}

}  // namespace pawl::lark
