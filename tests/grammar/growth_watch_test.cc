// A question to a machine that grows without an end is ended, and the machine is made again.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar_access.h"
#include "grammar/machine_lock.h"
#include "grammar/memory_budget.h"
#include "pawl/grammar.h"
#include "pawl/vocabulary.h"
#include "src/base/failure.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

constexpr size_t kOneMiB = size_t{1} << 20;

// Each completion finds `bytes`, a kilobyte a step.
class GrowingMachine : public Machine {
 public:
  explicit GrowingMachine(size_t bytes) : bytes_(bytes) {}
  Key Start() override { return MakeKey(1, 1); }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kLeavesLexeme; }
  Key StepFrame(Key state, uint8_t) override { return state; }
  bool Accepting(Key) override { return true; }
  std::optional<std::string> CompletionBytes(Key) override {
    for (size_t found = 0; found < bytes_; found += 1024) {
      kept_ += 1024;
      StopScope::Step();
    }
    return "a";
  }
  size_t GrowthHint() const override { return kept_; }
  size_t MemoryBytes() const override { return kept_; }
  size_t kept() const { return kept_; }

 private:
  const size_t bytes_;
  size_t kept_ = 0;
};

TEST(GrowthWatchTest, AQuestionThatFindsTooMuchIsEnded) {
  auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  ASSERT_TRUE(vocabulary.ok());
  const auto budget = std::make_shared<MemoryBudget>(64 * kOneMiB);
  std::shared_ptr<GrowingMachine> last;
  int made = 0;
  const auto make = [&](size_t bytes) {
    ++made;
    last = std::make_shared<GrowingMachine>(bytes);
    return LockedMachine{last, std::make_shared<MachineLock>()};
  };
  const auto most = static_cast<size_t>(GrowthWatch::MostOf(budget->limit()));
  EXPECT_EQ(most, 48 * kOneMiB);
  const Grammar large = GrammarAccess::New(
      make(1024 * kOneMiB).machine, *vocabulary, budget, [&] { return make(kOneMiB); }, 0);
  const State state = large.Start();
  EXPECT_THROW((void)state.CompletionBytes(), TooMuchMemory);
  // Looks are made at least every 4,096 steps.
  EXPECT_GT(last->kept(), most);
  EXPECT_LE(last->kept(), most + 8 * kOneMiB);
  EXPECT_TRUE(state.lost());
  EXPECT_EQ(large.Start().CompletionBytes(), "a");
  EXPECT_EQ(made, 2);
  // Many questions may find more together.
  const Grammar small = GrammarAccess::New(make(16 * kOneMiB).machine, *vocabulary, budget, {}, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(small.Start().CompletionBytes(), "a");
}

// Bug: each of 18 questions that ran at the same time found as much as one may: 3 GB.
TEST(GrowthWatchTest, QuestionsThatRunTogetherShareTheBound) {
  auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  ASSERT_TRUE(vocabulary.ok());
  const auto budget = std::make_shared<MemoryBudget>(64 * kOneMiB);
  std::shared_ptr<GrowingMachine> last;
  const auto kept = [&] {
    const auto make = [&] {
      last = std::make_shared<GrowingMachine>(1024 * kOneMiB);
      return LockedMachine{last, std::make_shared<MachineLock>()};
    };
    const Grammar grammar = GrammarAccess::New(make().machine, *vocabulary, budget, make, 0);
    const std::shared_ptr<GrowingMachine> asked = last;
    EXPECT_THROW((void)grammar.Start().CompletionBytes(), TooMuchMemory);
    return asked->kept();
  };
  // Three others have found 45 MiB of 48: the fourth ends with their average.
  constexpr auto kOthers = static_cast<int64_t>(45 * kOneMiB);
  (void)budget->Grow(kOthers, 3);
  const size_t fourth = kept();
  EXPECT_GE(fourth, 15 * kOneMiB);
  EXPECT_LE(fourth, 23 * kOneMiB);
  (void)budget->Grow(-kOthers, -3);
  EXPECT_GE(kept(), 48 * kOneMiB);
  EXPECT_EQ(budget->Grow(0, 0).bytes, 0);
  EXPECT_EQ(budget->Grow(0, 0).questions, 0);
  // Grammars in use keep twice the bound: a grammar may not become larger than their average.
  std::vector<Grammar> others;
  for (int i = 0; i < 12; ++i) {
    const auto make = [] {
      return LockedMachine{std::make_shared<GrowingMachine>(1024), std::make_shared<MachineLock>()};
    };
    others.push_back(GrammarAccess::New(make().machine, *vocabulary, budget, make, 0));
  }
  budget->Add(static_cast<int64_t>(96 * kOneMiB));
  EXPECT_LE(kept(), 24 * kOneMiB);
}

TEST(GrowthWatchTest, TheErrorSaysSo) {
  const Status status = Guarded([]() -> Status { throw TooMuchMemory("takes too much"); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kLimit);
  EXPECT_EQ(status.error().message, "takes too much");
}

}  // namespace
}  // namespace pawl
