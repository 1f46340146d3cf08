// Hash-consed tries with path copying: an insertion makes one new node on each level and shares the
// rest, and since nodes are interned too, two ways to the same members end at the same root.
#include "schemas/frames/id_set.h"

#include <algorithm>

namespace pawl::schema {

IdSets::IdSets() : sets_(1), leaves_(1, 0), inners_(1, Inner{}) {
  leaf_index_.Insert(0, 0);
  set_index_.Insert(0, kEmpty);
}

uint32_t IdSets::InternLeaf(uint64_t bits) { return leaf_index_.Intern(bits, leaves_, bits); }

uint32_t IdSets::InternInner(const Inner& inner) {
  uint64_t hash = 0;
  for (const uint32_t child : inner) hash = HashMix(hash, child);
  return inner_index_.Intern(hash, inners_, inner);
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
  const uint64_t hash = uint64_t{set.root} << 8 | static_cast<uint64_t>(set.height);
  const Id known = set_index_.Find(hash, [&](uint32_t other) {
    return sets_[other].root == set.root && sets_[other].height == set.height;
  });
  if (known != HashIndex::kNone) return known;
  ++set.size;
  set.before = id;
  set.last = member;
  sets_.push_back(set);
  set_index_.Insert(hash, static_cast<Id>(sets_.size() - 1));
  return static_cast<Id>(sets_.size() - 1);
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
