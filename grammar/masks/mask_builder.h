// MaskBuilder: the mask of a state, by the machine's own way where it has one (machine_masks.h),
// else by a walk over the vocabulary's trie (lexeme_masks.h).
#ifndef PAWL_GRAMMAR_MASKS_MASK_BUILDER_H_
#define PAWL_GRAMMAR_MASKS_MASK_BUILDER_H_

#include <cstdint>
#include <vector>

#include "grammar/machine.h"
#include "grammar/masks/lexeme_masks.h"
#include "grammar/masks/mask_strategy.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Not thread-safe.
class MaskBuilder {
 public:
  MaskBuilder(Machine& machine, const Vocabulary& vocabulary)
      : machine_(machine), vocabulary_(vocabulary), lexemes_(machine, vocabulary) {}

  // Words of the mask of `state`, end-of-output tokens included when it accepts. Not memoised.
  std::vector<uint32_t> Build(Machine::Key state);
  // The same into `words`, and the way. REQUIRES: as many as a mask has, all zero.
  MaskStrategy Build(Machine::Key state, std::vector<uint32_t>& words);
  // Of what is kept between masks.
  size_t bytes() const { return lexemes_.bytes(); }

 private:
  Machine& machine_;
  const Vocabulary& vocabulary_;
  LexemeMasks lexemes_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_MASK_BUILDER_H_
