// IrReverser: a grammar whose texts are read from their ends.
//
//   IrReverser reverser;
//   auto backwards = reverser.Reverse(ir);
//   ... the quotient of it by a text ...
//   auto forwards = reverser.Reverse(*backwards);      // whole pieces are what they were
//
// The reversed grammar shares the arena and, behind wrappers (derived_machines.h), the machines.
// Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_REVERSE_IR_H_
#define PAWL_GRAMMAR_CFG_REVERSE_IR_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "pawl/result.h"

namespace pawl {

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

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_REVERSE_IR_H_
