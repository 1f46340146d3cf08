// SubtreeClasses: which nodes of a vocabulary's trie have the same byte and the same tokens below
// them, but for what came before. " foo(" and " bar(" end in one class, and what may follow a word
// is found for both at once. And of what bytes the tokens below a node consist: where an automaton
// stays in one state on all of them, nobody needs to walk there.
//
// Made once for a vocabulary (Vocabulary::Derived). Immutable.
#ifndef PAWL_GRAMMAR_CFG_SUBTREE_CLASSES_H_
#define PAWL_GRAMMAR_CFG_SUBTREE_CLASSES_H_

#include <bitset>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "grammar/masks/token_ranges.h"
#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"

namespace pawl {

class SubtreeClasses {
 public:
  explicit SubtreeClasses(const Vocabulary& vocabulary);

  // Nodes of one class have subtrees of the same size, byte for byte, with tokens at the same
  // nodes.
  uint32_t ClassOf(uint32_t node) const { return class_of_[node]; }
  uint32_t count() const { return count_; }
  // The classes of the bytes below the node (byte_class.h). Not malformed: below a node that ends a
  // character, all is UTF-8.
  uint64_t Below(uint32_t node) const { return below_[node]; }

  // Sets the bits of all tokens below the node, those that end at it not included.
  void SetBelow(uint32_t node, uint32_t* words) const {
    ranges_.SetBits(trie_.order(), trie_.FirstToken(node + 1),
                    trie_.FirstToken(trie_.nodes()[node].end), words);
  }

  // The children of a node with a large subtree: what begins with other bytes need not look there.
  static constexpr uint32_t kLarge = 200;  // nodes
  struct Child {
    uint32_t node;
    uint8_t byte;
  };
  struct Children {
    std::bitset<256> bytes;
    std::vector<Child> list;
  };
  // REQUIRES: more than kLarge nodes are below it.
  const Children& ChildrenOf(uint32_t node) const { return children_.at(node); }

 private:
  void FindClasses();
  void FindBytes();

  void FindRanges(int words);

  const TokenTrie& trie_;
  TokenRanges ranges_;
  std::vector<uint32_t> class_of_;
  uint32_t count_ = 0;
  std::vector<uint64_t> below_;
  std::unordered_map<uint32_t, Children> children_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_SUBTREE_CLASSES_H_
