// Looks on threads: whatever is slow, and however the threads run, each output is what a Session
// gives, the others go on meanwhile, and a call that gives up stops what is looked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/stop_scope.h"
#include "src/decode/batch.h"
#include "src/decode/look_queue.h"
#include "src/decode/waiting_line.h"
#include "tests/decode/paged_model.h"
#include "tests/support/session.h"

namespace pawl {
namespace {

// A door that constraints wait at. It knows who waited.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    threads_.insert(std::this_thread::get_id());
    changed_.notify_all();
    while (!open_) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
      if (StopScope::Requested()) ++stopped_;
      if (StopScope::Requested()) break;
    }
    --waiting_;
    StopScope::Check();
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  bool SomebodyWaits() {
    const std::lock_guard lock(mutex_);
    return waiting_ > 0;
  }
  int stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  bool Met(std::thread::id thread) {
    const std::lock_guard lock(mutex_);
    return threads_.contains(thread);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::thread::id> threads_;
  int waiting_ = 0, stopped_ = 0;
  bool open_ = false;
};

// What a constraint does before it answers.
enum Question { kLook, kAdvance, kLength, kCompletion, kFree, kQuestions };
using Before = std::function<void(Question)>;

// Another constraint, asked after `before`.
class Slow : public LoopConstraint {
 public:
  Slow(std::shared_ptr<const Constraint> of, std::shared_ptr<const Before> before,
       bool exact = true)
      : of_(std::move(of)), before_(std::move(before)), exact_(exact) {}
  ~Slow() override { (*before_)(kFree); }
  Slow(const Slow&) = delete;
  Slow& operator=(const Slow&) = delete;
  Place Look() const override {
    (*before_)(kLook);
    return of_->Look();
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    (*before_)(kAdvance);
    auto next = of_->Advance(token);
    return next == nullptr ? nullptr : std::make_shared<Slow>(std::move(next), before_, exact_);
  }
  bool exact() const override { return exact_; }
  bool foreign() const override { return true; }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    (*before_)(kCompletion);
    return of_->Completion(most);
  }
  int CompletionLength(int most) const override {
    (*before_)(kLength);
    const auto tokens = of_->Completion(most);
    return tokens ? static_cast<int>(tokens->size()) : -1;
  }
  const void* lane() const override { return before_.get(); }

 private:
  const std::shared_ptr<const Constraint> of_;
  const std::shared_ptr<const Before> before_;
  const bool exact_;
};

std::shared_ptr<const Before> MakeBefore(Before before) {
  return std::make_shared<const Before>(std::move(before));
}

// Steps until `done` or so many milliseconds are over.
template <typename Done>
bool StepUntil(BatchEngine& engine, const Done& done, int milliseconds = 20000) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    engine.Step();
  }
  return true;
}

BatchOptions WithThreads(BatchOptions options) {
  options.look_threads = 2;
  return options;
}

TEST(LooksTest, RandomDelaysChangeNoOutput) {
  int64_t late = 0, looks = 0, preemptions = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
    PagedModel model(12 + below(8), below(2) * 8);
    BatchEngine engine(
        model, TestVocabulary(), {},
        WithThreads(
            {.max_batch = 1 + below(8), .max_rows = 24 + below(80), .threads = 1 + below(3)}));
    std::vector<Job> jobs;
    std::vector<std::optional<Result<Generation>>> outputs(24);
    std::vector<int> told(outputs.size(), 0);
    for (size_t i = 0; i < outputs.size(); ++i) {
      jobs.push_back(RandomJob(random, static_cast<int>(i), 150));
      Job job = jobs.back();
      if (job.constraint != nullptr) {
        // Each with delays of its own, some of them far longer than Step waits.
        auto delays = std::make_shared<std::mt19937>(random());
        auto lock = std::make_shared<std::mutex>();
        job.constraint =
            std::make_shared<Slow>(job.constraint, MakeBefore([delays, lock](Question) {
                                     uint32_t draw;
                                     {
                                       const std::lock_guard guard(*lock);
                                       draw = (*delays)() % 400;
                                     }
                                     if (draw < 2)
                                       std::this_thread::sleep_for(std::chrono::milliseconds(12));
                                     if (draw < 40)
                                       std::this_thread::sleep_for(std::chrono::microseconds(draw));
                                   }),
                                   below(4) > 0);
      }
      BatchRequest request = RequestOf(job, [&, i](Result<Generation> output) {
        EXPECT_FALSE(outputs[i].has_value());
        outputs[i] = std::move(output);
      });
      request.group = static_cast<uint64_t>(below(4));
      request.options.on_token = [&told, i](TokenId, std::string_view) { return ++told[i] > 0; };
      engine.Add(std::move(request));
    }
    for (int step = 0; engine.Step(); ++step) {
      ASSERT_EQ(model.sequences.Check(), "");
      ASSERT_LT(step, 200000);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_TRUE(outputs[i].has_value()) << i;
      ExpectSame(*outputs[i], Alone(jobs[i]), i);
      if (!outputs[i]->ok()) continue;
      EXPECT_EQ(told[i], static_cast<int>((*outputs[i])->tokens.size()));
    }
    EXPECT_EQ(model.sequences.pool().in_use(), 0);
    late += engine.stats().late_looks;
    looks += engine.stats().looks;
    preemptions += engine.stats().preemptions;
  }
  EXPECT_GT(late, 20);
  EXPECT_GT(looks, 1000);
  EXPECT_GT(preemptions, 0);
}

// The same where the model draws, and rows run before their constraint has followed.
TEST(LooksTest, RandomDelaysChangeNoOutputWhereTheModelDraws) {
  int64_t late = 0;
  for (const MaskOverlap masks : {MaskOverlap::kAlways, MaskOverlap::kNever}) {
    std::mt19937 random(3);
    PagedModel drawing(40, 0, /*draws=*/true);
    BatchEngine engine(drawing, TestVocabulary(), {},
                       WithThreads({.max_batch = 5, .threads = 2, .late_masks = masks}));
    std::vector<Job> jobs;
    std::vector<std::optional<Result<Generation>>> outputs(30);
    for (size_t i = 0; i < outputs.size(); ++i) {
      jobs.push_back(RandomJob(random, static_cast<int>(i), 60));
      Job job = jobs.back();
      if (job.constraint != nullptr) {
        auto count = std::make_shared<std::atomic<int>>(static_cast<int>(i));
        job.constraint =
            std::make_shared<Slow>(job.constraint, MakeBefore([count](Question) {
                                     if (++*count % 97 == 0)
                                       std::this_thread::sleep_for(std::chrono::milliseconds(12));
                                   }));
      }
      engine.Add(
          RequestOf(job, [&, i](Result<Generation> output) { outputs[i] = std::move(output); }));
    }
    for (int step = 0; engine.Step(); ++step) ASSERT_LT(step, 100000);
    for (size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_TRUE(outputs[i].has_value()) << i;
      ExpectSame(*outputs[i], Alone(jobs[i]), i);
    }
    EXPECT_EQ(drawing.sequences.pool().in_use(), 0);
    late += engine.stats().late_looks;
  }
  EXPECT_GT(late, 10);
}

// One output at each kind of question, for good: another one without a constraint runs to its end,
// and the thread that steps has never asked.
TEST(LooksTest, NoQuestionHoldsTheOthers) {
  for (int at = 0; at < kQuestions; ++at) {
    SCOPED_TRACE(at);
    PagedModel model(60);
    auto gate = std::make_shared<Gate>();
    BatchEngine engine(model, TestVocabulary(), {}, WithThreads({.max_batch = 2}));
    Job slow;
    slow.prompt = {kOpen};
    slow.options.max_tokens = 12;
    const auto brackets = std::make_shared<Brackets>(2, 9, 1000);
    // What is forced, sampled and closed comes before the gate in any case but the first questions.
    std::atomic<int> asked = 0;
    slow.constraint =
        std::make_shared<Slow>(brackets, MakeBefore([&, gate](Question question) {
                                 if (question == at && (at == kCompletion || ++asked > 1))
                                   gate->Pass();
                               }));
    std::optional<Result<Generation>> held, free;
    engine.Add(RequestOf(slow, [&](Result<Generation> output) { held = std::move(output); }));
    slow.constraint = nullptr;
    if (!StepUntil(
            engine, [&] { return gate->SomebodyWaits(); }, 5000)) {
      // Not every output comes to be closed.
      EXPECT_TRUE(held.has_value());
      gate->Open();
      continue;
    }
    Job quick;
    quick.prompt = {kShut, kOpen};
    quick.options.max_tokens = 300;
    engine.Add(RequestOf(quick, [&](Result<Generation> output) { free = std::move(output); }));
    EXPECT_TRUE(StepUntil(engine, [&] { return free.has_value(); }));
    EXPECT_TRUE(at == kFree || !held.has_value());
    EXPECT_FALSE(gate->Met(std::this_thread::get_id()));
    gate->Open();
    EXPECT_TRUE(StepUntil(engine, [&] { return held.has_value(); }));
    slow.constraint = brackets;
    ExpectSame(*held, Alone(slow), 0);
    quick.constraint = nullptr;
    ExpectSame(*free, Alone(quick), 1);
  }
}

// All places are taken by outputs that wait: they hold none.
TEST(LooksTest, OutputsThatWaitHoldNoPlace) {
  PagedModel model(100);
  auto gate = std::make_shared<Gate>();
  BatchEngine engine(model, TestVocabulary(), {}, WithThreads({.max_batch = 2}));
  int held = 0;
  Job slow;
  slow.prompt = {kOpen};
  slow.options.max_tokens = 8;
  for (int i = 0; i < 5; ++i) {
    std::atomic<int>* const asked = new std::atomic<int>(0);
    // Two at their first question, the others behind their first tokens.
    slow.constraint = std::make_shared<Slow>(
        std::make_shared<Brackets>(1, 9, 1000),
        MakeBefore([gate, i, asked = std::shared_ptr<std::atomic<int>>(asked)](Question question) {
          if (question != kFree && (i < 2 || ++*asked > 9)) gate->Pass();
        }));
    engine.Add(RequestOf(slow, [&](Result<Generation>) { ++held; }));
  }
  for (int i = 0; i < 40; ++i) engine.Step();
  std::optional<Result<Generation>> free;
  Job quick;
  quick.prompt = {kShut};
  quick.options.max_tokens = 100;
  engine.Add(RequestOf(quick, [&](Result<Generation> output) { free = std::move(output); }));
  EXPECT_TRUE(StepUntil(engine, [&] { return free.has_value(); }));
  EXPECT_EQ(held, 0);
  gate->Open();
  EXPECT_TRUE(StepUntil(engine, [&] { return held == 5; }));
  EXPECT_FALSE(engine.Step());
  EXPECT_EQ(model.sequences.pool().in_use(), 0);
}

// Nor do very many outputs of one request keep others out.
TEST(LooksTest, ManyOutputsOfOneGroupThatWaitLeaveAPlace) {
  PagedModel model(200);
  auto gate = std::make_shared<Gate>();
  BatchEngine engine(model, TestVocabulary(), {}, WithThreads({.max_batch = 2}));
  int held = 0;
  constexpr int kHeld = 30;
  Job slow;
  slow.prompt = {kOpen};
  slow.options.max_tokens = 8;
  for (int i = 0; i < kHeld; ++i) {
    auto asked = std::make_shared<std::atomic<int>>(0);
    slow.constraint = std::make_shared<Slow>(
        std::make_shared<Brackets>(1, 9, 1000), MakeBefore([=](Question question) {
          if (question != kFree && (i % 3 == 0 || ++*asked > 9)) gate->Pass();
        }));
    BatchRequest request = RequestOf(slow, [&](Result<Generation>) { ++held; });
    request.group = 1;
    engine.Add(std::move(request));
  }
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) engine.Step();
    std::optional<Result<Generation>> free;
    Job quick;
    quick.prompt = {kShut};
    quick.options.max_tokens = 20;
    engine.Add(RequestOf(quick, [&](Result<Generation> output) { free = std::move(output); }));
    EXPECT_TRUE(StepUntil(engine, [&] { return free.has_value(); }));
  }
  EXPECT_EQ(held, 0);
  gate->Open();
  EXPECT_TRUE(StepUntil(engine, [&] { return held == kHeld; }));
  EXPECT_FALSE(engine.Step());
  EXPECT_EQ(model.sequences.pool().in_use(), 0);
}

TEST(LooksTest, CancelStopsALook) {
  for (const bool first : {true, false}) {
    PagedModel model(40);
    auto gate = std::make_shared<Gate>();
    BatchEngine engine(model, TestVocabulary(), {}, WithThreads({.max_batch = 2}));
    std::optional<Result<Generation>> output;
    auto asked = std::make_shared<std::atomic<int>>(0);
    Job slow;
    slow.prompt = {kOpen};
    slow.constraint = std::make_shared<Slow>(std::make_shared<Brackets>(5, 99, 1000),
                                             MakeBefore([=](Question question) {
                                               if (question != kFree && (first || ++*asked > 20))
                                                 gate->Pass();
                                             }));
    const RequestId id =
        engine.Add(RequestOf(slow, [&](Result<Generation> got) { output = std::move(got); }));
    ASSERT_TRUE(StepUntil(engine, [&] { return gate->SomebodyWaits(); }));
    engine.Step();
    engine.Cancel(id);
    engine.Step();
    EXPECT_EQ(model.sequences.pool().in_use(), 0);  // at once
    EXPECT_TRUE(StepUntil(engine, [&] { return output.has_value(); }));
    EXPECT_EQ(gate->stopped(), 1);
    ASSERT_TRUE(output->ok());
    EXPECT_EQ((*output)->stop, StopReason::kCancelled);
    EXPECT_FALSE(engine.Step());
  }
}

TEST(LooksTest, AnEngineThatGoesStopsItsLooks) {
  PagedModel model(40);
  auto gate = std::make_shared<Gate>();
  {
    BatchEngine engine(model, TestVocabulary(), {}, WithThreads({.max_batch = 1}));
    Job slow;
    slow.prompt = {kOpen};
    slow.constraint = std::make_shared<Slow>(std::make_shared<Brackets>(5, 99, 1000),
                                             MakeBefore([=](Question question) {
                                               if (question != kFree) gate->Pass();
                                             }));
    engine.Add(RequestOf(slow, [](Result<Generation>) {}));
    engine.Add(RequestOf(slow, [](Result<Generation>) {}));
    ASSERT_TRUE(StepUntil(engine, [&] { return gate->SomebodyWaits(); }));
  }
  EXPECT_GE(gate->stopped(), 1);
}

// Step waits while all outputs wait, and does not spin.
TEST(LooksTest, StepSleepsWhileAllOutputsWait) {
  PagedModel model(40);
  auto gate = std::make_shared<Gate>();
  BatchEngine engine(model, TestVocabulary(), {}, WithThreads({.max_batch = 1}));
  Job slow;
  slow.prompt = {kOpen};
  slow.constraint = std::make_shared<Slow>(std::make_shared<Brackets>(5, 99, 1000),
                                           MakeBefore([=](Question question) {
                                             if (question != kFree) gate->Pass();
                                           }));
  int ended = 0;
  engine.Add(RequestOf(slow, [&](Result<Generation>) { ++ended; }));
  ASSERT_TRUE(StepUntil(engine, [&] { return gate->SomebodyWaits(); }));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(engine.Step());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(80));
  gate->Open();
  EXPECT_TRUE(StepUntil(engine, [&] { return ended == 1; }));
}

// ---- Real grammars: once its answers are known, nothing is handed over ----

TEST(LooksTest, WhatAGrammarWasAskedBeforeIsKnown) {
  PagedModel model(200);
  const auto vocabulary = TestVocabulary();
  Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileRegex("(a|b)*;");
  ASSERT_TRUE(grammar.ok());
  Job job;
  job.prompt = {kOpen, kShut};
  job.options.max_tokens = 60;
  job.options.sampling = {.temperature = 1, .seed = 1};
  job.constraint = MakeConstraint(*grammar);
  const Result<Generation> alone = Alone(job);
  BatchEngine engine(model, vocabulary, {}, WithThreads({.max_batch = 4}));
  int64_t before = 0;
  for (int round = 0; round < 4; ++round) {
    before = engine.stats().looks;
    std::optional<Result<Generation>> output;
    engine.Add(RequestOf(job, [&](Result<Generation> got) { output = std::move(got); }));
    ASSERT_TRUE(StepUntil(engine, [&] { return output.has_value(); }));
    ExpectSame(*output, alone, static_cast<size_t>(round));
  }
  // Alone has asked for nearly all of it.
  EXPECT_LE(engine.stats().looks - before, 1);
}

// ---- Turns ----

TEST(WaitingLineTest, AgainstAListOfQueues) {
  std::mt19937 random(7);
  WaitingLine<std::unique_ptr<int>> line;
  std::vector<std::pair<uint64_t, std::vector<int>>> groups;  // in the order of their turns
  std::vector<int> ranks(6, 0);
  const auto rank = [&](uint64_t group) { return ranks[group]; };
  int made = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto what = random() % 8;
    if (what < 4) {
      const uint64_t group = random() % 6;
      auto at = std::find_if(groups.begin(), groups.end(),
                             [&](const auto& entry) { return entry.first == group; });
      if (at == groups.end()) at = groups.insert(groups.end(), {group, {}});
      if (what == 0) {
        at->second.insert(at->second.begin(), made);
        line.Return(std::make_unique<int>(made++), group);
      } else {
        at->second.push_back(made);
        line.Add(std::make_unique<int>(made++), group);
      }
    } else if (what < 7) {
      ranks[random() % 6] = static_cast<int>(random() % 3);
      const auto next = line.Next(rank);
      ASSERT_EQ(next == nullptr, groups.empty());
      if (next == nullptr) continue;
      const auto best = std::min_element(
          groups.begin(), groups.end(),
          [&](const auto& a, const auto& b) { return ranks[a.first] < ranks[b.first]; });
      EXPECT_EQ(*next, best->second.front());
      auto used = std::move(*best);
      groups.erase(best);
      used.second.erase(used.second.begin());
      if (!used.second.empty()) groups.push_back(std::move(used));
    } else {
      const auto gone = [](int value) { return value % 5 == 0; };
      line.ForEach([&](std::unique_ptr<int>& value) {
        if (gone(*value)) value.reset();
      });
      line.DropEmpty();
      for (auto& [id, values] : groups) std::erase_if(values, gone);
      std::erase_if(groups, [](const auto& entry) { return entry.second.empty(); });
    }
    size_t size = 0;
    for (const auto& [id, values] : groups) size += values.size();
    ASSERT_EQ(line.size(), static_cast<int>(size));
  }
}

// A group of many long outputs, and then one small request: it runs after some steps, also where
// all places are taken by outputs that have long to go, and the many are what they are alone.
TEST(TurnsTest, ASmallRequestBesideAGroupOfMany) {
  PagedModel model(300);
  BatchEngine engine(model, TestVocabulary(), {}, {.max_batch = 4});
  std::vector<Job> jobs;
  std::vector<std::optional<Result<Generation>>> outputs(100);
  std::mt19937 random(2);
  for (size_t i = 0; i < outputs.size(); ++i) {
    jobs.push_back(RandomJob(random, static_cast<int>(i), 200, 1));
    BatchRequest request = RequestOf(
        jobs.back(), [&, i](Result<Generation> output) { outputs[i] = std::move(output); });
    request.group = 5;
    engine.Add(std::move(request));
  }
  for (int i = 0; i < 10; ++i) engine.Step();
  for (int round = 0; round < 6; ++round) {
    Job small;
    small.prompt = {kShut};
    small.options.max_tokens = 4;
    std::optional<Result<Generation>> answer;
    engine.Add(RequestOf(small, [&](Result<Generation> output) { answer = std::move(output); }));
    int steps = 0;
    for (; !answer.has_value() && steps < 100; ++steps) engine.Step();
    EXPECT_LE(steps, 16) << round;
    ASSERT_TRUE(answer.has_value());
    ExpectSame(*answer, Alone(small), 0);
  }
  while (engine.Step()) {
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_TRUE(outputs[i].has_value());
    ExpectSame(*outputs[i], Alone(jobs[i]), i);
  }
}

TEST(TurnsTest, GroupsShareThePlaces) {
  PagedModel model(400);
  BatchEngine engine(model, TestVocabulary(), {}, {.max_batch = 4});
  std::vector<int> ended(4, 0);
  std::mt19937 random(2);
  for (uint64_t group = 1; group <= 3; ++group) {
    for (int i = 0; i < (group == 1 ? 200 : 40); ++i) {
      BatchRequest request =
          RequestOf(RandomJob(random, i, 30), [&, group](Result<Generation>) { ++ended[group]; });
      request.group = group;
      engine.Add(std::move(request));
    }
  }
  while (ended[2] < 40 || ended[3] < 40) ASSERT_TRUE(engine.Step());
  // While they ran, the group of many has had about as many places as each of the others.
  EXPECT_LT(ended[1], 80);
  EXPECT_GT(ended[1], 20);
  while (engine.Step()) {
  }
  EXPECT_EQ(ended[1], 200);
}

TEST(StepTimeTest, StepsAreMeasured) {
  PagedModel model(40);
  std::vector<double> seconds;
  BatchEngine engine(model, TestVocabulary(), {},
                     {.on_step = [&](double s) { seconds.push_back(s); }});
  Job job;
  job.prompt = {kOpen};
  job.options.max_tokens = 20;
  engine.Add(RequestOf(job, [](Result<Generation>) {}));
  while (engine.Step()) {
  }
  EXPECT_EQ(static_cast<int64_t>(seconds.size()) + 1, engine.stats().steps);
  for (const double s : seconds) EXPECT_GE(s, 0);
}

}  // namespace
}  // namespace pawl
