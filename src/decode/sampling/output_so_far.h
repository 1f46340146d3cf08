// OutputSoFar: an output that a sampler is writing, and a step of it: which tokens the mask allows,
// one of them drawn under the checks, with its weight.
#ifndef PAWL_SRC_DECODE_SAMPLING_OUTPUT_SO_FAR_H_
#define PAWL_SRC_DECODE_SAMPLING_OUTPUT_SO_FAR_H_

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/decode/sampling/asking.h"
#include "src/decode/sampling/noise.h"
#include "src/decode/sampling/rejection.h"
#include "src/decode/sampling/step_law.h"
#include "src/model/model.h"

namespace pawl {

// Thrown where SamplerOptions::seconds are over; it ends in the run (run.cc), which has outputs.
class OutOfTime : public std::exception {
 public:
  const char* what() const noexcept override { return "out of time"; }
};

// What the outputs of a run have in common. All must outlive them.
struct SamplingTask {
  const ModelInfo* model = nullptr;
  const Vocabulary* vocabulary = nullptr;
  std::shared_ptr<const Constraint> constraint;  // nullptr: none
  // What may be written where there is no constraint; nullptr: everything. Checks read bytes, which
  // control tokens do not have, so under checks alone these are not among it.
  std::shared_ptr<const Mask> unconstrained;
  Checks checks;
  double temperature = 1;
  int max_tokens = 0;
  Estimator estimator = Estimator::kRecursive;
  RejectionLimits limits;
  std::optional<std::chrono::steady_clock::time_point> deadline;

  // Before each step. Throws OutOfTime, or Stopped.
  void CheckTime() const;
  // Sets `unconstrained` as the other fields want it.
  void ExcludeControlTokens();
  // Tokens that the model has logits for and that are in the vocabulary.
  int known() const;
  std::string_view BytesOf(TokenId token) const;
};

// The fields that SamplerReport takes over.
struct StepCounts {
  int64_t asked = 0, draws = 0;
};

// Which tokens may come next: a mask, or everything, or at the end of the budget the end alone.
struct Allowed {
  std::shared_ptr<const Mask> mask;  // nullptr: everything
  bool dead = false;                 // nothing
};

// A value: a copy is a fork.
class OutputSoFar {
 public:
  explicit OutputSoFar(const SamplingTask& task)
      : task_(&task), at_(ForLoop(task.constraint, *task.vocabulary)) {}

  const std::vector<TokenId>& tokens() const { return tokens_; }  // with the end token
  const std::string& text() const { return text_; }
  bool ended() const { return ended_; }
  bool at_budget() const { return static_cast<int>(tokens_.size()) >= task_->max_tokens; }
  double log_probability = 0;

  Allowed AllowedNext() const;
  bool IsEnd(TokenId token) const;
  // Whether checks let the token follow. `by_bytes`: as MayGoOn has it. Several threads may ask at
  // a time.
  Result<bool> ChecksAllow(TokenId token, StepCounts& counts, bool* by_bytes = nullptr) const;
  // Whether the checks of bytes let a part of a token follow.
  Result<bool> ChecksAllowBytes(std::string_view bytes, StepCounts& counts) const;
  // false when the constraint refuses it, which for tokens of the mask is a bug.
  bool Append(TokenId token, double log_probability_of_it);

 private:
  const SamplingTask* task_;
  std::shared_ptr<const LoopConstraint> at_;
  std::vector<TokenId> tokens_;
  std::string text_;
  bool ended_ = false;
};

// The law of the next token and its part that AllowedNext leaves. Errors: those of MakeStepLaw.
Result<StepLaw> LawOf(const SamplingTask& task, std::span<const float> logits,
                      const Allowed& allowed);

struct StepDraw {
  TokenId token = kNoToken;  // kNoToken: nothing was accepted; the weight is 0
  double log_weight = kNoMass;
  double log_probability = kNoMass;  // of the token, under the model
  StepCounts counts;
  std::vector<TokenId> rejected;  // by the checks
};

// Draws from `law` under the checks: properly weighted against the model's own law. `proposal`: the
// draws come from its law instead, which has the same tokens; else nullptr.
Result<StepDraw> DrawStep(const SamplingTask& task, const OutputSoFar& output, const StepLaw& law,
                          const StepLaw* proposal, const Noise& noise);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_OUTPUT_SO_FAR_H_
