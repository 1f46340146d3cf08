// GrammarOwner: what a Grammar and its copies share. It knows how to make the grammar's machine
// again, so that what the machine has found can be given back.
//
// Thread-safe.
#ifndef PAWL_GRAMMAR_GRAMMAR_OWNER_H_
#define PAWL_GRAMMAR_GRAMMAR_OWNER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar_impl.h"
#include "grammar/machine.h"
#include "grammar/machine_lock.h"
#include "grammar/memory_budget.h"
#include "pawl/vocabulary.h"

namespace pawl {

// A machine, and the lock of all machines that share parts with it.
struct LockedMachine {
  std::shared_ptr<Machine> machine;
  std::shared_ptr<MachineLock> lock;
};
// Makes the same machine from what it was compiled from; a null one if that fails, which it must
// not, since it worked once.
using MachineMaker = std::function<LockedMachine()>;

class GrammarOwner : public std::enable_shared_from_this<GrammarOwner> {
 public:
  // `again`: may be empty; then only masks are given back, and an exception in a question of the
  // machine is the grammar's end. It holds `source_bytes`.
  static std::shared_ptr<GrammarOwner> Make(LockedMachine machine,
                                            std::shared_ptr<const Vocabulary> vocabulary,
                                            std::shared_ptr<MemoryBudget> budget,
                                            MachineMaker again, size_t source_bytes = 0);
  ~GrammarOwner();
  GrammarOwner(const GrammarOwner&) = delete;
  GrammarOwner& operator=(const GrammarOwner&) = delete;

  // The machine of now, with one use of it for the caller. Made again when it was given back, or
  // when an exception has broken its lock; without `again` one that takes nothing stands for that.
  const GrammarImpl* Current();
  const Vocabulary& vocabulary() const { return *shared_->vocabulary; }
  const std::shared_ptr<const Vocabulary>& shared_vocabulary() const { return shared_->vocabulary; }
  const std::shared_ptr<MemoryBudget>& budget() const { return shared_->budget; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool has_captures() const { return has_captures_; }

  // For the budget. Reclaimable: bytes that Trim would give back once no state needs them; 0 where
  // that is not worth while.
  size_t Reclaimable() const;
  void Trim();
  // No state is in use, and there is a machine to let go.
  bool Idle() const;
  void Evict();
  // The same where an exception has broken the machine: what it holds is of no use any more.
  void LetGoLost();
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // What is asked something at this moment is not measured.
  void Measure();

 private:
  GrammarOwner(LockedMachine machine, std::shared_ptr<const Vocabulary> vocabulary,
               std::shared_ptr<MemoryBudget> budget, MachineMaker again, size_t source_bytes);
  // The machine of now with a use of it; nullptr when there is none, or its lock is broken.
  const GrammarImpl* Known() const;

  std::shared_ptr<GrammarShared> shared_;
  MachineMaker again_;
  const int64_t source_bytes_;
  std::vector<std::string> notes_;
  bool has_captures_;
  std::atomic<uint64_t> used_{0};
  std::mutex making_;         // a machine again; before mutex_
  mutable std::mutex mutex_;  // of current_
  const GrammarImpl* current_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_GRAMMAR_OWNER_H_
