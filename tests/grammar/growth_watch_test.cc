// A question to a machine that grows without an end is ended, and the machine is made again.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

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
  const size_t most = GrowthWatch::MostOf(budget->limit());
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

TEST(GrowthWatchTest, TheErrorSaysSo) {
  const Status status = Guarded([]() -> Status { throw TooMuchMemory("takes too much"); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kLimit);
  EXPECT_EQ(status.error().message, "takes too much");
}

}  // namespace
}  // namespace pawl
