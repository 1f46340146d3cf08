// Hash-consed tries with path copying: an insertion makes one new node on each level and shares the
// rest, and since nodes are interned too, two ways to the same members end at the same root.
#include "schemas/frames/id_set.h"

#include <algorithm>

namespace pawl::schema {

IdSets::IdSets() : sets_(1), leaves_(1, 0), inners_(1, Inner{}) {
  leaf_index_.emplace(0, 0);
  set_index_.emplace(0, kEmpty);
}

uint32_t IdSets::InternLeaf(uint64_t bits) {
  const auto [it, fresh] = leaf_index_.try_emplace(bits, static_cast<uint32_t>(leaves_.size()));
  if (fresh) leaves_.push_back(bits);
  return it->second;
}

uint32_t IdSets::InternInner(const Inner& inner) {
  uint64_t hash = 0;
  for (const uint32_t child : inner)
    hash = (hash ^ child) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
  const auto [first, last] = inner_index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (inners_[it->second] == inner) return it->second;
  }
  inners_.push_back(inner);
  inner_index_.emplace(hash, static_cast<uint32_t>(inners_.size() - 1));
  return static_cast<uint32_t>(inners_.size() - 1);
}

uint32_t IdSets::Insert(uint32_t node, int height, uint32_t member) {
  if (height == 0) return InternLeaf(leaves_[node] | uint64_t{1} << (member & 63));
  const int shift = kLeafBits + kInnerBits * (height - 1);
  const size_t slot = member >> shift & ((1 << kInnerBits) - 1);
  const uint32_t child = Insert(inners_[node][slot], height - 1, member);
  Inner inner = inners_[node];
  inner[slot] = child;
  return InternInner(inner);
}

IdSets::Id IdSets::With(Id id, uint32_t member) {
  if (Contains(id, member)) return id;
  Set set = sets_[id];
  while (member >= Capacity(set.height)) {
    if (set.root != 0) {
      Inner inner{};
      inner[0] = set.root;
      set.root = InternInner(inner);
    }
    ++set.height;
  }
  set.root = Insert(set.root, set.height, member);
  const auto [it, fresh] = set_index_.try_emplace(
      uint64_t{set.root} << 8 | static_cast<uint64_t>(set.height), static_cast<Id>(sets_.size()));
  if (fresh) {
    ++set.size;
    set.before = id;
    set.last = member;
    sets_.push_back(set);
  }
  return it->second;
}

bool IdSets::Contains(Id id, uint32_t member) const {
  const Set& set = sets_[id];
  if (member >= Capacity(set.height)) return false;
  uint32_t node = set.root;
  for (int height = set.height; height > 0; --height) {
    const int shift = kLeafBits + kInnerBits * (height - 1);
    node = inners_[node][member >> shift & ((1 << kInnerBits) - 1)];
  }
  return (leaves_[node] >> (member & 63) & 1) != 0;
}

std::vector<uint32_t> IdSets::Members(Id id) const {
  std::vector<uint32_t> out;
  for (; id != kEmpty; id = sets_[id].before) out.push_back(sets_[id].last);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace pawl::schema
