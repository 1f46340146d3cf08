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
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/hash_index.h"
#include "pawl/result.h"
#include "schemas/number/decimal.h"
#include "src/base/memory_size.h"

namespace pawl {

// NumberRules: what has to be remembered of the beginning of a number so that a constraint can be
// decided for every ending, and the decision itself. Pure functions of a constraint;
// NumberAutomaton interns the rest.

// All parts must hold. An absent part holds always.
struct NumberConstraint {
  std::optional<Decimal> minimum, maximum;
  bool exclusive_minimum = false;  // `minimum` itself is out
  bool exclusive_maximum = false;
  std::optional<Decimal> multiple_of;  // greater than 0
  bool integer = false;                // by value: 5.0 is an integer
  bool integer_text = false;   // draft 4's "integer": by value, and written without '.' and 'e'
  bool no_minus_zero = false;  // a text that begins with '-' is not zero: no "-0", "-0.0", "-0e5"
  size_t MemoryBytes() const { return HeapBytes(minimum, maximum, multiple_of); }
};

// Immutable after Create; any number of threads may use one.
class NumberRules {
 public:
  // Symbols: 0..9 the digits, then these.
  static constexpr int kMinus = 10, kPlus = 11, kPoint = 12, kExponent = 13, kSymbols = 14;
  // The symbol of a character, -1 when no number contains it.
  static int Symbol(char c);

  enum class Phase : uint8_t {
    kStart,     // nothing yet
    kMinus,     // "-"
    kZero,      // "0"
    kInteger,   // "12"
    kPoint,     // "12."
    kFraction,  // "12.3"
    kExponent,  // "12.3e"
    kSign,      // "12.3e-"
    kDigits,    // "12.3e-4"
  };
  enum class Hope : uint8_t {
    kAlive,
    kLost,         // no completion fulfils the constraint; exponents still have their limit
    kLostForever,  // the same, and no exponent, however large, would help
  };

  // What is remembered of a text. Equal prefixes have equal futures. See number_automaton.cc.
  struct Prefix {
    Phase phase = Phase::kStart;
    Hope hope = Hope::kAlive;
    bool negative = false;
    bool nonzero = false;
    int8_t exponent_sign = 0;
    int32_t exponent = 0;  // of the text, without sign
    int32_t order = 0;     // |mantissa| < 10^order, tight; kResolved when it no longer matters
    // Comparison with the bounds' digits: kLess, kGreater, or digits equal so far.
    int32_t low = 0, high = 0;
    int32_t weight = 0;  // 10^weight is the unit of the last nonzero digit
    int32_t places = 0;  // digits after the point
    // Of the digits up to the last nonzero one, modulo the divisor's digits.
    uint64_t remainder = 0;
    friend bool operator==(const Prefix&, const Prefix&) = default;
  };
  struct PrefixHash {
    size_t operator()(const Prefix& p) const;
  };

  static Result<NumberRules> Create(const NumberConstraint& constraint, bool allow_exponents);

  // The prefix after one more symbol, nullopt when that is no prefix of a number. Does not yet know
  // whether hope is lost: ask CanReach, and replace it by Lost(prefix) when it is.
  std::optional<Prefix> Next(const Prefix& prefix, int symbol) const;
  Prefix Lost(const Prefix& prefix) const;

  static bool Complete(const Prefix& prefix);
  bool Accepts(const Prefix& prefix) const;
  // Some completion fulfils the constraint.
  bool CanReach(const Prefix& prefix) const;
  // Whatever digits follow, however many, CanReach stays true. May say false where it is so.
  bool TakesAnyDigits(const Prefix& prefix) const;
  // Of exponents that follow only values up to limits::kTextExponent are read, unless the mantissa
  // stays zero. REQUIRES: begun, without exponent so far; exponents are read.
  bool LimitsExponent(const Prefix& p) const {
    return !integer_text_ && (p.hope == Hope::kLost || (p.hope == Hope::kAlive && Tracked(p)));
  }
  // A short one. REQUIRES: CanReach(prefix).
  std::string ShortCompletion(const Prefix& prefix) const;

 private:
  static constexpr int32_t kLess = -2, kGreater = -1;
  static constexpr int32_t kResolved = INT32_MIN;

  struct Bound {  // 0.digits * 10^order, above 0
    std::string digits;
    int64_t order = 0;
    bool exclusive = false;
  };
  // The constraint on the absolute value of numbers of one sign.
  struct Side {
    bool empty = false;  // no number but zero
    std::optional<Bound> low, high;
  };
  // The digits that a completion adds below the last digit read, as fractions of its unit, within
  // [low, high]; no `high` means up to the whole unit, exclusive.
  struct Window {
    std::string_view low;
    bool low_exclusive = false;
    std::optional<std::string_view> high;
    bool high_exclusive = false;
  };

  NumberRules() = default;
  static Side MakeSide(const std::optional<Decimal>& low, bool low_exclusive,
                       const std::optional<Decimal>& high, bool high_exclusive);
  const Side& SideOf(const Prefix& p) const { return sides_[p.negative ? 1 : 0]; }
  bool Tracked(const Prefix& p) const;
  bool ZeroOk(const Prefix& p) const { return zero_ok_ && !(no_minus_zero_ && p.negative); }
  void Feed(Prefix& p, int digit) const;
  void Normalize(Prefix& p) const;
  void NormalizeOrder(Prefix& p) const;
  void NormalizeRemainder(Prefix& p) const;
  bool OnlyZerosFollow(const Prefix& p) const;

  int32_t Relation(const Prefix& p, const Bound& bound, int32_t progress, int64_t shift) const;
  bool AcceptsShifted(const Prefix& p, int64_t shift) const;
  bool Reach(const Prefix& p, int64_t shift, std::string* digits) const;
  bool ReachFromZero(const Prefix& p, int64_t shift, std::string* digits) const;
  bool Fill(const Window& window, std::string* digits) const;
  bool FillMultiple(const Window& window, int64_t places, uint64_t residue,
                    std::string* digits) const;
  std::pair<int64_t, int64_t> ShiftRange(const Prefix& p) const;
  bool CanReachInteger(const Prefix& p) const;
  bool CanReachExponent(const Prefix& p) const;
  std::string CompleteInteger(const Prefix& p) const;
  std::string CompleteFraction(const Prefix& p) const;
  std::string CompleteExponent(const Prefix& p) const;

  bool trivial_ = false;  // every number, "-0" aside
  bool integer_text_ = false;
  bool no_minus_zero_ = false;
  bool exponents_ = false;      // 'e' is read
  int32_t exponent_limit_ = 0;  // of the texts, where it matters
  bool zero_ok_ = true;
  Side sides_[2];  // positive, negative
  // Multiples of divisor_ * 10^divisor_exponent_; divisor_ 0: none, else not a multiple of 10.
  uint64_t divisor_ = 0;
  int32_t divisor_exponent_ = 0;
};

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
