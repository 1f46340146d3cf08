// OutputBuilder: one output in the making, and all that the decode loop decides about it: what is
// forced, what is sampled, when and how it ends. It does not know the model; the code that drives
// it (batch.h) brings the logits, and says when and on which thread the constraint is asked.
//
//   OutputBuilder run(task, prompt, constraint, options);
//   Result<bool> wants = run.Start();
//   for (;;) {
//     if (wants.ok() && *wants) wants = run.Look();   // asks the constraint
//     if (!run.Emit()) break;                         // the callback stopped it
//     if (!wants.ok() || !*wants) break;
//     wants = run.Take(LogitsAfter(run.tokens()));
//   }
//   Generation output = run.Finish();
#ifndef PAWL_SRC_DECODE_GENERATION_H_
#define PAWL_SRC_DECODE_GENERATION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/decode/forced_text.h"
#include "src/decode/logprob_tracker.h"
#include "src/decode/sampler.h"
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

// Another token to take than the one that was sampled; kNoToken: none. `sampler`: as it is set for
// this token.
using TokenRule =
    std::function<Result<TokenId>(Sampler& sampler, std::span<const float> logits, const Mask* mask,
                                  const TokenHistory& history, TokenId sampled)>;

// One thread at a time; different runs may go on at the same time.
class OutputBuilder {
 public:
  OutputBuilder(const OutputTask& task, std::vector<TokenId> prompt,
                std::shared_ptr<const Constraint> constraint, GenerateOptions options);

  // These return whether the output goes on; false: it has ended. No further call but Emit, Cancel
  // and Finish after false or an error. Start and the Takes leave a look to do (asks()).
  //
  // Start, once: the errors of Engine::Generate that need no constraint.
  Result<bool> Start();
  // `logits`, after tokens(), has at least the model's vocabulary. `rule`, which outlives the look
  // that follows, may choose another token; nullptr: none.
  Result<bool> Take(std::span<const float> logits, const TokenRule* rule = nullptr);
  // As Take, with the token that a backend has drawn as Request() asks. Where tokens_left(), the
  // row of the token may run before the look.
  Result<bool> TakeToken(TokenId token);
  // Asks the constraint what is to be known before the logits after tokens() are wanted: the other
  // errors of Engine::Generate. tokens() may gain more than the token taken. `known_only`: asks
  // only what is known; where more is needed, asks() stays true, and a further Look goes on from
  // there, with the same result.
  Result<bool> Look(bool known_only = false);
  // There is a look to do.
  bool asks() const { return stage_ != Stage::kNone; }
  // How the next token is to be drawn, where logits are wanted. Points into this object, until the
  // next token is taken.
  SampleRequest Request();

  // The same for the token behind `path`, tokens that may follow tokens(): what Request would say
  // after they were taken. `temperature` and `mask`: of the constraint there. `seen`: gets what the
  // request refers to.
  SampleRequest RequestBehind(std::span<const TokenId> path, std::optional<float> temperature,
                              std::shared_ptr<const Mask> mask, std::vector<SeenToken>& seen) const;

  // The law of the token behind `path`, where the constraint allows `mask`. Errors: Sampler's.
  Status LawBehind(std::span<const TokenId> path, std::optional<float> temperature,
                   const Mask* mask, std::span<const float> logits,
                   std::vector<TokenMass>& law) const;

  // tokens()[i], of the output, had been guessed by a draft. To be called before Emit.
  void MarkDrafted(size_t i) { watch_.MarkDrafted(i - prompt_size_); }

  // Calls back for the tokens that are sure to stay; false when the callback stops the generation,
  // which Finish then tells. To be called after each of the above, also after an error.
  bool Emit();
  // As if the callback had stopped it.
  void Cancel();
  Generation Finish();

  // The prompt and the output so far.
  std::span<const TokenId> tokens() const { return tokens_; }
  // The most that tokens() can have; after Start.
  int most_tokens() const { return static_cast<int>(prompt_size_) + stats_.budget; }
  // Where the next token is chosen, while logits are wanted and there is no look to do.
  const std::shared_ptr<const LoopConstraint>& at() const { return at_; }
  const std::shared_ptr<const Mask>& mask() const { return mask_; }
  // Tokens that the budget leaves.
  int tokens_left() const { return left(); }
  size_t prompt_size() const { return prompt_size_; }
  const GenerateOptions& options() const { return options_; }
  StopReason stop_reason() const { return stop_; }
  bool asked() const { return asked_; }  // logits were given once
  // The tokens whose logits are wanted next, as bits; empty: all.
  std::span<const uint32_t> allowed() const { return AllowedBy(mask_.get()); }
  // The same where `mask` is what the constraint allows.
  std::span<const uint32_t> AllowedBy(const Mask* mask) const {
    if (mask == nullptr || watch_.wants_all_logits()) return {};
    return mask->words();
  }
  // Stages of the sampler that a backend does not have. The host draws then.
  bool draws_on_host() const { return prefers_ || sampler_.needs_logits(); }
  // Log-probabilities are asked for.
  bool wants_top() const { return watch_.wants_logits(); }
  // What a backend that draws tokens itself cannot do for this request; empty: nothing.
  std::string_view NeedsLogits() const;
  GenerationStats& stats() { return stats_; }
  // What the constraint's questions wait for, LoopConstraint::lane(); while no other thread looks.
  const void* lane() const { return at_ == nullptr ? nullptr : at_->lane(); }
  // Takes the constraint out of an output that has ended: to free it may take a while.
  std::vector<std::shared_ptr<const Constraint>> TakeConstraints();

 private:
  // What the next look begins with.
  enum class Stage : uint8_t {
    kNone,
    kPrepare,  // whether the constraint can end in the budget
    kDraw,     // drawing from asked_logits_, under a constraint that is not exact
    kEnter,    // following entering_, the last token
    kKeep,     // whether the tokens on trial stay
    kPlace,    // what may come next, and whether it is forced
  };

  size_t size() const { return tokens_.size() - prompt_size_; }  // tokens of the output
  int left() const { return stats_.budget - static_cast<int>(size()); }
  std::span<const TokenId> output() const { return std::span(tokens_).subspan(prompt_size_); }
  TokenHistory History() const {
    return {std::span(tokens_).first(prompt_size_), output(), forced_};
  }

  int KnownTokens() const;
  Status CheckOptions() const;
  Result<bool> LookOn(bool known_only);
  Error Wrong(std::string message) const;
  // The stages of a look. nullopt: on to the next one. They set `waits` where they need more than
  // is known.
  std::optional<Result<bool>> Prepare(bool known_only, bool& waits);
  std::optional<Result<bool>> Enter(bool known_only, bool& waits);
  std::optional<Result<bool>> KeepOrClose(bool known_only, bool& waits);
  std::optional<Result<bool>> AtPlace(bool known_only, bool& waits);
  std::string Holder() const;
  Error TooLong(int close) const;
  bool KnowsRoom() const;
  int CloseLength(int most) const;
  int Uncommitted() const;
  bool Keep();
  Result<bool> DrawAsked();
  Result<TokenId> Choose(std::span<const float> logits, const TokenRule* rule);
  Result<TokenId> Draw(std::span<const float> logits);
  std::shared_ptr<const Mask> Without(const Mask& mask, TokenId token, int refusals);
  float Temperature(std::optional<float> asked) const;
  SampleRequest RequestAt(std::optional<float> temperature, std::shared_ptr<const Mask> mask) const;
  void AddSeen(std::span<const TokenId> path, std::vector<SeenToken>& seen) const;
  Result<bool> Close(ClosedBy why = ClosedBy::kBudget);
  void MoveTo(std::shared_ptr<const LoopConstraint> next, TokenId token);
  std::string RecordPiece();
  bool Repeats() const;
  Result<bool> Stop(StopReason reason);
  std::string_view BytesOf(TokenId token) const;
  void Append(TokenId token, TokenReport::Source source);
  std::span<const float> Preferred(std::span<const float> logits);
  std::span<const float> Biased(std::span<const float> logits);
  bool closes() const { return at_ != nullptr && closes_; }
  bool IsEnd(TokenId token) const;

  const OutputTask& task_;
  const Vocabulary& vocabulary_;
  const size_t prompt_size_;
  std::vector<TokenId> tokens_;
  std::vector<uint8_t> forced_;  // of the output: 1 for what was not drawn
  std::string text_;
  std::shared_ptr<const LoopConstraint> at_;
  const bool foreign_;  // at_ is not a grammar's
  const bool prefers_;  // LoopConstraint::prefers
  GenerateOptions options_;
  Sampler sampler_;
  Stage stage_ = Stage::kNone;
  TokenId entering_ = kNoToken;  // taken, and not yet followed
  // Of a constraint that is not exact: what the next token is drawn from.
  std::vector<float> asked_logits_;
  const TokenRule* asked_rule_ = nullptr;
  LoopConstraint::Known known_;  // of at_, as far as it was asked
  // After a token that was drawn and asked about, until it is entered.
  std::shared_ptr<const LoopConstraint> behind_;
  std::vector<SeenToken> seen_;  // of a request
  // Of at_, while logits are wanted.
  std::shared_ptr<const Mask> mask_;
  bool accepting_ = false;
  std::optional<float> temperature_;
  ForcedText forced_text_;
  struct Kept {
    std::shared_ptr<const LoopConstraint> at;
    int close = 0;                // tokens of its completion
    size_t tokens = 0, text = 0;  // of the output
    int forced = 0, sampled = 0;
  };
  Kept kept_;  // the last place whose completion is known to fit the budget
  // Tokens that are sure to stay, those of them that the callback knows, and their bytes.
  size_t committed_ = 0, emitted_ = 0, told_bytes_ = 0;
  bool asked_ = false;
  bool closes_ = true;  // rather than being cut at the end of the budget
  LogprobTracker watch_;
  std::vector<TokenLogprob> top_;  // of a request
  std::vector<float> biased_;
  StopReason stop_ = StopReason::kEnd;
  ClosedBy closed_by_ = ClosedBy::kNothing;
  // Of each period: how many of the last tokens are those of a period before.
  static constexpr size_t kMostPeriod = 64, kRepeatedTokens = 200, kRounds = 8;
  std::array<size_t, kMostPeriod + 1> repeated_{};
  // Where texts are not yet records: what makes them, and what it has made of emitted tokens.
  std::unique_ptr<RecordFilter> record_filter_;
  std::string record_;
  // Of the output: the first token of the answer, and how many tokens the filter has read or left
  // to the thoughts.
  static constexpr size_t kNotYet = static_cast<size_t>(-1);
  size_t answer_from_, filtered_ = 0;
  std::vector<std::string> notes_;  // Generation::notes
  GenerationStats stats_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_GENERATION_H_
