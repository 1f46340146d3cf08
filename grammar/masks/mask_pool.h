// MaskPool: interns masks by content, within a bound on memory.
#ifndef PAWL_GRAMMAR_MASKS_MASK_POOL_H_
#define PAWL_GRAMMAR_MASKS_MASK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/grammar.h"

namespace pawl {

// Not thread-safe but for Hash; GrammarImpl locks. Ids are never reused, also not for masks that
// were forgotten.
class MaskPool {
 public:
  explicit MaskPool(size_t max_bytes) : max_bytes_(max_bytes) {}

  // The one mask with these words. Forgets everything first when the pool is full; masks in use
  // live on with their holders.
  std::shared_ptr<const Mask> Intern(std::vector<uint32_t> words) {
    const uint64_t hash = Hash(words);
    return Intern(hash, std::move(words));
  }
  // The same in two steps, of which the first may run beside anything.
  static uint64_t Hash(std::span<const uint32_t> words);
  std::shared_ptr<const Mask> Intern(uint64_t hash, std::vector<uint32_t> words);
  size_t bytes() const { return bytes_; }
  void Clear();

 private:
  size_t max_bytes_;
  size_t bytes_ = 0;
  MaskId next_id_ = 0;
  std::unordered_multimap<uint64_t, std::shared_ptr<const Mask>> masks_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_MASK_POOL_H_
