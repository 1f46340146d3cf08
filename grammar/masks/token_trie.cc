// Built from the sorted token list: two neighbours share their longest common prefix, so pushing
// tokens in order emits nodes in depth-first order at once, and a node's subtree ends when a token
// no longer shares it.
#include "grammar/masks/token_trie.h"

#include <algorithm>

namespace pawl {

TokenTrie::TokenTrie(std::span<const std::string> tokens, std::span<const TokenId> ids)
    : first_child_(256, kNone), second_child_(256 * 256, kNone) {
  std::vector<TokenId> sorted;
  sorted.reserve(ids.size());
  for (const TokenId id : ids) {
    if (!tokens[static_cast<size_t>(id)].empty()) sorted.push_back(id);
  }
  const auto bytes = [&](TokenId id) -> const std::string& {
    return tokens[static_cast<size_t>(id)];
  };
  std::sort(sorted.begin(), sorted.end(), [&](TokenId a, TokenId b) {
    const int order = bytes(a).compare(bytes(b));
    return order != 0 ? order < 0 : a < b;
  });

  std::vector<uint32_t> path;  // node index at each depth of the previous token
  const std::string* previous = nullptr;
  TokenId last_same = kNoToken;
  const auto close_to = [&](size_t depth) {
    while (path.size() > depth) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  for (const TokenId id : sorted) {
    const std::string& text = bytes(id);
    if (previous != nullptr && text == *previous) {
      same_.emplace(last_same, id);
      nodes_.back().several = true;
      last_same = id;
      continue;
    }
    size_t shared = 0;
    if (previous != nullptr) {
      const size_t limit = std::min(text.size(), previous->size());
      while (shared < limit && text[shared] == (*previous)[shared]) ++shared;
    }
    close_to(shared);
    for (size_t depth = shared; depth < text.size(); ++depth) {
      const uint8_t byte = static_cast<uint8_t>(text[depth]);
      if (depth == 0) first_child_[byte] = static_cast<uint32_t>(nodes_.size());
      if (depth == 1) {
        const auto first = static_cast<uint8_t>(text[0]);
        second_child_[static_cast<size_t>(first) << 8 | byte] =
            static_cast<uint32_t>(nodes_.size());
      }
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, kNoToken, static_cast<uint16_t>(depth + 1), byte, false});
    }
    nodes_.back().token = id;
    max_depth_ = std::max(max_depth_, static_cast<int>(text.size()));
    previous = &text;
    last_same = id;
  }
  close_to(0);
  order_.reserve(sorted.size());
  first_token_.reserve(nodes_.size() + 1);
  for (const Node& node : nodes_) {
    first_token_.push_back(static_cast<uint32_t>(order_.size()));
    ForTokens(node, [this](TokenId t) { order_.push_back(t); });
  }
  first_token_.push_back(static_cast<uint32_t>(order_.size()));
}

uint32_t TokenTrie::Child(uint32_t node, uint8_t byte) const {
  if (node == kRoot) return first_child_[byte];
  if (nodes_[node].depth == 1)
    return second_child_[static_cast<size_t>(nodes_[node].byte) << 8 | byte];
  const uint32_t end = nodes_[node].end;
  for (uint32_t i = node + 1; i < end; i = nodes_[i].end) {
    if (nodes_[i].byte == byte) return i;
    if (nodes_[i].byte > byte) break;
  }
  return kNone;
}

}  // namespace pawl
