// Checks what the caller gave, and hands it to the sampler that was asked for.
#include "src/decode/sampling/run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "src/decode/sampling/aligned.h"
#include "src/decode/sampling/branch_work.h"
#include "src/decode/sampling/particles.h"
#include "src/decode/sampling/score.h"

namespace pawl {
namespace {

constexpr int kMostLines = 100'000'000;

Error Invalid(const char* place, std::string message) {
  return Error{ErrorCode::kInvalid, std::move(message), place};
}

Status CheckOptions(const SamplerOptions& o) {
  if (o.n < 1 || o.n > kMostLines) return Invalid("n", "must be from 1 to 100000000");
  if (o.particles < 1 || o.particles > 4096) return Invalid("particles", "must be from 1 to 4096");
  if (!(o.temperature > 0) || !std::isfinite(o.temperature)) {
    return Invalid("temperature",
                   "must be a finite number above 0: at 0 there is no distribution to keep");
  }
  if (o.max_tokens < 0) return Invalid("max_tokens", "must be at least 0");
  if (o.max_rejects < 0) return Invalid("max_rejects", "must be at least 0 (0: no limit)");
  if (o.accepts < 2) return Invalid("accepts", "must be at least 2");
  if (o.estimator == Estimator::kTwoLoop && o.max_rejects > 0) {
    return Invalid("max_rejects", "is not for the estimator of two loops");
  }
  if (!(o.ess_threshold >= 0)) return Invalid("ess_threshold", "must be at least 0");
  if (o.attempts < 0) return Invalid("attempts", "must be at least 0 (0: the default)");
  if (o.lookahead < 0 || o.lookahead > 32) return Invalid("lookahead", "must be from 0 to 32");
  if (o.batch < 1) return Invalid("batch", "must be at least 1");
  const bool particles = o.sampler == SamplerKind::kSmc || o.sampler == SamplerKind::kAwrs;
  if (o.critic != nullptr && !particles) return Invalid("critic", "is for smc and awrs");
  for (const auto& check : o.checks) {
    if (check == nullptr) return Invalid("checks", "has a check that is not there");
  }
  return {};
}

Result<SamplerResult> RunIn(BranchHost* host, const SamplerInput& input,
                            const SamplerOptions& given) {
  SamplerOptions options = given;
  if (options.fidelity.has_value()) {
    constexpr SamplerKind kinds[] = {SamplerKind::kGcd, SamplerKind::kAsap, SamplerKind::kCars};
    options.sampler = kinds[static_cast<size_t>(*options.fidelity)];
    constexpr int attempts[] = {1, 16, 200};
    if (options.attempts == 0) options.attempts = attempts[static_cast<size_t>(*options.fidelity)];
  }
  if (Status status = CheckOptions(options); !status.ok()) return status.error();
  const ModelInfo& info = input.model.info();
  const KvMemory memory = host != nullptr ? host->memory() : input.model.kv_memory();
  if (input.prompt.empty()) return Invalid("prompt", "has no tokens");
  if (Status status = CheckTokens(input.prompt, info.vocabulary_size, "prompt"); !status.ok()) {
    return status.error();
  }
  int positions = PositionsOf(info, memory);
  if (input.proposal != nullptr) {
    if (options.sampler != SamplerKind::kSmc && options.sampler != SamplerKind::kAwrs) {
      return Invalid("proposal", "is for smc and awrs");
    }
    if (input.proposal->info().vocabulary_size != info.vocabulary_size) {
      return Invalid("proposal", "has another vocabulary than the model");
    }
    positions =
        std::min(positions, PositionsOf(input.proposal->info(), input.proposal->kv_memory()));
  }
  const int prompt = static_cast<int>(input.prompt.size());
  if (prompt >= positions) {
    return Error{ErrorCode::kLimit,
                 "has " + std::to_string(prompt) + " tokens, but the model holds " +
                     std::to_string(positions) + " with the output",
                 "prompt"};
  }
  SamplingTask task;
  task.model = &info;
  task.vocabulary = &input.vocabulary;
  task.constraint = input.constraint;
  task.checks = options.checks;
  task.temperature = options.temperature;
  task.max_tokens = std::min(options.max_tokens, positions - prompt);
  task.estimator = options.estimator;
  if (options.max_rejects > 0) task.limits.max_rejects = options.max_rejects;
  task.limits.accepts = options.accepts;
  task.ExcludeControlTokens();
  const SamplerSetting setting{input.model,
                               input.prompt,
                               task,
                               options,
                               input.pool,
                               input.proposal,
                               std::min(positions, prompt + task.max_tokens + 1),
                               host};
  switch (options.sampler) {
    case SamplerKind::kGcd:
    case SamplerKind::kAwrs:
    case SamplerKind::kSmc:
      return SampleWithParticles(setting);
    case SamplerKind::kFvo:
      return SampleWithLookahead(setting);
    default:
      return SampleAligned(setting, input.trie, options.fidelity);
  }
}

}  // namespace

Result<SamplerResult> RunSampler(const SamplerInput& input, const SamplerOptions& options) {
  return RunIn(nullptr, input, options);
}

std::unique_ptr<Work> MakeSamplerWork(SamplerInput input, SamplerOptions options,
                                      std::function<void(Result<SamplerResult>)> done) {
  Model& model = input.model;
  const size_t prompt = input.prompt.size();
  return MakeResultWork<SamplerResult>(
      model, prompt,
      [input = std::move(input), options = std::move(options)](BranchHost& host) {
        return RunIn(&host, input, options);
      },
      std::move(done));
}

}  // namespace pawl
