// The vocabulary as a trie over bytes (TokenTrie), the bits of ranges of its tokens (TokenRanges),
// and the one walk over it behind every mask (Walk).
//
// TokenTrie: all text tokens of a vocabulary as one byte trie, stored in depth-first order.
//
// A walk visits nodes by index; when a byte is refused it jumps to `end`, past the whole subtree.
// This is the layout that makes computing a mask one linear pass (the idea is old; llguidance's
// toktrie and XGrammar's sorted vocabulary use it as well).
#ifndef PAWL_GRAMMAR_MASKS_TOKEN_TRIE_H_
#define PAWL_GRAMMAR_MASKS_TOKEN_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/stop_scope.h"

namespace pawl {

class PAWL_EXPORT TokenTrie {
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

// TokenRanges: sets the bits of all tokens in a range of a fixed order, long ranges by words.
//
// At some places of the order (cuts) the bits of all tokens before it are kept; what lies between
// two cuts is the difference of two such masks.

// Immutable.
class TokenRanges {
 public:
  // A range that is worth a cut at either end.
  static constexpr uint32_t kMany = 768;

  TokenRanges() = default;
  // REQUIRES: the cuts rise, from 1 to order.size() at most; `words` as Vocabulary::mask_words().
  TokenRanges(std::span<const TokenId> order, std::vector<uint32_t> cuts, int words);

  // Sets the bits of the tokens at first ... last - 1. `order` as it was given to the constructor.
  void SetBits(std::span<const TokenId> order, uint32_t first, uint32_t last,
               uint32_t* words) const;

 private:
  std::vector<uint32_t> cuts_;
  std::vector<uint32_t> cut_words_;  // of each cut behind each other
  size_t words_ = 0;
};

// Walk: one pass over a trie of tokens, in step with an automaton. Every mask comes from it.
//
//   Walk(trie, TokenTrie::kRoot, start, stack, [&](State before, uint32_t node) {
//     const State after = automaton.Step(before, trie.nodes()[node].byte);
//     if (Leaves(after)) exits.push_back(node);         // where a token leaves the lexeme
//     if (IsDead(after) || Leaves(after)) return State{};
//     trie.SetBits(trie.nodes()[node], words);          // the tokens that stay inside
//     return after;
//   });
//
// What the automaton is, is the stepper's business: a machine's keys or its lexemes alone, the
// states of a grammar, the texts behind a string's quote. It is asked about each node whose parent
// it went into, in the trie's order, and answers the state after it; State{} goes past all that is
// below, because nothing fits, because it is an exit, or because all of it is known already.

// Scratch of walks: one state for each depth.
template <typename State>
std::vector<State> WalkStack(const TokenTrie& trie) {
  return std::vector<State>(static_cast<size_t>(trie.max_depth()) + 1);
}

// The nodes begin ... end - 1, whole subtrees; `stack` has the state before `begin` at its depth.
template <typename State, typename Stepper>
void WalkSpan(const TokenTrie& trie, uint32_t begin, uint32_t end, std::vector<State>& stack,
              Stepper&& step) {
  const auto nodes = trie.nodes();
  for (uint32_t i = begin, visits = 0; i < end;) {
    if ((++visits & 0xFF) == 0) StopScope::Check();
    const uint16_t depth = nodes[i].depth;
    const State after = step(stack[depth - 1u], i);
    if (after == State{}) {
      i = nodes[i].end;
    } else {
      stack[depth] = after;
      ++i;
    }
  }
}

// All that is below `node` (TokenTrie::kRoot: all tokens), `at` being the state after it.
template <typename State, typename Stepper>
void Walk(const TokenTrie& trie, uint32_t node, State at, std::vector<State>& stack,
          Stepper&& step) {
  const bool root = node == TokenTrie::kRoot;
  stack[root ? 0 : trie.nodes()[node].depth] = at;
  WalkSpan(trie, root ? 0 : node + 1, root ? trie.size() : trie.nodes()[node].end, stack, step);
}

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_TOKEN_TRIE_H_
