// CfgMachine: the automaton over bytes and tokens of a context-free grammar.
//
// A state is a set of threads and a continuation. A thread is a lexeme that has begun (a machine's
// key) with what comes after it; the continuation says what may begin at this very place, because
// some lexeme may have ended here. A byte takes every thread on and begins the lexemes that the
// continuation allows, so every way of cutting the text into lexemes is followed. States are
// interned.
//
// Every state is live: what has no text was left out when the program was made, and every lexeme's
// machine keeps to what it can finish.
#ifndef PAWL_GRAMMAR_CFG_CFG_MACHINE_H_
#define PAWL_GRAMMAR_CFG_CFG_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/cfg/continuations.h"
#include "grammar/cfg/program.h"
#include "grammar/hash_index.h"
#include "grammar/machine.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/memory_size.h"

namespace pawl {

// ClosingTexts: the states of outputs that reached a limit, each of which allows one text only.
//
// A place is a pair of a text and how much of it was taken; a token that is taken as a whole counts
// as one byte.
//
// Thread safety: none.

class ClosingTexts {
 public:
  struct Place {
    uint32_t text, taken;
  };

  // Returns the text's number. nullopt: nothing may come, not even the end. `note`: why the output
  // is closed.
  uint32_t Add(const std::optional<std::vector<OutputPiece>>& pieces, std::string note);

  // Whether this byte comes next.
  bool Takes(Place at, uint8_t byte) const;
  // The token that has to be taken next as a whole; kNoToken: bytes come next, or nothing.
  TokenId TokenAt(Place at) const;
  // The bytes that come next, up to such a token or the end.
  std::string_view BytesAt(Place at) const;
  bool Ends(Place at) const;
  std::optional<std::vector<OutputPiece>> Rest(Place at) const;
  const std::string& note(uint32_t text) const { return texts_[text].note; }

  size_t MemoryBytes() const { return HeapBytes(texts_); }
  size_t bytes() const { return bytes_; }  // about that

 private:
  struct Text {
    std::string bytes;                                 // 0 where a token is
    std::vector<std::pair<uint32_t, TokenId>> tokens;  // by place
    bool ends = false;
    std::string note;
    size_t MemoryBytes() const { return HeapBytes(bytes, tokens, note); }
  };
  // The first token at this place or behind it.
  std::vector<std::pair<uint32_t, TokenId>>::const_iterator TokenFrom(Place at) const;

  std::vector<Text> texts_;
  size_t bytes_ = 0;
};

class CaptureParse;
class CfgMasks;

class CfgMachine : public Machine {
 public:
  using StateId = uint32_t;
  static constexpr StateId kDeadState = 0;

  struct Thread {
    uint32_t source;  // machines[source / 2]; odd: lazy, the lexeme ends where it first matches
    uint32_t tokens;  // that the lexeme may still have, kNoLimit for any number
    Key key;
    ContId then;
    friend auto operator<=>(const Thread&, const Thread&) = default;
  };
  static constexpr uint32_t kNoLimit = UINT32_MAX;
  static constexpr uint32_t kRelaxed = 1u << 31;  // in `tokens`: the limit may be overrun

  // Errors as CompileCfg's.
  static Result<std::shared_ptr<CfgMachine>> Create(GrammarIr& ir, const Vocabulary& vocabulary,
                                                    const CfgLimits& limits = {});
  ~CfgMachine() override;

  Key Start() override { return MakeKey(start_, 1); }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kLeavesLexeme; }
  Key StepFrame(Key state, uint8_t byte) override {
    if (IsClosing(state)) return closing_.Takes(PlaceOf(state), byte) ? state + 1 : kDead;
    const StateId next = StepState(FrameOf(state), byte);
    return next == kDeadState ? kDead : MakeKey(next, 1);
  }
  bool Accepting(Key state) override;
  std::optional<std::string> CompletionBytes(Key state) override;
  std::optional<std::vector<OutputPiece>> Completion(Key state) override;
  Key StepToken(Key state, TokenId token, Key by_bytes) override;
  Key AtToken(Key state, const Vocabulary& vocabulary) override;
  std::string LimitNote(Key state) const override;
  void FillTokens(Key state, uint32_t* words) override;
  bool TakesTokens(Key state) override;
  bool NamesEndTokens() const override { return program_.names_ends; }
  MachineMasks* Masks(const Vocabulary& vocabulary) override;
  // Finds parts of masks beforehand, by up to so many steps (GrammarOptions::prepare_steps).
  // `vocabulary`: the one that masks will be asked about.
  void PrepareMasks(const Vocabulary& vocabulary, uint64_t steps);
  bool CountsTokens() const override { return program_.counts_tokens; }
  bool has_captures() const override { return has_captures_; }
  Result<std::vector<Capture>> FindCaptures(std::span<const OutputPiece> pieces,
                                            const Vocabulary& vocabulary) override;
  std::optional<float> Temperature(Key state) override;

  // Steps so far of all that depends on how many readings a text has, and of masks; to
  // count in tests.
  uint64_t work() const;
  const CfgLimits& limits() const { return limits_; }

  // For CfgMasks.
  StateId StepState(StateId state, uint8_t byte);
  // The state in which nothing but `then` may begin.
  StateId StateOf(ContId then);
  ContId fresh(StateId state) const { return states_[state].fresh; }
  std::span<const Thread> threads(StateId state) const {
    return std::span<const Thread>(threads_).subspan(states_[state].begin, states_[state].count);
  }
  // The machine of all regexes, the first of the program.
  RegexMachine& regexes() { return static_cast<RegexMachine&>(*program_.machines[0]); }
  Machine& machine_of(const Thread& thread) { return *program_.machines[thread.source / 2]; }
  // Something remains of the state when a token ends here (lexemes may have had all their tokens).
  bool OutlivesToken(StateId state) const;
  Thread ThreadOf(const Continuations::Expansion::Begin& begin) const;
  const std::bitset<256>& FirstBytes(const Continuations::Expansion::Begin& begin) const {
    return program_.terminals[begin.what].first_bytes;
  }
  Continuations& continuations() { return *continuations_; }
  const CfgProgram& program() const { return program_; }
  // The grammar that it was made of; its regexes grow with this machine.
  const GrammarIr& ir() const { return *ir_; }
  // States of an output that is closed, see AtToken.
  static bool IsClosing(Key state) { return LexemeOf(state) != 1; }
  static ClosingTexts::Place PlaceOf(Key state) { return {FrameOf(state), LexemeOf(state) - 2}; }
  const ClosingTexts& closing() const { return closing_; }
  size_t state_count() const { return states_.size(); }
  size_t MemoryBytes() const override;
  size_t GrowthHint() const override;

 private:
  struct StateData {
    ContId fresh;
    uint32_t begin, count;  // in threads_
    bool crowded = false;   // some continuation of it is
  };

  CfgMachine(GrammarIr ir, CfgProgram program, const CfgLimits& limits);
  CfgMasks& MasksOf(const Vocabulary& vocabulary);
  // Sorts the threads and unites those that are one.
  StateId Intern(ContId fresh, std::vector<Thread>& threads);
  StateId MakeStep(StateId state, uint8_t byte);
  std::optional<std::vector<OutputPiece>> Complete(ContId then, std::string prefix);
  float TemperatureOf(ContId then) const;
  // The rule that makes the state's continuations crowded, in words.
  std::string CrowdedRule(StateId state) const;

  std::shared_ptr<GrammarIr> ir_;
  bool has_captures_ = false;
  CfgProgram program_;
  const CfgLimits limits_;
  std::unique_ptr<Continuations> continuations_;
  std::vector<StateData> states_;
  std::vector<Thread> threads_;
  HashIndex index_;
  std::vector<StateId> state_of_;  // by continuation; kDeadState: not asked yet
  std::vector<Thread> made_;       // scratch of MakeStep
  std::vector<ContId> ended_;      // the same: what comes after lexemes that may end here
  std::vector<ContId> thens_;      // scratch of Intern
  FlatMap<StateId> steps_;         // by state << 8 | byte
  StateId start_ = kDeadState;
  ClosingTexts closing_;
  FlatMap<uint32_t> closing_of_;  // by crowded state: its closing text and 1, or 0 for none
  uint64_t steps_made_ = 0;
  std::unique_ptr<CfgMasks> masks_;
  std::unique_ptr<CaptureParse> captures_;  // made when first asked for
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_CFG_MACHINE_H_
