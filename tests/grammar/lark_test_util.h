// What the tests of Lark grammars share.
#ifndef PAWL_TESTS_GRAMMAR_LARK_TEST_UTIL_H_
#define PAWL_TESTS_GRAMMAR_LARK_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/languages/lark.h"
#include "tests/grammar/cfg_reference.h"

namespace pawl {

// A machine for one text: %json stands for it in these tests.
class OneText : public Machine {
 public:
  explicit OneText(std::string text) : text_(std::move(text)) {}
  Key Start() override { return MakeKey(1, 1); }
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override {
    const bool fits = lexeme <= text_.size() && static_cast<uint8_t>(text_[lexeme - 1]) == byte;
    return fits ? lexeme + 1 : kDeadLexeme;
  }
  Key StepFrame(Key, uint8_t) override { return kDead; }
  bool Accepting(Key state) override { return LexemeOf(state) == text_.size() + 1; }
  std::optional<std::string> CompletionBytes(Key state) override {
    return text_.substr(LexemeOf(state) - 1);
  }

 private:
  std::string text_;
};

inline LanguageOptions WithJson(std::vector<std::string>* schemas = nullptr) {
  LanguageOptions options;
  options.json_schema = [schemas](std::string_view text) -> Result<GrammarIr::Automaton> {
    if (schemas != nullptr) schemas->emplace_back(text);
    if (text.starts_with('[')) return Error{ErrorCode::kInvalid, "must be an object", "#"};
    return GrammarIr::Automaton{std::make_shared<OneText>("{}"), "%json " + std::string(text)};
  };
  return options;
}

inline GrammarIr Read(std::string_view text, const LanguageOptions& options = WithJson()) {
  Result<GrammarIr> ir = ReadLark(text, options);
  if (ir.ok()) return std::move(*ir);
  ADD_FAILURE() << text << "\n" << ir.error().ToString();
  return GrammarIr();
}

inline std::string ErrorOf(std::string_view text, const LanguageOptions& options = WithJson()) {
  const Result<GrammarIr> ir = ReadLark(text, options);
  return ir.ok() ? "" : ir.error().ToString();
}

inline void Check(std::string_view grammar, const std::vector<std::string>& accepted,
                  const std::vector<std::string>& refused) {
  GrammarIr ir = Read(grammar);
  if (ir.root() == GrammarIr::kNoRule) return;
  CfgReference reference(ir);
  for (const std::string& text : accepted) {
    EXPECT_TRUE(reference.Accepts(text)) << grammar << "\n" << text;
  }
  for (const std::string& text : refused) {
    EXPECT_FALSE(reference.Accepts(text)) << grammar << "\n" << text;
  }
}

// The first expression of a kind that the grammar uses, in any rule.
inline std::vector<const GrammarIr::Expr*> Find(const GrammarIr& ir, GrammarIr::Kind kind) {
  std::vector<const GrammarIr::Expr*> found;
  for (GrammarIr::ExprId id = 0; id < ir.expr_count(); ++id) {
    if (ir.expr(id).kind == kind) found.push_back(&ir.expr(id));
  }
  return found;
}

inline const GrammarIr::Rule* FindRule(const GrammarIr& ir, std::string_view name) {
  for (GrammarIr::RuleId id = 0; id < ir.rule_count(); ++id) {
    if (ir.rule(id).name == name) return &ir.rule(id);
  }
  return nullptr;
}

// All texts of up to so many letters.
inline std::vector<std::string> TextsUpTo(size_t length, std::string_view letters) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) continue;
    for (const char c : letters) texts.push_back(texts[i] + c);
  }
  return texts;
}

}  // namespace pawl

#endif  // PAWL_TESTS_GRAMMAR_LARK_TEST_UTIL_H_
