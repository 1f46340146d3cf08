// The stages of a sampler: which there are, in which order they run, and what the newer ones do to
// the tokens that are left. sampler.h has the rules.
//
//   Result<std::vector<SamplerStage>> stages = StagesOf(params);   // kInvalid for a wrong order
//   KeepTypical(candidates, 0.9f, temperature);
//
// Each function gets candidates in any order and keeps at least one. Probabilities are those among
// the candidates, at the temperature that it is given.
#ifndef PAWL_SRC_DECODE_SAMPLER_STAGES_H_
#define PAWL_SRC_DECODE_SAMPLER_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/random.h"

namespace pawl {

struct SamplerCandidate {
  float score;
  TokenId token;
};
using SamplerCandidates = std::vector<SamplerCandidate>;

// What is done to the tokens that may be chosen.
struct SamplerStage {
  enum class Kind : uint8_t {
    kPenalties,
    kDry,
    kTemperature,  // the stages before it see the probabilities of temperature 1
    kTopNSigma,
    kTopK,
    kTopP,
    kMinP,
    kTypical,
    kEpsilon,
    kEta,
    kXtc,
    kMirostat,
    kMomentum,
  };
  Kind kind = Kind::kPenalties;
  Penalties penalties = {};  // kPenalties
  int most = 0;              // kTopK: tokens
  float share = 0;           // of the filters with one parameter
};

// The names of the default order, and of llama.cpp's (/completion and /infill), for
// SamplerStages::order.
inline constexpr std::string_view kDefaultStages =
    "penalties,dry,temperature,top_n_sigma,top_k,top_p,min_p,typical_p,epsilon_cutoff,eta_cutoff,"
    "xtc,mirostat,momentum";
inline constexpr std::string_view kLlamaStages =
    "penalties,dry,top_n_sigma,top_k,typical_p,top_p,min_p,xtc,temperature,mirostat";

// The stages that the parameters switch on, in their order. Errors: kInvalid with "samplers" as
// place, for a name that is none or that is there twice.
Result<std::vector<SamplerStage>> StagesOf(const SamplingParams& params);
// Their names, separated by commas. REQUIRES: StagesOf is ok.
std::string OrderOf(const SamplingParams& params);
// kInvalid with the field's name as place where a value is out of its range.
Status CheckSamplerStages(const SamplerStages& stages);

void KeepTypical(SamplerCandidates& candidates, float p, float temperature);
void KeepTopNSigma(SamplerCandidates& candidates, float n);
// `uniform`: from 0 to 1, decides whether the stage does anything.
void KeepXtc(SamplerCandidates& candidates, float probability, float threshold, float temperature,
             double uniform);
void KeepEpsilon(SamplerCandidates& candidates, float epsilon, float temperature);
void KeepEta(SamplerCandidates& candidates, float epsilon, float temperature);
// Mirostat with the state `mu`. `vocabulary`: its size, of version 1.
void KeepMirostat(SamplerCandidates& candidates, int version, double mu, int vocabulary,
                  float temperature);
// log2(1 / p) of the token among the candidates.
double SurpriseOf(const SamplerCandidates& candidates, TokenId token, float temperature);
// The temperature of the next token, where `position` tokens of the output are there.
float TemperatureAt(const SamplerStages& stages, float temperature, uint64_t position,
                    const SamplerCandidates& candidates);

// DRY, for the text in front of the token.
//  `tokens`: prompt and output. `forced`: of the output, true for tokens that were not drawn; they
// do not lengthen a match. `vocabulary` nullptr: no sequence breakers.
void PenaliseRepetition(SamplerCandidates& candidates, const SamplerStages& stages,
                        std::span<const TokenId> prompt, std::span<const TokenId> output,
                        std::span<const uint8_t> forced, const Vocabulary* vocabulary);

// Momentum decoding: leaves the token that it chooses, by probabilities at temperature 1. The rest
// is as for DRY.
void KeepMomentum(SamplerCandidates& candidates, const SamplerStages& stages,
                  std::span<const TokenId> prompt, std::span<const TokenId> output,
                  std::span<const uint8_t> forced);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLER_STAGES_H_
