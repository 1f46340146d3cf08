// Terms to text. Only escapes that all readers of a language share are used: \x in XGrammar takes
// any number of digits, so EBNF gets \u; GBNF has few escapes, so it gets \x with two digits.
#include "grammar/languages/regex_text.h"

#include <string_view>
#include <vector>

#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr int kMaxPatternDepth = 1000;

std::string Hex(char32_t value, int digits) {
  std::string out;
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
    out += "0123456789ABCDEF"[value >> shift & 15];
  return out;
}

std::string Escaped(char32_t c, GrammarLanguage language) {
  if (language == GrammarLanguage::kLark) return "\\u{" + Hex(c, c > 0xFFFF ? 6 : 4) + "}";
  if (language == GrammarLanguage::kGbnf && c <= 0xFF) return "\\x" + Hex(c, 2);
  return c > 0xFFFF ? "\\U" + Hex(c, 8) : "\\u" + Hex(c, 4);
}

// Characters that show as themselves wherever the text is read.
bool Shows(char32_t c) {
  if (c < 0x7F) return c >= ' ';
  return c >= 0xA1 && c != 0xAD && !(c >= 0x2000 && c <= 0x206F) && c != 0x3000 &&
         !(c >= 0xE000 && c <= 0xF8FF) && !(c >= 0xFE00 && c <= 0xFE0F) && c < 0xFFF0;
}

// One character inside a string, a class or, in Lark, a pattern.
std::string Character(char32_t c, GrammarLanguage language, bool in_class) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (!Shows(c)) return Escaped(c, language);
  std::string out;
  AppendUtf8(c, out);
  if (c >= 0x80) return out;
  const char ascii = static_cast<char>(c);
  if (language == GrammarLanguage::kLark) {
    if (ascii == '/') return "\\x2F";
    const std::string_view special = in_class ? "\\[]^-&~" : "\\.+*?()|[]{}^$#&-~";
    return special.find(ascii) == std::string_view::npos ? out : "\\" + out;
  }
  if (!in_class) return ascii == '"' || ascii == '\\' ? "\\" + out : out;
  if (ascii == ']' || ascii == '[' || ascii == '\\') return "\\" + out;
  if (ascii == '-' || ascii == '^') {
    return language == GrammarLanguage::kGbnf ? Escaped(c, language) : "\\" + out;
  }
  return out;
}

class Writer {
 public:
  Writer(const RegexArena& arena, GrammarLanguage language, size_t limit)
      : arena_(arena), language_(language), limit_(limit) {}

  void Write(ReId id, Binding binding, int depth) {
    if (depth > kMaxPatternDepth || out_.size() > limit_) {
      failed_ = true;
      return;
    }
    const RegexArena::View view = arena_.Inspect(id);
    using Op = RegexArena::View::Op;
    const bool lark = language_ == GrammarLanguage::kLark;
    switch (view.op) {
      case Op::kNothing:  // its owner prints that
      case Op::kBoolean:
        failed_ = true;
        return;
      case Op::kEmpty:
        out_ += lark ? "(?:)" : "\"\"";
        return;
      case Op::kSet:
        WriteSet(*view.set);
        return;
      case Op::kRepeat:
        Open(Binding::kQuantified, binding);
        Write(view.operands[0], Binding::kAtom, depth + 1);
        out_ += QuantifierText(view.min, view.max);
        Close(Binding::kQuantified, binding);
        return;
      case Op::kOr:
        Open(Binding::kChoice, binding);
        for (size_t i = 0; i < view.operands.size() && !failed_; ++i) {
          if (i > 0) out_ += lark ? "|" : " | ";
          Write(view.operands[i], Binding::kSequence, depth + 1);
        }
        Close(Binding::kChoice, binding);
        return;
      case Op::kConcat:
        WriteConcat(view.operands, binding, depth);
        return;
    }
  }

  std::optional<std::string> Take() {
    if (failed_ || out_.size() > limit_) return std::nullopt;
    return std::move(out_);
  }

 private:
  // The character that a term is, if it is one.
  std::optional<char32_t> Single(ReId id) const {
    const RegexArena::View view = arena_.Inspect(id);
    if (view.op != RegexArena::View::Op::kSet || view.set->size() != 1) return std::nullopt;
    return view.set->ranges()[0].lo;
  }

  void WriteSet(const CodepointSet& set) {
    if (set.size() == 1) {
      const std::string character = Character(set.ranges()[0].lo, language_, false);
      out_ += language_ == GrammarLanguage::kLark ? character : "\"" + character + "\"";
    } else {
      out_ += ClassText(set, language_);
    }
  }

  void WriteConcat(const std::vector<ReId>& operands, Binding binding, int depth) {
    const bool lark = language_ == GrammarLanguage::kLark;
    std::string literal;  // of the characters read last
    bool any = false;
    std::vector<std::string> pieces;
    // A string is an atom by itself in EBNF and GBNF.
    bool one_string = !lark;
    for (const ReId operand : operands) one_string &= Single(operand).has_value();
    if (!one_string) Open(Binding::kSequence, binding);
    const auto flush = [&] {
      if (literal.empty()) return;
      if (!lark && any) out_ += ' ';
      out_ += lark ? literal : "\"" + literal + "\"";
      any = true;
      literal.clear();
    };
    for (const ReId operand : operands) {
      if (failed_) return;
      if (const std::optional<char32_t> c = Single(operand)) {
        literal += Character(*c, language_, false);
        continue;
      }
      flush();
      if (!lark && any) out_ += ' ';
      Write(operand, Binding::kQuantified, depth + 1);
      any = true;
    }
    flush();
    if (!one_string) Close(Binding::kSequence, binding);
  }

  void Open(Binding own, Binding wanted) {
    if (own < wanted) out_ += language_ == GrammarLanguage::kLark ? "(?:" : "(";
  }
  void Close(Binding own, Binding wanted) {
    if (own < wanted) out_ += ')';
  }

  const RegexArena& arena_;
  const GrammarLanguage language_;
  const size_t limit_;
  std::string out_;
  bool failed_ = false;
};

}  // namespace

std::string ClassText(const CodepointSet& set, GrammarLanguage language) {
  // Surrogates are in no text, so they may be on either side.
  const CodepointSet surrogates = CodepointSet::Of(0xD800, 0xDFFF);
  const CodepointSet with = set.Union(surrogates);
  const CodepointSet rest = with.Complement();
  if (rest.empty()) {
    if (language == GrammarLanguage::kEbnf) return "[^]";
    if (language == GrammarLanguage::kGbnf) return ".";
    return "(?s:.)";
  }
  const bool negated = rest.ranges().size() < set.ranges().size() ||
                       (rest.ranges().size() == set.ranges().size() && rest.size() < set.size());
  std::string out = negated ? "[^" : "[";
  for (const CodepointRange& range : (negated ? rest : set).ranges()) {
    out += Character(range.lo, language, true);
    if (range.hi == range.lo) continue;
    if (range.hi > range.lo + 1) out += '-';
    out += Character(range.hi, language, true);
  }
  return out + "]";
}

std::string QuantifierText(uint32_t min, uint32_t max) {
  if (max == RegexArena::kInfinite) {
    if (min == 0) return "*";
    if (min == 1) return "+";
    return "{" + std::to_string(min) + ",}";
  }
  if (min == 0 && max == 1) return "?";
  if (min == max) return "{" + std::to_string(min) + "}";
  return "{" + std::to_string(min) + "," + std::to_string(max) + "}";
}

std::optional<std::string> RegexText(const RegexArena& arena, ReId id, GrammarLanguage language,
                                     Binding binding, size_t limit) {
  Writer writer(arena, language, limit);
  writer.Write(id, binding, 0);
  return writer.Take();
}

}  // namespace pawl
