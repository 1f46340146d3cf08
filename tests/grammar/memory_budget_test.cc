// The byte budget of a compiler's grammars: when it says that it is spent.
#include "grammar/memory_budget.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "grammar/grammar_access.h"
#include "grammar/machine.h"
#include "pawl/grammar.h"
#include "pawl/vocabulary.h"
#include "src/base/stop_scope.h"

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

// What no grammar can free is not asked for at every step, only after it has grown.
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

// A machine that waits in the middle of a question.
class WaitingMachine : public Machine {
 public:
  Key Start() override { return MakeKey(1, 1); }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kLeavesLexeme; }
  Key StepFrame(Key state, uint8_t) override {
    asked.set_value();
    go.get_future().wait();
    return state;
  }
  bool Accepting(Key) override { return true; }
  std::optional<std::string> CompletionBytes(Key) override { return ""; }

  std::promise<void> asked, go;
};

// Bug: a report of memory waited for the end of all questions, and so did who waited for it.
TEST(MemoryBudgetTest, AReportDoesNotWaitForAQuestion) {
  auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  ASSERT_TRUE(vocabulary.ok());
  const auto machine = std::make_shared<WaitingMachine>();
  const auto budget = std::make_shared<MemoryBudget>(64 * kMiB);
  const Grammar grammar = GrammarAccess::New(machine, *vocabulary, budget, {}, 0);
  const size_t before = budget->Measure();
  std::thread thread([&] { EXPECT_TRUE(grammar.Start().Advance("a").has_value()); });
  machine->asked.get_future().wait();
  EXPECT_EQ(budget->Measure(), before);
  machine->go.set_value();
  thread.join();
}

// Bug: what a question had found when it was stopped stayed until the grammar was asked again.
TEST(MemoryBudgetTest, WhatAStoppedQuestionHasFoundIsFreed) {
  auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  ASSERT_TRUE(vocabulary.ok());
  class StoppedMachine : public Machine {
   public:
    Key Start() override { return MakeKey(1, 1); }
    uint32_t StepLexeme(uint32_t, uint8_t) override { return kLeavesLexeme; }
    Key StepFrame(Key, uint8_t) override { throw Stopped(); }
    bool Accepting(Key) override { return true; }
    std::optional<std::string> CompletionBytes(Key) override { return ""; }
  };
  const auto budget = std::make_shared<MemoryBudget>(64 * kMiB);
  auto machine = std::make_shared<StoppedMachine>();
  const std::weak_ptr<StoppedMachine> alive = machine;
  const Grammar grammar = GrammarAccess::New(std::move(machine), *vocabulary, budget, {}, 0);
  EXPECT_THROW((void)grammar.Start().Advance("a"), Stopped);
  EXPECT_FALSE(alive.expired());
  budget->FreeUnused();
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace pawl
