// NumberProgram: several conditions on one number, run side by side over its JSON text, with the
// answer to "can the text still be completed to an acceptable number".
#ifndef PAWL_SCHEMAS_SCALAR_NUMBER_PROGRAM_H_
#define PAWL_SCHEMAS_SCALAR_NUMBER_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/hash_index.h"
#include "pawl/result.h"
#include "schemas/formula/atoms.h"
#include "schemas/number/number_automaton.h"
#include "schemas/number/number_set.h"
#include "schemas/scalar/number_search.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// Not thread-safe.
class NumberProgram {
 public:
  using StateId = uint32_t;  // 0 is dead
  using TruthOf = std::function<bool(AtomId)>;

  // `atoms`: number atoms, sorted; `must`: those that every number wanted fulfils. `conjunction`:
  // that is all that is wanted (then one automaton decides it, where the conditions can be merged);
  // otherwise `accept` decides, from the truth of the atoms. `max_digits`: how many significant
  // digits an acceptable number may go on with, 0 for any number; what fits only with more gets
  // more, and lists of values are not concerned. The table outlives the program.
  static Result<std::unique_ptr<NumberProgram>> Create(
      const SchemaTable& table, std::vector<AtomId> atoms, const std::vector<AtomId>& must,
      bool conjunction, std::function<bool(const TruthOf&)> accept, bool allow_exponents,
      bool canonical, int max_digits = 0);

  StateId start() const { return 1; }
  // Dead when `c` cannot continue the text or nothing acceptable can follow.
  StateId Step(StateId state, char c);
  StateId After(std::string_view text) {
    StateId state = start();
    for (size_t i = 0; i < text.size() && state != 0; ++i) state = Step(state, text[i]);
    return state;
  }
  // The text so far is a number and acceptable.
  bool Accepts(StateId state);
  // REQUIRES: Accepts(state).
  bool Truth(StateId state, AtomId atom);
  bool Live(StateId state);
  // Any digits may follow, and after them the state is live. May say false where it is so.
  bool TakesAnyDigits(StateId state);
  // A short continuation to an acceptable number; nullopt when none is known.
  std::optional<std::string> Shortest(StateId state);

  size_t MemoryBytes() const {
    return HeapBytes(parts_, classes_, search_, listed_, states_, index_, ranges_);
  }
  size_t GrowthHint() const { return states_.size() * (sizeof(Info) + 80); }
  // The conditions do not merge into one.
  bool combines() const { return search_ != nullptr; }
  // Digits alone lead from the state to infinitely many acceptable values. "No" may be wrong, "yes"
  // is not. REQUIRES: combines().
  bool Endless(StateId state);
  // How many digits are left of max_digits; INT_MAX without it.
  int DigitsLeft(StateId state) const;
  // The states differ in how many digits were read, if at all.
  bool Equivalent(StateId a, StateId b) const;

 private:
  NumberProgram() = default;
  // Digits may no longer be added to the state's text, because it has enough.
  bool Enough(StateId state) { return DigitsLeft(state) <= 0 && Accepts(state); }
  bool AnyDigitsFit(StateId state);
  StateId Intern(std::vector<uint32_t> key, StateId from, char via);
  StateId RawStep(StateId state, char c);
  StateId StepExponent(StateId state, char c);
  // Whether an acceptable number begins like the state's text; a short continuation if `text` is
  // not null and one is known.
  bool Completes(StateId state, std::string* text);
  bool CompletesListed(const std::string& begun, std::string* text);
  struct Exponent;
  bool InExponent(StateId state) const { return states_[state].key[0] == kExponentKey; }
  Exponent ExponentOf(StateId state) const;
  const ExponentRanges& RangesOf(StateId mantissa);
  int64_t ExponentLimit(StateId mantissa) const;
  // The first text that led to the state, outside an exponent.
  std::string TextOf(StateId state) const;
  NumberClasses::Class ClassOf(StateId state);

  struct Info {
    // States of the parts, and with max_digits_ how many digits there are: from the first that is
    // not zero, and zeros before it from bit 16 on. Inside an exponent kExponentKey and what
    // ExponentOf unpacks.
    std::vector<uint32_t> key;
    // The state and character that first led here, and what they made of the mantissa.
    StateId from = 0;
    char via = 0;
    Mantissa mantissa;
    int8_t live = -1, any_digits = -1;  // unknown
    std::optional<NumberClasses::Class> known_class;
    size_t MemoryBytes() const { return HeapBytes(key, mantissa); }
  };
  static constexpr uint32_t kExponentKey = ~uint32_t{0};

  // An automaton of one sort.
  struct Part {
    std::unique_ptr<NumberAutomaton> automaton;
    std::optional<NumberSet> set;
    std::unique_ptr<ExponentSet> exponents;

    size_t MemoryBytes() const { return HeapBytes(automaton, set, exponents); }
    static Result<Part> Create(const NumberConstraint& constraint, bool allow_exponents);
    static Result<Part> Create(const std::vector<Decimal>& values, bool allow_exponents,
                               bool canonical);
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
    bool CanAccept(uint32_t state) const {
      return automaton ? automaton->CanAccept(state) : state != 0;
    }
    std::string ShortestAccepting(uint32_t state) const {
      return exponents ? exponents->ShortestAccepting(state)
             : set     ? set->ShortestAccepting(state)
                       : automaton->ShortestAccepting(state);
    }
  };

  // Merged: the one that decides. Listed: the texts of listed_. Otherwise the syntax, one for all
  // listed values, one for each constraint; they read no exponents, and only tell mantissas apart:
  // texts with equal states may be continued by the same texts.
  std::vector<Part> parts_;
  bool exponents_ = false;                  // read
  int max_digits_ = 0;                      // 0: any number
  std::unique_ptr<NumberClasses> classes_;  // null when merged
  std::unique_ptr<NumberSearch> search_;    // the same
  // One text each of the values that are not ruled out by the conditions on every number; sorted.
  std::vector<std::pair<std::string, Decimal>> listed_;
  bool only_listed_ = false;
  std::vector<Info> states_;
  HashIndex index_;
  std::unordered_map<StateId, ExponentRanges> ranges_;  // by the state of a mantissa
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_NUMBER_PROGRAM_H_
