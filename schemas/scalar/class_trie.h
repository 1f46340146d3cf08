// ClassTrie: the tokens of a vocabulary as strings of character classes (char_class.h).
//
// As pieces of a string, "house", "where" and thousands of others are the same five lower-case
// letters to nearly every pattern. Told apart by classes alone, the tokens make a trie of some ten
// thousand nodes where their bytes take hundreds of thousands; a pattern that restricts a string
// but leaves it wide is walked on that.
//
// Plain tokens are those that stay inside a string and hold nothing but characters with a class;
// the last one may be incomplete. Tokens with a quote, an escape or a character that IsSetApart are
// intricate: few, and left to the trie of bytes. All others no string has.
#ifndef PAWL_SCHEMAS_SCALAR_CLASS_TRIE_H_
#define PAWL_SCHEMAS_SCALAR_CLASS_TRIE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"
#include "schemas/scalar/char_class.h"

namespace pawl::schema {

// Immutable; get it as TableOf<ClassTrie>(vocabulary).
class ClassTrie {
 public:
  explicit ClassTrie(const Vocabulary& vocabulary);

  // Depth first, as in TokenTrie; the root is node 0, with depth 0.
  struct Node {
    uint32_t end;
    uint32_t place;    // the first token of the subtree, in order(); those that end here come first
    uint64_t below;    // classes of the nodes below, as bits
    uint32_t spelled;  // the one node of the trie of bytes that all these tokens go through
    uint16_t depth;    // characters
    CharClass like;
  };
  static constexpr uint32_t kManySpellings = UINT32_MAX - 1;  // no node; the root has TokenTrie's
  std::span<const Node> nodes() const { return nodes_; }
  uint16_t max_depth() const { return max_depth_; }
  // Places of the tokens that end at the node, and of all in its subtree.
  uint32_t EndsHere(uint32_t node) const { return ends_here_[node]; }
  uint32_t Place(uint32_t node) const {
    return node < nodes_.size() ? nodes_[node].place : static_cast<uint32_t>(order_.size());
  }
  // The plain tokens, those of a node by their bytes.
  std::span<const TokenId> order() const { return order_; }
  // Sets the bits of the tokens at first ... last - 1 of the order.
  void SetBits(uint32_t first, uint32_t last, uint32_t* words) const {
    ranges_.SetBits(order_, first, last, words);
  }

  // The nodes of the trie of bytes that lead to the intricate tokens, up to the quote.
  struct Step {
    uint32_t node;
    uint32_t after;  // the first step behind the node's subtree
  };
  std::span<const Step> intricate() const { return intricate_; }
  // The marked nodes of a trie of bytes. REQUIRES: the nodes above a marked one are marked.
  static std::vector<Step> StepsOf(const std::vector<bool>& marked, const TokenTrie& trie);

 private:
  struct Builder;
  void MakeCuts(int words);

  std::vector<Node> nodes_;
  std::vector<uint32_t> ends_here_;
  std::vector<TokenId> order_;
  uint16_t max_depth_ = 0;
  std::vector<Step> intricate_;
  TokenRanges ranges_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_CLASS_TRIE_H_
