// StructureTokens: where the tokens of a vocabulary have the bytes of JSON's structure, whatever
// the schema.
//
// Between two values stand white space and one byte that matters. Most tokens have nothing of the
// kind, so a mask there asks only for the few trie nodes that do.
#ifndef PAWL_SCHEMAS_MASKS_STRUCTURE_TOKENS_H_
#define PAWL_SCHEMAS_MASKS_STRUCTURE_TOKENS_H_

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"

namespace pawl::schema {

// Immutable; get it as TableOf<StructureTokens>(vocabulary).
class StructureTokens {
 public:
  explicit StructureTokens(const Vocabulary& vocabulary);

  // The trie nodes that `byte` leads to after nothing but white space, with the number of white
  // space characters before it.
  struct Place {
    uint32_t node;
    uint32_t spaces;
  };
  std::span<const Place> PlacesOf(uint8_t byte) const { return places_[byte]; }
  // Some token goes on from the trie node (kRoot: from the beginning) to a quote.
  bool LeadsToQuote(uint32_t node) const {
    return node == TokenTrie::kRoot || quotes_before_[ends_[node]] > quotes_before_[node];
  }
  // Sets the bits of the tokens that are white space and no longer than `most`.
  void SetSpaces(uint64_t most, std::span<uint32_t> words) const;

 private:
  std::array<std::vector<Place>, 256> places_;
  std::vector<uint32_t> quotes_before_, ends_;        // by trie node
  std::vector<std::pair<uint32_t, TokenId>> spaces_;  // (length, token)
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_MASKS_STRUCTURE_TOKENS_H_
