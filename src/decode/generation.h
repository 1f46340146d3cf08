// OutputRun: one output in the making, and all that the decode loop decides about it: what is
// forced, what is sampled, when and how it ends. It does not know the model; whoever drives it
// (batch.h) brings the logits.
//
//   pawl::OutputRun run(task, prompt, constraint, options);
//   Result<bool> wants = run.Start();             // true: it wants the logits after run.tokens()
//   while (wants.ok() && *wants) {
//     wants = run.Take(LogitsAfter(run.tokens()));
//     if (!run.Tell()) break;                     // the callback stopped it
//   }
//   Generation output = run.Finish();
#ifndef PAWL_SRC_DECODE_GENERATION_H_
#define PAWL_SRC_DECODE_GENERATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/forced_spelling.h"
#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/decode/sampler.h"
#include "src/decode/token_watch.h"
#include "src/model/model.h"

namespace pawl {

// Adds the time until its destruction to `seconds`.
class Timer {
 public:
  explicit Timer(double& seconds);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& seconds_;
  int64_t start_;
};

// What the outputs of a model have in common. All must outlive them.
struct OutputTask {
  const ModelInfo* model = nullptr;
  const Vocabulary* vocabulary = nullptr;
  const Encoder* encode = nullptr;  // may be an empty function
  // Positions that one sequence can have: the context, or less where memory holds less.
  int positions = 0;
};

// One thread at a time; different runs may go on at the same time.
class OutputRun {
 public:
  // A forced run of bytes is looked for where so few tokens are allowed: its prefixes. Where more
  // are, tokens reach beyond its end, and the choice is the model's.
  static constexpr int kMostSpellings = 64;

  OutputRun(const OutputTask& task, std::vector<TokenId> prompt,
            std::shared_ptr<const Constraint> constraint, GenerateOptions options);

  // These two return whether the logits after tokens() are wanted; false: the output has ended. No
  // further call but Tell, Cancel and Finish after false or an error. Start, once: the errors of
  // Session::Generate. Take: `logits` has at least the model's vocabulary.
  Result<bool> Start();
  Result<bool> Take(std::span<const float> logits);
  // As Take, but takes one of the `drafted` tokens where Sampler::ProbableDraft has one.
  Result<bool> TakeOrDrafted(std::span<const float> logits, std::span<const TokenId> drafted,
                             float lossy);
  // Whether the last token came by that rule alone.
  bool came_lossy() const { return came_lossy_; }
  // As Take, with the token that a backend has drawn as Request() asks. `later`: only the token is
  // taken, so that its row can run at once; Follow, before the next request or token, does the
  // rest. Then the output may have ended, or tokens() may have gained more than that one.
  Result<bool> TakeToken(TokenId token, bool later = false);
  Result<bool> Follow();
  // How the next token is to be drawn, where logits are wanted. Points into this object, until the
  // next token is taken.
  SampleRequest Request();

  // The same for the token behind `path`, tokens that may follow tokens(): what Request would say
  // after they were taken. `at` and `mask`: of the constraint there. `seen`: gets what the request
  // refers to.
  SampleRequest RequestBehind(std::span<const TokenId> path, const Constraint* at,
                              std::shared_ptr<const Mask> mask, std::vector<SeenToken>& seen) const;

  // tokens()[i], of the output, had been guessed by a draft. To be called before Tell.
  void MarkDrafted(size_t i) { watch_.MarkDrafted(i - prompt_size_); }

  // Calls back for the tokens that are sure to stay; false when the callback stops the generation,
  // which Finish then tells. To be called after each of the above, also after an error.
  bool Tell();
  // As if the callback had stopped it.
  void Cancel();
  Generation Finish();

  // The prompt and the output so far.
  std::span<const TokenId> tokens() const { return tokens_; }
  // The most that tokens() can have; after Start.
  int most_tokens() const { return static_cast<int>(prompt_size_) + stats_.budget; }
  // Where the next token is chosen, while logits are wanted and none is late.
  const std::shared_ptr<const Constraint>& at() const { return at_; }
  const std::shared_ptr<const Mask>& mask() const { return mask_; }
  // Tokens that the budget leaves.
  int tokens_left() const { return left(); }
  size_t prompt_size() const { return prompt_size_; }
  const GenerateOptions& options() const { return options_; }
  StopReason stop_reason() const { return stop_; }
  bool late() const { return late_ != kNoToken; }  // Follow has something to do
  bool asked() const { return asked_; }            // logits were given once
  // The tokens whose logits are wanted next, as bits; empty: all.
  std::span<const uint32_t> allowed() const { return AllowedBy(mask_.get()); }
  // The same where `mask` is what the constraint allows.
  std::span<const uint32_t> AllowedBy(const Mask* mask) const {
    if (mask == nullptr || watch_.wants_all_logits()) return {};
    return mask->words();
  }
  // Log-probabilities are asked for.
  bool wants_top() const { return watch_.wants_logits(); }
  // What a backend that draws tokens itself cannot do for this request; empty: nothing.
  std::string_view NeedsLogits() const;
  GenerationStats& stats() { return stats_; }

 private:
  size_t size() const { return tokens_.size() - prompt_size_; }  // tokens of the output
  int left() const { return stats_.budget - static_cast<int>(size()); }
  std::span<const TokenId> output() const { return std::span(tokens_).subspan(prompt_size_); }

  int KnownTokens() const;
  Status Prepare();
  Result<bool> Advance();
  Result<bool> Add(TokenId token, bool forced);
  Result<bool> Enter(TokenId token);
  int OnTrial() const;
  bool Keep();
  TokenId Forced(const Mask& mask);
  Result<TokenId> Draw(std::span<const float> logits);
  std::shared_ptr<const Mask> Without(const Mask& mask, TokenId token, int refusals);
  float TemperatureAt(const Constraint* at) const;
  SampleRequest RequestAt(const Constraint* at, std::shared_ptr<const Mask> mask) const;
  void AddSeen(std::span<const TokenId> path, std::vector<SeenToken>& seen) const;
  bool AtLimit();
  Result<bool> Close();
  Result<bool> Stop(StopReason reason);
  std::string_view BytesOf(TokenId token) const;
  void Append(TokenId token, TokenReport::Source source);
  std::span<const float> Biased(std::span<const float> logits);
  bool closes() const { return at_ != nullptr && closes_; }
  bool IsEnd(TokenId token) const;

  const OutputTask& task_;
  const Vocabulary& vocabulary_;
  const size_t prompt_size_;
  std::vector<TokenId> tokens_;
  std::string text_;
  std::shared_ptr<const Constraint> at_;
  GenerateOptions options_;
  Sampler sampler_;
  TokenId late_ = kNoToken;  // taken, and not yet followed
  // After a token that was drawn and asked about, until it is entered.
  bool came_lossy_ = false;
  std::shared_ptr<const Constraint> behind_;
  std::vector<SeenToken> seen_;       // of a request
  std::shared_ptr<const Mask> mask_;  // of at_, while logits are wanted
  std::vector<TokenId> spelled_;      // of a forced run, not yet taken, the next one last
  struct Kept {
    std::shared_ptr<const Constraint> at;
    int close = 0;                // tokens of its completion
    size_t tokens = 0, text = 0;  // of the output
    int forced = 0, sampled = 0;
  };
  Kept kept_;  // the last place whose completion is known to fit the budget
  // Tokens that are sure to stay, those of them that the callback knows, and their bytes.
  size_t sure_ = 0, told_ = 0, told_bytes_ = 0;
  bool asked_ = false;
  bool closes_ = true;  // rather than being cut at the end of the budget
  TokenWatch watch_;
  std::vector<TokenLogprob> top_;  // of a request
  std::vector<float> biased_;
  StopReason stop_ = StopReason::kEnd;
  std::vector<std::string> notes_;  // Generation::notes
  GenerationStats stats_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_GENERATION_H_
