// What the stages of the sampler do to rows of logits, for bench/peers/stage_peers.py.
//
//   build/bin/stage_rows MODEL < rows > answers
//
// The model gives the vocabulary, for the sequence breakers of DRY. A row is binary, in the order
// of this machine: int32 stage (0 typical, 1 top-n-sigma, 2 XTC, 3 DRY), three floats (its
// parameters), int32 count and so many int32 (the tokens before), int32 count and so many floats
// (the logits). The answer is a float for each logit: what is left of it, or minus infinity.
#include <cstdio>
#include <limits>
#include <vector>

#include "src/decode/sampler_stages.h"
#include "src/engine/loaded_model.h"

namespace {

using namespace pawl;

template <typename T>
bool ReadAll(T* out, size_t count) {
  return std::fread(out, sizeof(T), count, stdin) == count;
}

template <typename T>
bool ReadList(std::vector<T>& out) {
  int32_t count = 0;
  if (!ReadAll(&count, 1) || count < 0) return false;
  out.resize(static_cast<size_t>(count));
  return ReadAll(out.data(), out.size());
}

void Apply(int stage, const float* parameters, const std::vector<TokenId>& history,
           const Vocabulary& vocabulary, SamplerCandidates& candidates) {
  if (stage == 0) return KeepTypical(candidates, parameters[0], 1);
  if (stage == 1) return KeepTopNSigma(candidates, parameters[0]);
  if (stage == 2) return KeepXtc(candidates, parameters[0], parameters[1], 1, 0);
  SamplerStages stages;
  stages.dry_multiplier = 0.8f;
  stages.dry_base = parameters[0];
  stages.dry_allowed_length = static_cast<int>(parameters[1]);
  stages.dry_penalty_last_n = static_cast<int>(parameters[2]);
  PenaliseRepetition(candidates, stages, {}, history, {}, &vocabulary);
}

}  // namespace

int main(int argc, char** argv) {
  const Result<ModelText> text = LoadModelText(argc > 1 ? argv[1] : "models/tiny-extract");
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", text.error().ToString().c_str());
    return 1;
  }
  int32_t stage = 0;
  while (ReadAll(&stage, 1)) {
    float parameters[3];
    std::vector<TokenId> history;
    std::vector<float> logits;
    if (!ReadAll(static_cast<float*>(parameters), 3) || !ReadList(history) || !ReadList(logits)) {
      std::fprintf(stderr, "a row ends too early\n");
      return 1;
    }
    SamplerCandidates candidates;
    for (size_t token = 0; token < logits.size(); ++token) {
      candidates.push_back({logits[token], static_cast<TokenId>(token)});
    }
    Apply(stage, static_cast<float*>(parameters), history, *text->vocabulary, candidates);
    std::vector<float> left(logits.size(), -std::numeric_limits<float>::infinity());
    for (const SamplerCandidate& c : candidates) left[static_cast<size_t>(c.token)] = c.score;
    std::fwrite(left.data(), sizeof(float), left.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}
