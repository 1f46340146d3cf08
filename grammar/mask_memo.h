// MaskMemo: the masks of the states that were asked before, by state key.
//
// Thread-safe, and made for many readers: the decode loops of a batch ask for known states nearly
// always, and none of them should wait for one that computes a new mask. The keys are spread over
// shards with a readers' lock each, so that readers seldom touch the same lock.
#ifndef PAWL_GRAMMAR_MASK_MEMO_H_
#define PAWL_GRAMMAR_MASK_MEMO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <unordered_map>

#include "grammar/machine.h"
#include "pawl/mask.h"

namespace pawl {

class MaskMemo {
 public:
  // nullptr: not asked before, or forgotten.
  std::shared_ptr<const Mask> Find(Machine::Key key) const;
  // The number of tokens that the mask allows, with its words copied to `row`; -1 like nullptr
  // above. Takes no reference, whose counter the threads of a batch would hand to and fro.
  int64_t Copy(Machine::Key key, std::span<uint32_t> row) const;
  void Keep(Machine::Key key, const std::shared_ptr<const Mask>& mask);
  void Clear();

 private:
  static constexpr size_t kShards = 16;
  struct alignas(64) Shard {  // a cache line of its own
    mutable std::shared_mutex mutex;
    std::unordered_map<Machine::Key, std::shared_ptr<const Mask>> masks;
  };
  static size_t ShardOf(Machine::Key key) {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 60);
  }
  std::array<Shard, kShards> shards_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASK_MEMO_H_
