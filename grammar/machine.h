// Machine: an automaton over bytes with hash-consed states, the one thing a front end has to provide.
//
// Idea. Masks, forced bytes, completions and states know nothing of JSON or regexes; they ask a
// Machine. A state is a 64-bit key, an immutable value that never goes away while the machine lives.
// States are made lazily. 0 is the dead state; every other key that Step returns is live: some byte
// string leads from it to acceptance (a machine that cannot decide that within its fuel may say live).
//
// The key has two halves: the upper 32 bits say where the text stands outside the current lexeme (the
// frames), the lower 32 bits where it stands inside it. Step keeps the upper half while it stays inside
// the lexeme, and inside a lexeme the lower half alone decides; masks are shared on the strength of it.
//
// Thread safety: a machine may grow in every call; GrammarImpl serialises the calls.
#ifndef PAWL_GRAMMAR_MACHINE_H_
#define PAWL_GRAMMAR_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl {

class Machine {
 public:
  using Key = uint64_t;
  static constexpr Key kDead = 0;

  virtual ~Machine() = default;
  virtual Key Start() = 0;
  virtual Key Step(Key state, uint8_t byte) = 0;
  virtual bool Accepting(Key state) = 0;
  // A short byte string that leads to acceptance, nullopt when none was found.
  virtual std::optional<std::string> ShortestCompletion(Key state) = 0;

  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  std::vector<std::string> notes_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MACHINE_H_
