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
#include "src/base/random.h"
#include "src/decode/sampler.h"
#include "src/decode/session.h"
#include "src/model/kv_sequences.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

enum : TokenId { kOpen, kShut, kDone, kEndToken, kDead, kBroken, kTokens };
constexpr int kContext = 400;

class PagedModel : public Model {
 public:
  explicit PagedModel(int32_t pages, int32_t kept = 0)
      : sequences({pages, kept}, kContext),
        memory_(static_cast<size_t>(pages * kPagePositions), kNoToken) {
    info_.vocabulary_size = kTokens;
    info_.context_length = kContext;
  }
  const ModelInfo& info() const override { return info_; }
  Result<SequenceId> NewSequence(int capacity) override { return sequences.New(capacity); }
  void FreeSequence(SequenceId id) override { sequences.Free(id); }
  void Truncate(SequenceId id, int length) override { sequences.Truncate(id, length); }
  int ReusePrefix(SequenceId id, std::span<const TokenId> tokens) override {
    return sequences.ReusePrefix(id, tokens);
  }
  KvMemory kv_memory() const override {
    return {kPagePositions, sequences.pool().pages(), sequences.pool().available(), 1};
  }
  std::span<const int32_t> bad_rows() const override { return bad_; }

  Status Forward(std::span<const Row> rows, std::span<float> logits) override {
    bad_.clear();
    ++calls;
    most_rows = std::max(most_rows, static_cast<int>(rows.size()));
    // As a backend that gives up on the whole call.
    for (const Row& row : rows) {
      if (row.token == kDead) return Error{ErrorCode::kInternal, "the device is lost", ""};
    }
    const PlanLimits limits = {kTokens, static_cast<int64_t>(logits.size())};
    if (Status status = sequences.Plan(rows, limits, plan_); !status.ok()) return status;
    for (const SlotCopy& copy : plan_.copies) {
      memory_[static_cast<size_t>(copy.to)] = memory_[static_cast<size_t>(copy.from)];
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      memory_[static_cast<size_t>(plan_.rows[i].slot)] = rows[i].token;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].output < 0) continue;
      uint64_t hash = 1;
      bool broken = false;
      for (int32_t p = 0; p < plan_.rows[i].prefix; ++p) {
        const int32_t page =
            plan_.pages[static_cast<size_t>(plan_.rows[i].pages_begin + p / kPagePositions)];
        const TokenId t = memory_[static_cast<size_t>(page * kPagePositions + p % kPagePositions)];
        broken |= t == kBroken;
        hash = (hash ^ static_cast<uint64_t>(t + 1)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
      }
      for (size_t v = 0; v < kTokens; ++v) {
        logits[static_cast<size_t>(rows[i].output) * kTokens + v] =
            broken ? std::numeric_limits<float>::quiet_NaN() : 4 * UniformAt(hash, 1, v);
      }
      if (!broken) continue;
      bad_.push_back(static_cast<int32_t>(i));
      plan_.changes[static_cast<size_t>(plan_.change_of[static_cast<size_t>(rows[i].sequence)])]
          .failed = true;
    }
    sequences.Finish(rows, plan_);
    if (bad_.empty()) return {};
    return Error{ErrorCode::kInvalid, "not finite", "model"};
  }

  KvSequences sequences;
  int calls = 0;
  int most_rows = 0;

 private:
  ModelInfo info_;
  RowPlan plan_;
  std::vector<TokenId> memory_;
  std::vector<int32_t> bad_;
};

std::shared_ptr<const Vocabulary> TestVocabulary() {
  VocabularyInit init;
  init.tokens = {"a", "b", ";", "<end>"};  // the others are in prompts only
  init.special = {kEndToken};
  init.end_tokens = {kEndToken};
  return *Vocabulary::Create(std::move(init));
}

// "a" opens, "b" closes, ";" ends when all are closed; from `most` open on only "b" may follow
// until three are left (a forced run). From `dead` tokens on nothing is allowed.
class Brackets : public Constraint {
 public:
  Brackets(int open, int most, int dead, bool draining = false, bool done = false)
      : open_(open), most_(most), dead_(dead), draining_(draining), done_(done) {}
  std::shared_ptr<const Mask> mask() const override {
    uint32_t bits = done_ ? 1u << kEndToken : 0;
    for (TokenId t = 0; t <= kDone; ++t) {
      if (Advance(t) != nullptr) bits |= 1u << t;
    }
    return std::make_shared<Mask>(0, std::vector<uint32_t>{bits});
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    if (done_ || dead_ == 0 || (draining_ && token != kShut)) return nullptr;
    if (token == kOpen) {
      return std::make_shared<Brackets>(open_ + 1, most_, dead_ - 1, open_ + 1 >= most_);
    }
    if (token == kShut && open_ > 0) {
      return std::make_shared<Brackets>(open_ - 1, most_, dead_ - 1, draining_ && open_ - 1 > 3);
    }
    if (token == kDone && open_ == 0) {
      return std::make_shared<Brackets>(0, most_, dead_ - 1, false, true);
    }
    return nullptr;
  }
  bool accepting() const override { return done_; }
  std::optional<std::vector<TokenId>> Closing() const override {
    std::vector<TokenId> tokens(done_ ? 0 : static_cast<size_t>(open_), kShut);
    if (!done_) tokens.push_back(kDone);
    return tokens;
  }
  int shortest_close() const override { return done_ ? 0 : open_ + 1; }

 private:
  int open_, most_, dead_;
  bool draining_, done_;
};

struct Job {
  std::vector<TokenId> prompt;
  std::shared_ptr<const Constraint> constraint;
  GenerateOptions options;
};

// One in `long_one_in` is long.
Job RandomJob(std::mt19937& random, int index, int max_tokens, size_t long_one_in = 3) {
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  Job job;
  // Beginnings that many have in common.
  job.prompt.assign(static_cast<size_t>(1 + below(40)), static_cast<TokenId>(below(2)));
  for (TokenId& t : job.prompt) {
    if (below(30) == 0) t = kDone;
  }
  if (below(5) > 0) job.constraint = std::make_shared<Brackets>(below(3), 4 + below(12), 100000);
  job.options.max_tokens = 6 + below(static_cast<size_t>(max_tokens - 5));
  job.options.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(index)};
  if (below(long_one_in) == 0) {
    job.options.max_tokens = max_tokens;
    // Half of them in long forced runs, half token by token.
    const bool forced = below(2) == 0;
    const int open = forced ? max_tokens / 2 + below(static_cast<size_t>(max_tokens / 3)) : 25;
    job.constraint = std::make_shared<Brackets>(open, forced ? open + 2 + below(9) : 1000, 100000);
  }
  return job;
}

Result<Generation> Alone(const Job& job) {
  PagedModel model(1000);
  Session session(model, TestVocabulary());
  return session.Generate(job.prompt, job.constraint, job.options);
}

BatchRequest RequestOf(const Job& job, std::function<void(Result<Generation>)> done) {
  return {job.prompt, job.constraint, job.options, std::move(done)};
}

void ExpectSame(const Result<Generation>& got, const Result<Generation>& want, size_t index) {
  ASSERT_EQ(got.ok(), want.ok()) << index << (got.ok() ? "" : got.error().ToString());
  if (!want.ok()) {
    EXPECT_EQ(got.error().ToString(), want.error().ToString()) << index;
    return;
  }
  EXPECT_EQ(got->tokens, want->tokens) << index;
  EXPECT_EQ(got->text, want->text) << index;
  EXPECT_EQ(got->stop, want->stop) << index;
}

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
    VocabularyInit init;
    for (int i = 0; i < (*roomy)->info().vocabulary_size; ++i) {
      init.tokens.push_back("<" + std::to_string(i) + ">");
    }
    init.special = {0};
    init.end_tokens = {0};
    const std::shared_ptr<const Vocabulary> vocabulary = *Vocabulary::Create(std::move(init));
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

// Draws the tokens itself, as the requests say, and writes down with which temperatures.
class DrawingModel : public PagedModel {
 public:
  DrawingModel() : PagedModel(1000) {}
  bool samples() const override { return true; }
  Status ForwardAndSample(std::span<const Row> rows, std::span<const SampleRequest> requests,
                          std::span<TokenId> tokens, const std::function<void()>& late) override {
    std::vector<float> logits(requests.size() * kTokens);
    if (Status status = Forward(rows, logits); !status.ok()) return status;
    late();
    for (size_t i = 0; i < requests.size(); ++i) {
      const SampleRequest& request = requests[i];
      if (request.unwanted) continue;
      temperatures[request.position].push_back(request.temperature);
      Sampler sampler({.temperature = request.temperature, .seed = request.seed});
      const auto known = static_cast<size_t>(request.vocabulary);
      const Result<TokenId> token = sampler.Sample(std::span(logits).subspan(i * kTokens, known),
                                                   request.mask.get(), request.position, {});
      if (!token.ok()) return token.error();
      tokens[i] = *token;
    }
    return {};
  }
  std::map<uint64_t, std::vector<float>> temperatures;  // by position in the output
};

TEST(BatchTest, AModelThatDrawsIsToldTheGrammarsTemperature) {
  const auto grammar = Compiler(TestVocabulary())
                           .CompileGrammar(
                               "start: cold warm free\ncold[temperature=0]: /[ab]{6}/\n"
                               "warm[temperature=3]: /[ab;]{6}/\nfree: /[ab;]{6}/",
                               GrammarLanguage::kLark);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  constexpr float kGiven = 0.5f;
  for (const LateMasks late : {LateMasks::kAlways, LateMasks::kNever}) {
    for (const bool obey : {true, false}) {
      DrawingModel model;
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
