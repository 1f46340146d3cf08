// Hash-consing from the leaves up: in depth-first order children stand behind their parent, so one
// pass from the back sees them first. The bytes below a node are collected in the same way.
#include "grammar/cfg/subtree_classes.h"

#include <unordered_map>
#include <utility>

#include "grammar/byte_class.h"
#include "grammar/vocabulary_tables.h"

namespace pawl {
namespace {

// What has been read of a character: bytes still to come, and the range of the next one (RFC 3629).
struct Utf8State {
  int8_t missing = 0;  // -1: malformed
  uint8_t lo = 0x80, hi = 0xBF;
};

Utf8State Next(Utf8State state, uint8_t byte) {
  constexpr Utf8State kMalformed{-1, 0, 0};
  if (state.missing < 0) return state;
  if (state.missing > 0) {
    if (byte < state.lo || byte > state.hi) return kMalformed;
    return {static_cast<int8_t>(state.missing - 1), 0x80, 0xBF};
  }
  if (byte < 0x80) return {};
  if (byte < 0xC2 || byte > 0xF4) return kMalformed;
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {2, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  return {3, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
          static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
}

}  // namespace

SubtreeClasses::SubtreeClasses(const Vocabulary& vocabulary) : trie_(TrieOf(vocabulary)) {
  FindClasses();
  FindBytes();
  FindRanges(vocabulary.mask_words());
}

void SubtreeClasses::FindRanges(int words) {
  constexpr uint32_t kDistance = 2048;  // tokens between cuts
  std::vector<uint32_t> cuts;
  const auto all = static_cast<uint32_t>(trie_.order().size());
  for (uint32_t place = kDistance; place < all; place += kDistance) cuts.push_back(place);
  if (all > 0) cuts.push_back(all);
  ranges_ = TokenRanges(trie_.order(), std::move(cuts), words);
}

void SubtreeClasses::FindBytes() {
  const auto nodes = trie_.nodes();
  std::vector<Utf8State> read(static_cast<size_t>(trie_.max_depth()) + 1);
  std::vector<uint64_t> own(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const uint8_t byte = nodes[i].byte;
    const Utf8State after = Next(read[nodes[i].depth - 1u], byte);
    read[nodes[i].depth] = after;
    const int cls = after.missing < 0 ? kMalformedClass
                    : byte >= 0x80    ? kBeyondAsciiClass
                                      : kAsciiClass[byte];
    own[i] = uint64_t{1} << cls;
  }
  below_.assign(nodes.size(), 0);
  for (auto node = static_cast<uint32_t>(nodes.size()); node-- > 0;) {
    Children* children = nodes[node].end - node > kLarge ? &children_[node] : nullptr;
    for (uint32_t child = node + 1; child < nodes[node].end; child = nodes[child].end) {
      below_[node] |= own[child] | below_[child];
      if (children == nullptr) continue;
      children->bytes.set(nodes[child].byte);
      children->list.push_back({child, nodes[child].byte});
    }
  }
}

void SubtreeClasses::FindClasses() {
  const auto nodes = trie_.nodes();
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
