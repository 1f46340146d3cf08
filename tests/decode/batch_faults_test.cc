// Exceptions in a batch: whatever throws, the request that it belongs to fails, the others get what
// they get alone, and the pages of all are freed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/base/failure.h"
#include "src/decode/batch.h"
#include "tests/decode/paged_model.h"

namespace pawl {
namespace {

// Throws in the calls that `throws` names, before or after the rows have run.
void Throwing(ToyModel& model, bool afterwards,
              std::function<bool(int call, std::span<const Row> rows)> throws) {
  (afterwards ? model.after : model.before) = [&model,
                                               throws](std::span<const Row> rows) -> Status {
    if (throws(model.calls, rows)) throw std::bad_alloc();
    return {};
  };
}

// Another constraint's answers, until the state so many tokens behind the first.
class ThrowingConstraint : public Constraint {
 public:
  ThrowingConstraint(std::shared_ptr<const Constraint> at, int left, bool memory)
      : at_(std::move(at)), left_(left), memory_(memory) {}
  Place Look() const override {
    if (left_ > 0) return at_->Look();
    if (memory_) throw std::bad_alloc();
    throw std::runtime_error("this mask is not to be had");
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    auto next = at_->Advance(token);
    if (next == nullptr) return nullptr;
    return std::make_shared<ThrowingConstraint>(std::move(next), left_ - 1, memory_);
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return at_->Completion(most);
  }

 private:
  std::shared_ptr<const Constraint> at_;
  int left_;
  bool memory_;
};

using Outputs = std::vector<std::optional<Result<Generation>>>;

// Runs the jobs together; `change` makes what is wrong with one.
Outputs RunAll(PagedModel& model, const std::vector<Job>& jobs, int threads,
               const std::function<void(size_t, BatchRequest&)>& change = {}) {
  Outputs outputs(jobs.size());
  BatchEngine engine(model, TestVocabulary(), {},
                     {.max_batch = 4, .max_rows = 64, .threads = threads});
  for (size_t i = 0; i < jobs.size(); ++i) {
    BatchRequest request = RequestOf(
        jobs[i], [&outputs, i](Result<Generation> output) { outputs[i] = std::move(output); });
    if (change) change(i, request);
    engine.Add(std::move(request));
  }
  while (engine.Step()) {
    EXPECT_EQ(model.sequences.Check(), "");
  }
  EXPECT_EQ(model.sequences.Check(), "");
  EXPECT_EQ(model.sequences.pool().available(), model.sequences.pool().pages());
  return outputs;
}

std::vector<Job> SomeJobs(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Job> jobs;
  for (int i = 0; i < 8; ++i) {
    jobs.push_back(RandomJob(random, i, 60));
    jobs.back().constraint = std::make_shared<Brackets>(i % 3, 9, 100000);
  }
  return jobs;
}

TEST(BatchFaultsTest, ACallOfTheModelThatThrowsOnceChangesNoOutput) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<Job> jobs = SomeJobs(seed);
    PagedModel model(40);
    int thrown = 0;
    Throwing(model, seed % 2 == 1, [&](int call, std::span<const Row> rows) {
      const bool several = rows.front().sequence != rows.back().sequence;
      const bool now = several && call % 5 == static_cast<int>(seed % 5);
      thrown += now ? 1 : 0;
      return now;
    });
    const Outputs outputs = RunAll(model, jobs, 1 + static_cast<int>(seed % 3));
    EXPECT_GT(thrown, 0);
    for (size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_TRUE(outputs[i].has_value());
      ExpectSame(*outputs[i], Alone(jobs[i]), i);
    }
  }
}

TEST(BatchFaultsTest, WhoseCallThrowsEachTimeFailsAlone) {
  for (const bool afterwards : {false, true}) {
    std::vector<Job> jobs = SomeJobs(7);
    jobs[2].prompt.push_back(kEndToken);  // no other has this one in its prompt
    PagedModel model(40);
    Throwing(model, afterwards, [](int, std::span<const Row> rows) {
      return std::any_of(rows.begin(), rows.end(),
                         [](const Row& row) { return row.token == kEndToken; });
    });
    const Outputs outputs = RunAll(model, jobs, 2);
    for (size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_TRUE(outputs[i].has_value());
      if (i != 2) {
        ExpectSame(*outputs[i], Alone(jobs[i]), i);
        continue;
      }
      ASSERT_FALSE(outputs[i]->ok());
      EXPECT_TRUE(IsOutOfMemory(outputs[i]->error())) << outputs[i]->error().ToString();
    }
  }
}

TEST(BatchFaultsTest, MasksAndCallbacksThatThrowFailTheirOutputs) {
  int failed = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<Job> jobs = SomeJobs(seed);
    PagedModel model(40);
    const int after = static_cast<int>(seed % 4);
    const Outputs outputs =
        RunAll(model, jobs, 1 + static_cast<int>(seed % 3), [&](size_t i, BatchRequest& request) {
          if (i == 1 || i == 4) {
            request.constraint =
                std::make_shared<ThrowingConstraint>(request.constraint, after, i == 1);
          }
          if (i == 2) {
            request.options.on_token = [](TokenId, std::string_view) -> bool {
              throw std::runtime_error("this callback throws");
            };
          }
          if (i == 3) {
            request.done = [done = request.done](Result<Generation> output) {
              done(std::move(output));
              throw std::runtime_error("nobody hears of this");
            };
          }
        });
    for (size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_TRUE(outputs[i].has_value()) << i;
      // An output may end before its constraint throws.
      if ((i != 1 && i != 2 && i != 4) || (i != 2 && outputs[i]->ok())) {
        ExpectSame(*outputs[i], Alone(jobs[i]), i);
        continue;
      }
      ASSERT_FALSE(outputs[i]->ok()) << i;
      ++failed;
      const Error& error = outputs[i]->error();
      EXPECT_EQ(error.code, i == 1 ? ErrorCode::kLimit : ErrorCode::kInternal);
      EXPECT_EQ(error.message, i == 1   ? std::string(kMemoryRanOut)
                               : i == 2 ? "this callback throws"
                                        : "this mask is not to be had");
    }
  }
  EXPECT_GE(failed, 40);
}

}  // namespace
}  // namespace pawl
