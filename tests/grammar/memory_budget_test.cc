// The byte budget of a compiler's grammars: when it says that it is spent.
#include "grammar/memory_budget.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(MemoryBudgetTest, SpentBeyondItsLimit) {
  MemoryBudget budget(64 * kMiB);
  const auto limit = static_cast<int64_t>(budget.limit());
  EXPECT_EQ(limit, 48 * kMiB);
  budget.Add(limit);
  EXPECT_FALSE(budget.Spent());
  budget.Add(1);
  EXPECT_TRUE(budget.Spent());
}

// What no grammar can give back is not asked for at every step, only after it has grown.
TEST(MemoryBudgetTest, NotAskedAgainAtOnce) {
  MemoryBudget budget(64 * kMiB);
  const auto limit = static_cast<int64_t>(budget.limit());
  budget.Add(limit + kMiB);
  budget.Settle();
  EXPECT_FALSE(budget.Spent());
  budget.Add(limit / 32 + 1);
  EXPECT_TRUE(budget.Spent());
}

// A limit that is passed while states hold what was found before holds again when they are gone,
// however often that happens.
TEST(MemoryBudgetTest, TheLimitDoesNotRise) {
  MemoryBudget budget(64 * kMiB);
  const auto limit = static_cast<int64_t>(budget.limit());
  for (int i = 0; i < 100; ++i) {
    budget.Add(limit + 1);
    EXPECT_TRUE(budget.Spent()) << i;
    budget.Settle();
    EXPECT_FALSE(budget.Spent()) << i;
    if (i % 2 == 0) {
      budget.Freed(limit + 1);
    } else {
      budget.Add(-limit - 1);
    }
  }
}

}  // namespace
}  // namespace pawl
