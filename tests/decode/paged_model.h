// A model whose logits are a hash of the tokens that it finds in its pages, so that any slip in
// what is fed, kept, shared or evicted changes the output; a constraint and jobs for it, and what a
// job gets alone from a model with room for everything.
#ifndef PAWL_TESTS_DECODE_PAGED_MODEL_H_
#define PAWL_TESTS_DECODE_PAGED_MODEL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/decode/batch.h"
#include "src/decode/sampler.h"
#include "src/decode/session.h"
#include "src/model/kv_sequences.h"

namespace pawl {

enum : TokenId { kOpen, kShut, kDone, kEndToken, kDead, kBroken, kTokens };
inline constexpr int kContext = 400;

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

  Status Run(const ModelCall& call) override {
    const std::span<const Row> rows = call.rows;
    const std::span<float> logits = call.logits;
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

inline std::shared_ptr<const Vocabulary> TestVocabulary() {
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
inline Job RandomJob(std::mt19937& random, int index, int max_tokens, size_t long_one_in = 3) {
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

inline Result<Generation> Alone(const Job& job) {
  PagedModel model(1000);
  Session session(model, TestVocabulary());
  return session.Generate(job.prompt, job.constraint, job.options);
}

inline BatchRequest RequestOf(const Job& job, std::function<void(Result<Generation>)> done) {
  return {job.prompt, job.constraint, job.options, std::move(done)};
}

inline void ExpectSame(const Result<Generation>& got, const Result<Generation>& want,
                       size_t index) {
  ASSERT_EQ(got.ok(), want.ok()) << index << (got.ok() ? "" : got.error().ToString());
  if (!want.ok()) {
    EXPECT_EQ(got.error().ToString(), want.error().ToString()) << index;
    return;
  }
  EXPECT_EQ(got->tokens, want->tokens) << index;
  EXPECT_EQ(got->text, want->text) << index;
  EXPECT_EQ(got->stop, want->stop) << index;
}

// Draws the tokens itself, as the requests say, and writes down with which temperatures.
class DrawingModel : public PagedModel {
 public:
  explicit DrawingModel(int32_t pages = 1000) : PagedModel(pages) {}
  bool samples() const override { return true; }
  Status Run(const ModelCall& call) override {
    if (!call.draws) return PagedModel::Run(call);
    const std::span<const SampleRequest> requests = call.requests;
    std::vector<float> logits(requests.size() * kTokens);
    ModelCall forward;
    forward.rows = call.rows;
    forward.logits = logits;
    if (Status status = PagedModel::Run(forward); !status.ok()) return status;
    call.late();
    for (size_t i = 0; i < requests.size(); ++i) {
      const SampleRequest& request = requests[i];
      if (request.unwanted) continue;
      temperatures[request.position].push_back(request.temperature);
      Sampler sampler({.temperature = request.temperature, .seed = request.seed});
      const auto known = static_cast<size_t>(request.vocabulary);
      const Result<TokenId> token = sampler.Sample(std::span(logits).subspan(i * kTokens, known),
                                                   request.mask.get(), request.position, {});
      if (!token.ok()) return token.error();
      call.tokens[i] = *token;
    }
    return {};
  }
  std::map<uint64_t, std::vector<float>> temperatures;  // by position in the output
};

}  // namespace pawl

#endif  // PAWL_TESTS_DECODE_PAGED_MODEL_H_
