// Hash-consing from the leaves up: in depth-first order children stand behind their parent, so one
// pass from the back sees them first.
#include "grammar/cfg/subtree_classes.h"

#include <unordered_map>

#include "grammar/token_trie.h"

namespace pawl {

SubtreeClasses::SubtreeClasses(const Vocabulary& vocabulary) {
  const auto nodes = vocabulary.trie().nodes();
  class_of_.resize(nodes.size());
  std::unordered_multimap<uint64_t, uint32_t> known;  // by hash: a node of each class
  known.reserve(nodes.size() / 4);
  const auto same = [&](uint32_t a, uint32_t b) {
    if (nodes[a].byte != nodes[b].byte || nodes[a].end - a != nodes[b].end - b ||
        (nodes[a].token == kNoToken) != (nodes[b].token == kNoToken)) {
      return false;
    }
    uint32_t i = a + 1, j = b + 1;
    for (; i < nodes[a].end; i = nodes[i].end, j = nodes[j].end) {
      if (j >= nodes[b].end || class_of_[i] != class_of_[j]) return false;
    }
    return true;
  };
  for (auto node = static_cast<uint32_t>(nodes.size()); node-- > 0;) {
    uint64_t hash = nodes[node].byte * 2u + (nodes[node].token == kNoToken ? 0 : 1);
    for (uint32_t child = node + 1; child < nodes[node].end; child = nodes[child].end) {
      hash = (hash ^ class_of_[child]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    class_of_[node] = UINT32_MAX;
    const auto [begin, end] = known.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (same(node, it->second)) class_of_[node] = class_of_[it->second];
    }
    if (class_of_[node] == UINT32_MAX) {
      class_of_[node] = count_++;
      known.emplace(hash, node);
    }
  }
}

}  // namespace pawl
