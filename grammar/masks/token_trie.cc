// Built from the sorted token list: two neighbours share their longest common prefix, so pushing
// tokens in order emits nodes in depth-first order at once, and a node's subtree ends when a token
// no longer shares it.
#include "grammar/masks/token_trie.h"

#include <algorithm>
#include <utility>

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

// The bits of all tokens before a cut are kept. The bits between two cuts are then `upper &
// ~lower`, one pass over the words, whatever the number of tokens; the two ends are set one by one.

TokenRanges::TokenRanges(std::span<const TokenId> order, std::vector<uint32_t> cuts, int words)
    : cuts_(std::move(cuts)), words_(static_cast<size_t>(words)) {
  std::vector<uint32_t> bits(words_);
  uint32_t place = 0;
  cut_words_.reserve(cuts_.size() * words_);
  for (const uint32_t at : cuts_) {
    for (; place < at; ++place)
      bits[static_cast<size_t>(order[place]) >> 5] |= 1u << (order[place] & 31);
    cut_words_.insert(cut_words_.end(), bits.begin(), bits.end());
  }
}

void TokenRanges::SetBits(std::span<const TokenId> order, uint32_t first, uint32_t last,
                          uint32_t* words) const {
  const auto set = [&](uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i)
      words[static_cast<size_t>(order[i]) >> 5] |= 1u << (order[i] & 31);
  };
  if (last - first < kMany) return set(first, last);
  // All of a range behind the cut `low` (0: the beginning) and before the cut `high` at once.
  const auto low =
      static_cast<size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), first) - cuts_.begin());
  const auto high = static_cast<size_t>(std::upper_bound(cuts_.begin(), cuts_.end(), last) -
                                        cuts_.begin());  // cuts_[high - 1] <= last
  const bool whole = first == 0;
  const uint32_t from = whole ? 0 : low < cuts_.size() ? cuts_[low] : last;
  const uint32_t to = high == 0 ? 0 : cuts_[high - 1];
  if (to < from || to - from < kMany) return set(first, last);
  const uint32_t* const upper = &cut_words_[(high - 1) * words_];
  if (whole) {
    for (size_t w = 0; w < words_; ++w) words[w] |= upper[w];
  } else {
    const uint32_t* const lower = &cut_words_[low * words_];
    for (size_t w = 0; w < words_; ++w) words[w] |= upper[w] & ~lower[w];
  }
  set(first, from);
  set(to, last);
}

}  // namespace pawl
