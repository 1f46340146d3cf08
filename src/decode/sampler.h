// Sampler: from one row of logits to one token, as a pure function of (masked logits, seed,
// position, history).
//
//   pawl::Sampler sampler({.temperature = 0.8f, .top_p = 0.95f, .seed = 7});
//   pawl::Result<pawl::TokenId> token = sampler.Sample(logits, mask, position, {prompt, output});
//
// Order of operations:
//   1. mask        tokens that it does not allow are gone, so the filters below only rank what may
//   be chosen
//   2. the stages, in the order of the list (StagesOf):
//      penalties   repetition (tokens of prompt and output), then presence and frequency (output
//      only)
//      top-k       the k largest
//      top-p       the fewest of the largest whose probabilities, among what is left, reach p
//      min-p       tokens with at least min_p times the probability of the most probable one
//   3. the draw    argmax over what is left of logit / T + Gumbel noise at (seed, position, token)
// Temperature T divides the logits for top-p, min-p and the draw. T = 0 takes the largest logit,
// the lowest id among equals, and leaves all filters out. The arithmetic is that of
// src/base/random.h, which the CUDA kernels share. Equal logits rank by token id, lowest first, in
// every step.
#ifndef PAWL_SRC_DECODE_SAMPLER_H_
#define PAWL_SRC_DECODE_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/random.h"

namespace pawl {

// kInvalid with the field's name as place when a value is out of its range or not a number.
Status CheckSamplingParams(const SamplingParams& params);

// What is done to the tokens that may be chosen.
struct SamplerStage {
  enum class Kind : uint8_t { kPenalties, kTopK, kTopP, kMinP };
  Kind kind = Kind::kPenalties;
  Penalties penalties = {};  // kPenalties
  int most = 0;              // kTopK: tokens
  float share = 0;           // kTopP, kMinP
};

// The stages that the parameters switch on, in the order at the top of this file.
std::vector<SamplerStage> StagesOf(const SamplingParams& params);

// What was there before; the penalties look at it.
struct TokenHistory {
  std::span<const TokenId> prompt;
  std::span<const TokenId> output;
};

// Holds only its parameters and scratch memory: the same arguments give the same token whatever was
// sampled before. One thread at a time; different Samplers may run at the same time.
class Sampler {
 public:
  // REQUIRES: CheckSamplingParams(params) is ok.
  explicit Sampler(const SamplingParams& params) : params_(params), stages_(StagesOf(params)) {}

  // `mask` nullptr allows every token; else it has at least as many bits as there are logits, and
  // tokens beyond the logits cannot be chosen. `position` is the number of tokens already in the
  // output. When the logits of all allowed tokens are -infinity, they count as equal: the mask
  // decides. Errors: kInvalid when nothing is allowed; kInternal when the logit of an allowed token
  // is NaN or +infinity.
  Result<TokenId> Sample(std::span<const float> logits, const Mask* mask, uint64_t position,
                         const TokenHistory& history);

  // Of the `drafted` tokens the most probable one, the smaller of two, where its probability in
  // what Sample draws from is at least 1 - `lossy`; else kNoToken. At temperature 0 the
  // probabilities are those of temperature 1 over all allowed tokens. `lossy`: at least 0, below 1.
  // Errors: Sample's.
  Result<TokenId> ProbableDraft(std::span<const float> logits, const Mask* mask,
                                const TokenHistory& history, std::span<const TokenId> drafted,
                                float lossy);

  const SamplingParams& params() const { return params_; }
  // For the tokens from here on. REQUIRES: as of SamplingParams.
  void set_temperature(float temperature) { params_.temperature = temperature; }

 private:
  struct Candidate {
    float score;
    TokenId token;
  };
  Status Collect(std::span<const float> logits, const Mask* mask);
  void Penalise(const Penalties& penalties, const TokenHistory& history);
  // Leaves what a token is drawn from.
  Status Filter(std::span<const float> logits, const Mask* mask, const TokenHistory& history);
  void KeepTopK(int most);
  void KeepTopP(float share, float largest);
  void KeepMinP(float share, float largest);
  TokenId Argmax() const;
  TokenId Draw(uint64_t position) const;

  SamplingParams params_;
  std::vector<SamplerStage> stages_;
  std::vector<Candidate>
      candidates_;  // scratch: in ascending token order until a filter reorders it
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLER_H_
