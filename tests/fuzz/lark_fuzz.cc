// Arbitrary bytes as a Lark grammar: it is read or refused with a place, within its budget. What is
// read is well formed, and a remark, an empty line and a rule that is not called do not change its
// language. The captures of what it accepts lie in the output and are texts of their rules.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/languages/language_options.h"
#include "grammar/languages/lark.h"
#include "pawl/grammar.h"
#include "src/base/random.h"
#include "tests/fuzz/fuzz_util.h"
#include "tests/grammar/capture_reference.h"
#include "tests/grammar/cfg_reference.h"
#include "tests/support/vocabularies.h"

namespace {

using namespace pawl;

// The empty text alone: what %json stands for here.
class Nothing : public Machine {
 public:
  Key Start() override { return 1; }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kDeadLexeme; }
  Key StepFrame(Key, uint8_t) override { return kDead; }
  bool Accepting(Key state) override { return state == 1; }
  std::optional<std::string> CompletionBytes(Key) override { return ""; }
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

// Bytes, and some tokens that grammars may name.
const std::shared_ptr<const Vocabulary>& Tokens() {
  static const auto tokens = VocabularyOf(AllBytes({"ab"}), {"<|x|>", "<tool>"});
  return tokens;
}

// What the oracles of spans know: bytes alone, and no text that is cut in two by a marker.
struct Traits {
  bool bytes_alone = true, markers = false, limits = false;
};

Traits TraitsOf(const GrammarIr& ir) {
  Traits traits;
  for (GrammarIr::ExprId id = 0; id < ir.expr_count(); ++id) {
    const GrammarIr::Kind kind = ir.expr(id).kind;
    if (kind == GrammarIr::Kind::kTokens || kind == GrammarIr::Kind::kAutomaton)
      traits.bytes_alone = false;
  }
  for (GrammarIr::RuleId rule = 0; rule < ir.rule_count(); ++rule) {
    traits.markers |= ir.rule(rule).attributes.marker.has_value();
    traits.limits |= ir.rule(rule).attributes.max_tokens.has_value();
  }
  return traits;
}

bool Ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The captures of a whole output lie in it, in order, and each holds a text of a rule of its name;
// where trying every derivation is quick, they are those of the derivation that counts.
void RequireCaptures(GrammarIr& ir, const Grammar& grammar, std::span<const OutputPiece> pieces,
                     std::string_view text) {
  std::string output;
  for (const OutputPiece& piece : pieces)
    output += piece.token == kNoToken ? piece.bytes : grammar.vocabulary().bytes(piece.token);
  const auto found = grammar.FindCaptures(pieces);
  if (!found.ok()) {
    fuzz::Require(found.error().code == ErrorCode::kLimit, "captures are not found", text);
    return;
  }
  const Traits traits = TraitsOf(ir);
  size_t last = 0;
  for (const Capture& capture : *found) {
    fuzz::Require(capture.begin <= capture.end && capture.end <= output.size(),
                  "a capture outside of the output", text);
    if (traits.markers)
      continue;  // what is hidden is cut out, and a marker may end behind its rule
    fuzz::Require(output.compare(capture.begin, capture.end - capture.begin, capture.text) == 0,
                  "a capture has another text than the output", text);
    fuzz::Require(last <= capture.end, "captures out of order", text);
    last = capture.end;
  }
  if (!traits.bytes_alone || traits.markers || !Ascii(output)) return;
  CfgReference reference(ir);
  fuzz::Require(reference.Accepts(output), "an output that has no derivation", text);
  for (const Capture& capture : *found) {
    bool fits = false;
    for (GrammarIr::RuleId rule = 0; rule < ir.rule_count() && !fits; ++rule) {
      fits = ir.rule(rule).attributes.capture == capture.name &&
             reference.RuleEndsOf(rule, capture.begin).contains(capture.end);
    }
    fuzz::Require(fits, "a capture is no text of its rule", text);
  }
  constexpr size_t kMostTried = 6;
  if (traits.limits || output.size() > kMostTried) return;
  CaptureReference slow(ir, reference, output);
  const auto expected = slow.Run();
  if (!expected || slow.circular()) return;
  fuzz::Require(*found == *expected, "another derivation than the preferred one", text);
}

// Random outputs, token by token, and their completions: what has ended so far lies in what there
// is, and the whole has captures as it should.
void RequireCaptures(GrammarIr& ir, std::string_view text) {
  auto machine = CfgMachine::Create(ir, *Tokens());
  if (!machine.ok() || !(*machine)->has_captures()) return;
  const Grammar grammar(*machine, Tokens());
  for (const std::string_view sample : {"", "a", "ab", "a b", "x1"}) {
    const auto state = grammar.Start().Advance(sample);
    if (!state || !state->accepting()) continue;
    const OutputPiece pieces[] = {{.bytes = std::string(sample)}};
    RequireCaptures(ir, grammar, pieces, text);
  }
  constexpr uint64_t kWalks = 3, kSteps = 10;
  constexpr size_t kMostTokens = 40;
  for (uint64_t walk = 0; walk < kWalks; ++walk) {
    State state = grammar.Start();
    std::vector<OutputPiece> pieces;
    size_t length = 0;
    const auto take = [&](TokenId token) {
      const auto next = state.Advance(token);
      fuzz::Require(next.has_value(), "the mask allows a token that the state refuses", text);
      state = *next;
      pieces.push_back({.token = token});
      length += Tokens()->bytes(token).size();
    };
    for (uint64_t step = 0; step < kSteps; ++step) {
      std::vector<TokenId> allowed = state.mask()->Tokens();
      std::erase_if(allowed, [](TokenId token) { return Tokens()->is_end(token); });
      if (allowed.empty()) break;
      take(allowed[Philox4x32(fuzz::HashOf(text), walk, step).word[0] % allowed.size()]);
      const auto so_far = grammar.FindCaptures(pieces);
      if (!so_far.ok()) {
        fuzz::RequireGoodError(so_far.error(), text);
        fuzz::Require(so_far.error().code != ErrorCode::kInvalid, "an output does not fit", text);
        continue;
      }
      for (const Capture& capture : *so_far) {
        fuzz::Require(capture.begin <= capture.end && capture.end <= length,
                      "a capture that has not ended yet", text);
      }
    }
    const auto rest = state.CompletionTokens();
    if (!rest || rest->size() > kMostTokens) continue;
    for (const TokenId token : *rest) take(token);
    fuzz::Require(state.accepting(), "the completion does not complete", text);
    RequireCaptures(ir, grammar, pieces, text);
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
  // A byte order mark is one in front of everything only.
  const size_t mark = text.size() - WithoutByteOrderMark(text).size();
  Result<GrammarIr> twin = Read(text.substr(0, mark) + "// a remark\n\n" + text.substr(mark) +
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
