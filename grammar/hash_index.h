// Hash tables for what every state and byte asks: HashIndex for hash-consing, FlatMap for 64-bit
// keys.
//
// HashIndex: finds equal things among those that have numbers, for hash-consing.
//
//   NodeId Intern(const Node& node) { return index_.Intern(HashOf(node), nodes_, node); }
//
// Holds a piece of each thing's hash and its number, not the thing: who asks compares. Open
// addressing, no erasing. Wherever a state of an automaton is made, one of these is asked first,
// and std::unordered_multimap spent a fifth of some masks on it.
#ifndef PAWL_GRAMMAR_HASH_INDEX_H_
#define PAWL_GRAMMAR_HASH_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pawl {

// `hash` with `value` behind it.
inline uint64_t HashMix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

class HashIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The number under `hash` for which `same(number)` is true; kNone when there is none.
  template <typename Same>
  uint32_t Find(uint64_t hash, Same&& same) const {
    if (slots_.empty()) return kNone;
    const uint32_t tag = TagOf(hash);
    for (size_t i = tag & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.number == kNone || (slot.tag == tag && same(slot.number))) return slot.number;
    }
  }

  // Several numbers may stand under one hash. REQUIRES: number != kNone.
  void Insert(uint64_t hash, uint32_t number) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Put({TagOf(hash), number});
    ++size_;
  }

  // The place in `things` of the one that equals `thing`, which is put at the end if there is none.
  template <typename Things>
  uint32_t Intern(uint64_t hash, Things& things, typename Things::value_type thing) {
    const uint32_t known = Find(hash, [&](uint32_t number) { return things[number] == thing; });
    if (known != kNone) return known;
    const auto number = static_cast<uint32_t>(things.size());
    things.push_back(std::move(thing));
    Insert(hash, number);
    return number;
  }

  size_t MemoryBytes() const { return slots_.capacity() * sizeof(Slot) + 16; }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t number = kNone;
  };

  static uint32_t TagOf(uint64_t hash) {
    return static_cast<uint32_t>((hash * 0x9E3779B97F4A7C15u) >> 32);
  }
  void Put(Slot slot) {
    size_t i = slot.tag & (slots_.size() - 1);
    while (slots_[i].number != kNone) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) Put(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them full
  size_t size_ = 0;
};

// FlatMap: 64-bit keys to small values, open addressing, no erasing: what a step from byte to byte
// looks up, where std::unordered_map would cost more than all else.
template <typename Value>
class FlatMap {
 public:
  // nullptr when the key is not there. REQUIRES: key != UINT64_MAX, here and below.
  const Value* Find(uint64_t key) const {
    if (slots_.empty()) return nullptr;
    for (size_t i = Place(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].first == key) return &slots_[i].second;
      if (slots_[i].first == kFree) return nullptr;
    }
  }

  // REQUIRES: the key is not there.
  void Insert(uint64_t key, Value value) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Put(key, std::move(value));
    ++size_;
  }

  // Keeps the memory.
  void Clear() {
    std::fill(slots_.begin(), slots_.end(), std::pair{kFree, Value{}});
    size_ = 0;
  }
  size_t size() const { return size_; }
  // REQUIRES: values that own no memory.
  size_t MemoryBytes() const { return slots_.capacity() * sizeof(slots_[0]) + 16; }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;

  size_t Place(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & (slots_.size() - 1);
  }
  void Put(uint64_t key, Value value) {
    size_t i = Place(key);
    while (slots_[i].first != kFree) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {key, std::move(value)};
  }
  void Grow() {
    std::vector<std::pair<uint64_t, Value>> old(slots_.empty() ? 64 : 2 * slots_.size(),
                                                {kFree, Value{}});
    old.swap(slots_);
    for (auto& [key, value] : old) {
      if (key != kFree) Put(key, std::move(value));
    }
  }

  std::vector<std::pair<uint64_t, Value>> slots_;  // a power of two of them
  size_t size_ = 0;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_HASH_INDEX_H_
