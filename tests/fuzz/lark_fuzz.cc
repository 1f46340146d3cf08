// Arbitrary bytes as a Lark grammar: it is read or refused with a place, within its budget. What is
// read is well formed, and a remark, an empty line and a rule that nobody calls do not change its
// language.
#include <memory>
#include <string>
#include <string_view>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/languages/lark.h"
#include "pawl/grammar.h"
#include "tests/fuzz/fuzz_util.h"
#include "tests/grammar/cfg_reference.h"

namespace {

using namespace pawl;

// The empty text alone: what %json stands for here.
class Nothing : public Machine {
 public:
  Key Start() override { return 1; }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kDeadLexeme; }
  Key StepFrame(Key, uint8_t) override { return kDead; }
  bool Accepting(Key state) override { return state == 1; }
  std::optional<std::string> ShortestCompletion(Key) override { return ""; }
};

Result<GrammarIr> Read(std::string_view text) {
  LanguageOptions options;
  options.json_schema = [](std::string_view) -> Result<GrammarIr::Automaton> {
    return GrammarIr::Automaton{std::make_shared<Nothing>(), "nothing"};
  };
  return ReadLark(text, options);
}

void RequireWellFormed(const GrammarIr& ir, std::string_view text) {
  fuzz::Require(ir.root() < ir.rule_count(), "no root", text);
  for (GrammarIr::RuleId rule = 0; rule < ir.rule_count(); ++rule) {
    fuzz::Require(ir.rule(rule).defined, "a rule without a definition", text);
    fuzz::Require(ir.rule(rule).body < ir.expr_count(), "a rule without a body", text);
  }
  for (GrammarIr::ExprId id = 0; id < ir.expr_count(); ++id) {
    const GrammarIr::Expr& expr = ir.expr(id);
    for (const GrammarIr::ExprId operand : expr.operands) {
      fuzz::Require(operand < id, "an operand behind its expression", text);
    }
    if (expr.kind == GrammarIr::Kind::kCall) {
      fuzz::Require(expr.index < ir.rule_count(), "a call of no rule", text);
    }
    if (expr.kind == GrammarIr::Kind::kRegex) {
      fuzz::Require(expr.index < ir.arena().size(), "a regex that is no term", text);
    }
  }
}

// Whatever the machine takes has a derivation, and its captures lie in the text.
void RequireCaptures(GrammarIr& ir, std::string_view text) {
  static const auto vocabulary =
      *Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  auto machine = CfgMachine::Create(ir, *vocabulary);
  if (!machine.ok() || !(*machine)->has_captures()) return;
  const Grammar grammar(*machine, vocabulary);
  for (const std::string_view sample : {"", "a", "ab", "a b", "x1"}) {
    const auto state = grammar.Start().Advance(sample);
    if (!state || !state->accepting()) continue;
    const OutputPiece pieces[] = {{.bytes = std::string(sample)}};
    const auto captures = grammar.FindCaptures(pieces);
    fuzz::Require(captures.ok(), "captures are not found", text);
    for (const Capture& capture : *captures) {
      fuzz::Require(capture.begin <= capture.end && capture.end <= sample.size(),
                    "a capture outside of the text", text);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Result<GrammarIr> ir = Read(text);
  if (!ir.ok()) {
    fuzz::RequireGoodError(ir.error(), text);
    fuzz::Require(!ir.error().place.empty(), "an error without a place", text);
    return 0;
  }
  RequireWellFormed(*ir, text);
  Result<GrammarIr> twin = Read("// a remark\n\n" + text +
                                "\n# another\n\nnobody-calls-this: \"x\" nobody-calls-this\n");
  fuzz::Require(twin.ok(), "a remark makes a grammar wrong", text);
  fuzz::Require(twin->expr_count() == ir->expr_count() && twin->rule_count() == ir->rule_count(),
                "a remark changes a grammar", text);
  if (ir->expr_count() > 200) return 0;
  CfgReference reference(*ir), other(*twin);
  for (const std::string_view sample : {"", "a", "ab", "a b", "x1"}) {
    fuzz::Require(reference.Accepts(sample) == other.Accepts(sample), "a remark changes a language",
                  text);
  }
  RequireCaptures(*ir, text);
  return 0;
}
