// Sampling as a pure function.
//
// The draw is the Gumbel-max trick: with independent standard Gumbel noise g_v, argmax(l_v + g_v)
// is distributed as softmax(l) (Gumbel 1954; Maddison, Tarlow, Minka, "A* Sampling", NeurIPS 2014).
// The noise of token v is a hash of (seed, position, v), so there is no stream of random numbers
// whose state depends on what else was sampled: neither the order in which tokens are looked at,
// nor the number of threads, nor tokens that the filters removed change the answer. Speculative
// decoding leans on that: a draft is a guess of this function's value.
//
// Penalties: repetition as in CTRL (Keskar et al., arXiv 1909.05858); presence and frequency as
// OpenAI's API describes them. top-k: Fan et al., arXiv 1805.04833. top-p: Holtzman et al., arXiv
// 1904.09751. min-p: Nguyen et al., arXiv 2407.01082.
//
// Lanes. With K independent noises a token in place of one, argmax(l_v + max_j g_jv) still has the
// distribution softmax(l), because the largest of K Gumbel variables is one that is ln K larger. A
// draft model that draws once with each lane's noise has K guesses, and the token is among them
// more often than it is the only one (Gumbel-max list sampling, arXiv 2506.05632). The guess with
// the largest value is the likeliest.
//
// The mask comes before the filters. The other way round, top-k over the whole vocabulary may keep
// only tokens that are not allowed, and nothing would be left to choose from.
#include "src/decode/sampler.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "src/base/random.h"

namespace pawl {
namespace {

constexpr int kLaneBits = 40;  // above every token
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
Status Require(bool condition, const char* field, T value, const char* message) {
  if (condition) return {};
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return Error{ErrorCode::kInvalid,
               message + (", not " + std::string(static_cast<const char*>(digits), end)), field};
}

}  // namespace

Status CheckSamplingParams(const SamplingParams& p) {
  // Written so that NaN fails every comparison.
  const Status checks[] = {
      Require(p.temperature >= 0 && p.temperature < kInfinity, "temperature", p.temperature,
              "must be a finite number of at least 0"),
      Require(p.top_k >= 0, "top_k", p.top_k, "must be at least 0 (0 switches it off)"),
      Require(p.top_p > 0 && p.top_p <= 1, "top_p", p.top_p, "must be above 0 and at most 1"),
      Require(p.min_p >= 0 && p.min_p <= 1, "min_p", p.min_p, "must be between 0 and 1"),
      Require(p.repetition_penalty > 0 && p.repetition_penalty < kInfinity, "repetition_penalty",
              p.repetition_penalty, "must be a finite number above 0"),
      Require(std::isfinite(p.presence_penalty), "presence_penalty", p.presence_penalty,
              "must be a number"),
      Require(std::isfinite(p.frequency_penalty), "frequency_penalty", p.frequency_penalty,
              "must be a number"),
      Require(p.draft_lanes >= 1 && p.draft_lanes <= kMostDraftLanes, "draft_lanes", p.draft_lanes,
              "must be from 1 to 64"),
  };
  for (const Status& status : checks) {
    if (!status.ok()) return status;
  }
  return CheckSamplerStages(p.stages);
}

Result<TokenId> Sampler::Sample(std::span<const float> logits, const Mask* mask, uint64_t position,
                                const TokenHistory& history) {
  if (Status status = Filter(logits, mask, position, history); !status.ok()) return status.error();
  const bool greedy = temperature_ == 0 || candidates_.size() == 1;
  const TokenId token = greedy ? Argmax() : Draw(position, 0, params_.draft_lanes);
  next_mu_.reset();
  if (params_.stages.mirostat != 0 && params_.temperature != 0) {
    const double surprise = SurpriseOf(candidates_, token, temperature_ == 0 ? 1 : temperature_);
    next_mu_ = mu_ - double{params_.stages.mirostat_eta} *
                         (surprise - double{params_.stages.mirostat_tau});
  }
  return token;
}

Status Sampler::SampleLanes(std::span<const float> logits, const Mask* mask, uint64_t position,
                            const TokenHistory& history, std::vector<TokenId>& guesses) {
  guesses.clear();
  if (Status status = Filter(logits, mask, position, history); !status.ok()) return status;
  if (temperature_ == 0 || candidates_.size() == 1) {
    guesses.push_back(Argmax());
    return {};
  }
  std::vector<std::pair<float, TokenId>> drawn;
  for (int lane = 0; lane < params_.draft_lanes; ++lane) {
    float value = 0;
    const TokenId token = Draw(position, lane, 1, &value);
    drawn.emplace_back(-value, token);
  }
  std::sort(drawn.begin(), drawn.end());
  for (const auto& [value, token] : drawn) {
    if (std::find(guesses.begin(), guesses.end(), token) == guesses.end()) guesses.push_back(token);
  }
  return {};
}

Status Sampler::Law(std::span<const float> logits, const Mask* mask, uint64_t position,
                    const TokenHistory& history, std::vector<TokenMass>& law) {
  law.clear();
  if (Status status = Filter(logits, mask, position, history); !status.ok()) return status;
  if (temperature_ == 0 || candidates_.size() == 1) {
    law.push_back({Argmax(), 1});
    return {};
  }
  const double largest = double{Largest()}, temperature = double{temperature_};
  double sum = 0;
  for (const Candidate& c : candidates_) {
    const double mass = std::exp((double{c.score} - largest) / temperature);
    if (mass > 0) law.push_back({c.token, mass});
    sum += mass;
  }
  for (TokenMass& one : law) one.mass /= sum;
  std::sort(law.begin(), law.end(),
            [](const TokenMass& a, const TokenMass& b) { return a.token < b.token; });
  return {};
}

// With a draft of probability at least 1 - e, taking it always in place of drawing differs by at
// most e in total variation: the draw gives anything else with at most that probability. Drafts do
// not depend on the noise of this position, so this holds whatever is drafted. (The rule of Fuzzy
// Speculative Decoding, arXiv 2502.20704, for drafts that come without a distribution.)
Result<TokenId> Sampler::ProbableDraft(std::span<const float> logits, const Mask* mask,
                                       const TokenHistory& history,
                                       std::span<const TokenId> drafted, float lossy) {
  if (Status status = Filter(logits, mask, history.output.size(), history); !status.ok()) {
    return status.error();
  }
  const float temperature = temperature_ == 0 ? 1 : temperature_;
  const float largest = Largest();
  double sum = 0, most = 0;
  TokenId best = kNoToken;
  for (const Candidate& c : candidates_) {
    const double weight = std::exp((double{c.score} - double{largest}) / double{temperature});
    sum += weight;
    if (std::find(drafted.begin(), drafted.end(), c.token) == drafted.end()) continue;
    if (weight > most || (weight == most && c.token < best)) {
      most = weight;
      best = c.token;
    }
  }
  return most >= (1 - double{lossy}) * sum ? best : kNoToken;
}

Status Sampler::Filter(std::span<const float> logits, const Mask* mask, uint64_t position,
                       const TokenHistory& history) {
  using Kind = SamplerStage::Kind;
  if (Status status = Collect(logits, mask); !status.ok()) return status;
  width_ = logits.size();
  const SamplerStages& more = params_.stages;
  const float given = params_.temperature;
  temperature_ = given == 0 ? 0 : 1;
  for (const SamplerStage& stage : stages_) {
    // What the constraint leaves no choice about is not penalised.
    if (candidates_.size() == 1 && stage.kind != Kind::kTemperature) continue;
    switch (stage.kind) {
      case Kind::kPenalties:
        Penalise(stage.penalties, history);
        break;
      case Kind::kDry:
        PenaliseRepetition(candidates_, more, history.prompt, history.output, history.forced,
                           vocabulary_);
        break;
      case Kind::kMomentum:
        KeepMomentum(candidates_, more, history.prompt, history.output, history.forced);
        break;
      case Kind::kTemperature:
        temperature_ = TemperatureAt(more, given, position, candidates_);
        break;
      default:
        if (temperature_ != 0) KeepBy(stage, position);
    }
  }
  return {};
}

void Sampler::KeepBy(const SamplerStage& stage, uint64_t position) {
  using Kind = SamplerStage::Kind;
  switch (stage.kind) {
    case Kind::kTopK:
      return KeepTopK(stage.most);
    case Kind::kTopP:
      return KeepTopP(stage.share, Largest());
    case Kind::kMinP:
      return KeepMinP(stage.share, Largest());
    case Kind::kTopNSigma:
      return KeepTopNSigma(candidates_, stage.share);
    case Kind::kTypical:
      return KeepTypical(candidates_, stage.share, temperature_);
    case Kind::kEpsilon:
      return KeepEpsilon(candidates_, stage.share, temperature_);
    case Kind::kEta:
      return KeepEta(candidates_, stage.share, temperature_);
    case Kind::kXtc: {
      // A number that no token's noise uses.
      const PhiloxBlock block = Philox4x32(params_.seed, position, uint64_t{1} << 62);
      const double uniform = (static_cast<double>(block.word[0]) + 0.5) / 4294967296.0;
      return KeepXtc(candidates_, params_.stages.xtc_probability, params_.stages.xtc_threshold,
                     temperature_, uniform);
    }
    case Kind::kMirostat:
      return KeepMirostat(candidates_, params_.stages.mirostat, mu_, static_cast<int>(width_),
                          temperature_);
    default:
      return;
  }
}

bool Sampler::needs_logits() const {
  using Kind = SamplerStage::Kind;
  const SamplerStages& more = params_.stages;
  if (params_.draft_lanes > 1 || more.dynatemp_range > 0 || more.temperature_last >= 0) return true;
  // The order that backends know.
  constexpr Kind kKnown[] = {Kind::kPenalties, Kind::kTemperature, Kind::kTopK, Kind::kTopP,
                             Kind::kMinP};
  size_t next = 0;
  bool cools = false;
  for (const SamplerStage& stage : stages_) {
    while (next < std::size(kKnown) && kKnown[next] != stage.kind) ++next;
    if (next == std::size(kKnown)) return true;
    cools = cools || stage.kind == Kind::kTemperature;
  }
  return !cools;
}

float Sampler::Largest() const {
  float largest = -kInfinity;
  for (const Candidate& c : candidates_) largest = std::max(largest, c.score);
  return largest;
}

Status Sampler::Collect(std::span<const float> logits, const Mask* mask) {
  candidates_.clear();
  bool finite = false;
  bool broken = false;
  auto add = [&](size_t i) {
    const float logit = logits[i];
    finite |= logit > -kInfinity;
    broken |= !(logit < kInfinity);
    candidates_.push_back({logit, static_cast<TokenId>(i)});
  };
  if (mask == nullptr) {
    for (size_t i = 0; i < logits.size(); ++i) add(i);
  } else {
    const std::span<const uint32_t> words = mask->words();
    for (size_t w = 0; w < words.size(); ++w) {
      for (uint32_t word = words[w]; word != 0; word &= word - 1) {
        const size_t i = w * 32 + static_cast<size_t>(std::countr_zero(word));
        if (i < logits.size()) add(i);
      }
    }
  }
  if (candidates_.empty()) return Error{ErrorCode::kInvalid, "the mask allows no token", ""};
  if (broken) {
    const auto bad = std::find_if(candidates_.begin(), candidates_.end(),
                                  [](const Candidate& c) { return !(c.score < kInfinity); });
    return Error{ErrorCode::kInternal, "the model's logit is not a finite number",
                 "token " + std::to_string(bad->token)};
  }
  if (finite) {
    std::erase_if(candidates_, [](const Candidate& c) { return c.score == -kInfinity; });
  } else {
    for (Candidate& c : candidates_) c.score = 0;
  }
  return {};
}

void Sampler::Penalise(const Penalties& penalties, const TokenHistory& history) {
  std::unordered_map<TokenId, int32_t> counts;  // in the output; of all that were seen
  for (const TokenId token : history.prompt) counts[token];
  for (const TokenId token : history.output) ++counts[token];
  for (Candidate& c : candidates_) {
    const auto it = counts.find(c.token);
    if (it != counts.end()) c.score = Penalised(c.score, penalties, true, it->second);
  }
}

void Sampler::KeepTopK(int most) {
  if (static_cast<size_t>(most) >= candidates_.size()) return;
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.score > b.score || (a.score == b.score && a.token < b.token);
  };
  std::nth_element(candidates_.begin(), candidates_.begin() + (most - 1), candidates_.end(),
                   better);
  candidates_.resize(static_cast<size_t>(most));
}

// A heap instead of a sort: usually a handful of tokens reach p.
void Sampler::KeepTopP(float share, float largest) {
  const auto weight = [&](const Candidate& c) {
    return WeightOf(RelativeScore(c.score, largest, temperature_));
  };
  uint64_t total = 0;
  for (const Candidate& c : candidates_) total += weight(c);
  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.token > b.token);
  };
  std::make_heap(candidates_.begin(), candidates_.end(), worse);
  auto end = candidates_.end();
  uint64_t reached = 0;
  while (end != candidates_.begin() && !Reaches(reached, share, total)) {
    std::pop_heap(candidates_.begin(), end, worse);
    --end;
    reached += weight(*end);
  }
  candidates_.erase(candidates_.begin(), end);
}

void Sampler::KeepMinP(float share, float largest) {
  const float least = std::log(share);
  std::erase_if(candidates_, [&](const Candidate& c) {
    return RelativeScore(c.score, largest, temperature_) < least;
  });
}

TokenId Sampler::Argmax() const {
  const Candidate* best = &candidates_[0];
  for (const Candidate& c : candidates_) {
    if (c.score > best->score || (c.score == best->score && c.token < best->token)) best = &c;
  }
  return best->token;
}

TokenId Sampler::Draw(uint64_t position, int first_lane, int lanes, float* value_of_best) const {
  const float temperature = temperature_;
  TokenId best = candidates_[0].token;
  float best_value = -kInfinity;
  // Noise costs ten rounds of Philox and two logarithms; most tokens cannot win even with the
  // largest.
  float hopeless = -kInfinity;
  for (const Candidate& c : candidates_) {
    if (c.score < hopeless) continue;
    float noise = -kInfinity;
    for (int lane = first_lane; lane < first_lane + lanes; ++lane) {
      const uint64_t index =
          static_cast<uint64_t>(lane) << kLaneBits | static_cast<uint32_t>(c.token);
      noise = std::max(noise, GumbelAt(params_.seed, position, index));
    }
    const float value = Perturbed(c.score, temperature, noise);
    if (value > best_value || (value == best_value && c.token < best)) {
      best = c.token;
      best_value = value;
      hopeless = HopelessLogit(best_value, temperature);
    }
  }
  if (value_of_best != nullptr) *value_of_best = best_value;
  return best;
}

}  // namespace pawl
