// Names are those of LLaDA, Dream and Fast-dLLM. A given threshold or factor chooses its schedule;
// without one masks become tokens step by step.
#include "src/decode/diffusion/canvas_options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace pawl {
namespace {

constexpr int kBlockWithoutTraining = 32;
constexpr double kDreamEps = 1e-3;
constexpr double kMostGuidance = 1e6;  // sums stay numbers

template <typename Choice>
struct NamedChoice {
  const char* name;
  Choice choice;
};
constexpr NamedChoice<FillOptions::Schedule> kSchedules[] = {
    {"stepwise", FillOptions::Schedule::kStepwise},
    {"threshold", FillOptions::Schedule::kThreshold},
    {"prophet", FillOptions::Schedule::kProphet},
    {"localleap", FillOptions::Schedule::kLocalLeap},
    {"ssd", FillOptions::Schedule::kSsd}};
constexpr NamedChoice<CanvasCache::Kind> kCaches[] = {{"none", CanvasCache::Kind::kNone},
                                                      {"prefix", CanvasCache::Kind::kPrefix},
                                                      {"dual", CanvasCache::Kind::kDual},
                                                      {"dkv", CanvasCache::Kind::kDelayed}};
// What the name chooses, the first one where it is empty.
template <typename Choice, size_t N>
std::optional<Choice> ChoiceOf(const NamedChoice<Choice> (&choices)[N], const std::string& name) {
  if (name.empty()) return choices[0].choice;
  for (const auto& [known, choice] : choices) {
    if (name == known) return choice;
  }
  return std::nullopt;
}

// nullopt: the schedule has no such name.
std::optional<FillOptions::Schedule> ScheduleOf(const DiffusionOptions& given) {
  const bool by_threshold = given.threshold || given.factor;
  if (given.schedule.empty() && by_threshold) return FillOptions::Schedule::kThreshold;
  return ChoiceOf(kSchedules, given.schedule);
}

// Written so that NaN fails.
Status CheckRanges(const DiffusionOptions& given) {
  const struct {
    bool ok;
    const char* message;
    const char* place;
  } checks[] = {
      {!given.threshold || (*given.threshold >= 0 && *given.threshold <= 1),
       "must be between 0 and 1", "diffusion.threshold"},
      {!given.factor || (*given.factor >= 0 && std::isfinite(*given.factor)),
       "must be a finite number of at least 0", "diffusion.factor"},
      {!given.steps || *given.steps >= 1, "must be at least 1", "diffusion.steps"},
      {!given.block_length || *given.block_length >= 1, "must be at least 1",
       "diffusion.block_length"},
      {!given.alg_temp || (*given.alg_temp >= 0 && std::isfinite(*given.alg_temp)),
       "must be a finite number of at least 0", "diffusion.alg_temp"},
      {!given.eps || (*given.eps >= 0 && *given.eps < 1), "must be at least 0 and below 1",
       "diffusion.eps"},
      {!given.cfg_scale || (*given.cfg_scale >= 0 && *given.cfg_scale <= kMostGuidance),
       "must be between 0 and 1000000", "diffusion.cfg_scale"},
      {!given.kv_refresh || *given.kv_refresh >= 1, "must be at least 1", "diffusion.kv_refresh"},
      {!given.gap_tokens || *given.gap_tokens >= 1, "must be at least 1", "diffusion.gap_tokens"},
  };
  for (const auto& [ok, message, place] : checks) {
    if (!ok) return Error{ErrorCode::kInvalid, message, place};
  }
  return {};
}

Status CheckRules(const DiffusionOptions& given, const MaskFilling& filling) {
  const auto wrong = [](const char* message, const char* place) {
    return Error{ErrorCode::kInvalid, message, place};
  };
  const std::string &rule = given.remasking, &alg = given.alg;
  // Logits of the row in front are Dream's.
  if (!rule.empty() && filling.shifted) return wrong("is for LLaDA", "diffusion.remasking");
  if (!filling.shifted) {
    if (!alg.empty()) return wrong("is for Dream", "diffusion.alg");
    if (given.alg_temp) return wrong("is for Dream", "diffusion.alg_temp");
    if (given.eps) return wrong("is for Dream", "diffusion.eps");
  }
  if (!rule.empty() && rule != "low_confidence" && rule != "random") {
    return wrong("must be low_confidence or random", "diffusion.remasking");
  }
  if (!alg.empty() && alg != "origin" && alg != "maskgit_plus" && alg != "topk_margin" &&
      alg != "entropy") {
    return wrong("must be origin, maskgit_plus, topk_margin or entropy", "diffusion.alg");
  }
  if (alg == "origin" && given.alg_temp) {
    return wrong("means nothing where masks are chosen by lot", "diffusion.alg_temp");
  }
  const std::optional<FillOptions::Schedule> schedule = ScheduleOf(given);
  if (!schedule) {
    return wrong("must be stepwise, threshold, prophet, localleap or ssd", "diffusion.schedule");
  }
  FillOptions by;
  by.schedule = *schedule;
  if (given.threshold && given.factor) {
    return wrong("cannot be used with a threshold", "diffusion.factor");
  }
  if (by.by_threshold()) {
    const char* const steps = "cannot be used with a threshold";
    if (given.steps) return wrong(steps, "diffusion.steps");
    if (given.eps) return wrong(steps, "diffusion.eps");
    if (given.alg_temp) return wrong(steps, "diffusion.alg_temp");
    if (alg == "origin") return wrong("origin cannot be used with a threshold", "diffusion.alg");
    if (rule == "random") {
      return wrong("random cannot be used with a threshold", "diffusion.remasking");
    }
  } else if (given.threshold) {
    return wrong("is for the schedules threshold and localleap", "diffusion.threshold");
  }
  if (given.factor && *schedule != FillOptions::Schedule::kThreshold) {
    return wrong("is for the schedule threshold", "diffusion.factor");
  }
  const std::optional<CanvasCache::Kind> cache = ChoiceOf(kCaches, given.cache);
  if (!cache) return wrong("must be none, prefix, dual or dkv", "diffusion.cache");
  if (given.kv_refresh && *cache == CanvasCache::Kind::kNone) {
    return wrong("needs a cache", "diffusion.kv_refresh");
  }
  return {};
}

// What says something about one token after the other has no meaning here.
const char* MeaninglessIn(const GenerateOptions& options) {
  const SamplingParams& s = options.sampling;
  const SamplerStages& stages = s.stages;
  const std::pair<bool, const char*> given[] = {
      {options.logprobs >= 0, "logprobs"},
      {!options.logit_bias.empty(), "logit_bias"},
      {s.top_k != 0, "top_k"},
      {s.top_p != 1, "top_p"},
      {s.min_p != 0, "min_p"},
      {s.repetition_penalty != 1, "repetition_penalty"},
      {s.presence_penalty != 0, "presence_penalty"},
      {s.frequency_penalty != 0, "frequency_penalty"},
      {s.draft_lanes != 1, "draft_lanes"},
      {stages.typical_p != 1, "typical_p"},
      {stages.top_n_sigma > 0, "top_n_sigma"},
      {stages.xtc_probability != 0, "xtc_probability"},
      {stages.epsilon_cutoff != 0, "epsilon_cutoff"},
      {stages.eta_cutoff != 0, "eta_cutoff"},
      {stages.dry_multiplier != 0, "dry_multiplier"},
      {stages.mirostat != 0, "mirostat"},
      {stages.dynatemp_range != 0, "dynatemp_range"},
      {stages.temperature_last >= 0, "temperature_last"},
      {stages.momentum_alpha >= 0, "momentum_alpha"},
      {!stages.order.empty(), "samplers"},
  };
  for (const auto& [is, name] : given) {
    if (is) return name;
  }
  return nullptr;
}

}  // namespace

Status CheckCanvasOptions(const GenerateOptions& options, const MaskFilling& filling) {
  if (const char* const name = MeaninglessIn(options)) {
    return Error{ErrorCode::kUnsupported, "means nothing for a model that fills masks", name};
  }
  const float temperature = options.sampling.temperature;
  if (!(temperature >= 0) || !std::isfinite(temperature)) {
    return Error{ErrorCode::kInvalid, "must be a finite number of at least 0", "temperature"};
  }
  if (options.max_tokens < 1) {
    return Error{ErrorCode::kInvalid, "must be at least 1", "max_tokens"};
  }
  if (Status status = CheckRanges(options.diffusion); !status.ok()) return status;
  if (Status status = CheckRules(options.diffusion, filling); !status.ok()) return status;
  const DiffusionOptions& given = options.diffusion;
  if (!given.gaps.empty()) return {};
  if (given.gap_tokens) return Error{ErrorCode::kInvalid, "needs gaps", "diffusion.gap_tokens"};
  if (!given.prefix.empty()) return Error{ErrorCode::kInvalid, "needs gaps", "diffusion.prefix"};
  return {};
}

FillOptions FillOptionsOf(const GenerateOptions& options, const MaskFilling& filling, int length) {
  const DiffusionOptions& given = options.diffusion;
  FillOptions out;
  const int block = filling.block > 0 ? filling.block : kBlockWithoutTraining;
  out.block_length = std::min(given.block_length.value_or(block), length);
  if (!given.gaps.empty()) out.block_length = length;
  out.schedule = *ScheduleOf(given);
  out.steps = given.steps.value_or(0);
  out.threshold = given.threshold.value_or(out.threshold);
  out.factor = given.factor;
  if (filling.shifted) out.eps = given.eps.value_or(kDreamEps);
  out.alg_temp = given.alg_temp.value_or(0);
  out.by_lot = given.alg == "origin";
  if (given.remasking == "random") out.confidence = MaskConfidence::kRandom;
  if (given.alg == "topk_margin") out.confidence = MaskConfidence::kMargin;
  if (given.alg == "entropy") out.confidence = MaskConfidence::kEntropy;
  out.temperature = static_cast<double>(options.sampling.temperature);
  out.seed = options.sampling.seed;
  return out;
}

CanvasCache CacheOf(const DiffusionOptions& options, int prompt, bool shifted) {
  return {*ChoiceOf(kCaches, options.cache), options.kv_refresh.value_or(0), prompt, shifted};
}

}  // namespace pawl
