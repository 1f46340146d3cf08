// SubtreeClasses: which nodes of a vocabulary's trie have the same byte and the same tokens below
// them, but for what came before. " foo(" and " bar(" end in one class, and what may follow a word
// is found for both at once.
//
// Made once for a vocabulary (Vocabulary::Derived). Immutable.
#ifndef PAWL_GRAMMAR_CFG_SUBTREE_CLASSES_H_
#define PAWL_GRAMMAR_CFG_SUBTREE_CLASSES_H_

#include <cstdint>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

class SubtreeClasses {
 public:
  explicit SubtreeClasses(const Vocabulary& vocabulary);

  // Nodes of one class have subtrees of the same size, byte for byte, with tokens at the same
  // nodes.
  uint32_t ClassOf(uint32_t node) const { return class_of_[node]; }
  uint32_t count() const { return count_; }

 private:
  std::vector<uint32_t> class_of_;
  uint32_t count_ = 0;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_SUBTREE_CLASSES_H_
