// A mask is what the bytes of tokens allow, then the tokens that a machine takes as a whole, then
// the end of the output.
#include "grammar/masks/mask_builder.h"

#include "grammar/masks/machine_masks.h"

namespace pawl {

std::vector<uint32_t> MaskBuilder::Build(Machine::Key state) {
  std::vector<uint32_t> words(static_cast<size_t>(vocabulary_.mask_words()), 0);
  Build(state, words);
  return words;
}

MaskStrategy MaskBuilder::Build(Machine::Key state, std::vector<uint32_t>& words) {
  state = machine_.AtToken(state, vocabulary_);
  MachineMasks* const own = machine_.Masks(vocabulary_);
  std::optional<MaskStrategy> path = own == nullptr ? std::nullopt : own->Fill(state, words.data());
  if (!path) {
    lexemes_.Fill(state, words.data());
    path = MaskStrategy::kTrieWalk;
  }
  machine_.FillTokens(state, words.data());
  if (machine_.Accepting(state)) {
    for (const TokenId id : vocabulary_.end_tokens())
      words[static_cast<size_t>(id) >> 5] |= 1u << (id & 31);
  }
  return *path;
}

}  // namespace pawl
