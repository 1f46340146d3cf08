// CfgLimits: how much work a grammar may make, in counted steps, and what happens beyond that.
//
// A step is an entry of a continuation that is looked at or made, or a thread of a state that is
// made. The counts depend on the grammar and the text alone, not on what was found before or how
// fast the machine is: the same output is always cut at the same place, if at all.
#ifndef PAWL_GRAMMAR_CFG_CFG_LIMITS_H_
#define PAWL_GRAMMAR_CFG_CFG_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace pawl {

struct CfgLimits {
  // For the mask of one state of which `crowded` below holds. Beyond it only the shortest
  // completion may follow the state (CfgMachine::AtToken), so that an output is closed there and
  // says why (Generation::notes). At 30 ns a step that is about a twentieth of a second, at 16
  // bytes an entry 32 MB.
  uint64_t mask_steps = 2'000'000;
  // A continuation is crowded when it, or one behind it, has more than so many entries beyond one
  // for each node. States without such continuations have no limit: their masks take what the
  // masks of a grammar of that size take, and a step of the text does not count them.
  size_t crowd = 64;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_CFG_LIMITS_H_
