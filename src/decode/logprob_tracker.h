// LogprobTracker: what the model thought of the tokens of an output: log-probabilities, and how
// much of the model's probability the mask took away.
//
//   LogprobTracker watch(options);
//   watch.See(logits, mask);                // before biases, penalties and temperature
//   watch.Append(token, source, allowed);   // the token that was taken after that
//   watch.report(i)                         // of output token i
//
// Not thread-safe.
#ifndef PAWL_SRC_DECODE_LOGPROB_TRACKER_H_
#define PAWL_SRC_DECODE_LOGPROB_TRACKER_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "pawl/generation.h"
#include "pawl/grammar.h"

namespace pawl {

class LogprobTracker {
 public:
  explicit LogprobTracker(const GenerateOptions& options)
      : on_(static_cast<bool>(options.on_report) || options.mask_surprise || options.details),
        most_(options.details ? std::max(options.logprobs, 0) : options.logprobs),
        surprise_(options.mask_surprise || options.details) {}

  // Tokens are told or measured at all.
  bool on() const { return on_; }
  // The logits of tokens that the mask does not allow are looked at.
  bool wants_all_logits() const { return on_ && surprise_; }
  // Something of the logits is looked at.
  bool wants_logits() const { return on_ && (surprise_ || most_ >= 0); }

  // Every logit is finite or -infinity where it counts; nullptr allows everything.
  void See(std::span<const float> logits, const Mask* mask);
  // The same where a backend has found the most probable tokens itself.
  void SeeTop(std::span<const TokenLogprob> top);
  // `allowed`: how many tokens the mask allowed.
  void Append(TokenId token, TokenReport::Source source, int allowed);
  // Output token i, which was sampled, had been guessed by a draft.
  void MarkDrafted(size_t i);
  // Of the output only the first `tokens` stay.
  void Cut(size_t tokens);

  // REQUIRES: i tokens and one more were appended. Valid until the next call that changes this.
  TokenReport report(size_t i) const;
  double surprise_sum() const;

 private:
  struct Record {
    TokenId token;
    TokenReport::Source source;
    int allowed;
    float logprob;
    float surprise;
    size_t top_begin;
    size_t top_end;
  };

  const bool on_;
  const int most_;
  const bool surprise_;
  std::vector<Record> records_;
  std::vector<TokenLogprob> tops_;
  // Of the logits seen last.
  std::vector<float> logits_;
  std::vector<TokenLogprob> top_;
  double log_sum_ = 0;
  float seen_surprise_ = 0;
  bool seen_ = false;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_LOGPROB_TRACKER_H_
