// Masks: which tokens may come next. Bit i of word i/32 is 1 when token i is allowed.
//
// A mask is an interned value: equal masks of one grammar have the same id (and, while somebody
// holds them, the same address), so a decode loop can pass ids around and a device can mirror the
// masks.
#ifndef PAWL_MASK_H_
#define PAWL_MASK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pawl/export.h"
#include "pawl/vocabulary.h"

namespace pawl {

using MaskId = int64_t;

// One mask, immutable. Thread-safe.
class PAWL_EXPORT Mask {
 public:
  // Bits at and beyond the vocabulary size must be 0.
  Mask(MaskId id, std::vector<uint32_t> words);

  MaskId id() const { return id_; }
  std::span<const uint32_t> words() const { return words_; }
  // REQUIRES: 0 <= token < vocabulary size.
  bool Allows(TokenId token) const {
    return (words_[static_cast<size_t>(token) >> 5] >> (token & 31)) & 1;
  }
  // Number of allowed tokens; O(words) the first time.
  int count() const {
    if (count_.load(std::memory_order_acquire) < 0) Count();
    return count_.load(std::memory_order_relaxed);
  }
  // The only allowed token when count() is 1, else kNoToken.
  TokenId singleton() const {
    return count() == 1 ? first_.load(std::memory_order_relaxed) : kNoToken;
  }
  // Every allowed token in ascending order; O(words).
  std::vector<TokenId> Tokens() const;

 private:
  MaskId id_;
  std::vector<uint32_t> words_;
  void Count() const;
  mutable std::atomic<int> count_{-1};  // -1: not counted yet
  mutable std::atomic<TokenId> first_{kNoToken};
};

}  // namespace pawl

#endif  // PAWL_MASK_H_
