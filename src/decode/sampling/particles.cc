// Sequential Monte Carlo over tokens, after Lew et al., "Sequential Monte Carlo Steering of Large
// Language Models using Probabilistic Programs" (arXiv 2306.03081), with the steps of
// src/decode/sampling/rejection.h.
//
// Every step multiplies a particle's weight by the properly weighted draw's. When the weights of a
// population have become too unequal (effective size below ess_threshold * N), particles are drawn
// again in proportion to their weights, and each gets the average weight. So the average weight of
// a population estimates, without bias, the mass P(valid), whenever and however often that
// happened. Particles that have ended stay in the population with their weight; it is done when all
// have.
//
// A critic multiplies weights before resampling and is taken out before the next step; only its
// score of the ended output stays.
//
// Lines. A population of N gives N outputs with their weights. Where fewer are wanted of the last
// one, they are drawn from it, each with the population's average weight, so that sums keep their
// expectation.
//
// Several populations run at a time, their rows in one call. Random numbers belong to (seed,
// population, place, step), so that changes no output.
#include "src/decode/sampling/particles.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "src/base/stop_scope.h"
#include "src/decode/sampling/branches.h"
#include "src/decode/sampling/resampling.h"

namespace pawl {
namespace {

constexpr uint64_t kParticleSeeds = 1, kResamplingSeeds = 2;

struct Particle {
  explicit Particle(const SamplingTask& task) : output(task) {}

  OutputSoFar output;
  double log_weight = 0;  // the critic's score included
  double twist = 0;       // of it, to be taken out before the next step
  int branch = -1;        // none before the first token
  int draft_branch = -1;
  SamplerReport report;
  // What the last step found.
  StepDraw draw;
  std::optional<Error> failed;
  bool dead = false;

  bool running() const { return !dead && !output.ended(); }
};

struct Population {
  int64_t number = 0;
  uint64_t step = 0;
  std::vector<Particle> particles;
};

class Run {
 public:
  explicit Run(const SamplerSetting& setting)
      : s_(setting),
        options_(setting.options),
        size_(options_.sampler == SamplerKind::kSmc ? options_.particles : 1),
        branches_(setting.host, setting.model, setting.prompt, setting.capacity) {
    if (s_.proposal != nullptr) {
      draft_branches_ = std::make_unique<Branches>(*s_.proposal, setting.prompt, setting.capacity);
    }
  }

  Result<SamplerResult> Go() {
    if (Status status = branches_.Start(); !status.ok()) return status.error();
    if (draft_branches_ != nullptr) {
      if (Status status = draft_branches_->Start(); !status.ok()) return status.error();
    }
    const int64_t populations = (int64_t{options_.n} + size_ - 1) / size_;
    int64_t next = 0;
    while (!result_.cancelled && (!running_.empty() || next < populations)) {
      try {
        s_.task.CheckTime();
      } catch (const OutOfTime&) {
        GiveUp();
        break;
      }
      while (next < populations && HasRoom()) Begin(next++);
      if (Status status = Step(); !status.ok()) return status.error();
      Deliver();
    }
    result_.model_calls = branches_.calls();
    result_.model_rows = branches_.rows();
    if (draft_branches_ != nullptr) {
      result_.model_calls += draft_branches_->calls();
      result_.model_rows += draft_branches_->rows();
    }
    return std::move(result_);
  }

 private:
  // The time is over: what has not ended will not.
  void GiveUp() {
    result_.timed_out = true;
    for (Population& population : running_) {
      for (Particle& p : population.particles) {
        if (!p.running()) continue;
        p.dead = true;
        p.log_weight = kNoMass;
        Drop(p);
      }
    }
    std::erase_if(running_, [](const Population& population) {
      return std::ranges::none_of(population.particles,
                                  [](const Particle& p) { return p.log_weight > kNoMass; });
    });
    Deliver();
  }

  bool HasRoom() const {
    if (running_.empty()) return true;
    const auto particles = static_cast<int64_t>(running_.size() + 1) * size_;
    if (particles > std::max(options_.batch, 1)) return false;
    const KvMemory memory = s_.host != nullptr ? s_.host->memory() : s_.model.kv_memory();
    // What all of them need at their longest, in addition to the prompt.
    const int64_t pages = s_.task.max_tokens / memory.page_positions + 2 + memory.state.most();
    return particles * pages <= memory.pages - s_.capacity / memory.page_positions - 1;
  }

  void Begin(int64_t number) {
    Population& population = running_.emplace_back();
    population.number = number;
    population.particles.assign(static_cast<size_t>(size_), Particle(s_.task));
    for (Particle& p : population.particles) p.report.sampler = options_.sampler;
  }

  // Runs the model for all that go on, then a step of each, then what concerns populations.
  Status Step() {
    std::vector<int> rows, draft_rows;
    std::vector<std::pair<Population*, size_t>> live;
    std::vector<int> row_of;
    for (Population& population : running_) {
      for (size_t i = 0; i < population.particles.size(); ++i) {
        const Particle& p = population.particles[i];
        if (!p.running()) continue;
        live.push_back({&population, i});
        row_of.push_back(p.branch >= 0 ? static_cast<int>(rows.size()) : -1);
        if (p.branch < 0) continue;
        rows.push_back(p.branch);
        if (draft_branches_ != nullptr) draft_rows.push_back(p.draft_branch);
      }
    }
    if (!rows.empty()) {
      if (Status status = branches_.Run(rows); !status.ok()) return status;
      if (draft_branches_ != nullptr) {
        if (Status status = draft_branches_->Run(draft_rows); !status.ok()) return status;
      }
    }
    s_.pool.ParallelFor(static_cast<int64_t>(live.size()), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t k = begin; k < end; ++k) {
        const auto nth = static_cast<size_t>(k);
        StepOf(*live[nth].first, live[nth].second, row_of[nth]);
      }
    });
    for (const auto& [population, i] : live) {
      Particle& p = population->particles[i];
      if (p.failed.has_value()) return *p.failed;
      if (Status status = Place(p); !status.ok()) return status;
    }
    Population* last = nullptr;
    for (const auto& [population, i] : live) {
      if (std::exchange(last, population) == population) continue;
      ++population->step;
      if (Status status = MaybeResample(*population); !status.ok()) return status;
    }
    return {};
  }

  // Of one particle; several threads.
  void StepOf(Population& population, size_t index, int row) {
    Particle& p = population.particles[index];
    p.log_weight -= p.twist;
    p.twist = 0;
    const uint64_t particle =
        static_cast<uint64_t>(population.number) * static_cast<uint64_t>(size_) + index;
    const Noise noise(SeedFor(options_.seed, particle, kParticleSeeds), population.step);
    const Allowed allowed = p.output.AllowedNext();
    const auto logits_of = [&](Branches& branches) {
      return row < 0 ? branches.prompt_logits() : branches.logits(static_cast<size_t>(row));
    };
    Result<StepLaw> law = LawOf(s_.task, logits_of(branches_), allowed);
    if (!law.ok()) {
      p.failed = law.error();
      return;
    }
    std::optional<StepLaw> draft;
    if (draft_branches_ != nullptr) {
      Result<StepLaw> found = LawOf(s_.task, logits_of(*draft_branches_), allowed);
      if (!found.ok()) {
        p.failed = found.error();
        return;
      }
      draft = *std::move(found);
    }
    Result<StepDraw> draw = DrawStep(s_.task, p.output, *law, draft ? &*draft : nullptr, noise);
    if (!draw.ok()) {
      p.failed = draw.error();
      return;
    }
    p.draw = *std::move(draw);
    p.report.at_budget |= p.output.at_budget();
    p.report.removed.push_back(0 - std::expm1(std::min(0.0, law->log_allowed)));
    p.report.mask_surprise -= law->log_allowed;
    p.report.evaluations += p.draw.counts.asked;
    p.report.draws += p.draw.counts.draws;
    ++p.report.model_rows;
    if (p.draw.token == kNoToken) {
      p.dead = true;
      p.log_weight = kNoMass;
      return;
    }
    p.log_weight += p.draw.log_weight;
    if (!p.output.Append(p.draw.token, p.draw.log_probability)) {
      p.failed = Error{
          ErrorCode::kInternal,
          "the mask allowed token " + std::to_string(p.draw.token) + ", the state did not", ""};
      return;
    }
    if (options_.critic == nullptr) return;
    const CheckQuestion question{p.output.text(), p.output.tokens(), p.output.ended()};
    const Result<double> score = options_.critic->Score(question);
    if (!score.ok()) {
      p.failed = score.error();
      return;
    }
    p.log_weight += *score;
    if (*score == kNoMass) {
      p.dead = true;
    } else if (!p.output.ended()) {
      p.twist = *score;
    }
  }

  // Brings the particle's branches to where it is, or frees them.
  Status Place(Particle& p) {
    if (!p.running()) {
      Drop(p);
      return {};
    }
    if (p.branch < 0) {
      Result<int> made = branches_.New();
      if (!made.ok()) return made.error();
      p.branch = *made;
      if (draft_branches_ != nullptr) {
        Result<int> draft = draft_branches_->New();
        if (!draft.ok()) return draft.error();
        p.draft_branch = *draft;
      }
    }
    branches_.Append(p.branch, p.draw.token);
    if (draft_branches_ != nullptr) draft_branches_->Append(p.draft_branch, p.draw.token);
    return {};
  }

  void Drop(Particle& p) {
    if (p.branch >= 0) branches_.Free(std::exchange(p.branch, -1));
    if (p.draft_branch >= 0) draft_branches_->Free(std::exchange(p.draft_branch, -1));
  }

  static std::vector<double> WeightsOf(const Population& population) {
    std::vector<double> logs;
    for (const Particle& p : population.particles) logs.push_back(p.log_weight);
    return logs;
  }

  Status MaybeResample(Population& population) {
    auto& particles = population.particles;
    if (size_ == 1 || std::none_of(particles.begin(), particles.end(),
                                   [](const Particle& p) { return p.running(); })) {
      return {};
    }
    const std::vector<double> logs = WeightsOf(population);
    const double total = LogSum(logs);
    if (total == kNoMass || EffectiveSize(logs) >= options_.ess_threshold * size_) return {};
    const Noise noise(
        SeedFor(options_.seed, static_cast<uint64_t>(population.number), kResamplingSeeds),
        population.step);
    const std::vector<int> ancestors =
        KeepPlaces(Resample(Normalised(logs), size_, options_.resampling, noise));
    std::vector<Particle> next;
    for (size_t i = 0; i < particles.size(); ++i) {
      const auto a = static_cast<size_t>(ancestors[i]);
      Particle p = particles[a];
      p.log_weight = total - std::log(static_cast<double>(size_));
      if (a != i && p.branch >= 0) {
        p.branch = p.draft_branch = -1;
        Result<int> fork = branches_.Fork(particles[a].branch);
        if (!fork.ok()) return fork.error();
        p.branch = *fork;
        if (draft_branches_ != nullptr) {
          Result<int> draft = draft_branches_->Fork(particles[a].draft_branch);
          if (!draft.ok()) return draft.error();
          p.draft_branch = *draft;
        }
      }
      next.push_back(std::move(p));
    }
    for (size_t i = 0; i < particles.size(); ++i) {
      if (static_cast<size_t>(ancestors[i]) != i) Drop(particles[i]);
    }
    particles = std::move(next);
    return {};
  }

  // Hands out populations that are done, in their order.
  void Deliver() {
    while (!running_.empty() && !result_.cancelled) {
      Population& first = running_.front();
      for (const Particle& p : first.particles) {
        if (p.running()) return;
      }
      const std::vector<double> logs = WeightsOf(first);
      const double evidence = LogSum(logs) - std::log(static_cast<double>(size_));
      const auto wanted =
          static_cast<size_t>(std::min<int64_t>(size_, int64_t{options_.n} - first.number * size_));
      std::vector<int> chosen;
      if (wanted < first.particles.size()) {
        const Noise noise(
            SeedFor(options_.seed, static_cast<uint64_t>(first.number), kResamplingSeeds),
            first.step + 1);
        if (evidence > kNoMass) {
          chosen = Resample(Normalised(logs), static_cast<int>(wanted), options_.resampling, noise);
        }
        for (size_t i = chosen.size(); i < wanted; ++i) chosen.push_back(static_cast<int>(i));
      }
      for (size_t i = 0; i < wanted && !result_.cancelled; ++i) {
        Particle& p = first.particles[chosen.empty() ? i : static_cast<size_t>(chosen[i])];
        const double weight = chosen.empty() || evidence == kNoMass ? p.log_weight : evidence;
        Hand(p, weight, evidence);
      }
      running_.pop_front();
    }
  }

  void Hand(const Particle& p, double log_weight, double evidence) {
    WeightedOutput out;
    out.tokens = p.output.tokens();
    out.text = p.output.text();
    out.log_probability = p.output.log_probability;
    out.report = p.report;
    out.report.valid = p.output.ended() && log_weight > kNoMass;
    out.log_weight = out.report.valid ? log_weight : kZeroWeight;
    if (options_.sampler == SamplerKind::kSmc) {
      out.report.log_evidence = evidence > kNoMass ? evidence : kZeroWeight;
    }
    result_.outputs.push_back(std::move(out));
    if (options_.on_output && !options_.on_output(result_.outputs.back())) {
      result_.cancelled = true;
    }
    if (!options_.keep_outputs) result_.outputs.clear();
  }

  const SamplerSetting& s_;
  const SamplerOptions& options_;
  int size_;
  Branches branches_;
  std::unique_ptr<Branches> draft_branches_;
  std::deque<Population> running_;
  SamplerResult result_;
};

}  // namespace

Result<SamplerResult> SampleWithParticles(const SamplerSetting& setting) {
  return Run(setting).Go();
}

}  // namespace pawl
