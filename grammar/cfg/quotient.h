// Grammars of what is missing around given texts, and the reversal of grammars (IrReverser) that
// they need.
//
// Quotients of grammars by texts: the grammar of what is missing around them.
//
//   GrammarIr rest = *LeftQuotient(std::move(ir), "a(", vocabulary);       // x with "a(" x in it
//   GrammarIr tails = *Endings(std::move(ir), vocabulary);                 // x with y x, any y
//   // What may stand between "int f(" and ") {", when after that anything may come and then "}".
//   GrammarIr gap = *FillGap(std::move(ir), "int f(", {") {", "}"}, vocabulary);
//
// The result is an ordinary grammar, so masks, completions and all else are what they are for any
// grammar: exact.
//
// Thread safety: none. The results share the arena and the machines of the grammar they are made
// of.
#ifndef PAWL_GRAMMAR_CFG_QUOTIENT_H_
#define PAWL_GRAMMAR_CFG_QUOTIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// IrReverser: a grammar whose texts are read from their ends.
//
//   IrReverser reverser;
//   auto backwards = reverser.Reverse(ir);
//   ... the quotient of it by a text ...
//   auto forwards = reverser.Reverse(*backwards);      // whole pieces are what they were
//
// The reversed grammar shares the arena and, behind wrappers (explicit_automaton.h), the machines.
// Thread safety: none.

// The same of a machine; of one that came from here, or of a part of it, what it was made of.
// nullptr where that cannot be listed.
std::shared_ptr<Machine> ReverseMachine(const std::shared_ptr<Machine>& machine);
// The error for that.
Error CannotCut();

class IrReverser {
 public:
  explicit IrReverser(uint32_t max_regex_states) : max_regex_states_(max_regex_states) {}

  // What the root does not reach is left out. Errors: kUnsupported for rules with a limit on
  // tokens, kLimit for a regex with lookahead that has too many states, or where a text cut into a
  // machine that cannot be listed.
  Result<GrammarIr> Reverse(const GrammarIr& ir);

 private:
  GrammarIr::ExprId StatesOf(GrammarIr& out, ReId regex);

  uint32_t max_regex_states_;
  // Rules of the last result that stand for a regex which had to be listed.
  std::unordered_map<GrammarIr::RuleId, ReId> listed_;
  bool overflow_ = false;
};

struct QuotientLimits {
  size_t max_bytes = size_t{4} << 20;  // of a text
  size_t max_states = 4'000'000;       // points of the grammar that a text may touch
  uint64_t max_gap_work = 100'000;     // expressions of all grammars between the first and the last
                                       // of several gaps, beyond 16 times the grammar's own
  uint32_t max_regex_states = 2000;    // of a regex with lookahead, which has to be listed
};

// What may follow `text` up to the end. Errors: kUnsatisfiable where no text of the grammar begins
// so (place: "byte N", the first that does not fit), kInvalid (not UTF-8; token names),
// kUnsupported where the text ends inside a rule with a limit on tokens, kLimit.
Result<GrammarIr> LeftQuotient(GrammarIr ir, std::string_view text, const Vocabulary& vocabulary,
                               const QuotientLimits& limits = {});

// The texts with which a text of the grammar may end, whole texts and the empty one included.
// REQUIRES: no rule has a limit on tokens. Errors as CompileCfg's, and kLimit.
Result<GrammarIr> Endings(GrammarIr ir, const Vocabulary& vocabulary,
                          const QuotientLimits& limits = {});

// The texts x with prefix x after[0] y1 after[1] y2 ... in the grammar for some texts y1, y2, ...
// REQUIRES: after is not empty. Errors as above with the place "prefix, byte N" or "after 1, byte
// N"; kUnsatisfiable where nothing fits; kUnsupported for limits on tokens anywhere, and where a
// text cuts into a JSON Schema or free text whose states cannot be listed.
Result<GrammarIr> FillGap(GrammarIr ir, std::string_view prefix, std::span<const std::string> after,
                          const Vocabulary& vocabulary, const QuotientLimits& limits = {});

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_QUOTIENT_H_
