// RegexMachine: the automaton over bytes of a RegexDfa, which reads code points.
#ifndef PAWL_GRAMMAR_REGEX_REGEX_MACHINE_H_
#define PAWL_GRAMMAR_REGEX_REGEX_MACHINE_H_

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/machine.h"
#include "grammar/regex/regex_dfa.h"
#include "src/base/memory_size.h"

namespace pawl {

class RegexMachine : public Machine {
 public:
  RegexMachine(std::shared_ptr<RegexArena> arena, ReId regex);
  // Several expressions in one machine, so that they share states: StartOf tells where each begins.
  RegexMachine(std::shared_ptr<RegexArena> arena, std::span<const ReId> regexes);

  Key Start() override { return StartOf(0); }
  Key StartOf(size_t number);
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override;
  Key StepFrame(Key, uint8_t) override { return kDead; }  // the whole text is one lexeme
  bool Accepting(Key state) override;
  std::optional<std::string> CompletionBytes(Key state) override;
  bool Ends(Key state) override;
  // StepLexeme and Accepting for walks over a whole vocabulary: each state that is asked gets a
  // table of its steps.
  uint32_t StepByTable(uint32_t lexeme, uint8_t byte) {
    if (lexeme >= tables_.size() || tables_[lexeme] == nullptr) AddTable(lexeme);
    uint32_t& next = tables_[lexeme][byte];
    if (next == kUnknownStep) next = StepLexeme(lexeme, byte);
    return next;
  }
  bool AcceptsByTable(uint32_t lexeme) {
    if (lexeme >= tables_.size() || tables_[lexeme] == nullptr) AddTable(lexeme);
    return tables_[lexeme][256] != 0;
  }
  // The state is the same after any number of characters of these classes (byte_class.h, as bits);
  // within a character: after its end and any number of them.
  bool LoopsOn(uint32_t lexeme, uint64_t wanted) {
    if (lexeme < loops_.size()) {
      const Loops& known = loops_[lexeme];
      if ((wanted & known.known & ~known.loops) != 0) return false;
      if ((wanted & ~known.known) == 0) return true;
    }
    return FindLoops(lexeme, wanted);
  }

  // A character has begun and not ended.
  bool InCharacter(uint32_t lexeme) const { return positions_[lexeme].missing > 0; }

  // What a text may go on with, as a term. REQUIRES: no character has begun without ending.
  ReId TermOf(Key state) const { return dfa_.Term(positions_[LexemeOf(state)].state); }

  const std::shared_ptr<RegexArena>& arena() const { return dfa_.shared_arena(); }

  size_t state_count() const { return positions_.size(); }
  // With the arena.
  size_t MemoryBytes() const override {
    return HeapBytes(dfa_, positions_, index_, boundary_, loops_, sequence_steps_) +
           dfa_.arena().MemoryBytes() + tables_.size() * kTableBytes;
  }
  size_t GrowthHint() const override {
    return positions_.size() * 80 + tables_.size() * kTableBytes + dfa_.GrowthHint() +
           dfa_.arena().GrowthHint();
  }
  // A limit of the automaton was reached: some answers since then are kDead for lack of memory.
  bool overflow() const { return dfa_.overflow(); }

 private:
  static constexpr size_t kTableBytes = 257 * sizeof(uint32_t) + 24;
  static constexpr uint32_t kUnknownStep = UINT32_MAX;
  void AddTable(uint32_t lexeme);
  bool FindLoops(uint32_t lexeme, uint64_t wanted);
  // A state of the DFA, and the bytes of a UTF-8 sequence that has begun. Length 0 inside of one:
  // the state is that after the sequence, however it goes on.
  struct Position {
    uint32_t state;
    uint8_t missing = 0, length = 0;
    uint32_t value = 0;
    friend bool operator==(const Position&, const Position&) = default;
  };
  uint32_t Intern(const Position& position);
  uint32_t AtBoundary(uint32_t state);  // Intern({state}), by a table
  uint32_t StepInSequence(uint32_t lexeme, uint8_t byte);
  // A code point in lo..hi that leads on from the state; nullopt when there is none.
  std::optional<char32_t> Pick(uint32_t state, char32_t lo, char32_t hi);
  // The state to which every code point of lo..hi leads; kDead when they differ.
  uint32_t Common(uint32_t state, char32_t lo, char32_t hi);
  static std::pair<char32_t, char32_t> Range(const Position& position);

  RegexDfa dfa_;
  std::vector<Position> positions_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> index_;
  std::vector<uint32_t> boundary_;                   // by state of the DFA; 0: not interned yet
  std::vector<std::unique_ptr<uint32_t[]>> tables_;  // 256 steps, and whether it accepts
  struct Loops {
    uint64_t known = 0, loops = 0;
  };
  std::vector<Loops> loops_;          // by lexeme
  FlatMap<uint32_t> sequence_steps_;  // beyond ASCII, by position << 8 | byte
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_REGEX_MACHINE_H_
