// States are the tuples of the regexes' own states, interned; each has a bit for each regex that
// accepts. A state gets a row of next states when it is first left, and each cell is filled when it
// is first asked.
#include "schemas/scalar/regex_group.h"

#include <algorithm>
#include <array>

#include "schemas/limits.h"

namespace pawl::schema {

uint32_t RegexGroup::Intern(const uint32_t* key) {
  const size_t width = parts_.size();
  uint64_t hash = 0;
  for (size_t i = 0; i < width; ++i) hash = HashMix(hash, key[i]);
  const uint32_t known = index_.Find(
      hash, [&](uint32_t id) { return std::equal(key, key + width, &keys_[id * width]); });
  if (known != HashIndex::kNone) return known;
  const auto id = static_cast<uint32_t>(states_.size());
  State& state = states_.emplace_back();
  for (size_t i = 0; i < width; ++i) {
    const bool truth = key[i] != RegexDfa::kDead && parts_[i].dfa->Accepting(key[i]);
    state.truths = static_cast<uint8_t>(state.truths | (truth ? 1u << i : 0u));
  }
  keys_.insert(keys_.end(), key, key + width);
  index_.Insert(hash, id);
  return id;
}

uint32_t RegexGroup::Start() {
  std::array<uint32_t, limits::kRegexesInGroup> key{};
  for (size_t i = 0; i < parts_.size(); ++i) key[i] = parts_[i].dfa->Start();
  return Intern(key.data());
}

uint32_t RegexGroup::FindNext(uint32_t state, int cls) {
  std::array<uint32_t, limits::kRegexesInGroup> key{};
  for (size_t i = 0; i < parts_.size(); ++i) {
    const uint32_t s = StateOf(state, i);
    const Part& part = parts_[i];
    if (s != RegexDfa::kDead)
      key[i] = part.dfa->Next(s, (*part.class_map)[static_cast<size_t>(cls)]);
  }
  const uint32_t next = Intern(key.data());
  if (states_[state].row == kNone) {
    states_[state].row = static_cast<uint32_t>(cells_.size() / classes_);
    cells_.resize(cells_.size() + classes_, kNone);
  }
  return cells_[states_[state].row * classes_ + static_cast<size_t>(cls)] = next;
}

uint32_t RegexGroup::With(uint32_t state, size_t part, uint32_t changed) {
  std::array<uint32_t, limits::kRegexesInGroup> key{};
  for (size_t i = 0; i < parts_.size(); ++i) key[i] = StateOf(state, i);
  key[part] = changed;
  return Intern(key.data());
}

uint8_t RegexGroup::FindSettled(uint32_t state) {
  uint32_t settled = 0;
  for (size_t i = 0; i < parts_.size(); ++i)
    settled |= parts_[i].dfa->Absorbing(StateOf(state, i)) ? 1u << i : 0u;
  states_[state].settled = static_cast<int16_t>(settled);
  return static_cast<uint8_t>(settled);
}

const RegexGroup::ClassBits& RegexGroup::FindSettling(uint32_t state,
                                                      const std::vector<uint8_t>& slots) {
  ClassBits bits{};
  const uint8_t settled = Settled(state);
  for (size_t cls = 0; cls < classes_; ++cls) {
    if (Settled(Next(state, static_cast<int>(cls))) != settled)
      bits[slots[cls] >> 6] |= uint64_t{1} << (slots[cls] & 63);
  }
  states_[state].settling = bits;
  states_[state].knows_settling = true;
  return states_[state].settling;
}

}  // namespace pawl::schema
