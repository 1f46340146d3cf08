// RegexGroup: a few regexes side by side, as one automaton whose steps are remembered.
//
// Of many regexes a product has no end of states, and each would take a word and a look for each
// regex. A few of them have few states together, so a product of groups (string_program.h) takes a
// word and a look for each group.
#ifndef PAWL_SCHEMAS_SCALAR_REGEX_GROUP_H_
#define PAWL_SCHEMAS_SCALAR_REGEX_GROUP_H_

#include <array>
#include <cstdint>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/regex/regex_dfa.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// Not thread-safe.
class RegexGroup {
 public:
  // `classes`: how many there are; Add tells what they are to each regex.
  explicit RegexGroup(int classes) : classes_(static_cast<size_t>(classes)) {}
  // Both outlive the group. REQUIRES: fewer than limits::kRegexesInGroup so far, and no state has
  // been made.
  void Add(RegexDfa* dfa, const std::vector<int>* class_map) { parts_.push_back({dfa, class_map}); }

  uint32_t Start();
  uint32_t Next(uint32_t state, int cls) {
    const uint32_t row = states_[state].row;
    if (row != kNone) {
      const uint32_t next = cells_[row * classes_ + static_cast<size_t>(cls)];
      if (next != kNone) return next;
    }
    return FindNext(state, cls);
  }
  // The state of a regex.
  uint32_t StateOf(uint32_t state, size_t part) const {
    return keys_[state * parts_.size() + part];
  }
  // The state in which another regex's state is `changed`.
  uint32_t With(uint32_t state, size_t part, uint32_t changed);
  // By part: whether it accepts.
  uint8_t Truths(uint32_t state) const { return states_[state].truths; }
  // By part: whether no code point changes its state any more.
  uint8_t Settled(uint32_t state) {
    return states_[state].settled >= 0 ? static_cast<uint8_t>(states_[state].settled)
                                       : FindSettled(state);
  }
  bool AllSettled(uint32_t state) { return Settled(state) == (1u << parts_.size()) - 1; }
  // The classes that lead to a state in which more is settled, by `slots`: the bit that stands for
  // a class (several may share one).
  using ClassBits = std::array<uint64_t, 2>;
  const ClassBits& Settling(uint32_t state, const std::vector<uint8_t>& slots) {
    const State& known = states_[state];
    return known.knows_settling ? known.settling : FindSettling(state, slots);
  }
  size_t MemoryBytes() const { return HeapBytes(parts_, states_, keys_, cells_, index_); }
  // What the states take, roughly.
  size_t bytes() const { return states_.size() * 64 + 4 * (keys_.size() + cells_.size()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Part {
    RegexDfa* dfa;
    const std::vector<int>* class_map;
  };
  struct State {
    uint32_t row = kNone;  // in cells_
    uint8_t truths = 0;
    bool knows_settling = false;
    int16_t settled = -1;  // unknown
    ClassBits settling{};  // beside the row: one load brings both
  };
  uint32_t Intern(const uint32_t* key);
  uint32_t FindNext(uint32_t state, int cls);
  uint8_t FindSettled(uint32_t state);
  const ClassBits& FindSettling(uint32_t state, const std::vector<uint8_t>& slots);

  const size_t classes_;
  std::vector<Part> parts_;
  std::vector<State> states_;
  std::vector<uint32_t> keys_, cells_;
  HashIndex index_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_REGEX_GROUP_H_
