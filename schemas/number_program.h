// NumberProgram: several conditions on one number, run side by side over its JSON text, with the
// answer to "can the text still be completed to an acceptable number".
#ifndef PAWL_SCHEMAS_NUMBER_PROGRAM_H_
#define PAWL_SCHEMAS_NUMBER_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/number/exponent_set.h"
#include "grammar/number/number_automaton.h"
#include "grammar/number/number_set.h"
#include "pawl/result.h"
#include "schemas/atoms.h"

namespace pawl::schema {

class NumberProgram {
 public:
  using StateId = uint32_t;  // 0 is dead

  // `atoms`: number atoms, sorted; `must`: those that every number wanted fulfils. `conjunction`:
  // that is all that is wanted (then liveness is decided by one merged automaton, exactly);
  // otherwise `accept` decides at the end, from Truth.
  static Result<std::unique_ptr<NumberProgram>> Create(
      const SchemaTable& table, std::vector<AtomId> atoms, const std::vector<AtomId>& must,
      bool conjunction, std::function<bool(StateId)> accept, bool allow_exponents, bool canonical);

  StateId start() const { return 1; }
  // Dead when `c` cannot continue the text or nothing acceptable can follow.
  StateId Step(StateId state, char c);
  // The text so far is a number and acceptable.
  bool Accepts(StateId state);
  bool Truth(StateId state, AtomId atom) const;
  bool Live(StateId state);
  // Any digits may follow, and after them the state is live. May say false where it is so.
  bool TakesAnyDigits(StateId state) const {
    return merged_ && parts_[0].automaton != nullptr &&
           parts_[0].automaton->TakesAnyDigits(states_[state].key[0]);
  }
  // A short continuation to an acceptable number; nullopt when none is known.
  std::optional<std::string> Shortest(StateId state);

 private:
  NumberProgram() = default;
  StateId Intern(std::vector<uint32_t> key);
  StateId RawStep(StateId state, char c);
  void Decide(StateId state);
  // Looks for an acceptable number near by, and remembers the way to it.
  bool FindNear(StateId state);
  bool Guess(StateId state);
  struct Info {
    std::vector<uint32_t> key;  // states of the automata
    int8_t live = -1;
    char via = 0;  // next character on the way to acceptance
  };

  // An automaton of one sort; a set's states may be dead without the number being malformed.
  struct Part {
    std::unique_ptr<NumberAutomaton> automaton;
    std::optional<NumberSet> set;
    std::unique_ptr<ExponentSet> exponents;  // only as the first of one

    static Result<Part> Create(const NumberAtom& atom, bool allow_exponents);
    uint32_t Start() const {
      return exponents ? exponents->Start() : set ? set->Start() : automaton->Start();
    }
    uint32_t Step(uint32_t state, char c) const {
      return exponents ? exponents->Step(state, c)
             : set     ? set->Step(state, c)
                       : automaton->Step(state, c);
    }
    bool Accepting(uint32_t state) const {
      return exponents ? exponents->Accepting(state)
             : set     ? set->Accepting(state)
                       : automaton->Accepting(state);
    }
    bool Complete(uint32_t state) const {
      return automaton ? automaton->Complete(state) : Accepting(state);
    }
    bool CanAccept(uint32_t state) const {
      return automaton ? automaton->CanAccept(state) : state != 0;
    }
    std::string ShortestAccepting(uint32_t state) const {
      return exponents ? exponents->ShortestAccepting(state)
             : set     ? set->ShortestAccepting(state)
                       : automaton->ShortestAccepting(state);
    }
  };

  // Of an atom: the part that decides it, or, for a set, whether the value is in it.
  struct Decider {
    AtomId atom;
    uint32_t part;
    const std::vector<Decimal>* values;  // the sorted values of a set, null for a constraint
  };
  std::vector<Decider> deciders_;  // by atom; empty when merged_
  // 0: the merged `must`; then, unless merged_, one for each constraint and one for all sets.
  std::vector<Part> parts_;
  std::vector<Decimal> listed_;  // the values of all sets, sorted
  bool exponents_ = false;
  bool merged_ = false;  // parts_[0] is the conjunction of all atoms
  std::function<bool(StateId)> accept_;
  std::vector<Info> states_;
  bool exhausted_ = false;  // a question ran out of fuel
  int64_t steps_ = 0;       // of the product
  std::unordered_multimap<uint64_t, StateId> index_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_NUMBER_PROGRAM_H_
