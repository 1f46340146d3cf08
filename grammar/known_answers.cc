// States have numbers here, so that a step from a state by a byte or a token is one 64-bit key of a
// hash table. A token is followed by its bytes where these alone decide: then a token that was
// never met before is known as soon as its bytes are. When the tables are full all of it goes and
// is found again.
#include "grammar/known_answers.h"

namespace pawl {
namespace {

constexpr size_t kMostKnownBytes = size_t{4} << 20;

}  // namespace

KnownAnswers::Place KnownAnswers::Find(Machine::Key key) const {
  const std::lock_guard lock(mutex_);
  const uint32_t* const id = ids_.Find(key);
  return id == nullptr ? Place() : places_[*id];
}

uint32_t KnownAnswers::IdOf(Machine::Key key) {
  if (const uint32_t* const id = ids_.Find(key)) return *id;
  const auto id = static_cast<uint32_t>(places_.size());
  // Should memory run out, a place without a number does no harm.
  places_.emplace_back();
  ids_.Insert(key, id);
  return id;
}

void KnownAnswers::Keep(Machine::Key key, const Place& more) {
  const std::lock_guard lock(mutex_);
  Trim();
  Place& place = places_[IdOf(key)];
  if (more.asked) {
    place.asked = true;
    place.accepting = more.accepting;
    place.by_bytes = more.by_bytes;
    place.temperature = more.temperature;
    if (more.limit != nullptr && place.limit == nullptr) {
      place.limit = more.limit;
      text_bytes_ += more.limit->size() + sizeof(std::string) + 16;
    }
  }
  if (more.close) place.close = more.close;
  if (more.forced != nullptr && place.forced == nullptr) {
    place.forced = more.forced;
    text_bytes_ += more.forced->size() + sizeof(std::string) + 16;
  }
}

Machine::Key KnownAnswers::After(Machine::Key key, TokenId token, std::string_view bytes) const {
  const std::lock_guard lock(mutex_);
  const uint32_t* id = ids_.Find(key);
  if (id == nullptr) return Machine::kDead;
  if (!places_[*id].by_bytes || bytes.empty()) {
    const Machine::Key* const after =
        token_steps_.Find(uint64_t{*id} << 32 | static_cast<uint32_t>(token));
    return after == nullptr ? Machine::kDead : *after;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (id == nullptr) return Machine::kDead;
    const Machine::Key* const after =
        byte_steps_.Find(uint64_t{*id} << 8 | static_cast<uint8_t>(bytes[i]));
    if (after == nullptr) return Machine::kDead;
    key = *after;
    if (i + 1 < bytes.size()) id = ids_.Find(key);
  }
  return key;
}

void KnownAnswers::KeepPath(Machine::Key key, std::string_view bytes,
                            std::span<const Machine::Key> path) {
  const std::lock_guard lock(mutex_);
  Trim();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint64_t step = uint64_t{IdOf(key)} << 8 | static_cast<uint8_t>(bytes[i]);
    if (byte_steps_.Find(step) == nullptr) byte_steps_.Insert(step, path[i]);
    key = path[i];
  }
}

void KnownAnswers::KeepStep(Machine::Key key, TokenId token, Machine::Key after) {
  const std::lock_guard lock(mutex_);
  Trim();
  const uint64_t step = uint64_t{IdOf(key)} << 32 | static_cast<uint32_t>(token);
  if (token_steps_.Find(step) == nullptr) token_steps_.Insert(step, after);
}

size_t KnownAnswers::bytes() const {
  const std::lock_guard lock(mutex_);
  return ids_.MemoryBytes() + places_.capacity() * sizeof(Place) + byte_steps_.MemoryBytes() +
         token_steps_.MemoryBytes() + text_bytes_;
}

void KnownAnswers::Trim() {
  const size_t now = ids_.MemoryBytes() + places_.capacity() * sizeof(Place) +
                     byte_steps_.MemoryBytes() + token_steps_.MemoryBytes() + text_bytes_;
  if (now <= kMostKnownBytes) return;
  ids_ = {};
  places_ = {};
  byte_steps_ = {};
  token_steps_ = {};
  text_bytes_ = 0;
}

}  // namespace pawl
