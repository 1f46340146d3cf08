// Machines whose states are listed (ExplicitAutomaton, AutomatonView), and machines made of other
// machines: one that begins elsewhere (MachineFrom), one that reads from the end (ReversedMachine).
//
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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/machine.h"
#include "pawl/result.h"
#include "src/base/memory_size.h"

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

// Machines made of other machines: one that begins elsewhere, one that may end anywhere, and one
// that reads the texts of another from their ends.
//
// Thread safety: as the machines below them, which they ask.

// A machine from one of its states on; with `ends_anywhere` all that its texts may begin with.
class MachineFrom : public Machine {
 public:
  MachineFrom(std::shared_ptr<Machine> machine, Key start, bool ends_anywhere)
      : machine_(std::move(machine)), start_(start), ends_anywhere_(ends_anywhere) {}

  Key Start() override { return start_; }
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override {
    return machine_->StepLexeme(lexeme, byte);
  }
  Key StepFrame(Key state, uint8_t byte) override { return machine_->StepFrame(state, byte); }
  bool Accepting(Key state) override { return ends_anywhere_ || machine_->Accepting(state); }
  std::optional<std::string> CompletionBytes(Key state) override {
    return ends_anywhere_ ? "" : machine_->CompletionBytes(state);
  }
  std::bitset<256> LastBytes() override {
    return ends_anywhere_ ? std::bitset<256>().set() : machine_->LastBytes();
  }
  bool Ends(Key state) override { return machine_->Ends(state); }
  bool TracksText(uint32_t frame) override { return machine_->TracksText(frame); }
  uint32_t AppendText(uint32_t frame, uint8_t byte) override {
    return machine_->AppendText(frame, byte);
  }
  MachineMasks* Masks(const Vocabulary& vocabulary) override { return machine_->Masks(vocabulary); }

  size_t MemoryBytes() const override { return machine_->MemoryBytes(); }
  size_t GrowthHint() const override { return machine_->GrowthHint(); }
  const std::shared_ptr<Machine>& machine() const { return machine_; }
  bool ends_anywhere() const { return ends_anywhere_; }

 private:
  std::shared_ptr<Machine> machine_;
  Key start_;
  bool ends_anywhere_;
};

// Reads texts character by character from the last to the first; the bytes of a character come in
// their own order. Made for running over a given text: inside of a character, and before the text
// has ended with a byte of LastBytes(), it may call a state live that is not. The machine below is
// listed when the first character is really read; where that is not possible
// failed() is true and what was answered since then means nothing.
class ReversedMachine : public Machine {
 public:
  explicit ReversedMachine(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {
    last_bytes_ = machine_->LastBytes();
    places_.push_back({});
  }

  Key Start() override { return MakeKey(1, 1); }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kLeavesLexeme; }
  Key StepFrame(Key state, uint8_t byte) override;
  bool Accepting(Key state) override;
  std::optional<std::string> CompletionBytes(Key) override { return std::nullopt; }

  size_t MemoryBytes() const override {
    return machine_->MemoryBytes() + HeapBytes(places_, index_, sets_, set_index_, settled_);
  }
  size_t GrowthHint() const override { return machine_->GrowthHint() + places_.size() * 200; }
  bool failed() const { return failed_; }
  // The texts that lead from the machine's start to where its texts were cut at `state`, in their
  // own direction.
  std::shared_ptr<Machine> Before(Key state);

 private:
  // A set of states of the automaton, sets_[set - 1], or 0: where the texts end; and the bytes of
  // the character that is being read.
  struct Place {
    uint32_t set = 0;
    std::string bytes = {};
    size_t MemoryBytes() const { return HeapBytes(bytes); }
    auto operator<=>(const Place&) const = default;
  };
  uint32_t Intern(Place place);
  uint32_t Settle(uint32_t place);  // a whole character is taken
  bool List();

  std::shared_ptr<Machine> machine_;
  std::bitset<256> last_bytes_;
  std::shared_ptr<const ExplicitAutomaton> automaton_;
  bool failed_ = false;
  std::vector<Place> places_;
  std::map<Place, uint32_t> index_;
  std::vector<std::vector<uint32_t>> sets_;
  std::map<std::vector<uint32_t>, uint32_t> set_index_;
  std::map<uint32_t, uint32_t> settled_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_EXPLICIT_AUTOMATON_H_
