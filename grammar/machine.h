// Machine: an automaton over bytes with hash-consed states, the one thing a front end has to
// provide.
//
// Idea. Masks, forced bytes, completions and states know nothing of JSON or regexes; they ask a
// Machine. A state is a 64-bit key, an immutable value that never goes away while the machine
// lives. States are made lazily. 0 is the dead state; every other key that Step returns is live:
// some byte string leads from it to acceptance (a machine that cannot decide that within its fuel
// may say live).
//
// The key has two halves. The upper 32 bits (the frame) say where the text stands outside the
// current lexeme, the lower 32 bits (the lexeme state) where it stands inside it. StepLexeme
// answers from the lower half alone as long as the byte stays inside the lexeme, whatever the frame
// is; so the tokens that stay inside a lexeme are found once for each lexeme state and shared by
// all frames (masks/mask_builder.h).
//
// Thread safety: a machine may grow in every call; GrammarImpl serialises the calls.
#ifndef PAWL_GRAMMAR_MACHINE_H_
#define PAWL_GRAMMAR_MACHINE_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

class MachineMasks;

class Machine {
 public:
  using Key = uint64_t;
  static constexpr Key kDead = 0;
  static constexpr uint32_t kDeadLexeme = 0;
  static constexpr uint32_t kLeavesLexeme =
      UINT32_MAX;  // ask Step: the answer depends on the frame

  static Key MakeKey(uint32_t frame, uint32_t lexeme) { return (uint64_t{frame} << 32) | lexeme; }
  static uint32_t FrameOf(Key key) { return static_cast<uint32_t>(key >> 32); }
  static uint32_t LexemeOf(Key key) { return static_cast<uint32_t>(key); }

  virtual ~Machine() = default;
  virtual Key Start() = 0;
  // The lexeme state after `byte`, kDeadLexeme, or kLeavesLexeme.
  virtual uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) = 0;
  // The state after a byte for which StepLexeme said kLeavesLexeme; kDead when it does not fit.
  virtual Key StepFrame(Key state, uint8_t byte) = 0;
  virtual bool Accepting(Key state) = 0;
  // A short byte string that leads to acceptance, nullopt when none was found.
  virtual std::optional<std::string> CompletionBytes(Key state) = 0;

  // The same with tokens taken as a whole.
  virtual std::optional<std::vector<OutputPiece>> Completion(Key state) {
    auto bytes = CompletionBytes(state);
    if (!bytes) return std::nullopt;
    if (bytes->empty()) return std::vector<OutputPiece>();
    return std::vector<OutputPiece>{{.bytes = *std::move(bytes)}};
  }

  // Texts that go together through as much of what the machine names as they can, about so many
  // bytes of them at most, the last one perhaps only begun; none where that is not known.
  virtual std::vector<std::string> SampleTexts(size_t /*bytes*/) { return {}; }

  // Bytes with which a text of the machine may end; all where that is not known.
  virtual std::bitset<256> LastBytes() { return std::bitset<256>().set(); }

  // Nothing may follow an accepting state. false where that is not known.
  virtual bool Ends(Key /*state*/) { return false; }

  // Tokens taken as a whole, whatever their bytes. The state after the token where the machine has
  // a place for it; `by_bytes` is the state after the token's bytes, kDead for a special token or
  // where they do not fit. Most machines read bytes only.
  virtual Key StepToken(Key /*state*/, TokenId /*token*/, Key by_bytes) { return by_bytes; }
  // The state in whose place a token begins: of a state that has reached a limit one that allows
  // the shortest completion only. Masks and steps of whole tokens begin there; bytes do not.
  virtual Key AtToken(Key state, const Vocabulary& /*vocabulary*/) { return state; }
  // Why AtToken gives another state here, or gave one for a state that led here. Empty: it did not,
  // or was not asked.
  virtual std::string LimitNote(Key /*state*/) const { return {}; }
  // Sets the bits of the tokens for which StepToken adds to what their bytes allow.
  virtual void FillTokens(Key /*state*/, uint32_t* /*words*/) {}
  // Some token may come here that is taken as a whole, so that no byte is forced.
  virtual bool TakesTokens(Key /*state*/) { return false; }
  // Somewhere such a token is one that ends the output elsewhere.
  virtual bool NamesEndTokens() const { return false; }

  // Some frames have to remember the text inside a lexeme (the key of an object, to refuse it a
  // second time). For those every byte makes a new frame, which changes nothing inside the lexeme.
  virtual bool TracksText(uint32_t /*frame*/) { return false; }
  virtual uint32_t AppendText(uint32_t frame, uint8_t /*byte*/) { return frame; }

  // The machine's own way to its masks over this vocabulary, made at the first call and kept;
  // nullptr for machines that are rather walked. All calls name the same vocabulary.
  virtual MachineMasks* Masks(const Vocabulary& /*vocabulary*/) { return nullptr; }

  Key Step(Key state, uint8_t byte) {
    const uint32_t lexeme = StepLexeme(LexemeOf(state), byte);
    if (lexeme == kDeadLexeme) return kDead;
    if (lexeme == kLeavesLexeme) return StepFrame(state, byte);
    uint32_t frame = FrameOf(state);
    if (TracksText(frame)) frame = AppendText(frame, byte);
    return MakeKey(frame, lexeme);
  }

  // Some lexemes have a limit of tokens: what their bytes allow, StepToken may refuse.
  virtual bool CountsTokens() const { return false; }

  // The machine's rules have captures.
  virtual bool has_captures() const { return false; }
  // The captures of a text that Accepting() takes, see pawl/grammar.h.
  virtual Result<std::vector<Capture>> FindCaptures(std::span<const OutputPiece> /*pieces*/,
                                                    const Vocabulary& /*vocabulary*/) {
    return std::vector<Capture>();
  }
  // What rules with a temperature that the state is in, or may enter next, ask for: the innermost
  // of each continuation, the highest of all continuations. nullopt: none asks.
  virtual std::optional<float> Temperature(Key /*state*/) { return std::nullopt; }

  // Bytes of the heap that the machine keeps, by a walk over all of it. Parts that it shares with
  // other machines count in each.
  virtual size_t MemoryBytes() const { return 0; }
  // About how many bytes it has gained, in a few loads: tells when to measure.
  virtual size_t GrowthHint() const { return 0; }

  // Steps of all that was asked so far, a deterministic measure of time (some ten nanoseconds each,
  // at most a hundred): those that limit a look-ahead, derivatives, states made. 0: no steps
  // are counted.
  virtual uint64_t steps() const { return 0; }

  // Remarks of the compiler that are no errors, e.g. what it treated as an annotation.
  const std::vector<std::string>& notes() const { return notes_; }
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }

 private:
  std::vector<std::string> notes_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MACHINE_H_
