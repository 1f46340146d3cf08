// Sampler: from one row of logits to one token, as a pure function of (masked logits, seed,
// position, history).
//
//   pawl::Sampler sampler({.temperature = 0.8f, .top_p = 0.95f, .seed = 7});
//   pawl::Result<pawl::TokenId> token = sampler.Sample(logits, mask, position, {prompt, output});
//
// Order of operations:
//   1. mask        tokens that it does not allow are gone, so the filters below only rank what may
//   be chosen
//   2. the stages, in the order of the list (StagesOf). By default:
//      penalties   repetition (tokens of prompt and output), then presence and frequency (output
//      only)
//      dry         tokens that would go on with a repetition of the end of the text lose more the
//      longer it is
//      temperature what comes behind it sees probabilities at this temperature, which may fall over
//      the output, and depend on the entropy
//      top-n-sigma logits within n standard deviations of the largest
//      top-k       the k largest
//      top-p       the fewest of the largest whose probabilities, among what is left, reach p
//      min-p       tokens with at least min_p times the probability of the most probable one
//      typical     the fewest of those nearest to the entropy that reach p
//      epsilon, eta  tokens above a probability
//      xtc         sometimes: without the most probable ones of those above a threshold
//      mirostat    in place of the filters: tokens below a surprise that follows what was drawn
//      momentum    the best token by its probability and the repetition that it would make
//   3. the draw    argmax over what is left of logit / T + Gumbel noise at (seed, position, token),
//      the largest of SamplingParams::draft_lanes
// T = 0 takes the largest logit after penalties, the lowest id among equals, and leaves all filters
// out but momentum. The arithmetic of the first filters is that of src/base/random.h, which the
// CUDA kernels share. Equal logits rank by token id, lowest first, in every step.
#ifndef PAWL_SRC_DECODE_SAMPLER_H_
#define PAWL_SRC_DECODE_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/random.h"
#include "src/decode/sampler_stages.h"

namespace pawl {

// kInvalid with the field's name as place when a value is out of its range or not a number.
Status CheckSamplingParams(const SamplingParams& params);

// What was there before; penalties look at it.
struct TokenHistory {
  std::span<const TokenId> prompt;
  std::span<const TokenId> output;
  // Of the output, not 0 for tokens that were not drawn; may be shorter.
  std::span<const uint8_t> forced = {};
};

// A token and its probability.
struct TokenMass {
  TokenId token = kNoToken;
  double mass = 0;
};

// Holds its parameters, scratch memory and Mirostat's state. Without Mirostat the same arguments
// give the same token whatever was sampled before; with it the state is a function of the tokens
// for which Taken was called. One thread at a time; different Samplers may run at the same time.
class Sampler {
 public:
  // `vocabulary`: for the sequence breakers of DRY; nullptr: none. What is wrong with the
  // parameters is CheckSamplingParams' affair.
  explicit Sampler(const SamplingParams& params, const Vocabulary* vocabulary = nullptr)
      : params_(params), vocabulary_(vocabulary), mu_(2 * double{params.stages.mirostat_tau}) {
    if (Result<std::vector<SamplerStage>> stages = StagesOf(params); stages.ok()) {
      stages_ = *std::move(stages);
    }
  }

  // `mask` nullptr allows every token; else it has at least as many bits as there are logits, and
  // tokens beyond the logits cannot be chosen. `position` is the number of tokens already in the
  // output. When the logits of all allowed tokens are -infinity, they count as equal: the mask
  // decides. Errors: kInvalid when nothing is allowed; kInternal when the logit of an allowed token
  // is NaN or +infinity.
  Result<TokenId> Sample(std::span<const float> logits, const Mask* mask, uint64_t position,
                         const TokenHistory& history);

  // What a draft model guesses with its own logits: a token for each lane of noise, each token
  // once. The first one is what Sample gives, and the others follow in falling order of the value
  // that the draw maximises. Errors: Sample's.
  Status SampleLanes(std::span<const float> logits, const Mask* mask, uint64_t position,
                     const TokenHistory& history, std::vector<TokenId>& guesses);

  // The law that Sample draws from: the tokens that may come, ascending, with the sum 1. At
  // temperature 0 that is one token. Errors: Sample's.
  Status Law(std::span<const float> logits, const Mask* mask, uint64_t position,
             const TokenHistory& history, std::vector<TokenMass>& law);

  // Of the `drafted` tokens the most probable one, the smaller of two, where its probability in
  // what Sample draws from is at least 1 - `lossy`; else kNoToken. At temperature 0 the
  // probabilities are those of temperature 1 over all allowed tokens. `lossy`: at least 0, below 1.
  // Errors: Sample's.
  Result<TokenId> ProbableDraft(std::span<const float> logits, const Mask* mask,
                                const TokenHistory& history, std::span<const TokenId> drafted,
                                float lossy);

  // The token that Sample chose last was taken.
  void Taken() { mu_ = next_mu_.value_or(mu_); }
  // Stages that backends which draw tokens themselves do not have.
  bool needs_logits() const;

  const SamplingParams& params() const { return params_; }
  // For the tokens from here on. REQUIRES: as of SamplingParams.
  void set_temperature(float temperature) { params_.temperature = temperature; }

 private:
  using Candidate = SamplerCandidate;
  Status Collect(std::span<const float> logits, const Mask* mask);
  void Penalise(const Penalties& penalties, const TokenHistory& history);
  // Leaves what a token is drawn from, and sets temperature_.
  Status Filter(std::span<const float> logits, const Mask* mask, uint64_t position,
                const TokenHistory& history);
  void KeepBy(const SamplerStage& stage, uint64_t position);
  float Largest() const;
  void KeepTopK(int most);
  void KeepTopP(float share, float largest);
  void KeepMinP(float share, float largest);
  TokenId Argmax() const;
  // `value`: of the token in the maximum.
  TokenId Draw(uint64_t position, int first_lane, int lanes, float* value = nullptr) const;

  SamplingParams params_;
  const Vocabulary* vocabulary_;
  std::vector<SamplerStage> stages_;
  float temperature_ = 1;  // of the token that is sampled, as far as the stages have come
  size_t width_ = 0;       // of the logits
  double mu_;              // Mirostat's
  std::optional<double> next_mu_;
  std::vector<Candidate>
      candidates_;  // scratch: in ascending token order until a filter reorders it
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLER_H_
