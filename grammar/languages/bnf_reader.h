// BnfReader: what EBNF as XGrammar reads it and GBNF as llama.cpp reads it have in common, and, by
// dialect, where they differ. Internal to grammar/languages; use ReadEbnf and ReadGbnf.
#ifndef PAWL_GRAMMAR_LANGUAGES_BNF_READER_H_
#define PAWL_GRAMMAR_LANGUAGES_BNF_READER_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/languages/language_options.h"
#include "pawl/result.h"

namespace pawl {

class BnfReader {
 public:
  enum class Dialect : uint8_t { kEbnf, kGbnf };
  // REQUIRES: text and options outlive the reader.
  BnfReader(std::string_view text, const LanguageOptions& options, Dialect dialect);

  // Reads the whole text; once.
  Result<GrammarIr> Read();

 private:
  using ExprId = GrammarIr::ExprId;
  using RuleId = GrammarIr::RuleId;

  // The options of a rule in EBNF, name[...] ::= ...
  struct RuleOptions {
    GrammarIr::Attributes attributes;
    bool lazy = false;
    std::optional<uint32_t> max_chars;
  };
  // An argument of a macro in EBNF.
  struct MacroValue {
    enum class Kind : uint8_t { kString, kInteger, kBoolean, kName, kTuple };
    Kind kind = Kind::kTuple;
    size_t at = 0;
    std::string text = {};  // kString, kName
    int64_t number = 0;     // kInteger, kBoolean
    std::vector<MacroValue> elements = {};
  };
  struct MacroArguments {
    std::vector<MacroValue> positional = {};
    std::vector<std::pair<std::string, MacroValue>> named = {};
  };
  struct Tag {
    std::u32string text;
    RuleId rule;
  };
  struct NamedRule {
    RuleId rule;
    size_t first_use;
  };

  bool gbnf() const { return dialect_ == Dialect::kGbnf; }
  RegexArena& arena() { return ir_.arena(); }

  // bnf_reader.cc: the text, its places, characters and names.
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool failed() const { return error_.has_value(); }
  std::string PlaceOf(size_t offset);
  std::string FoundAt(size_t offset) const;
  // What functions answer behind an error: false, no value, or no text.
  struct NoExpr {
    template <typename T>
    requires std::same_as<T, bool> || std::same_as<T, ExprId>
    operator T() const { return std::same_as<T, bool> ? T{false} : T{GrammarIr::kNever}; }
    operator std::optional<uint64_t>() const { return std::nullopt; }
  };
  // Note the first error only.
  NoExpr Fail(ErrorCode code, size_t offset, std::string message);
  NoExpr Expected(std::string_view what) { return Expected(what, at_); }
  NoExpr Expected(std::string_view what, size_t offset);
  // The offset behind white space and comments.
  size_t SpaceEnd(size_t offset, bool newlines) const;
  void SkipSpace(bool newlines) { at_ = SpaceEnd(at_, newlines); }
  bool Consume(std::string_view token, std::string_view what);
  bool IsNameChar(char c, bool first) const;
  size_t NameEnd(size_t offset) const;
  std::string_view ReadName(std::string_view what);
  std::optional<uint64_t> ReadNumber(uint64_t max);
  // One character, escaped or not, of a string or a class.
  char32_t ReadCharacter(bool in_class);
  std::u32string ReadString();
  ExprId ReadClass();

  // bnf_reader.cc: rules and expressions.
  void ReadRule();
  ExprId ReadChoices(bool nested);
  ExprId ReadSequence(bool nested);
  ExprId ReadElement(bool nested);
  ExprId ReadQuantifiers(ExprId element, bool nested);
  bool ReadCounts(bool nested, uint32_t& min, uint32_t& max);
  bool AtRuleStart() const;
  bool FirstOnLine(size_t offset) const;
  RuleId RuleNamed(std::string_view name, size_t offset);
  void Finish();

  // Sequences, choices and repeats of which every part is regular become one regex.
  bool IsPlain(ExprId id) const {
    return ir_.expr(id).kind == GrammarIr::Kind::kRegex && !ir_.expr(id).lazy;
  }
  template <typename Make>
  std::optional<ExprId> Fold(Make make);
  ExprId Sequence(const std::vector<ExprId>& parts);
  ExprId Choice(const std::vector<ExprId>& alternatives);
  ExprId Repeat(ExprId operand, uint32_t min, uint32_t max);

  // ebnf.cc: rule options and macros.
  RuleOptions ReadRuleOptions(std::string_view name);
  ExprId ApplyOptions(const RuleOptions& options, ExprId body, size_t at);
  bool IsMacro(std::string_view name) const;
  ExprId ReadMacro(std::string_view name, size_t at);
  MacroArguments ReadMacroArguments();
  MacroValue ReadMacroValue(int depth);
  const MacroValue* Named(const MacroArguments& arguments, std::string_view name,
                          MacroValue::Kind kind, std::string_view what);
  bool CheckNames(const MacroArguments& arguments, std::string_view macro,
                  std::initializer_list<std::string_view> known);
  ExprId RegexMacro(const MacroArguments& arguments, size_t at);
  ExprId SubstringMacro(const MacroArguments& arguments, size_t at);
  ExprId TokenMacro(const MacroArguments& arguments, size_t at, bool complement);
  ExprId TagDispatchMacro(const MacroArguments& arguments, size_t at);  // tag_dispatch.cc
  // `stops`: the tags and what is excluded.
  bool ReadTags(const MacroArguments& arguments, const MacroValue* excludes, std::vector<Tag>& tags,
                std::vector<std::u32string>& stops);
  ExprId TokenTagDispatchMacro(const MacroArguments& arguments, size_t at);
  bool ReadTokenId(const MacroValue& value, std::vector<TokenId>& ids);

  // ebnf.cc
  ExprId ReadToken();

  const std::string_view text_;
  const LanguageOptions& options_;
  const Dialect dialect_;
  GrammarIr ir_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
  std::unordered_map<std::string, NamedRule> rules_;
  uint64_t fold_steps_;  // left for making larger regexes of smaller ones
  // The last place asked for, so that places in order cost one pass.
  size_t place_offset_ = 0, place_line_ = 1, place_column_ = 1;
};

template <typename Make>
std::optional<GrammarIr::ExprId> BnfReader::Fold(Make make) {
  if (fold_steps_ == 0) return std::nullopt;
  const uint64_t before = arena().work();
  ReId id;
  bool exhausted;
  {
    RegexArena::WorkBudget budget(arena(), fold_steps_);
    id = make();
    exhausted = budget.exhausted();
  }
  fold_steps_ -= std::min(fold_steps_, arena().work() - before);
  if (exhausted) fold_steps_ = 0;
  if (exhausted || arena().overflow()) return std::nullopt;
  return ir_.Regex(id);
}

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_BNF_READER_H_
