// RE2's syntax is near to ECMA-262's (ECMAScript 2022, section 22.2). The differences that JSON
// Schemas meet are translated token by token: \s and '.' mean other sets, \u, \c and \/ are spelled
// otherwise, '[' in a class is literal, [] and [^] exist. What RE2 cannot say ends the translation.
#include "tests/oracle/ecma_pattern.h"

#include <re2/re2.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "src/base/utf8.h"

namespace pawl::oracle {
namespace {

constexpr char kSpace[] =
    "\\t\\n\\v\\f\\r "
    "\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
constexpr char kNotSpace[] =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"
    "\\x{202a}-\\x{202e}"
    "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";

std::string Codepoint(unsigned value) {
  char out[16];
  std::snprintf(out, sizeof out, "\\x{%x}", value);
  return out;
}

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  std::optional<std::string> Run() {
    if (FindInvalidUtf8(in_) != in_.npos) return std::nullopt;
    while (at_ < in_.size()) {
      if (!Token()) return std::nullopt;
    }
    return out_;
  }

 private:
  bool Token() {
    const char c = in_[at_];
    if (c == '\\') return Escape(false);
    if (c == '[') return Class();
    if (c == '.') {
      out_ += "[^\\n\\r\\x{2028}\\x{2029}]";
    } else if (c == '(' && in_.substr(at_, 2) == "(?" && in_.substr(at_, 3) != "(?:") {
      if (in_.substr(at_, 3) != "(?<" || at_ + 3 >= in_.size() || in_[at_ + 3] == '=' ||
          in_[at_ + 3] == '!') {
        return false;
      }
      out_ += "(";  // a named group
      at_ = in_.find('>', at_);
      if (at_ == in_.npos) return false;
    } else {
      out_ += c;
    }
    ++at_;
    return true;
  }

  // Hex digits of the given number at `at_`, which moves past them.
  std::optional<unsigned> Hex(size_t digits) {
    const std::string text(in_.substr(std::min(at_, in_.size()), digits));
    char* end = nullptr;
    const unsigned long value = std::strtoul(text.c_str(), &end, 16);
    if (text.size() != digits || end != text.c_str() + digits || text[0] == '+' || text[0] == '-') {
      return std::nullopt;
    }
    at_ += digits;
    return static_cast<unsigned>(value);
  }

  bool Escape(bool in_class) {
    if (at_ + 1 >= in_.size()) return false;
    const char c = in_[at_ + 1];
    at_ += 2;
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 't':
      case 'n':
      case 'v':
      case 'f':
      case 'r':
        out_ += '\\';
        out_ += c;
        return true;
      case 's':
        out_ += in_class ? kSpace : std::string("[") + kSpace + "]";
        return true;
      case 'S':
        out_ += in_class ? kNotSpace : std::string("[") + kNotSpace + "]";
        return true;
      case 'b':
        out_ += in_class ? "\\x{8}" : "\\b";
        return true;
      case 'B':
        if (in_class) return false;
        out_ += "\\B";
        return true;
      case '0':
        if (at_ < in_.size() && in_[at_] >= '0' && in_[at_] <= '9') return false;
        out_ += "\\x{0}";
        return true;
      case 'c': {
        if (at_ >= in_.size() || !std::isalpha(static_cast<unsigned char>(in_[at_]))) return false;
        out_ += Codepoint(static_cast<unsigned>(in_[at_++]) % 32);
        return true;
      }
      case 'x': {
        const auto value = Hex(2);
        if (value) out_ += Codepoint(*value);
        return value.has_value();
      }
      case 'u':
        return Unicode();
      case 'p':
      case 'P':
        return Property(c);
      default:
        break;
    }
    if (std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80)
      return false;
    out_ += c == '_' ? "_" : Codepoint(static_cast<unsigned char>(c));
    return true;
  }

  bool Unicode() {
    unsigned value = 0;
    if (at_ < in_.size() && in_[at_] == '{') {
      const size_t end = in_.find('}', at_);
      if (end == in_.npos || end - at_ - 1 > 6) return false;
      const size_t digits = end - ++at_;
      const auto hex = digits > 0 ? Hex(digits) : std::nullopt;
      if (!hex) return false;
      value = *hex;
      ++at_;
    } else {
      const auto high = Hex(4);
      if (!high) return false;
      value = *high;
      if (value >= 0xD800 && value < 0xDC00 && in_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const auto low = Hex(4);
        if (!low || *low < 0xDC00 || *low > 0xDFFF) return false;
        value = 0x10000 + ((value - 0xD800) << 10) + (*low - 0xDC00);
      }
    }
    if (value > kMaxCodepoint || (value >= 0xD800 && value < 0xE000)) return false;
    out_ += Codepoint(value);
    return true;
  }

  bool Property(char kind) {
    if (at_ >= in_.size() || in_[at_] != '{') return false;
    const size_t end = in_.find('}', at_);
    if (end == in_.npos) return false;
    std::string name(in_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    static const std::map<std::string, std::string> kNames = {{"Letter", "L"},
                                                              {"Lowercase_Letter", "Ll"},
                                                              {"Uppercase_Letter", "Lu"},
                                                              {"Number", "N"},
                                                              {"Decimal_Number", "Nd"},
                                                              {"digit", "Nd"},
                                                              {"Punctuation", "P"},
                                                              {"Symbol", "S"},
                                                              {"Mark", "M"},
                                                              {"Separator", "Z"},
                                                              {"Space_Separator", "Zs"}};
    const auto known = kNames.find(name);
    if (known != kNames.end()) name = known->second;
    const size_t equals = name.find('=');
    if (equals != name.npos) {
      const std::string key = name.substr(0, equals);
      if (key != "Script" && key != "sc" && key != "General_Category" && key != "gc") return false;
      name = name.substr(equals + 1);
    } else if (name.size() > 2) {
      return false;  // binary properties; scripts need "Script="
    }
    out_ += '\\';
    out_ += kind;
    out_ += "{" + name + "}";
    return true;
  }

  bool Class() {
    if (in_.substr(at_, 2) == "[]") {
      out_ += "[^\\x{0}-\\x{10ffff}]";
      at_ += 2;
      return true;
    }
    if (in_.substr(at_, 3) == "[^]") {
      out_ += "(?s:.)";
      at_ += 3;
      return true;
    }
    out_ += '[';
    ++at_;
    if (at_ < in_.size() && in_[at_] == '^') {
      out_ += '^';
      ++at_;
    }
    // '-' is literal next to a set or at an end.
    bool set_before = true;
    bool range = false;
    while (at_ < in_.size() && in_[at_] != ']') {
      const char c = in_[at_];
      if (c == '-' && !range) {
        const bool at_end = at_ + 1 < in_.size() && in_[at_ + 1] == ']';
        const bool set_after =
            in_[at_ + 1] == '\\' && at_ + 2 < in_.size() &&
            std::string_view("dDwWsSpP").find(in_[at_ + 2]) != std::string_view::npos;
        ++at_;
        if (set_before || at_end || set_after) {
          out_ += "\\-";
          set_before = false;
        } else {
          out_ += '-';
          range = true;
        }
        continue;
      }
      set_before = range;  // after a range another '-' is literal
      range = false;
      if (c == '\\') {
        if (at_ + 1 < in_.size() &&
            std::string_view("dDwWsSpP").find(in_[at_ + 1]) != std::string_view::npos) {
          set_before = true;
        }
        if (!Escape(true)) return false;
      } else if (static_cast<unsigned char>(c) < 0x80) {
        out_ += Codepoint(static_cast<unsigned char>(c));
        ++at_;
      } else {
        const DecodedCodepoint d = DecodeUtf8(in_.substr(at_));
        out_ += in_.substr(at_, static_cast<size_t>(d.length));
        at_ += static_cast<size_t>(d.length);
      }
    }
    if (at_ >= in_.size()) return false;
    out_ += ']';
    ++at_;
    return true;
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
};

std::unique_ptr<RE2> Compile(const std::string& pattern) {
  const auto translated = EcmaToRe2(pattern);
  if (!translated) return nullptr;
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(int64_t{256} << 20);
  auto re = std::make_unique<RE2>(*translated, options);
  return re->ok() ? std::move(re) : nullptr;
}

}  // namespace

std::optional<std::string> EcmaToRe2(std::string_view pattern) { return Translator(pattern).Run(); }

std::optional<bool> EcmaSearch(const std::string& pattern, const std::string& text) {
  const auto re = Compile(pattern);
  if (!re) return std::nullopt;
  return RE2::PartialMatch(text, *re);
}

std::optional<bool> IsEcmaPattern(const std::string& pattern) {
  if (Compile(pattern)) return true;
  // Only what is wrong in every dialect is called wrong.
  int depth = 0;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (i + 1 == pattern.size()) return false;
      if (std::string_view("aAZz").find(pattern[i + 1]) != std::string_view::npos) return false;
      ++i;
    } else if (in_class) {
      in_class = pattern[i] != ']';
    } else if (pattern[i] == '[') {
      in_class = true;
    } else if (pattern[i] == '(') {
      ++depth;
    } else if (pattern[i] == ')' && --depth < 0) {
      return false;
    }
  }
  if (depth != 0 || in_class) return false;
  return std::nullopt;
}

}  // namespace pawl::oracle
