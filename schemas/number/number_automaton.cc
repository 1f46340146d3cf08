// The automaton proper is only a table: prefixes (number_rules.h) are hash-consed to small ids, and
// what was computed about a state (its successors, whether it accepts, whether anything beyond it
// can) is kept.
//
// Every prefix from which the constraint cannot be fulfilled is replaced by one that remembers the
// syntax alone. So the hopeless part of the language has a handful of states, and CanAccept is a
// stored bit.
#include "schemas/number/number_automaton.h"

#include <utility>

namespace pawl {

NumberAutomaton::NumberAutomaton(NumberRules rules) : rules_(std::move(rules)) {
  State dead;
  dead.next.fill(kDead);
  states_.push_back(dead);
  start_ = Intern(NumberRules::Prefix{});
}

Result<std::unique_ptr<NumberAutomaton>> NumberAutomaton::Create(const NumberConstraint& constraint,
                                                                 bool allow_exponents) {
  Result<NumberRules> rules = NumberRules::Create(constraint, allow_exponents);
  if (!rules.ok()) return rules.error();
  return std::unique_ptr<NumberAutomaton>(new NumberAutomaton(std::move(*rules)));
}

uint32_t NumberAutomaton::Intern(const NumberRules::Prefix& prefix) {
  const uint64_t hash = NumberRules::PrefixHash()(prefix);
  const uint32_t known = ids_.Find(hash, [&](uint32_t id) { return states_[id].prefix == prefix; });
  if (known != HashIndex::kNone) return known;
  const bool can_accept = rules_.CanReach(prefix);
  if (!can_accept && prefix.hope == NumberRules::Hope::kAlive) return Intern(rules_.Lost(prefix));
  State state;
  state.prefix = prefix;
  state.can_accept = can_accept;
  state.accepting = rules_.Accepts(prefix);
  state.complete = NumberRules::Complete(prefix);
  state.next.fill(kUnknown);
  const auto id = static_cast<uint32_t>(states_.size());
  states_.push_back(state);
  ids_.Insert(hash, id);
  return id;
}

uint32_t NumberAutomaton::Step(uint32_t state, char c) {
  const int symbol = NumberRules::Symbol(c);
  if (symbol < 0) return kDead;
  const uint32_t known = states_[state].next[static_cast<size_t>(symbol)];
  if (known != kUnknown) return known;
  const auto next = rules_.Next(states_[state].prefix, symbol);
  const uint32_t id = next ? Intern(*next) : kDead;
  states_[state].next[static_cast<size_t>(symbol)] = id;
  return id;
}

std::string NumberAutomaton::ShortestAccepting(uint32_t state) {
  return rules_.ShortCompletion(states_[state].prefix);
}

}  // namespace pawl
