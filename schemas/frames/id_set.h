// Sets of small integers as interned values: the same members are the same id, adding one costs
// O(log) time and space, and an old set stays what it was.
#ifndef PAWL_SCHEMAS_FRAMES_ID_SET_H_
#define PAWL_SCHEMAS_FRAMES_ID_SET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grammar/hash_index.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// All sets of one kind. Not thread-safe.
class IdSets {
 public:
  using Id = uint32_t;
  static constexpr Id kEmpty = 0;

  IdSets();
  Id With(Id set, uint32_t member);
  bool Contains(Id set, uint32_t member) const;
  size_t Size(Id set) const { return sets_[set].size; }
  // The set and the member that `set` was first made from. REQUIRES: not kEmpty.
  Id Before(Id set) const { return sets_[set].before; }
  uint32_t Last(Id set) const { return sets_[set].last; }
  size_t MemoryBytes() const {
    return HeapBytes(sets_, leaves_, inners_, leaf_index_, inner_index_, set_index_);
  }
  size_t GrowthHint() const {
    return sets_.size() * (sizeof(Set) + 40) + inners_.size() * (sizeof(Inner) + 40);
  }
  // In the order in which the set was first made.
  std::vector<uint32_t> Members(Id set) const;
  // What a set comes to when its members are added one by one, in the order in which it was first
  // made: `value` for the empty set, then next(value before, member). All sets on the way are kept
  // in `known`, by (key, set), so one member more costs one step.
  template <typename Known, typename Value, typename Next, typename... Key>
  Value Fold(Known& known, Id set, Value value, const Next& next, const Key&... key) const {
    std::vector<Id> way;
    for (; set != kEmpty; set = Before(set)) {
      if (const auto it = known.find(typename Known::key_type{key..., set}); it != known.end()) {
        value = it->second;
        break;
      }
      way.push_back(set);
    }
    for (; !way.empty(); way.pop_back()) {
      value = next(value, Last(way.back()));
      known.emplace(typename Known::key_type{key..., way.back()}, value);
    }
    return value;
  }

 private:
  // A trie over the bits of the members: `height` levels of inner nodes above leaves of 64 bits.
  // As small as the largest member allows, so equal sets have equal tries.
  static constexpr int kLeafBits = 6, kInnerBits = 4;
  using Inner = std::array<uint32_t, 1 << kInnerBits>;
  struct Set {
    uint32_t root = 0;
    int height = 0;
    size_t size = 0;
    Id before = kEmpty;
    uint32_t last = 0;
  };
  static uint64_t Capacity(int height) { return uint64_t{1} << (kLeafBits + kInnerBits * height); }
  uint32_t Insert(uint32_t node, int height, uint32_t member);
  uint32_t InternLeaf(uint64_t bits);
  uint32_t InternInner(const Inner& inner);

  std::vector<Set> sets_;
  std::vector<uint64_t> leaves_;  // 0: no member; the empty node of every height is 0
  std::vector<Inner> inners_;
  HashIndex leaf_index_, inner_index_;
  HashIndex set_index_;  // by root and height
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FRAMES_ID_SET_H_
