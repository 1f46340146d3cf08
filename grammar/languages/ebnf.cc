// EBNF beyond what bnf_reader.cc reads: the options of rules and the macros.
//
// Options that change the language are said as languages. lazy: a text of which no proper prefix is
// one too. max_chars=N: a text that has no proper prefix of N characters or more that is one too,
// so that a rule ends at N or, where it cannot, as soon as it can.
//
// TagDispatch stands in tag_dispatch.cc. TokenTagDispatch is the same with tokens for characters.
#include "grammar/languages/ebnf.h"

#include <cstdlib>
#include <limits>

#include "grammar/languages/bnf_reader.h"
#include "grammar/languages/substring_regex.h"
#include "grammar/regex/ecma_parser.h"
#include "src/base/utf8.h"

namespace pawl {

namespace {

constexpr std::string_view kMacros[] = {"TagDispatch",      "Token", "ExcludeToken",
                                        "TokenTagDispatch", "Regex", "Substring"};

}  // namespace

BnfReader::RuleOptions BnfReader::ReadRuleOptions(std::string_view name) {
  RuleOptions out;
  ++at_;  // '['
  std::vector<std::string_view> seen;
  while (!failed()) {
    SkipSpace(false);
    const size_t at = at_;
    const std::string_view option = ReadName("a rule option");
    if (failed()) break;
    if (std::find(seen.begin(), seen.end(), option) != seen.end()) {
      Fail(ErrorCode::kInvalid, at, "rule option " + std::string(option) + " stands here twice");
      break;
    }
    seen.push_back(option);
    SkipSpace(false);
    const bool has_value = Peek() == '=';
    if (has_value) {
      ++at_;
      SkipSpace(false);
    }
    const size_t value_at = at_;
    if (option == "lazy") {
      if (has_value) Expected("',' or ']'", value_at - 1);
      out.lazy = true;
    } else if (option == "capture") {
      std::u32string value = DecodeCodepoints(name);
      if (has_value) {
        if (Peek() != '"') Expected("a string");
        if (!failed()) value = ReadString();
      }
      if (value.empty()) Fail(ErrorCode::kInvalid, value_at, "expected a name for the capture");
      out.attributes.capture = EncodeCodepoints(value);
    } else if (option == "max_tokens" || option == "max_chars" || option == "temperature") {
      if (!has_value) {
        Expected("'='");
      } else if (option == "temperature") {
        const size_t end = std::min(text_.find_first_not_of("0123456789.eE+-", at_), text_.size());
        const std::string digits(text_.substr(at_, std::min<size_t>(end - at_, 400)));
        char* parsed = nullptr;
        const double value = std::strtod(digits.c_str(), &parsed);
        if (digits.empty() || *parsed != '\0' || !(value >= 0) ||
            value > std::numeric_limits<float>::max()) {
          Expected("a number that is not negative and that a float can hold");
        }
        at_ = end;
        out.attributes.temperature = value;
      } else if (const std::optional<uint64_t> value = ReadNumber(INT32_MAX); value.has_value()) {
        if (option == "max_chars") {
          out.max_chars = static_cast<uint32_t>(*value);
        } else {
          if (*value == 0) Expected("a positive number", value_at);
          out.attributes.max_tokens = static_cast<uint32_t>(*value);
          out.attributes.relaxed = true;
        }
      }
    } else if (option.starts_with("capture_hidden_") || option == "stop_capture") {
      Fail(ErrorCode::kUnsupported, at,
           "rule option " + std::string(option) + " is not supported: captures are whole rules");
    } else {
      Expected("a rule option (lazy, capture, max_tokens, max_chars, temperature)", at);
    }
    SkipSpace(false);
    if (failed() || Peek() != ',') break;
    ++at_;
  }
  Consume("]", "',' or ']'");
  return out;
}

GrammarIr::ExprId BnfReader::ApplyOptions(const RuleOptions& options, ExprId body, size_t at) {
  const auto regular = [&](std::string_view option) -> bool {
    if (IsPlain(body) || body == GrammarIr::kEmpty || body == GrammarIr::kNever) return true;
    return Fail(ErrorCode::kUnsupported, at,
                "a rule with the option " + std::string(option) +
                    " must be regular: strings, classes and Regex(), no rules or tokens");
  };
  if (options.max_chars.has_value() && regular("max_chars") && IsPlain(body)) {
    const ReId regex = ir_.expr(body).index;
    const auto limited = Fold([&] {
      const ReId full = arena().And(
          regex, arena().Repeat(RegexArena::kAnyChar, *options.max_chars, std::nullopt));
      const ReId more = arena().Repeat(RegexArena::kAnyChar, 1, std::nullopt);
      return arena().And(regex, arena().Not(arena().Concat(full, more)));
    });
    if (!limited.has_value()) Fail(ErrorCode::kLimit, at, "the rule is too large for max_chars");
    body = limited.value_or(GrammarIr::kNever);
  }
  if (options.lazy && regular("lazy") && IsPlain(body)) {
    body = ir_.Regex(ir_.expr(body).index, true);
  }
  if (options.attributes.max_tokens.has_value()) {
    const GrammarIr::Kind kind = ir_.expr(body).kind;
    if (kind != GrammarIr::Kind::kRegex && kind != GrammarIr::Kind::kEmpty &&
        kind != GrammarIr::Kind::kTokens) {
      regular("max_tokens");
    }
  }
  return body;
}

bool BnfReader::IsMacro(std::string_view name) const {
  return std::find(std::begin(kMacros), std::end(kMacros), name) != std::end(kMacros);
}

GrammarIr::ExprId BnfReader::ReadMacro(std::string_view name, size_t at) {
  const MacroArguments arguments = ReadMacroArguments();
  if (failed()) return GrammarIr::kNever;
  if (name == "Regex") return RegexMacro(arguments, at);
  if (name == "Substring") return SubstringMacro(arguments, at);
  if (name == "Token") return TokenMacro(arguments, at, false);
  if (name == "ExcludeToken") return TokenMacro(arguments, at, true);
  if (name == "TagDispatch") return TagDispatchMacro(arguments, at);
  return TokenTagDispatchMacro(arguments, at);
}

BnfReader::MacroArguments BnfReader::ReadMacroArguments() {
  MacroArguments out;
  SkipSpace(true);
  if (!Consume("(", "'(' after the macro's name")) return out;
  SkipSpace(true);
  if (Peek() == ')') {
    ++at_;
    return out;
  }
  while (!failed()) {
    SkipSpace(true);
    const size_t name_end = NameEnd(at_);
    const size_t behind = SpaceEnd(name_end, true);
    if (name_end > at_ && behind < text_.size() && text_[behind] == '=') {
      std::string name(text_.substr(at_, name_end - at_));
      const size_t at = at_;
      at_ = behind + 1;
      MacroValue value = ReadMacroValue(0);
      for (const auto& [other, unused] : out.named) {
        if (other == name) Fail(ErrorCode::kInvalid, at, "argument " + name + " stands here twice");
      }
      value.at = at;
      out.named.emplace_back(std::move(name), std::move(value));
      if (out.named.size() > 16) Expected("fewer named arguments", at);
    } else {
      out.positional.push_back(ReadMacroValue(0));
    }
    SkipSpace(true);
    if (failed() || Peek() != ',') break;
    ++at_;
  }
  Consume(")", "',' or ')'");
  return out;
}

BnfReader::MacroValue BnfReader::ReadMacroValue(int depth) {
  SkipSpace(true);
  MacroValue out;
  out.at = at_;
  const char c = Peek();
  if (c == '"') {
    out.kind = MacroValue::Kind::kString;
    out.text = EncodeCodepoints(ReadString());
  } else if ((c >= '0' && c <= '9') || c == '+' || (c == '-' && Peek(1) >= '0' && Peek(1) <= '9')) {
    out.kind = MacroValue::Kind::kInteger;
    if (c == '-' || c == '+') ++at_;
    const std::optional<uint64_t> value = ReadNumber(uint64_t{1'000'000'000'000'000});
    out.number = static_cast<int64_t>(value.value_or(0)) * (c == '-' ? -1 : 1);
  } else if (c == '(') {
    if (depth >= options_.max_nesting) {
      Fail(ErrorCode::kLimit, at_,
           "tuples inside tuples more than " + std::to_string(options_.max_nesting) + " deep");
      return out;
    }
    ++at_;
    SkipSpace(true);
    while (!failed() && Peek() != ')') {
      out.elements.push_back(ReadMacroValue(depth + 1));
      SkipSpace(true);
      if (failed() || Peek() != ',') break;
      ++at_;
      SkipSpace(true);
    }
    Consume(")", "',' or ')'");
  } else {
    const std::string_view name = ReadName("a string, a number, true, false, a rule name or '('");
    const bool boolean = name == "true" || name == "false";
    out.kind = boolean ? MacroValue::Kind::kBoolean : MacroValue::Kind::kName;
    out.number = name == "true" ? 1 : 0;
    out.text = name;
  }
  return out;
}

bool BnfReader::CheckNames(const MacroArguments& arguments, std::string_view macro,
                           std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : arguments.named) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Fail(ErrorCode::kInvalid, value.at,
                  std::string(macro) + " has no argument named " + name.substr(0, 80));
    }
  }
  return true;
}

const BnfReader::MacroValue* BnfReader::Named(const MacroArguments& arguments,
                                              std::string_view name, MacroValue::Kind kind,
                                              std::string_view what) {
  for (const auto& [other, value] : arguments.named) {
    if (other != name) continue;
    if (value.kind == kind) return &value;
    Fail(ErrorCode::kInvalid, value.at,
         "expected " + std::string(what) + " for " + std::string(name));
  }
  return nullptr;
}

GrammarIr::ExprId BnfReader::RegexMacro(const MacroArguments& arguments, size_t at) {
  if (!CheckNames(arguments, "Regex", {"json_string", "flags"})) return GrammarIr::kNever;
  if (arguments.positional.size() != 1 ||
      arguments.positional[0].kind != MacroValue::Kind::kString) {
    return Fail(ErrorCode::kInvalid, at, "expected one string, the pattern, as argument of Regex");
  }
  const MacroValue* json =
      Named(arguments, "json_string", MacroValue::Kind::kBoolean, "true or false");
  const MacroValue* flags = Named(arguments, "flags", MacroValue::Kind::kString, "a string");
  RegexSyntaxOptions syntax;
  syntax.search = false;
  syntax.dot_all = flags == nullptr;
  syntax.max_nesting = options_.max_nesting;
  if (flags != nullptr) {
    for (const char flag : flags->text) {
      if (flag == 'i') {
        syntax.ignore_case = true;
      } else if (flag == 's') {
        syntax.dot_all = true;
      } else if (flag != 'u') {
        Fail(ErrorCode::kInvalid, flags->at, "expected flags out of \"isu\"");
      }
    }
  }
  if (failed()) return GrammarIr::kNever;
  const MacroValue& pattern = arguments.positional[0];
  const Result<ReId> regex = ParseEcma(arena(), pattern.text, syntax);
  if (!regex.ok()) {
    return Fail(regex.error().code, pattern.at,
                "in the pattern, " + regex.error().place + ": " + regex.error().message);
  }
  if (json == nullptr || json->number == 0) return ir_.Regex(*regex);
  const CodepointRange escaped[] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const auto body = Fold([&] {
    const ReId plain = arena().Set(CodepointSet::FromRanges(escaped).Complement());
    return arena().And(*regex, arena().Star(plain));
  });
  if (!body.has_value()) Fail(ErrorCode::kLimit, pattern.at, "the pattern is too large");
  return body.value_or(GrammarIr::kNever);
}

GrammarIr::ExprId BnfReader::SubstringMacro(const MacroArguments& arguments, size_t at) {
  if (!CheckNames(arguments, "Substring", {})) return GrammarIr::kNever;
  std::vector<std::u32string> chunks;
  for (const MacroValue& value : arguments.positional) {
    if (value.kind != MacroValue::Kind::kString)
      return Fail(ErrorCode::kInvalid, value.at, "expected a string as argument of Substring");
    if (!value.text.empty()) chunks.push_back(DecodeCodepoints(value.text));
  }
  const auto regex = Fold([&] { return SubstringRegex(arena(), chunks); });
  if (!regex.has_value()) {
    Fail(ErrorCode::kLimit, at, "too many chunks for Substring");
  }
  return regex.value_or(GrammarIr::kNever);
}

bool BnfReader::ReadTokenId(const MacroValue& value, std::vector<TokenId>& ids) {
  if (value.kind != MacroValue::Kind::kInteger || value.number < 0 || value.number > INT32_MAX) {
    return Fail(ErrorCode::kInvalid, value.at,
                "expected the id of a token, a number that is not negative");
  }
  ids.push_back(static_cast<TokenId>(value.number));
  return true;
}

namespace {

TokenSet SetOf(std::vector<TokenId> ids, bool complement, std::string place) {
  std::sort(ids.begin(), ids.end());
  TokenSet set;
  for (const TokenId id : ids) {
    if (!set.ranges.empty() && id <= set.ranges.back().second + 1) {
      set.ranges.back().second = id;
    } else {
      set.ranges.emplace_back(id, id);
    }
  }
  set.complement = complement;
  set.place = std::move(place);
  return set;
}

}  // namespace

GrammarIr::ExprId BnfReader::TokenMacro(const MacroArguments& arguments, size_t at,
                                        bool complement) {
  const std::string_view name = complement ? "ExcludeToken" : "Token";
  if (!CheckNames(arguments, name, {})) return GrammarIr::kNever;
  if (arguments.positional.empty()) {
    Fail(ErrorCode::kInvalid, at,
         "expected at least one token id as argument of " + std::string(name));
  }
  std::vector<TokenId> ids;
  for (const MacroValue& value : arguments.positional) {
    if (!ReadTokenId(value, ids)) break;
  }
  if (failed()) return GrammarIr::kNever;
  return ir_.Tokens(SetOf(std::move(ids), complement, PlaceOf(at)));
}

GrammarIr::ExprId BnfReader::TokenTagDispatchMacro(const MacroArguments& arguments, size_t at) {
  if (!CheckNames(arguments, "TokenTagDispatch", {"loop_after_dispatch", "excludes"}))
    return GrammarIr::kNever;
  const MacroValue* loop =
      Named(arguments, "loop_after_dispatch", MacroValue::Kind::kBoolean, "true or false");
  const MacroValue* excludes = Named(arguments, "excludes", MacroValue::Kind::kTuple, "a tuple");
  std::vector<TokenId> ids;
  std::vector<ExprId> ways;
  for (const MacroValue& pair : arguments.positional) {
    if (pair.kind != MacroValue::Kind::kTuple || pair.elements.size() != 2 ||
        pair.elements[1].kind != MacroValue::Kind::kName) {
      return Fail(ErrorCode::kInvalid, pair.at, "expected a pair (token id, rule)");
    }
    if (!ReadTokenId(pair.elements[0], ids)) return GrammarIr::kNever;
    const ExprId call = ir_.Call(RuleNamed(pair.elements[1].text, pair.elements[1].at));
    ways.push_back(ir_.Sequence({ir_.Tokens(SetOf({ids.back()}, false, PlaceOf(at))), call}));
  }
  std::vector<TokenId> triggers = ids;
  std::sort(triggers.begin(), triggers.end());
  if (excludes != nullptr) {
    for (const MacroValue& value : excludes->elements) {
      if (!ReadTokenId(value, ids)) return GrammarIr::kNever;
      if (std::binary_search(triggers.begin(), triggers.end(), ids.back()))
        return Fail(ErrorCode::kInvalid, value.at, "the excluded token is a trigger");
    }
  }
  if (failed()) return GrammarIr::kNever;
  const ExprId other = ir_.Tokens(SetOf(std::move(ids), true, PlaceOf(at)));
  if (loop != nullptr && loop->number == 0) {
    return ir_.Sequence(
        {ir_.Repeat(other, 0, GrammarIr::kUnbounded), ir_.Optional(ir_.Choice(ways))});
  }
  ways.push_back(other);
  return ir_.Repeat(ir_.Choice(ways), 0, GrammarIr::kUnbounded);
}

Result<GrammarIr> ReadEbnf(std::string_view text, const LanguageOptions& options) {
  return BnfReader(text, options, BnfReader::Dialect::kEbnf).Read();
}

// What GBNF has more than bnf_reader.cc reads: tokens as a whole. <[12]> is the token with that id,
// <think> the one with exactly that name, angle brackets included; ! before it is any other.

GrammarIr::ExprId BnfReader::ReadToken() {
  TokenSet set;
  set.place = PlaceOf(at_);
  if (Peek() == '!') {
    set.complement = true;
    ++at_;
  }
  const size_t open = at_;
  if (!Consume("<", "'<'")) return GrammarIr::kNever;
  if (Peek() == '[') {
    ++at_;
    const std::optional<uint64_t> id = ReadNumber(INT32_MAX);
    if (!id.has_value() || !Consume("]>", "\"]>\"")) return GrammarIr::kNever;
    set.ranges.emplace_back(static_cast<TokenId>(*id), static_cast<TokenId>(*id));
    return ir_.Tokens(std::move(set));
  }
  const size_t end = text_.find_first_of(">\n\r", at_);
  if (end == std::string_view::npos || text_[end] != '>')
    return Expected("'>' to end the token", std::min(end, text_.size()));
  at_ = end + 1;
  set.names.emplace_back(text_.substr(open, at_ - open));
  return ir_.Tokens(std::move(set));
}

Result<GrammarIr> ReadGbnf(std::string_view text, const LanguageOptions& options) {
  return BnfReader(text, options, BnfReader::Dialect::kGbnf).Read();
}

}  // namespace pawl
