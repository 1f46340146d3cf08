// ExplicitAutomaton: all states of a machine, written out.
//
//   auto automaton = ExplicitAutomaton::Explore(*machine, machine->Start());
//   auto ending = std::make_shared<AutomatonView>(*automaton, 0, states);
//
// A Machine answers questions about what comes next; what came before (which texts lead to a state?
// which states lead to acceptance at all?) takes a list of its states. There is one only where
// the machine has finitely many: a regex, a schema without recursion and with known keys.
//
// Thread safety: immutable. The views over it are machines, with the rules of machines.
#ifndef PAWL_GRAMMAR_EXPLICIT_AUTOMATON_H_
#define PAWL_GRAMMAR_EXPLICIT_AUTOMATON_H_

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/machine.h"
#include "pawl/result.h"

namespace pawl {

struct ExploreLimits {
  uint32_t max_states = 1u << 15;
  uint64_t max_steps = 8'000'000;  // bytes tried
};

class ExplicitAutomaton {
 public:
  // Bytes first..last lead to `to` (or, in `into`, come from there).
  struct Edge {
    uint8_t first, last;
    uint32_t to;
  };
  struct State {
    std::vector<Edge> edges;  // sorted, apart
    std::vector<Edge> into;
    bool accepting = false;
  };

  // State 0 is `start`. kLimit when there are more states than allowed.
  static Result<std::shared_ptr<const ExplicitAutomaton>> Explore(Machine& machine,
                                                                  Machine::Key start,
                                                                  const ExploreLimits& limits = {});
  // From states whose `edges` and `accepting` are set.
  explicit ExplicitAutomaton(std::vector<State> states);

  const State& state(uint32_t id) const { return states_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(states_.size()); }
  std::vector<bool> accepting() const;
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t Step(uint32_t state, uint8_t byte) const;  // kNone: nowhere

 private:
  std::vector<State> states_;
};

// A set of states, and how far each state is from it.
struct AutomatonTarget {
  static constexpr uint32_t kFar = UINT32_MAX;
  AutomatonTarget(const ExplicitAutomaton& automaton, std::vector<bool> states);
  std::vector<bool> accepting;
  std::vector<uint32_t> distance;  // bytes to the nearest state of the set
};

// The texts that lead from a state to one of a set of states, as a machine.
class AutomatonView : public Machine {
 public:
  AutomatonView(std::shared_ptr<const ExplicitAutomaton> automaton, uint32_t start,
                std::shared_ptr<const AutomatonTarget> target)
      : automaton_(std::move(automaton)), start_(start), target_(std::move(target)) {}
  AutomatonView(const std::shared_ptr<const ExplicitAutomaton>& automaton, uint32_t start,
                std::vector<bool> accepting)
      : AutomatonView(automaton, start,
                      std::make_shared<AutomatonTarget>(*automaton, std::move(accepting))) {}

  Key Start() override { return Far(start_) ? kDead : MakeKey(1, start_ + 1); }
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override {
    const uint32_t next = automaton_->Step(lexeme - 1, byte);
    return next == ExplicitAutomaton::kNone || Far(next) ? kDeadLexeme : next + 1;
  }
  Key StepFrame(Key, uint8_t) override { return kDead; }
  bool Accepting(Key state) override { return target_->accepting[LexemeOf(state) - 1]; }
  bool Ends(Key state) override;
  std::optional<std::string> CompletionBytes(Key state) override;
  std::bitset<256> LastBytes() override;

 private:
  bool Far(uint32_t state) const { return target_->distance[state] == AutomatonTarget::kFar; }

  std::shared_ptr<const ExplicitAutomaton> automaton_;
  uint32_t start_;
  std::shared_ptr<const AutomatonTarget> target_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_EXPLICIT_AUTOMATON_H_
