// Checks what the caller gave, and hands it to the sampler that was asked for.
#include "src/decode/sampling/run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "src/decode/check_input.h"
#include "src/decode/sampling/aligned.h"
#include "src/decode/sampling/branch_work.h"
#include "src/decode/sampling/particles.h"
#include "src/model/mask_filling.h"

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
  if (!(o.seconds >= 0)) return Invalid("seconds", "must be at least 0 (0: no limit)");
  const bool particles = o.sampler == SamplerKind::kSmc || o.sampler == SamplerKind::kAwrs;
  if (o.critic != nullptr && !particles) return Invalid("critic", "is for smc and awrs");
  for (const auto& check : o.checks) {
    if (check == nullptr) return Invalid("checks", "has a check that is not there");
  }
  return {};
}

// ---- Records ----

// What is certain of the record with a text, or with `ended` the record.
std::string RecordOf(const LoopConstraint& texts, std::string_view text, bool ended) {
  const std::unique_ptr<RecordFilter> filter = texts.NewRecordFilter();
  std::string record = filter->Feed(text);
  return ended ? record + filter->Finish() : record;
}

// A check or a critic that is asked about records.
class OfRecords : public Check, public Critic {
  template <typename Ask>
  auto Asked(const CheckQuestion& question, const Ask& ask) const {
    const std::string record = RecordOf(*texts_, question.text, question.ended);
    CheckQuestion asked = question;
    asked.text = record;
    return ask(asked);
  }

 public:
  OfRecords(std::shared_ptr<const LoopConstraint> texts, std::shared_ptr<const Check> check,
            std::shared_ptr<const Critic> critic)
      : texts_(std::move(texts)), check_(std::move(check)), critic_(std::move(critic)) {}
  CheckGranularity granularity() const override { return check_->granularity(); }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    return Asked(question, [&](const CheckQuestion& record) { return check_->Judge(record); });
  }
  Result<double> Score(const CheckQuestion& question) const override {
    return Asked(question, [&](const CheckQuestion& record) { return critic_->Score(record); });
  }

 private:
  std::shared_ptr<const LoopConstraint> texts_;
  std::shared_ptr<const Check> check_;
  std::shared_ptr<const Critic> critic_;
};

// Where texts are not the records that they stand for, checks, critics and callers get records.
// `texts`: what makes them; nullptr: texts are records.
void SeeRecords(const std::shared_ptr<const LoopConstraint>& texts, SamplerOptions& options) {
  if (texts == nullptr) return;
  for (auto& check : options.checks) {
    check = std::make_shared<OfRecords>(texts, std::move(check), nullptr);
  }
  if (options.critic != nullptr) {
    options.critic = std::make_shared<OfRecords>(texts, nullptr, std::move(options.critic));
  }
  if (!options.on_output) return;
  options.on_output = [texts, told = std::move(options.on_output)](const WeightedOutput& output) {
    WeightedOutput record = output;
    record.text = RecordOf(*texts, output.text, true);
    return told(record);
  };
}

// ---- A run ----

Result<SamplerResult> Dispatch(const SamplerSetting& setting, PrefixTrie* trie) {
  switch (setting.options.sampler) {
    case SamplerKind::kGcd:
    case SamplerKind::kAwrs:
    case SamplerKind::kSmc:
      return SampleWithParticles(setting);
    case SamplerKind::kFvo:
      return SampleWithLookahead(setting);
    default:
      return SampleAligned(setting, trie, setting.options.fidelity);
  }
}

Result<SamplerResult> RunIn(const SamplerInput& input, const SamplerOptions& given,
                            BranchHost* host) {
  if (Status status = CheckCausal(input.model, "sampler"); !status.ok()) return status.error();
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
  std::shared_ptr<const LoopConstraint> texts = ForLoop(input.constraint, input.vocabulary);
  if (texts != nullptr && texts->NewRecordFilter() == nullptr) texts = nullptr;
  SeeRecords(texts, options);
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
  if (options.seconds > 0) {
    using Steady = std::chrono::steady_clock;  // Clock is a name of another source
    constexpr double kMost = 1e9;              // of seconds that fit into a time
    task.deadline =
        Steady::now() + std::chrono::duration_cast<Steady::duration>(
                            std::chrono::duration<double>(std::min(options.seconds, kMost)));
  }
  task.ExcludeControlTokens();
  const SamplerSetting setting{input.model,
                               input.prompt,
                               task,
                               options,
                               input.pool,
                               input.proposal,
                               std::min(positions, prompt + task.max_tokens + 1),
                               host};
  double sum = 0, squares = 0, most = kZeroWeight;
  options.on_output = [&, told = std::move(options.on_output)](const WeightedOutput& output) {
    // Weights relative to the largest so far.
    if (output.report.valid) {
      const double scale = output.log_weight > most ? std::exp(most - output.log_weight) : 1;
      most = std::max(most, output.log_weight);
      const double weight = std::exp(output.log_weight - most);
      sum = sum * scale + weight;
      squares = squares * scale * scale + weight * weight;
    }
    return !told || told(output);
  };
  Result<SamplerResult> result = Dispatch(setting, input.trie);
  if (result.ok() && squares > 0) result->effective_size = sum * sum / squares;
  if (texts == nullptr || !result.ok()) return result;
  for (WeightedOutput& output : result->outputs) output.text = RecordOf(*texts, output.text, true);
  return result;
}

}  // namespace

Result<SamplerResult> RunSampler(const SamplerInput& input, const SamplerOptions& options) {
  return RunIn(input, options, nullptr);
}

std::unique_ptr<Work> MakeSamplerWork(SamplerInput input, SamplerOptions options,
                                      std::function<void(Result<SamplerResult>)> done) {
  return MakeInputWork<SamplerResult>(std::move(input), std::move(options), RunIn, std::move(done));
}

}  // namespace pawl
