// A toy model in pages, a constraint and jobs for it, and what a job gets alone from a model with
// room for everything.
#ifndef PAWL_TESTS_DECODE_PAGED_MODEL_H_
#define PAWL_TESTS_DECODE_PAGED_MODEL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/decode/batch.h"
#include "tests/support/session.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {

enum : TokenId { kOpen, kShut, kDone, kEndToken, kDead, kBroken, kTokens };
inline constexpr int kContext = 400;

// A toy whose logits are a hash of the tokens before. A call with kDead fails as on a device that
// is lost, and logits after kBroken are not numbers.
class PagedModel : public ToyModel {
 public:
  explicit PagedModel(int32_t pages, int32_t kept = 0, bool draws = false)
      : ToyModel({.vocabulary_size = kTokens,
                  .context_length = kContext,
                  .pages = pages,
                  .kept = kept,
                  .draws = draws},
                 [](const Place& place, std::span<float> out) {
                   HashedLogits(place, out);
                   if (std::ranges::find(place.tokens, kBroken) == place.tokens.end()) return;
                   std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());
                 }) {
    before = [](std::span<const Row> rows) -> Status {
      for (const Row& row : rows) {
        if (row.token == kDead) return Error{ErrorCode::kInternal, "the device is lost", ""};
      }
      return {};
    };
  }
};

// The tokens that the constraint knows. The others are in prompts only.
inline std::shared_ptr<const Vocabulary> TestVocabulary() { return VocabularyOf({"a", "b", ";"}); }

// "a" opens, "b" closes, ";" ends when all are closed; from `most` open on only "b" may follow
// until three are left (a forced run). From `dead` tokens on nothing is allowed.
class Brackets : public Constraint {
 public:
  Brackets(int open, int most, int dead, bool draining = false, bool done = false)
      : open_(open), most_(most), dead_(dead), draining_(draining), done_(done) {}
  Place Look() const override {
    uint32_t bits = done_ ? 1u << kEndToken : 0;
    for (TokenId t = 0; t <= kDone; ++t) {
      if (Advance(t) != nullptr) bits |= 1u << t;
    }
    return {.mask = std::make_shared<Mask>(0, std::vector<uint32_t>{bits}), .accepting = done_};
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
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    if (done_) return std::vector<TokenId>{};
    if (open_ + 1 > most) return std::nullopt;
    std::vector<TokenId> tokens(static_cast<size_t>(open_), kShut);
    tokens.push_back(kDone);
    return tokens;
  }

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
  // Beginnings that many have in common. One draw a line: compilers differ in which argument is
  // first.
  const auto beginning = static_cast<TokenId>(below(2));
  job.prompt.assign(static_cast<size_t>(1 + below(40)), beginning);
  for (TokenId& t : job.prompt) {
    if (below(30) == 0) t = kDone;
  }
  if (below(5) > 0) {
    const int depth = 4 + below(12);
    job.constraint = std::make_shared<Brackets>(below(3), depth, 100000);
  }
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

}  // namespace pawl

#endif  // PAWL_TESTS_DECODE_PAGED_MODEL_H_
