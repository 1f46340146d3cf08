// Masks that are kept: by the state that was asked (MaskMemo), and by their words, so that equal
// masks are one object (MaskPool).
//
// MaskMemo: the masks of the states that were asked before, by state key.
//
// Made for many readers: the decode loops of a batch ask for known states nearly always, and none
// of them should wait for one that computes a new mask, nor hand a lock's counter to and fro with
// the others. So the table is one that readers search while it is written to, and what they lock,
// to keep a table from going away under them, is a gate that few other threads use. A writer closes
// all the gates only when it replaces the table by a larger or an empty one.
#ifndef PAWL_GRAMMAR_MASKS_MASK_MEMO_H_
#define PAWL_GRAMMAR_MASKS_MASK_MEMO_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/machine.h"
#include "pawl/grammar.h"
#include "src/base/sync.h"

namespace pawl {

// Thread safety: Find and Copy may be called at any time; Keep and Clear by one thread at a time.
class MaskMemo {
 public:
  MaskMemo();
  ~MaskMemo();

  // nullptr: not asked before, or forgotten.
  std::shared_ptr<const Mask> Find(Machine::Key key) const;
  // The number of tokens that the mask allows, with its words copied to `row`; -1 like nullptr
  // above. Takes no reference, whose counter the threads of a batch would hand to and fro.
  int64_t Copy(Machine::Key key, std::span<uint32_t> row) const;
  void Keep(Machine::Key key, const std::shared_ptr<const Mask>& mask);
  void Clear();

 private:
  class Table;
  static constexpr size_t kGates = 16;
  struct alignas(64) Gate {  // a cache line of its own
    SharedMutex mutex;
  };
  // This thread's gate, locked.
  SharedLock Enter() const;
  void Replace(std::unique_ptr<Table> table);

  mutable std::array<Gate, kGates> gates_;
  // A writer is at the gates: newcomers wait for it, or those inside might never all be gone.
  std::atomic<bool> closing_{false};
  mutable Mutex closed_;
  std::unique_ptr<Table> table_;  // replaced with all the gates closed
};

// MaskPool: interns masks by content, within a bound on memory.

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
  // The same in two steps, of which the first may run next to anything.
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

#endif  // PAWL_GRAMMAR_MASKS_MASK_MEMO_H_
