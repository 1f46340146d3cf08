// TokenRanges: sets the bits of all tokens in a range of a fixed order, long ranges by words.
//
// At some places of the order (cuts) the bits of all tokens before it are kept; what lies between
// two cuts is the difference of two such masks.
#ifndef PAWL_GRAMMAR_MASKS_TOKEN_RANGES_H_
#define PAWL_GRAMMAR_MASKS_TOKEN_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

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

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_TOKEN_RANGES_H_
