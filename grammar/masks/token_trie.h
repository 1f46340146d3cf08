// TokenTrie: all text tokens of a vocabulary as one byte trie, stored in depth-first order.
//
// A walk visits nodes by index; when a byte is refused it jumps to `end`, past the whole subtree.
// This is the layout that makes computing a mask one linear pass (the idea is old; llguidance's
// toktrie and XGrammar's sorted vocabulary use it as well).
#ifndef PAWL_GRAMMAR_MASKS_TOKEN_TRIE_H_
#define PAWL_GRAMMAR_MASKS_TOKEN_TRIE_H_

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

class TokenTrie {
 public:
  struct Node {
    uint32_t end;    // index after the last node of this subtree
    TokenId token;   // a token that ends here, or kNoToken
    uint16_t depth;  // bytes from the root, 1 for its children
    uint8_t byte;
    bool several;  // more tokens have these bytes
  };

  // `ids`: the text tokens; empty strings are left out (they would never make progress).
  TokenTrie(std::span<const std::string> tokens, std::span<const TokenId> ids);

  std::span<const Node> nodes() const { return nodes_; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  int max_depth() const { return max_depth_; }

  // Index of the child of `node` (kRoot for the root) along `byte`; kNone when there is none.
  static constexpr uint32_t kRoot = UINT32_MAX;
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t Child(uint32_t node, uint8_t byte) const;

  // All tokens in depth-first order: those of the subtree of node i stand at
  // FirstToken(i) ... FirstToken(nodes()[i].end) - 1.
  std::span<const TokenId> order() const { return order_; }
  uint32_t FirstToken(uint32_t node) const { return first_token_[node]; }

  // fn(token) for all tokens that end at `node`. Hardly ever is there more than one, and a walk
  // that looked for others would wait for memory at each.
  template <typename Fn>
  void ForTokens(const Node& node, Fn&& fn) const {
    if (node.token == kNoToken) return;
    fn(node.token);
    if (!node.several) return;
    for (auto it = same_.find(node.token); it != same_.end(); it = same_.find(it->second))
      fn(it->second);
  }
  // Sets the bits of all tokens that end at `node`.
  void SetBits(const Node& node, uint32_t* words) const {
    ForTokens(node, [words](TokenId t) { words[t >> 5] |= 1u << (t & 31); });
  }

 private:
  std::vector<Node> nodes_;
  std::unordered_map<TokenId, TokenId> same_;  // the next token with the same bytes
  std::vector<uint32_t> first_child_;          // of the root, by byte
  std::vector<uint32_t> second_child_;         // of the children of the root, by both bytes
  std::vector<TokenId> order_;
  std::vector<uint32_t> first_token_;  // by node, and one after the last
  int max_depth_ = 0;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_TOKEN_TRIE_H_
