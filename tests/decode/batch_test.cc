// The batch engine over a model whose logits are a hash of the tokens that it finds in its pages,
// so that any slip in what is fed, kept, shared or evicted changes the output. Each request has to
// get what it gets alone from a model with room for everything.
#include "src/decode/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "tests/decode/paged_model.h"
#include "tests/source_dir.h"
#include "tests/support/session.h"

namespace pawl {
namespace {

TEST(BatchTest, AThousandSequencesThroughAPoolThatFitsEight) {
  constexpr int kCount = 1000, kMaxTokens = 200, kMostTokens = 40 + kMaxTokens;
  for (const int32_t kept : {0, 10}) {
    for (const int threads : {1, 3}) {
      std::mt19937 random(5);
      PagedModel model(8 * PagesFor(kMostTokens), kept);
      BatchEngine engine(model, TestVocabulary(), {},
                         {.max_batch = 40, .max_rows = 100, .threads = threads});
      std::vector<Job> jobs;
      std::vector<std::optional<Result<Generation>>> outputs(kCount);
      std::vector<int> ended(kCount, 0);
      int step = 0, told = 0;
      for (int i = 0; i < kCount; ++i) {
        jobs.push_back(RandomJob(random, i, kMaxTokens, kept > 0 ? 1 : 3));
        jobs.back().options.on_token = [&told](TokenId, std::string_view) { return ++told > 0; };
        const auto n = static_cast<size_t>(i);
        engine.Add(RequestOf(jobs.back(), [&, n](Result<Generation> output) {
          EXPECT_FALSE(outputs[n].has_value());
          outputs[n] = std::move(output);
          ended[n] = step;
        }));
      }
      int before = 0;  // when all older ones had ended
      while (engine.Step()) {
        ++step;
        ASSERT_EQ(model.sequences.Check(), "");
        ASSERT_LT(step, kCount * kMostTokens);
      }
      int64_t tokens = 0, preemptions = 0;
      for (size_t i = 0; i < kCount; ++i) {
        ASSERT_TRUE(outputs[i].has_value()) << i;
        ASSERT_TRUE(outputs[i]->ok()) << (*outputs[i]).error().ToString();
        jobs[i].options.on_token = nullptr;
        ExpectSame(*outputs[i], Alone(jobs[i]), i);
        // The oldest has rows in every step: its prompt, then one step for a token at most.
        const int chunks = kMostTokens / (100 / 4) + 1;
        EXPECT_LE(ended[i], before + chunks + jobs[i].options.max_tokens + 1) << i;
        before = std::max(before, ended[i]);
        tokens += (*outputs[i])->stats.output_tokens;
        preemptions += (*outputs[i])->stats.preemptions;
      }
      EXPECT_EQ(told, tokens);
      EXPECT_EQ(preemptions, engine.stats().preemptions);
      if (kept > 0) {
        EXPECT_GT(preemptions, 10) << "memory was never short";
      }
      EXPECT_GT(engine.stats().most_running, 8);
      EXPECT_LE(model.most_rows, 100);
      EXPECT_EQ(model.sequences.pool().in_use(), 0);
      EXPECT_LE(model.sequences.pool().kept(), kept);
    }
  }
}

TEST(BatchTest, WhateverComesGoesAndFailsTheOthersGetWhatTheyGetAlone) {
  int cancelled = 0, stopped = 0, failed = 0, lost = 0, good = 0;
  int64_t preemptions = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
    PagedModel model(12 + below(12), below(2) * 8);
    BatchEngine engine(
        model, TestVocabulary(), {},
        {.max_batch = 1 + below(12), .max_rows = 24 + below(80), .threads = 1 + below(3)});
    struct Entry {
      Job job;
      RequestId id = -1;
      bool cancelled = false;
      int stop_after = -1;  // tokens that its callback takes
      int told = 0;
      std::optional<Result<Generation>> output;
    };
    std::vector<std::unique_ptr<Entry>> entries;
    const auto add = [&] {
      entries.push_back(std::make_unique<Entry>());
      Entry* const e = entries.back().get();
      e->job = RandomJob(random, static_cast<int>(entries.size()), 150);
      switch (below(16)) {
        case 0:
          e->job.prompt.push_back(77);  // no such token
          break;
        case 1:
          e->job.prompt.back() = kBroken;  // NaN
          break;
        case 2:
          e->job.prompt.back() = kDead;  // the whole call fails
          break;
        case 3:
          e->job.constraint = std::make_shared<Brackets>(0, 9, 3);  // leads nowhere
          break;
        case 4:
          e->job.constraint = std::make_shared<Brackets>(60, 9, 1000);  // too long to close
          break;
        case 5:
          e->job.prompt.clear();
          break;
        case 6:
          e->job.options.sampling.top_p = 7;
          break;
        case 7:
        case 8:
          e->stop_after = 1 + below(10);
          break;
        default:
          break;
      }
      BatchRequest request = RequestOf(e->job, [e](Result<Generation> output) {
        EXPECT_FALSE(e->output.has_value());
        e->output = std::move(output);
      });
      request.options.on_token = [e](TokenId, std::string_view) {
        return ++e->told != e->stop_after;
      };
      e->id = engine.Add(std::move(request));
    };
    for (int step = 0; step < 400; ++step) {
      if (below(3) == 0) add();
      if (!entries.empty() && below(12) == 0) {
        Entry& e = *entries[static_cast<size_t>(below(entries.size()))];
        e.cancelled |= !e.output.has_value();
        engine.Cancel(e.id);
      }
      engine.Step();
      ASSERT_EQ(model.sequences.Check(), "");
    }
    for (int step = 0; engine.Step(); ++step) ASSERT_LT(step, 20000);
    EXPECT_EQ(model.sequences.pool().in_use(), 0);
    preemptions += engine.stats().preemptions;
    for (size_t i = 0; i < entries.size(); ++i) {
      Entry& e = *entries[i];
      ASSERT_TRUE(e.output.has_value());
      int told = 0;
      e.job.options.on_token = [&](TokenId, std::string_view) { return ++told != e.stop_after; };
      const Result<Generation> want = Alone(e.job);
      if (e.cancelled) {
        ++cancelled;
        ASSERT_TRUE(e.output->ok());
        EXPECT_EQ((*e.output)->stop, StopReason::kCancelled);
        EXPECT_EQ(e.told, static_cast<int>((*e.output)->tokens.size()));
        if (!want.ok()) continue;
        ASSERT_LE((*e.output)->tokens.size(), want->tokens.size());
        EXPECT_TRUE(std::equal((*e.output)->tokens.begin(), (*e.output)->tokens.end(),
                               want->tokens.begin()));
        continue;
      }
      ExpectSame(*e.output, want, i);
      if (!want.ok()) {
        ++failed;
        lost += want.error().message == "the device is lost";
      } else {
        ++(want->stop == StopReason::kCancelled ? stopped : good);
      }
    }
  }
  EXPECT_GT(cancelled, 30);
  EXPECT_GT(stopped, 30);
  EXPECT_GT(failed, 100);
  EXPECT_GT(lost, 20);
  EXPECT_GT(good, 300);
  EXPECT_GT(preemptions, 10);
}

TEST(BatchTest, WhoBeginsLikeAnOlderOneWaitsForItsPages) {
  PagedModel model(1000);
  BatchEngine engine(model, TestVocabulary(), {}, {.max_batch = 8, .max_rows = 200});
  int reused = 0;
  for (int i = 0; i < 8; ++i) {
    Job job;
    job.prompt.assign(70, kOpen);
    job.prompt.back() = static_cast<TokenId>(i % 2);
    job.options.max_tokens = 5;
    job.options.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
    engine.Add(RequestOf(job, [&reused, job](Result<Generation> output) {
      ASSERT_TRUE(output.ok());
      reused += output->stats.reused_tokens;
      EXPECT_EQ(output->tokens, Alone(job)->tokens);
    }));
  }
  while (engine.Step()) {
  }
  EXPECT_EQ(reused, 7 * 64);
}

// The same with transformers, whose memory holds three sequences of the longest.
TEST(BatchTest, TransformersWriteInABatchWhatTheyWriteAlone) {
  for (const char* name : {"llama-fp32-tied", "mistral-fp16-window", "gemma3-bf16"}) {
    const std::string folder = SourceDir() + "/tests/data/models/" + name;
    ModelOptions options;
    options.threads = 2;
    const auto roomy = LoadModel(folder, options);
    ASSERT_TRUE(roomy.ok()) << roomy.error().ToString();
    options.kv_bytes = 3 * PagesFor(120) * (*roomy)->kv_memory().page_bytes;
    const auto tight = LoadModel(folder, options);
    ASSERT_TRUE(tight.ok());
    std::vector<std::string> names;
    for (int i = 0; i < (*roomy)->info().vocabulary_size; ++i) {
      names.push_back("<" + std::to_string(i) + ">");
    }
    const auto vocabulary = VocabularyOf(std::move(names), {}, {"<0>"});
    Session session(**roomy, vocabulary);
    BatchEngine engine(**tight, vocabulary, {}, {.max_batch = 10, .max_rows = 40, .threads = 2});
    std::mt19937 random(3);
    int ended = 0;
    for (int i = 0; i < 24; ++i) {
      Job job;
      job.prompt.assign(static_cast<size_t>(1 + random() % 40), 7);
      job.prompt.back() = static_cast<TokenId>(random() % 50);
      job.options.max_tokens = 80;
      job.options.sampling = {.temperature = 0.7f, .seed = static_cast<uint64_t>(i)};
      const Result<Generation> want = session.Generate(job.prompt, nullptr, job.options);
      ASSERT_TRUE(want.ok());
      engine.Add(RequestOf(job, [want, i, &ended](Result<Generation> output) {
        ExpectSame(output, want, static_cast<size_t>(i));
        ++ended;
      }));
    }
    while (engine.Step()) {
    }
    EXPECT_EQ(ended, 24);
    EXPECT_GT(engine.stats().preemptions, 0);
    EXPECT_EQ((*tight)->kv_memory().available, 3 * PagesFor(120));
  }
}

TEST(BatchTest, AModelThatDrawsIsToldTheGrammarsTemperature) {
  const auto grammar = Compiler(TestVocabulary())
                           .CompileGrammar(
                               "start: cold warm free\ncold[temperature=0]: /[ab]{6}/\n"
                               "warm[temperature=3]: /[ab;]{6}/\nfree: /[ab;]{6}/",
                               GrammarLanguage::kLark);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  constexpr float kGiven = 0.5f;
  for (const MaskOverlap late : {MaskOverlap::kAlways, MaskOverlap::kNever}) {
    for (const bool obey : {true, false}) {
      PagedModel model(1000, 0, /*draws=*/true);
      BatchOptions options;
      options.late_masks = late;
      BatchEngine engine(model, TestVocabulary(), {}, options);
      std::vector<Job> jobs;
      std::vector<Result<Generation>> got;
      for (uint64_t seed = 0; seed < 8; ++seed) {
        Job job{{kOpen}, MakeConstraint(*grammar), {}};
        job.options.sampling = {.temperature = kGiven, .seed = seed};
        job.options.grammar_temperature = obey;
        jobs.push_back(job);
        got.emplace_back(Error{ErrorCode::kInternal, "not done", ""});
      }
      for (size_t i = 0; i < jobs.size(); ++i)
        engine.Add(RequestOf(jobs[i], [&, i](Result<Generation> out) { got[i] = std::move(out); }));
      while (engine.Step()) {
      }
      for (size_t i = 0; i < jobs.size(); ++i) {
        ASSERT_TRUE(got[i].ok()) << got[i].error().ToString();
        ExpectSame(got[i], Alone(jobs[i]), i);
      }
      for (size_t place = 0; place < 18; ++place) {
        const float want = !obey || place >= 12 ? kGiven : place < 6 ? 0.0f : 3.0f;
        EXPECT_EQ(model.temperatures[place], std::vector<float>(jobs.size(), want)) << place;
      }
    }
  }
}

TEST(BatchTest, CallbacksMayAddAndCancel) {
  PagedModel model(100);
  BatchEngine engine(model, TestVocabulary());
  Job job;
  job.prompt = {kOpen, kShut};
  job.constraint = std::make_shared<Brackets>(5, 9, 1000);
  int ended = 0;
  RequestId other = -1;
  engine.Add(RequestOf(job, [&](Result<Generation>) {
    ++ended;
    const RequestId third = engine.Add(RequestOf(job, [&](Result<Generation> output) {
      ++ended;
      EXPECT_EQ(output->stop, StopReason::kCancelled);
      EXPECT_TRUE(output->tokens.empty());
    }));
    engine.Cancel(third);
    engine.Cancel(third);
    engine.Cancel(9999);
  }));
  job.options.on_token = [&](TokenId, std::string_view) {
    engine.Cancel(other);
    return true;
  };
  other = engine.Add(RequestOf(job, [&](Result<Generation> output) {
    ++ended;
    EXPECT_TRUE(output.ok());
  }));
  while (engine.Step()) {
  }
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(engine.running() + engine.waiting(), 0);
}

TEST(BatchTest, WhatMemoryCannotHoldIsAnErrorWithNumbers) {
  PagedModel model(3);  // 48 positions, of a context of 400
  Session session(model, TestVocabulary());
  GenerateOptions options;
  const auto full = session.Generate(std::vector<TokenId>(48, kOpen), nullptr, options);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kLimit);
  EXPECT_NE(full.error().message.find("has 48 tokens"), std::string::npos);
  EXPECT_NE(full.error().message.find("memory for keys and values holds 48"), std::string::npos);
  const auto close = session.Generate(std::vector<TokenId>(40, kOpen),
                                      std::make_shared<Brackets>(8, 99, 999), options);
  ASSERT_FALSE(close.ok());
  EXPECT_NE(close.error().message.find("takes 9 tokens, but the budget is 8"), std::string::npos);
  // The budget is what memory holds.
  const auto cut = session.Generate(std::vector<TokenId>(40, kOpen),
                                    std::make_shared<Brackets>(6, 99, 999), options);
  ASSERT_TRUE(cut.ok()) << cut.error().ToString();
  EXPECT_EQ(cut->stats.budget, 8);
  // Memory that others hold.
  const SequenceId other = *model.NewSequence(16);
  std::vector<Row> rows = {{kOpen, 0, other, 0, -1}};
  ASSERT_TRUE(model.Forward(rows, {}).ok());
  const auto taken = session.Generate(std::vector<TokenId>(40, kOpen), nullptr, options);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kLimit);
  EXPECT_NE(taken.error().message.find("2 of 3 are free"), std::string::npos);
}

}  // namespace
}  // namespace pawl
