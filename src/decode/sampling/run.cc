// Checks what the caller gave, and hands it to the sampler that was asked for.
#include "src/decode/sampling/run.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/decode/sampling/aligned.h"
#include "src/decode/sampling/particles.h"

namespace pawl {
namespace {

constexpr int kMostLines = 100'000'000;
constexpr int kScoreRows = 64;

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

Status CheckTokens(std::span<const TokenId> tokens, int width, const char* place) {
  for (const TokenId token : tokens) {
    if (token < 0 || token >= width) {
      return Invalid(place, "has token " + std::to_string(token) +
                                ", but the model's vocabulary ends at " +
                                std::to_string(width - 1));
    }
  }
  return {};
}

// Positions that one sequence can have.
int PositionsOf(const Model& model) {
  const KvMemory memory = model.kv_memory();
  const int64_t context = model.info().context_length;
  if (memory.pages >= context / memory.page_positions + 1) return static_cast<int>(context);
  return static_cast<int>(std::min(context, memory.pages * memory.page_positions));
}

}  // namespace

Result<SamplerResult> RunSampler(const SamplerInput& input, const SamplerOptions& given) {
  SamplerOptions options = given;
  if (options.fidelity.has_value()) {
    constexpr SamplerKind kinds[] = {SamplerKind::kMasked, SamplerKind::kAligned,
                                     SamplerKind::kExact};
    options.sampler = kinds[static_cast<size_t>(*options.fidelity)];
    constexpr int attempts[] = {1, 16, 200};
    if (options.attempts == 0) options.attempts = attempts[static_cast<size_t>(*options.fidelity)];
  }
  if (Status status = CheckOptions(options); !status.ok()) return status.error();
  const ModelInfo& info = input.model.info();
  if (input.prompt.empty()) return Invalid("prompt", "has no tokens");
  if (Status status = CheckTokens(input.prompt, info.vocabulary_size, "prompt"); !status.ok()) {
    return status.error();
  }
  int positions = PositionsOf(input.model);
  if (input.proposal != nullptr) {
    if (options.sampler != SamplerKind::kSmc && options.sampler != SamplerKind::kAwrs) {
      return Invalid("proposal", "is for smc and awrs");
    }
    if (input.proposal->info().vocabulary_size != info.vocabulary_size) {
      return Invalid("proposal", "has another vocabulary than the model");
    }
    positions = std::min(positions, PositionsOf(*input.proposal));
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
                               std::min(positions, prompt + task.max_tokens + 1)};
  switch (options.sampler) {
    case SamplerKind::kMasked:
    case SamplerKind::kAwrs:
    case SamplerKind::kSmc:
      return SampleWithParticles(setting);
    case SamplerKind::kLookahead:
      return SampleWithLookahead(setting);
    default:
      return SampleAligned(setting, input.trie, options.fidelity);
  }
}

Result<std::vector<double>> ScoreTokens(Model& model, std::span<const TokenId> prompt,
                                        std::span<const TokenId> tokens, double temperature) {
  const int width = model.info().vocabulary_size;
  if (!(temperature > 0) || !std::isfinite(temperature)) {
    return Invalid("temperature", "must be a finite number above 0");
  }
  if (prompt.empty()) return Invalid("prompt", "has no tokens");
  if (Status status = CheckTokens(prompt, width, "prompt"); !status.ok()) return status.error();
  if (Status status = CheckTokens(tokens, width, "tokens"); !status.ok()) return status.error();
  std::vector<double> scores;
  if (tokens.empty()) return scores;
  const size_t rows_in_all = prompt.size() + tokens.size() - 1;
  if (rows_in_all > static_cast<size_t>(PositionsOf(model))) {
    return Error{ErrorCode::kLimit,
                 "prompt and tokens are " + std::to_string(rows_in_all + 1) +
                     " tokens, but the model holds " + std::to_string(PositionsOf(model)),
                 "tokens"};
  }
  Result<SequenceId> sequence = model.NewSequence(static_cast<int>(rows_in_all));
  if (!sequence.ok()) return sequence.error();
  struct Scope {
    Model& model;
    SequenceId sequence;
    ~Scope() { model.FreeSequence(sequence); }
  } const scope{model, *sequence};
  std::vector<float> logits(static_cast<size_t>(kScoreRows) * static_cast<size_t>(width));
  // Row i, of the token at position i, has the logits of token i + 1.
  for (size_t begin = 0; begin < rows_in_all; begin += kScoreRows) {
    std::vector<Row> rows;
    for (size_t i = begin; i < std::min(rows_in_all, begin + kScoreRows); ++i) {
      const bool wanted = i + 1 >= prompt.size();
      rows.push_back({.token = i < prompt.size() ? prompt[i] : tokens[i - prompt.size()],
                      .position = static_cast<int32_t>(i),
                      .sequence = *sequence,
                      .output = wanted ? static_cast<int32_t>(i - begin) : -1});
    }
    if (Status status = model.Forward(rows, logits); !status.ok()) return status.error();
    for (const Row& row : rows) {
      if (row.output < 0) continue;
      const auto at = static_cast<size_t>(row.position) + 1 - prompt.size();
      const std::span<const float> of_row = std::span(logits).subspan(
          static_cast<size_t>(row.output) * static_cast<size_t>(width), static_cast<size_t>(width));
      const Result<StepLaw> law = MakeStepLaw(of_row, temperature, nullptr, 0);
      if (!law.ok()) return law.error();
      scores.push_back(law->LogProbability(of_row, tokens[at]));
    }
  }
  return scores;
}

}  // namespace pawl
