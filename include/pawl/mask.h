// Masks: which tokens may come next. Bit i of word i/32 is 1 when token i is allowed.
//
// A mask is an interned value: equal masks of one pool have equal ids, so a decode loop can pass ids
// around, compare them, and let a device mirror the pool.
#ifndef PAWL_MASK_H_
#define PAWL_MASK_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

using MaskId = int32_t;

// One mask, immutable once handed out. Holders keep it alive; the pool may forget it.
class Mask {
 public:
  explicit Mask(std::vector<uint32_t> words);

  std::span<const uint32_t> words() const { return words_; }
  bool Allows(TokenId token) const {
    return (words_[static_cast<size_t>(token) >> 5] >> (token & 31)) & 1;
  }
  // Number of allowed tokens.
  int count() const { return count_; }
  // The only allowed token when count() is 1, else kNoToken.
  TokenId singleton() const { return singleton_; }
  // Every allowed token in ascending order; O(words).
  std::vector<TokenId> Tokens() const;

 private:
  std::vector<uint32_t> words_;
  int count_ = 0;
  TokenId singleton_ = kNoToken;
};

}  // namespace pawl

#endif  // PAWL_MASK_H_
