// FlatMap: 64-bit keys to small values, open addressing, no erasing: what a step from byte to byte
// looks up, where std::unordered_map would cost more than all else.
#ifndef PAWL_GRAMMAR_FLAT_MAP_H_
#define PAWL_GRAMMAR_FLAT_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pawl {

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

#endif  // PAWL_GRAMMAR_FLAT_MAP_H_
