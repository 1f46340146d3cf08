// Printing follows the expressions of each rule. What a language has no notation for becomes rules
// of its own, named after the rule in which it stands: a lazy regex, the states of an automaton,
// and the rule without any text, which is one that only goes on: never ::= "x" never.
#include "grammar/languages/print.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/regex/regex_arena.h"
#include "grammar/regex/regex_dfa.h"
#include "src/base/utf8.h"

namespace pawl {

// A regex term in the notations of the grammar languages. Internal to grammar/languages.

// How tightly a piece of notation must hold together where it stands.
enum class Binding : uint8_t { kChoice, kSequence, kQuantified, kAtom };

// `set` as a class. REQUIRES: not empty.
std::string ClassText(const CodepointSet& set, GrammarLanguage language);
// What follows an operand that is repeated: "*", "{2,3}", ...; kInfinite: no limit.
std::string QuantifierText(uint32_t min, uint32_t max);
// A term without and, not and lookahead: strings, classes and groups in EBNF and GBNF, the inside
// of
// /.../ in Lark. nullopt when it is longer than `limit` or nested too deep.
std::optional<std::string> RegexText(const RegexArena& arena, ReId id, GrammarLanguage language,
                                     Binding binding, size_t limit);

// Terms to text. Only escapes that all readers of a language share are used: \x in XGrammar takes
// any number of digits, so EBNF gets \u; GBNF has few escapes, so it gets \x with two digits.

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

namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr int kMaxPrintedDepth = 1000;
constexpr size_t kMaxStates = 2000;
constexpr int64_t kMaxTokens = 10000;  // of one set, where each must be written

class Printer {
 public:
  Printer(GrammarIr& ir, GrammarLanguage language) : ir_(ir), language_(language) {}

  Result<std::string> Print() {
    FindRules();
    NameRules();
    for (const GrammarIr::RuleId rule : order_) {
      PrintRule(rule);
      if (error_.has_value()) return *error_;
    }
    if (!never_.empty()) out_ += never_ + Defines() + "\"x\" " + never_ + "\n";
    return std::move(out_);
  }

 private:
  using Kind = GrammarIr::Kind;

  bool lark() const {
    return language_ == GrammarLanguage::kLark || language_ == GrammarLanguage::kLarkXgrammar;
  }
  bool ebnf() const { return language_ == GrammarLanguage::kEbnf; }
  const char* Defines() const { return lark() ? ": " : " ::= "; }
  const char* LanguageName() const { return lark() ? "Lark" : ebnf() ? "EBNF" : "GBNF"; }

  void Fail(ErrorCode code, const std::string& message) {
    if (error_.has_value()) return;
    const GrammarIr::Rule& rule = ir_.rule(current_);
    error_ = Error{code, "rule \"" + rule.name + "\": " + message, rule.place};
  }
  void CannotSay(const std::string& what) {
    Fail(ErrorCode::kUnsupported, std::string(LanguageName()) + " cannot say " + what);
  }

  // The root's rule stands first.
  void FindRules() {
    order_ = ir_.Reach().rules;
    const auto root = std::ranges::find(order_, ir_.root());
    std::rotate(order_.begin(), root, std::next(root));
  }

  void NameRules() {
    for (const GrammarIr::RuleId rule : order_) {
      names_[rule] =
          rule == ir_.root() ? NewName(lark() ? "start" : "root") : NewName(ir_.rule(rule).name);
    }
  }

  // A name that the language allows, as much like `wish` as can be, used once.
  std::string NewName(std::string_view wish) {
    std::string name;
    for (const char c : wish.substr(0, 200)) {
      const bool upper = c >= 'A' && c <= 'Z';
      const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (upper) {
        name += lark() ? static_cast<char>(c - 'A' + 'a') : c;
      } else if (plain || (ebnf() && (c == '_' || c == '.' || c == '-')) || (lark() && c == '_') ||
                 (!ebnf() && !lark() && c == '-')) {
        name += c;
      } else {
        name += lark() ? '_' : '-';
      }
    }
    const bool digit = !name.empty() && name[0] >= '0' && name[0] <= '9';
    static const std::set<std::string> kReserved = {
        "TagDispatch", "Token",     "ExcludeToken", "TokenTagDispatch",
        "Regex",       "Substring", "true",         "false"};
    if (name.empty() || digit || (ebnf() && (kReserved.contains(name) || name[0] == '-')) ||
        (lark() && name[0] == '_')) {
      name = "r" + std::string(lark() ? "_" : "-") + name;
    }
    if (taken_.insert(name).second) return name;
    uint32_t& count = next_suffix_[name];
    std::string other;
    do {
      other = name + (lark() ? "_" : "-") + std::to_string(++count);
    } while (!taken_.insert(other).second);
    return other;
  }

  const std::string& Never() {
    if (never_.empty()) never_ = NewName("never");
    return never_;
  }

  std::string AttributesText(const GrammarIr::Rule& rule, bool lazy) {
    std::vector<std::string> parts;
    const GrammarIr::Attributes& attributes = rule.attributes;
    if (lazy) parts.emplace_back("lazy");
    // What is printed does not tell the text from its marker.
    if (attributes.marker && (attributes.capture || attributes.marker->capture))
      CannotSay("captures of a rule with suffix or stop");
    if (attributes.capture.has_value()) {
      if (*attributes.capture == names_[current_]) {
        parts.emplace_back("capture");
      } else {
        if (attributes.capture->find_first_of("\"\\\n\r") != std::string::npos)
          CannotSay("a capture of this name");
        parts.push_back("capture=\"" + *attributes.capture + "\"");
      }
    }
    if (attributes.max_tokens.has_value())
      parts.push_back("max_tokens=" + std::to_string(*attributes.max_tokens));
    if (attributes.temperature.has_value()) {
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof(digits), *attributes.temperature).ptr;
      parts.push_back("temperature=" + std::string(digits, end));
    }
    if (parts.empty()) return "";
    if (!ebnf() && !lark()) CannotSay("captures, lazy rules, max_tokens and temperature");
    return "[" + Joined(parts, ", ") + "]";
  }

  void PrintRule(GrammarIr::RuleId id) {
    current_ = id;
    const GrammarIr::Rule& rule = ir_.rule(id);
    const GrammarIr::Expr body = ir_.expr(rule.body);
    const bool boolean = body.kind == Kind::kRegex && ir_.arena().HasBoolean(body.index);
    // A rule that is one lazy regex can say so itself.
    const bool lazy = body.kind == Kind::kRegex && body.lazy && !boolean && (ebnf() || lark());
    if (boolean && rule.attributes.max_tokens.has_value())
      CannotSay("max_tokens of a rule that is made by and, not or max_chars");
    if (body.kind == Kind::kNever && rule.attributes.max_tokens.has_value())
      CannotSay("max_tokens of a rule without any text");  // which is told by a call
    std::string line = names_[id] + AttributesText(rule, lazy) + Defines();
    line += lazy ? Term(body.index, Binding::kChoice) : Text(rule.body, Binding::kChoice, 0);
    Append(line + "\n");
    out_ += helpers_;
    helpers_.clear();
  }

  void Append(std::string_view text) {
    if (out_.size() + helpers_.size() + text.size() > kMaxBytes) {
      Fail(ErrorCode::kLimit, "more than 64 MiB of text");
      return;
    }
    out_ += text;
  }

  static std::string Joined(const std::vector<std::string>& parts, std::string_view separator) {
    std::string out;
    for (const std::string& part : parts) out.append(out.empty() ? "" : separator).append(part);
    return out;
  }

  static std::string Wrap(std::string text, Binding own, Binding wanted) {
    return own < wanted ? "(" + text + ")" : text;
  }

  std::string Term(ReId id, Binding binding) {
    std::optional<std::string> text =
        RegexText(ir_.arena(), id, language_, lark() ? Binding::kChoice : binding, kMaxBytes);
    if (!text.has_value()) {
      Fail(ErrorCode::kLimit, "a regex that is too large to be written");
      return "";
    }

    return lark() ? "/" + *text + "/" : *text;
  }

  std::string Text(GrammarIr::ExprId id, Binding binding, int depth) {
    if (depth > kMaxPrintedDepth || spent_ > kMaxBytes) {
      Fail(ErrorCode::kLimit,
           depth > kMaxPrintedDepth ? "expressions too deep" : "more than 64 MiB of text");
    }
    if (error_.has_value()) return "";
    const GrammarIr::Expr expr = ir_.expr(id);
    std::string out;
    switch (expr.kind) {
      case Kind::kEmpty:
        return "\"\"";
      case Kind::kNever:
        return Never();
      case Kind::kRegex:
        out = Regex(id, expr, binding);
        break;
      case Kind::kAutomaton:
        if (ir_.automaton(expr.index).description.empty()) {
          CannotSay("max_tokens of a rule that is no terminal");
        } else if (!lark()) {
          CannotSay("a JSON Schema");
        }
        return ir_.automaton(expr.index).description;
      case Kind::kTokens:
        return Tokens(ir_.token_set(expr.index));
      case Kind::kCall:
        return names_[expr.index];
      case Kind::kSequence:
        for (const GrammarIr::ExprId operand : expr.operands) {
          const bool regex = ir_.expr(operand).kind == Kind::kRegex;  // itself a sequence at most
          out += (out.empty() ? "" : " ") +
                 Text(operand, regex ? Binding::kSequence : Binding::kQuantified, depth + 1);
        }
        out = Wrap(std::move(out), Binding::kSequence, binding);
        break;
      case Kind::kChoice:
        for (const GrammarIr::ExprId operand : expr.operands)
          out += (out.empty() ? "" : " | ") + Text(operand, Binding::kSequence, depth + 1);
        out = Wrap(std::move(out), Binding::kChoice, binding);
        break;
      case Kind::kRepeat:
        out =
            Text(expr.operands[0], Binding::kAtom, depth + 1) + QuantifierText(expr.min, expr.max);
        out = Wrap(std::move(out), Binding::kQuantified, binding);
        break;
    }
    spent_ += out.size();
    return out;
  }

  std::string Regex(GrammarIr::ExprId id, const GrammarIr::Expr& expr, Binding binding) {
    RegexArena& arena = ir_.arena();
    const bool boolean = arena.HasBoolean(expr.index);
    if (!boolean && !expr.lazy) return Term(expr.index, binding);
    if (const auto known = regex_rules_.find(id); known != regex_rules_.end()) return known->second;
    std::string name;
    if (!boolean && (ebnf() || lark())) {
      name = NewName(names_[current_] + "-lazy");
      helpers_ += name + "[lazy]" + Defines() + Term(expr.index, Binding::kChoice) + "\n";
    } else {
      const ReId more = arena.Repeat(RegexArena::kAnyChar, 1, std::nullopt);
      name = States(expr.lazy ? arena.And(expr.index, arena.Not(arena.Concat(expr.index, more)))
                              : expr.index);
    }
    regex_rules_.emplace(id, name);
    return name;
  }

  // A rule for each state of the term's automaton; the name of the first.
  std::string States(ReId term) {
    RegexDfa dfa(ir_.shared_arena(), term);
    const uint32_t start = dfa.Start();
    if (start == RegexDfa::kDead) return Never();
    std::map<uint32_t, std::string> names;
    std::vector<uint32_t> states = {start};
    names[start] = NewName(names_[current_] + "-re");
    const std::string first = names[start];
    for (size_t i = 0; i < states.size(); ++i) {
      if (states.size() > kMaxStates) {
        Fail(ErrorCode::kLimit, "a regex with and, not or a lazy end of more than 2000 states");
        return first;
      }
      std::string line;
      if (dfa.Accepting(states[i])) line = "\"\"";
      for (const auto& [next, set] : dfa.Steps(states[i])) {
        auto [it, added] = names.try_emplace(next);
        if (added) {
          it->second = NewName(first);
          states.push_back(next);
        }
        line += (line.empty() ? "" : " | ") + Term(ir_.arena().Set(set), Binding::kAtom) + " " +
                it->second;
      }
      helpers_ += names[states[i]] + Defines() + (line.empty() ? Never() : line) + "\n";
      if (helpers_.size() > kMaxBytes) {
        Fail(ErrorCode::kLimit, "more than 64 MiB of text");
        return first;
      }
    }
    if (dfa.overflow()) Fail(ErrorCode::kLimit, "a regex that is too large to be written");
    return first;
  }

  std::string Tokens(const TokenSet& set) {
    int64_t count = 0;
    for (const auto& [first, last] : set.ranges) count += int64_t{last} - first + 1;
    if (lark()) return LarkTokens(set);
    if (count > kMaxTokens) {
      CannotSay("a set of " + std::to_string(count) + " tokens");
      return "";
    }
    std::vector<std::string> parts;
    for (const auto& [first, last] : set.ranges) {
      for (int64_t id = first; id <= last; ++id)
        parts.push_back(ebnf() ? std::to_string(id) : "<[" + std::to_string(id) + "]>");
    }
    if (ebnf()) {
      if (!set.names.empty()) CannotSay("the token " + set.names[0] + ", only its id");
      if (parts.empty() && set.complement) CannotSay("any token at all");
      if (parts.empty()) return Never();
      return (set.complement ? "ExcludeToken(" : "Token(") + Joined(parts, ", ") + ")";
    }
    for (const std::string& name : set.names) {
      if (!IsBracketed(name)) CannotSay("the token " + name);
      parts.push_back(name);
    }
    if (set.complement) {
      if (parts.empty()) CannotSay("any token at all");
      if (parts.size() > 1) CannotSay("every token but several");
      return parts.empty() ? "" : "!" + parts[0];
    }
    return AnyOf(parts);
  }

  // A choice of texts, in brackets where there are several.
  std::string AnyOf(const std::vector<std::string>& parts) {
    if (parts.empty()) return Never();
    return parts.size() > 1 ? "(" + Joined(parts, " | ") + ")" : parts[0];
  }

  static bool IsBracketed(std::string_view name) {
    return name.size() > 2 && name.front() == '<' && name.back() == '>' && name[1] != '[' &&
           name.substr(1, name.size() - 2).find_first_of("<>\n\r") == std::string_view::npos;
  }

  std::string LarkTokens(const TokenSet& set) {
    std::string ids;
    for (const auto& [first, last] : set.ranges) {
      if (!ids.empty()) ids += ',';
      ids += std::to_string(first);
      if (last > first) ids += "-" + std::to_string(last);
    }
    if (set.complement) {
      if (!set.names.empty()) CannotSay("every token but " + set.names[0]);
      return ids.empty() ? "<[*]>" : "<[^" + ids + "]>";
    }
    std::vector<std::string> parts;
    if (!ids.empty()) parts.push_back("<[" + ids + "]>");
    for (const std::string& name : set.names) {
      if (!IsBracketed(name)) CannotSay("the token " + name);
      parts.push_back(name);
    }
    return AnyOf(parts);
  }

  GrammarIr& ir_;
  const GrammarLanguage language_;
  std::vector<GrammarIr::RuleId> order_;
  std::unordered_map<GrammarIr::RuleId, std::string> names_;
  std::set<std::string> taken_;
  std::map<std::string, uint32_t> next_suffix_;
  std::unordered_map<GrammarIr::ExprId, std::string> regex_rules_;
  std::string never_;
  std::string out_, helpers_;
  size_t spent_ = 0;
  GrammarIr::RuleId current_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::string> PrintGrammar(GrammarIr& ir, GrammarLanguage language) {
  return Printer(ir, language).Print();
}

}  // namespace pawl
