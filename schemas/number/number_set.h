// Automata for the texts of a finite set of numbers: NumberSet for plain texts, ExponentSet with
// exponents.
//
// NumberSet: the texts of JSON numbers whose value is one of a finite set, byte by byte.
//
// By value: the set {5} takes "5", "5.0" and "5.00". Forms with an exponent are not read.
#ifndef PAWL_SCHEMAS_NUMBER_NUMBER_SET_H_
#define PAWL_SCHEMAS_NUMBER_NUMBER_SET_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "pawl/result.h"
#include "schemas/number/decimal.h"
#include "src/base/memory_size.h"

namespace pawl {

// Immutable after Create; any number of threads may read one.
class NumberSet {
 public:
  // Errors: kLimit for values whose plain form has more than limits::kNumberPlaces characters.
  // `canonical`: only the plain form of each value, "5" but not "5.0".
  static Result<NumberSet> Create(const std::vector<Decimal>& values, bool canonical = false);

  // "-12.5": the one text that a canonical set has for a value.
  static std::string Plain(const Decimal& value);

  // States: 0 is dead; every other state leads to a value of the set.
  static constexpr uint32_t kDead = 0;
  uint32_t Start() const { return empty_ ? kDead : 1; }
  uint32_t Step(uint32_t state, char c) const;
  bool Accepting(uint32_t state) const { return nodes_[state].accepting; }
  // Where in `values` the value stands that the text spells. REQUIRES: Accepting(state).
  uint32_t Index(uint32_t state) const { return nodes_[state].index; }
  // A short continuation to a value. REQUIRES: state is not dead.
  std::string ShortestAccepting(uint32_t state) const;

  size_t MemoryBytes() const { return HeapBytes(nodes_); }

 private:
  struct Node {
    std::vector<std::pair<char, uint32_t>> children;  // sorted
    uint32_t index = 0;                               // of the accepted value
    bool accepting = false;
    size_t MemoryBytes() const { return HeapBytes(children); }
    bool zeros = false;  // in the fraction of an accepted value: any number of zeros may follow
  };
  uint32_t Child(uint32_t node, char c) const;
  uint32_t AddChild(uint32_t node, char c);
  void Insert(const std::string& plain, uint32_t index, bool canonical);

  std::vector<Node> nodes_;
  bool empty_ = true;
};

// The texts of JSON numbers whose value is one of a finite set, with exponents: the set {150}
// takes "150", "150.0", "1.5e2" and "15000e-2".
//
// The states are made as texts reach them, and a state knows how many places a text has: their
// number has no bound. Where exponents are not wanted, NumberSet is the smaller automaton.
// Not thread-safe.
class ExponentSet {
 public:
  explicit ExponentSet(const std::vector<Decimal>& values);

  // States: 0 is dead; every other state leads to a value of the set.
  static constexpr uint32_t kDead = 0;
  uint32_t Start() const { return empty_ ? kDead : 1; }
  uint32_t Step(uint32_t state, char c);
  bool Accepting(uint32_t state) const;
  // A short continuation to a value. REQUIRES: state is not dead.
  std::string ShortestAccepting(uint32_t state);

  size_t MemoryBytes() const { return HeapBytes(nodes_, states_, index_); }

 private:
  enum class Phase : uint8_t {
    kStart,
    kMinus,
    kZero,  // the whole part is "0"
    kWhole,
    kPoint,
    kFraction,
    kE,
    kSign,
    kExponent,
  };
  struct State {
    Phase phase = Phase::kStart;
    bool negative = false, exponent_negative = false;
    uint32_t node = 0;     // of the digits from the first that is not zero to the last
    int64_t zeros = 0;     // after that one
    int64_t order = 0;     // the text's value before the exponent is 0.DIGITS times 10^order
    int64_t exponent = 0;  // so far, without sign
    friend bool operator==(const State&, const State&) = default;
  };
  struct Hash {
    size_t operator()(const State& s) const;
  };
  struct Node {
    std::map<char, uint32_t> children;
    std::vector<int64_t> orders;  // of the values with these digits
    size_t MemoryBytes() const { return HeapBytes(children, orders); }
  };

  uint32_t Intern(const State& state);
  // False when no value goes on like that.
  bool AddDigit(State& state, char digit) const;
  bool IsZero(const State& state) const { return state.node <= 1; }
  // Some exponent that begins like the text's leads to a value.
  bool Leads(const State& state) const;

  std::vector<Node> nodes_;  // 0 and 1: the roots of positive and negative values
  bool has_zero_ = false, empty_ = true;
  std::vector<State> states_;
  std::unordered_map<State, uint32_t, Hash> index_;
};

}  // namespace pawl

#endif  // PAWL_SCHEMAS_NUMBER_NUMBER_SET_H_
