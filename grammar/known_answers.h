// KnownAnswers: what a grammar's generation was asked before, for askers that must neither work nor
// wait.
//
//   const KnownAnswers::Place place = known.Find(key);
//   if (place.asked) Use(place.accepting, place.temperature);
//   if (const Machine::Key after = known.After(key, token, bytes); after != Machine::kDead) ...
//
// The thread that decodes may not wait for the lock of a grammar: another thread may hold it for
// seconds. Here stands what was answered already, behind a lock that is held for a look-up alone.
// Masks have a memo of their own (masks/mask_memo.h).
//
// Thread-safe.
#ifndef PAWL_GRAMMAR_KNOWN_ANSWERS_H_
#define PAWL_GRAMMAR_KNOWN_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/machine.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/sync.h"

namespace pawl {

class PAWL_EXPORT KnownAnswers {
 public:
  // About a state. Each answer is there or not.
  struct Place {
    bool asked = false;  // the next four
    bool accepting = false;
    bool by_bytes = false;  // the bytes of a token alone decide where it leads
    std::optional<float> temperature;
    std::shared_ptr<const std::string> limit;   // Machine::LimitNote; nullptr: empty
    std::optional<int> close;                   // State::completion_length
    std::shared_ptr<const std::string> forced;  // State::forced of the default limit
  };

  Place Find(Machine::Key key) const;
  // Keeps the answers of `more` that are there.
  void Keep(Machine::Key key, const Place& more);

  // The state after a token with these bytes; kDead: not known.
  Machine::Key After(Machine::Key key, TokenId token, std::string_view bytes) const;
  // `path`: the states after each byte, the last one that after the token. The state `key` is one
  // of Place::by_bytes.
  void KeepPath(Machine::Key key, std::string_view bytes, std::span<const Machine::Key> path);
  // For other states.
  void KeepStep(Machine::Key key, TokenId token, Machine::Key after);

  size_t bytes() const;

 private:
  uint32_t IdOf(Machine::Key key);
  void Trim();

  mutable Mutex mutex_;
  FlatMap<uint32_t> ids_;  // of places
  std::vector<Place> places_;
  FlatMap<Machine::Key> byte_steps_, token_steps_;  // by id and byte, or id and token
  size_t text_bytes_ = 0;                           // of Place::forced
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_KNOWN_ANSWERS_H_
