// Memory of grammars: the budget of a compiler (MemoryBudget), and the watch that ends a question
// which grows too much (GrowthWatch).
//
// MemoryBudget: how much all the grammars of a compiler may keep, and which one frees memory when
// that is spent.
//
//   auto budget = std::make_shared<MemoryBudget>(size_t{256} << 20);
//   budget->Register(keeper);                  // a grammar joins
//   budget->Add(bytes);                     // it has grown
//   if (budget->Spent()) budget->Settle();  // the largest starts again
//
// Thread-safe. Settle takes locks of grammars: call it with none held.
#ifndef PAWL_GRAMMAR_MEMORY_BUDGET_H_
#define PAWL_GRAMMAR_MEMORY_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "grammar/machine.h"
#include "src/base/failure.h"
#include "src/base/stop_scope.h"
#include "src/base/sync.h"

namespace pawl {

class GrammarOwner;

class MemoryBudget {
 public:
  static constexpr size_t kDefault = size_t{256} << 20;
  // A grammar that starts again is there twice until its old states go: a quarter is left for that.
  explicit MemoryBudget(size_t limit)
      : limit_(static_cast<int64_t>(limit - limit / 4)), again_(limit_) {}

  size_t limit() const { return static_cast<size_t>(limit_); }
  void Register(const std::shared_ptr<GrammarOwner>& keeper);
  void Add(int64_t bytes) {
    const int64_t now = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    // What could not be freed has gone by now: the limit holds again.
    if (bytes < 0 && now <= limit_) again_.store(limit_, std::memory_order_relaxed);
  }
  // Over the limit, and grown since the last time that not enough could be freed.
  bool Spent() const {
    return bytes_.load(std::memory_order_relaxed) > again_.load(std::memory_order_relaxed);
  }
  void Settle();
  // Frees grammars without states that were not used since the previous call, while more than the
  // limit is kept, and machines that an exception has broken. Settle happens when a grammar grows;
  // this is for a process that is idle.
  void FreeUnused();
  // A grammar that started again is gone, now that no state holds it.
  void Freed(int64_t bytes) {
    Add(-bytes);
    freed_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // What questions that run now have added, those that have added little aside; see GrowthWatch.
  struct Growing {
    int64_t bytes, questions;
    int64_t kept, grammars;  // what all grammars keep besides
  };
  Growing Grow(int64_t bytes, int64_t questions) {
    return {growing_.fetch_add(bytes, std::memory_order_relaxed) + bytes,
            growers_.fetch_add(questions, std::memory_order_relaxed) + questions,
            bytes_.load(std::memory_order_relaxed), grammars_.load(std::memory_order_relaxed)};
  }
  // Hands what was freed to the system, if it is much.
  void HandBack();
  // What is kept, measured now; of grammars that are asked something now, as booked before.
  size_t Measure();
  // Counts up: the order in which grammars were used.
  uint64_t Tick() { return ticks_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::vector<std::shared_ptr<GrammarOwner>> Keepers();
  // Those used longest ago first, and of them only those used before the tick `before`.
  void LetGoIdle(const std::vector<std::shared_ptr<GrammarOwner>>& keepers, uint64_t before);

  const int64_t limit_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> again_;  // Settle is worth while beyond so many bytes
  std::atomic<uint64_t> ticks_{0};
  std::atomic<int64_t> growing_{0}, growers_{0}, grammars_{0};
  std::atomic<int64_t> freed_{0};  // since free memory was handed back to the system
  Mutex settling_;                 // by one thread at a time; of unused_since_
  uint64_t unused_since_ = 0;
  Mutex mutex_;  // of what follows
  std::vector<std::weak_ptr<GrammarOwner>> keepers_;
};

// GrowthWatch: ends a question to a machine that makes it grow beyond a bound, in the middle of the
// question (StepWatch in src/base/stop_scope.h). Between questions the budget frees what is too
// much; but a question could take all memory before it is asked. The bound also holds for all
// questions that run at the same time: beyond it, those that have added more than the average end.
// Grammars in use cannot free what they keep: where many keep twice the bound together, questions
// of those that keep more than the average end.
//
//   const GrowthWatch watch(*machine, before, *budget);     // throws TooMuchMemory while it lives
class GrowthWatch final : public StepWatch {
 public:
  // `before`: Machine::GrowthHint() from which on growth counts.
  GrowthWatch(const Machine& machine, size_t before, MemoryBudget& budget)
      : machine_(machine), budget_(budget), before_(before), most_(MostOf(budget.limit())) {}
  ~GrowthWatch() {
    if (counted_ > 0) budget_.Grow(-counted_, -1);
  }
  GrowthWatch(const GrowthWatch&) = delete;
  GrowthWatch& operator=(const GrowthWatch&) = delete;

  void Look() override {
    constexpr int64_t kCounted = int64_t{1} << 20;
    const auto own = static_cast<int64_t>(machine_.GrowthHint());
    const int64_t grown = own - static_cast<int64_t>(before_);
    if (grown < kCounted) return;
    const auto [all, questions, kept, grammars] =
        budget_.Grow(grown - counted_, counted_ == 0 ? 1 : 0);
    counted_ = grown;
    const int64_t held = kept + all;
    const bool too_many = held > 2 * most_ && 2 * own <= held && own * grammars >= held;
    if (grown > most_ || (all > most_ && grown * questions >= all) || too_many) {
      throw TooMuchMemory(
          "what has to be found of this grammar at once takes more memory than all grammars may "
          "keep");
    }
  }

  // What questions may add where `limit` bytes may be kept: below a certain size a grammar that
  // was given a small budget could not be asked at all.
  static int64_t MostOf(size_t limit) {
    return static_cast<int64_t>(std::max(limit, size_t{32} << 20));
  }

 private:
  const Machine& machine_;
  MemoryBudget& budget_;
  const size_t before_;
  const int64_t most_;
  int64_t counted_ = 0;  // of this question, in the budget
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MEMORY_BUDGET_H_
