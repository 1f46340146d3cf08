// NumberAutomaton: the texts of JSON numbers whose value fulfils bounds and multipleOf, byte by
// byte.
//
//   NumberConstraint constraint;
//   constraint.minimum = *Decimal::Parse("0.5");
//   constraint.integer = true;
//   auto automaton = NumberAutomaton::Create(constraint, /*allow_exponents=*/false);
//   uint32_t state = (*automaton)->Start();
//   for (char c : std::string_view("12")) state = (*automaton)->Step(state, c);
//   (*automaton)->Accepting(state);   // true: 12 is an integer of at least 0.5
//
// Everything is by value, as JSON Schema has it: 5, 5.0 and 0.5e1 are one number, -0 is 0.
#ifndef PAWL_SCHEMAS_NUMBER_NUMBER_AUTOMATON_H_
#define PAWL_SCHEMAS_NUMBER_NUMBER_AUTOMATON_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/hash_index.h"
#include "pawl/result.h"
#include "schemas/number/decimal.h"
#include "schemas/number/number_rules.h"
#include "src/base/memory_size.h"

namespace pawl {

// Not thread-safe: states are made when they are first asked for. State ids stay valid, and mean
// the same, as long as the automaton lives.
class NumberAutomaton {
 public:
  // Which texts of a number it reads:
  //  - an empty constraint: every JSON number, whatever `allow_exponents` says;
  //  - otherwise, without `allow_exponents`: the forms without 'e';
  //  - otherwise: also exponents from -limits::kTextExponent to limits::kTextExponent; where a
  //  bound or a divisor makes the
  //    exponent's value matter, texts beyond that are dead: neither accepted nor Complete.
  // Errors: kInvalid for a divisor that is not greater than 0; kLimit for a divisor with more than
  // 18 significant digits (after `integer` is worked in), and for bounds or divisors with more than
  // limits::kNumberPlaces digits before or after the point.
  static Result<std::unique_ptr<NumberAutomaton>> Create(const NumberConstraint& constraint,
                                                         bool allow_exponents);

  static constexpr uint32_t kDead = 0;
  uint32_t Start() { return start_; }

  // The state after one more character of "-+.0123456789eE"; kDead when the text is no prefix of a
  // text that the automaton reads. The constraint does not prune: once no completion can fulfil it
  // the text goes on through a few shared states for which CanAccept is false.
  uint32_t Step(uint32_t state, char c);

  // The text so far is a complete number and fulfils the constraint.
  bool Accepting(uint32_t state) const { return states_[state].accepting; }
  // The text so far is a complete number, whatever its value.
  bool Complete(uint32_t state) const { return states_[state].complete; }
  // Some continuation, maybe the empty one, is Accepting. Exact.
  bool CanAccept(uint32_t state) const { return states_[state].can_accept; }
  // After any digits CanAccept is still true. May say false where it is so.
  bool TakesAnyDigits(uint32_t state) const { return rules_.TakesAnyDigits(states_[state].prefix); }
  // Exponents that follow may not exceed limits::kTextExponent, unless the mantissa stays zero.
  // REQUIRES: the text has begun and has no exponent yet; exponents are allowed.
  bool LimitsExponent(uint32_t state) const { return rules_.LimitsExponent(states_[state].prefix); }
  // A short continuation that leads to Accepting; empty when already there. REQUIRES:
  // CanAccept(state).
  std::string ShortestAccepting(uint32_t state);

  // No number fulfils the constraint.
  bool IsEmpty() const { return !states_[start_].can_accept; }
  // States made so far, for tests and statistics.
  size_t num_states() const { return states_.size(); }
  size_t MemoryBytes() const { return HeapBytes(states_, ids_); }

 private:
  static constexpr uint32_t kUnknown = ~uint32_t{0};
  struct State {
    NumberRules::Prefix prefix;
    bool accepting = false, complete = false, can_accept = false;
    std::array<uint32_t, NumberRules::kSymbols> next;
  };

  explicit NumberAutomaton(NumberRules rules);
  uint32_t Intern(const NumberRules::Prefix& prefix);

  NumberRules rules_;
  std::vector<State> states_;
  HashIndex ids_;  // of states_
  uint32_t start_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SCHEMAS_NUMBER_NUMBER_AUTOMATON_H_
