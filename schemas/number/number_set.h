// NumberSet: the texts of JSON numbers whose value is one of a finite set, byte by byte.
//
// By value: the set {5} takes "5", "5.0" and "5.00". Forms with an exponent are not read.
#ifndef PAWL_SCHEMAS_NUMBER_NUMBER_SET_H_
#define PAWL_SCHEMAS_NUMBER_NUMBER_SET_H_

#include <cstdint>
#include <string>
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

}  // namespace pawl

#endif  // PAWL_SCHEMAS_NUMBER_NUMBER_SET_H_
