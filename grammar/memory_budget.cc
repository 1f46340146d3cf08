// The largest frees memory first. What grows without end is what gets large, so grammars whose
// states are all known keep what they have found, and those that always meet new ones pay for it. A
// grammar frees memory when it has at least doubled since it began, so that however small the
// budget, no more is found again than was found once. Grammars that are not in use are the
// exception: when nothing else helps they give all back, those used longest ago first.
#include "grammar/memory_budget.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <utility>

#include "grammar/grammar_impl.h"

namespace pawl {
namespace {

// Handing back takes milliseconds.
constexpr int64_t kWorthHandingBack = int64_t{16} << 20;

// What is freed lies between what is still in use, and the C library keeps it: a process that has
// freed a hundred times held four times what it used.
void HandBackToTheSystem() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

void MemoryBudget::Register(const std::shared_ptr<GrammarOwner>& keeper) {
  const std::lock_guard lock(mutex_);
  if (keepers_.size() == keepers_.capacity())
    std::erase_if(keepers_, [](const auto& weak) { return weak.expired(); });
  keepers_.push_back(keeper);
  grammars_.store(static_cast<int64_t>(keepers_.size()), std::memory_order_relaxed);
}

std::vector<std::shared_ptr<GrammarOwner>> MemoryBudget::Keepers() {
  std::vector<std::shared_ptr<GrammarOwner>> out;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : keepers_) {
    if (auto keeper = weak.lock()) out.push_back(std::move(keeper));
  }
  return out;
}

void MemoryBudget::Settle() {
  const std::unique_lock settling(settling_, std::try_to_lock);
  if (!settling.owns_lock() || !Spent()) return;
  const std::vector<std::shared_ptr<GrammarOwner>> keepers = Keepers();
  const auto over = [&] { return bytes_.load(std::memory_order_relaxed) > limit_; };
  const size_t least = limit() / 64;
  // What states in use hold stays until they go; a grammar that freed memory is not asked again.
  std::vector<bool> asked(keepers.size());
  while (over()) {
    size_t best = keepers.size();
    for (size_t i = 0; i < keepers.size(); ++i) {
      if (asked[i] || keepers[i]->Reclaimable() < least) continue;
      if (best == keepers.size() || keepers[i]->Reclaimable() > keepers[best]->Reclaimable())
        best = i;
    }
    if (best == keepers.size()) break;
    asked[best] = true;
    keepers[best]->Trim();
  }
  LetGoIdle(keepers, UINT64_MAX);
  const int64_t left = bytes_.load(std::memory_order_relaxed);
  again_.store(left > limit_ ? left + limit_ / 32 : limit_, std::memory_order_relaxed);
}

void MemoryBudget::LetGoIdle(const std::vector<std::shared_ptr<GrammarOwner>>& keepers,
                             uint64_t before) {
  while (bytes_.load(std::memory_order_relaxed) > limit_) {
    size_t oldest = keepers.size();
    for (size_t i = 0; i < keepers.size(); ++i) {
      if (!keepers[i]->Idle() || keepers[i]->used() >= before) continue;
      if (oldest == keepers.size() || keepers[i]->used() < keepers[oldest]->used()) oldest = i;
    }
    if (oldest == keepers.size()) return;
    keepers[oldest]->Evict();
  }
}

void MemoryBudget::FreeUnused() {
  {
    const std::lock_guard settling(settling_);
    const uint64_t before = std::exchange(unused_since_, Tick());
    const std::vector<std::shared_ptr<GrammarOwner>> keepers = Keepers();
    for (const auto& keeper : keepers) keeper->LetGoLost();
    LetGoIdle(keepers, before);
  }
  HandBack();
}

void MemoryBudget::HandBack() {
  int64_t freed = freed_.load(std::memory_order_relaxed);
  if (freed >= kWorthHandingBack && freed_.compare_exchange_strong(freed, 0)) HandBackToTheSystem();
}

size_t MemoryBudget::Measure() {
  for (const auto& keeper : Keepers()) keeper->Measure();
  return static_cast<size_t>(std::max<int64_t>(0, bytes_.load(std::memory_order_relaxed)));
}

}  // namespace pawl
