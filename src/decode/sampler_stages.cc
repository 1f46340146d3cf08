// The newer stages, after their publications and the behaviour of the libraries that have them.
//   typical      Meister et al., arXiv 2202.00666
//   top-n-sigma  Tang et al., arXiv 2411.07641
//   epsilon, eta Hewitt et al., arXiv 2210.15191
//   mirostat     Basu et al., arXiv 2007.14966
//   DRY, XTC     p-e-w, text-generation-webui pull requests 5677 and 6335
//   momentum     Lan et al., arXiv 2212.02175
//   dynamic temperature  kalomaze, llama.cpp pull request 4972
//
// Sums are taken in double precision over candidates in a fixed order, the best one first and the
// lower token among equals, so the result does not depend on the order in which candidates come.
#include "src/decode/sampler_stages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

namespace pawl {
namespace {

using StageKind = SamplerStage::Kind;

struct StageName {
  std::string_view name;
  StageKind kind;
};
constexpr StageName kStageNames[] = {
    {"penalties", StageKind::kPenalties},
    {"dry", StageKind::kDry},
    {"temperature", StageKind::kTemperature},
    {"top_n_sigma", StageKind::kTopNSigma},
    {"top_k", StageKind::kTopK},
    {"top_p", StageKind::kTopP},
    {"min_p", StageKind::kMinP},
    {"typical_p", StageKind::kTypical},
    {"epsilon_cutoff", StageKind::kEpsilon},
    {"eta_cutoff", StageKind::kEta},
    {"xtc", StageKind::kXtc},
    {"mirostat", StageKind::kMirostat},
    {"momentum", StageKind::kMomentum},
    {"typ_p", StageKind::kTypical},  // llama.cpp's
};

// The kinds of an order, all of them.
Result<std::vector<StageKind>> KindsOf(std::string_view order) {
  std::vector<StageKind> kinds;
  const auto wrong = [&](std::string_view name, const char* what) {
    std::string names;
    for (const StageName& one : kStageNames) {
      if (one.name == "typ_p") continue;
      names += (names.empty() ? "" : ", ") + std::string(one.name);
    }
    return Error{ErrorCode::kInvalid, "\"" + std::string(name) + "\" " + what + names, "samplers"};
  };
  while (!order.empty()) {
    const size_t end = std::min(order.find_first_of(",;"), order.size());
    std::string_view name = order.substr(0, end);
    order.remove_prefix(std::min(end + 1, order.size()));
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    const auto found =
        std::ranges::find_if(kStageNames, [&](const StageName& one) { return one.name == name; });
    if (found == std::end(kStageNames)) return wrong(name, "is no stage; there are ");
    if (std::ranges::find(kinds, found->kind) != kinds.end()) {
      return wrong(name, "is there twice; there are ");
    }
    kinds.push_back(found->kind);
  }
  return kinds;
}

// The stage as the parameters have it; nullopt: they switch it off.
std::optional<SamplerStage> StageOf(StageKind kind, const SamplingParams& p) {
  const SamplerStages& s = p.stages;
  const Penalties penalties = {p.repetition_penalty, p.presence_penalty, p.frequency_penalty};
  SamplerStage stage;
  stage.kind = kind;
  const auto on = [&](bool condition) { return condition ? std::optional(stage) : std::nullopt; };
  // Mirostat stands for all filters.
  const bool filters = s.mirostat == 0;
  switch (kind) {
    case StageKind::kPenalties:
      stage.penalties = penalties;
      return on(penalties.any());
    case StageKind::kDry:
      return on(s.dry_multiplier > 0 && s.dry_penalty_last_n != 0 && s.dry_base >= 1);
    case StageKind::kTemperature:
      return on(true);
    case StageKind::kTopNSigma:
      stage.share = s.top_n_sigma;
      return on(filters && s.top_n_sigma > 0);
    case StageKind::kTopK:
      stage.most = p.top_k;
      return on(filters && p.top_k > 0);
    case StageKind::kTopP:
      stage.share = p.top_p;
      return on(filters && p.top_p < 1);
    case StageKind::kMinP:
      stage.share = p.min_p;
      return on(filters && p.min_p > 0);
    case StageKind::kTypical:
      stage.share = s.typical_p;
      return on(filters && s.typical_p < 1);
    case StageKind::kEpsilon:
      stage.share = s.epsilon_cutoff;
      return on(filters && s.epsilon_cutoff > 0);
    case StageKind::kEta:
      stage.share = s.eta_cutoff;
      return on(filters && s.eta_cutoff > 0);
    case StageKind::kXtc:
      return on(filters && s.xtc_probability > 0 && s.xtc_threshold <= 0.5f);
    case StageKind::kMirostat:
      return on(s.mirostat != 0);
    case StageKind::kMomentum:
      return on(s.momentum_alpha >= 0);
  }
  return std::nullopt;
}

bool BetterCandidate(const SamplerCandidate& a, const SamplerCandidate& b) {
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

// Probabilities of the candidates, which get sorted, the best one first.
std::vector<double> SortedLaw(SamplerCandidates& candidates, float temperature) {
  std::sort(candidates.begin(), candidates.end(), BetterCandidate);
  std::vector<double> law(candidates.size());
  double sum = 0;
  for (size_t i = 0; i < law.size(); ++i) {
    sum += law[i] =
        std::exp((double{candidates[i].score} - double{candidates[0].score}) / double{temperature});
  }
  for (double& p : law) p /= sum;
  return law;
}

double EntropyOf(const std::vector<double>& law) {
  double entropy = 0;
  for (const double p : law) entropy -= p > 0 ? p * std::log(p) : 0;
  return entropy;
}

// Keeps the first ones, at least one.
void KeepFirst(SamplerCandidates& candidates, size_t count) {
  candidates.resize(std::max<size_t>(1, std::min(count, candidates.size())));
}

void KeepAbove(SamplerCandidates& candidates, const std::vector<double>& law, double least) {
  size_t count = 0;
  while (count < law.size() && law[count] >= least) ++count;
  KeepFirst(candidates, count);
}

Status InRange(bool good, const char* field, const char* message) {
  if (good) return {};
  return Error{ErrorCode::kInvalid, message, field};
}

}  // namespace

Result<std::vector<SamplerStage>> StagesOf(const SamplingParams& params) {
  const std::string& order = params.stages.order;
  const Result<std::vector<StageKind>> kinds = KindsOf(order.empty() ? kDefaultStages : order);
  if (!kinds.ok()) return kinds.error();
  std::vector<SamplerStage> stages;
  for (const StageKind kind : *kinds) {
    if (const auto stage = StageOf(kind, params)) stages.push_back(*stage);
  }
  return stages;
}

std::string OrderOf(const SamplingParams& params) {
  std::string names;
  const Result<std::vector<SamplerStage>> stages = StagesOf(params);
  if (!stages.ok()) return names;
  for (const SamplerStage& stage : *stages) {
    const auto found = std::ranges::find_if(
        kStageNames, [&](const StageName& one) { return one.kind == stage.kind; });
    names += (names.empty() ? "" : ",") + std::string(found->name);
  }
  return names;
}

Status CheckSamplerStages(const SamplerStages& s) {
  constexpr float kMost = std::numeric_limits<float>::max();
  // Written so that NaN fails every comparison.
  const Status checks[] = {
      InRange(s.typical_p > 0 && s.typical_p <= 1, "typical_p", "must be above 0 and at most 1"),
      InRange(s.top_n_sigma >= -kMost && s.top_n_sigma <= kMost, "top_n_sigma",
              "must be a finite number"),
      InRange(s.xtc_probability >= 0 && s.xtc_probability <= 1, "xtc_probability",
              "must be between 0 and 1"),
      InRange(s.xtc_threshold >= 0 && s.xtc_threshold <= 1, "xtc_threshold",
              "must be between 0 and 1"),
      InRange(s.epsilon_cutoff >= 0 && s.epsilon_cutoff < 1, "epsilon_cutoff",
              "must be at least 0 and below 1"),
      InRange(s.eta_cutoff >= 0 && s.eta_cutoff < 1, "eta_cutoff",
              "must be at least 0 and below 1"),
      InRange(s.dry_multiplier >= 0 && s.dry_multiplier <= kMost, "dry_multiplier",
              "must be a finite number of at least 0"),
      InRange(s.dry_base >= 0 && s.dry_base <= kMost, "dry_base",
              "must be a finite number of at least 0"),
      InRange(s.dry_allowed_length >= 0, "dry_allowed_length", "must be at least 0"),
      InRange(s.dry_penalty_last_n >= -1, "dry_penalty_last_n", "must be at least -1"),
      InRange(s.mirostat >= 0 && s.mirostat <= 2, "mirostat", "must be 0, 1 or 2"),
      InRange(s.mirostat_tau >= 0 && s.mirostat_tau <= kMost, "mirostat_tau",
              "must be a finite number of at least 0"),
      InRange(s.mirostat_eta >= 0 && s.mirostat_eta <= kMost, "mirostat_eta",
              "must be a finite number of at least 0"),
      InRange(s.dynatemp_range >= 0 && s.dynatemp_range <= kMost, "dynatemp_range",
              "must be a finite number of at least 0"),
      InRange(s.dynatemp_exponent >= 0 && s.dynatemp_exponent <= kMost, "dynatemp_exponent",
              "must be a finite number of at least 0"),
      InRange(s.temperature_last >= -kMost && s.temperature_last <= kMost, "temperature_last",
              "must be a finite number"),
      InRange(s.temperature_tokens >= 1, "temperature_tokens", "must be at least 1"),
      InRange(s.momentum_alpha >= -kMost && s.momentum_alpha <= kMost, "momentum_alpha",
              "must be a finite number"),
      InRange(s.momentum_k >= 1, "momentum_k", "must be at least 1"),
  };
  for (const Status& status : checks) {
    if (!status.ok()) return status;
  }
  const Result<std::vector<StageKind>> kinds = KindsOf(s.order);
  return kinds.ok() ? Status() : kinds.error();
}

// The tokens whose surprise is nearest to the entropy, as few as reach p.
void KeepTypical(SamplerCandidates& candidates, float p, float temperature) {
  const std::vector<double> law = SortedLaw(candidates, temperature);
  const double entropy = EntropyOf(law);
  std::vector<std::pair<double, size_t>> order(law.size());
  for (size_t i = 0; i < law.size(); ++i) {
    const double surprise =
        law[i] > 0 ? -std::log(law[i]) : std::numeric_limits<double>::infinity();
    order[i] = {std::abs(surprise - entropy), i};
  }
  std::sort(order.begin(), order.end());
  SamplerCandidates kept;
  double reached = 0;
  for (const auto& [distance, i] : order) {
    kept.push_back(candidates[i]);
    reached += law[i];
    if (reached >= double{p}) break;
  }
  candidates = std::move(kept);
}

void KeepTopNSigma(SamplerCandidates& candidates, float n) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const SamplerCandidate& c : candidates) {
    largest = std::max(largest, double{c.score});
    sum += double{c.score};
  }
  const auto count = static_cast<double>(candidates.size());
  double squares = 0;
  for (const SamplerCandidate& c : candidates) {
    squares += (double{c.score} - sum / count) * (double{c.score} - sum / count);
  }
  const double least = largest - double{n} * std::sqrt(squares / count);
  std::erase_if(candidates, [&](const SamplerCandidate& c) { return double{c.score} < least; });
}

// Of the tokens that reach the threshold, all but the least probable one go.
void KeepXtc(SamplerCandidates& candidates, float probability, float threshold, float temperature,
             double uniform) {
  if (uniform > double{probability}) return;
  const std::vector<double> law = SortedLaw(candidates, temperature);
  size_t count = 0;
  while (count < law.size() && law[count] >= double{threshold}) ++count;
  if (count < 2) return;
  candidates.erase(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(count - 1));
}

void KeepEpsilon(SamplerCandidates& candidates, float epsilon, float temperature) {
  const std::vector<double> law = SortedLaw(candidates, temperature);
  KeepAbove(candidates, law, double{epsilon});
}

void KeepEta(SamplerCandidates& candidates, float epsilon, float temperature) {
  const std::vector<double> law = SortedLaw(candidates, temperature);
  const double eta = std::sqrt(double{epsilon}) * std::exp(-EntropyOf(law));
  KeepAbove(candidates, law, std::min(double{epsilon}, eta));
}

void KeepMirostat(SamplerCandidates& candidates, int version, double mu, int vocabulary,
                  float temperature) {
  const std::vector<double> law = SortedLaw(candidates, temperature);
  if (version == 2) {
    size_t count = 0;
    while (count < law.size() && -std::log2(law[count]) <= mu) ++count;
    return KeepFirst(candidates, count);
  }
  // The exponent of Zipf's law, fitted to the 100 most probable tokens; from it the number of
  // tokens whose mean surprise is mu.
  constexpr size_t kFitted = 100;
  double products = 0, squares = 0;
  for (size_t i = 0; i + 1 < std::min(kFitted, law.size()) && law[i + 1] > 0; ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += t * std::log(law[i] / law[i + 1]);
    squares += t * t;
  }
  if (!(squares > 0)) return KeepFirst(candidates, 1);
  const double s = products / squares;
  const double k = std::pow(
      (s - 1) * std::pow(2, mu) / (1 - std::pow(static_cast<double>(vocabulary), 1 - s)), 1 / s);
  // Where nothing can be fitted all tokens stay.
  if (std::isnan(k) || k >= static_cast<double>(candidates.size())) return;
  KeepFirst(candidates, static_cast<size_t>(std::max(1.0, k)));
}

double SurpriseOf(const SamplerCandidates& candidates, TokenId token, float temperature) {
  SamplerCandidates sorted = candidates;
  const std::vector<double> law = SortedLaw(sorted, temperature);
  for (size_t i = 0; i < law.size(); ++i) {
    if (sorted[i].token == token) return -std::log2(law[i]);
  }
  return 0;
}

float TemperatureAt(const SamplerStages& s, float temperature, uint64_t position,
                    const SamplerCandidates& candidates) {
  if (temperature == 0) return 0;
  if (s.temperature_last >= 0) {
    const double done = std::min(1.0, static_cast<double>(position) /
                                          static_cast<double>(std::max(1, s.temperature_tokens)));
    temperature = static_cast<float>(double{temperature} +
                                     (double{s.temperature_last} - double{temperature}) * done);
  }
  if (s.dynatemp_range <= 0 || candidates.size() < 2) return temperature;
  SamplerCandidates sorted = candidates;
  const double entropy = EntropyOf(SortedLaw(sorted, 1));
  const double share = entropy / std::log(static_cast<double>(candidates.size()));
  const double least = std::max(0.0, double{temperature} - double{s.dynatemp_range});
  const double most = double{temperature} + double{s.dynatemp_range};
  return static_cast<float>(least + (most - least) * std::pow(share, double{s.dynatemp_exponent}));
}

// ---- DRY ----

namespace {

// How many of the last tokens stand behind the last sequence breaker. A breaker may stand in the
// middle of a token, or in several.
size_t TokensBehindBreaker(std::span<const TokenId> tokens, const SamplerStages& stages,
                           const Vocabulary* vocabulary) {
  if (vocabulary == nullptr) return tokens.size();
  const auto bytes_of = [&](size_t back) {
    const TokenId token = tokens[tokens.size() - 1 - back];
    const bool text = token < vocabulary->size() && !vocabulary->is_special(token);
    return text ? vocabulary->bytes(token) : std::string_view();
  };
  size_t longest = 0;
  for (const std::string& breaker : stages.dry_sequence_breakers) {
    longest = std::max(longest, breaker.size());
  }
  for (size_t back = 0; back < tokens.size(); ++back) {
    // The token, and as much behind it as a breaker that begins in it can need.
    const std::string_view own = bytes_of(back);
    std::string text(own);
    std::vector<size_t> ends;  // in the text, of the tokens behind
    ends.push_back(text.size());
    for (size_t next = back; next-- > 0 && text.size() < own.size() + longest;) {
      text += bytes_of(next);
      ends.push_back(text.size());
    }
    size_t least = tokens.size();
    for (const std::string& breaker : stages.dry_sequence_breakers) {
      const size_t at = breaker.empty() ? std::string::npos : text.find(breaker);
      if (at == std::string::npos || at >= own.size()) continue;
      const auto last = std::ranges::lower_bound(ends, at + breaker.size());
      least = std::min(least, back - static_cast<size_t>(last - ends.begin()));
    }
    if (least < tokens.size()) return least;
  }
  return tokens.size();
}

// A token that ends what is repeated.
bool HasBreaker(TokenId token, const SamplerStages& stages, const Vocabulary* vocabulary) {
  if (vocabulary == nullptr || token >= vocabulary->size() || vocabulary->is_special(token)) {
    return false;
  }
  const std::string_view bytes = vocabulary->bytes(token);
  return std::ranges::any_of(stages.dry_sequence_breakers, [&](const std::string& breaker) {
    return !breaker.empty() && bytes.find(breaker) != std::string_view::npos;
  });
}

// The tokens of prompt and output. `drawn`: of each, whether it was chosen.
std::vector<TokenId> AllTokens(std::span<const TokenId> prompt, std::span<const TokenId> output,
                               std::span<const uint8_t> forced, std::vector<uint8_t>& drawn) {
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  tokens.insert(tokens.end(), output.begin(), output.end());
  drawn.assign(tokens.size(), 1);
  for (size_t i = 0; i < std::min(forced.size(), output.size()); ++i) {
    drawn[prompt.size() + i] = forced[i] != 0 ? 0 : 1;
  }
  return tokens;
}

}  // namespace

void PenaliseRepetition(SamplerCandidates& candidates, const SamplerStages& stages,
                        std::span<const TokenId> prompt, std::span<const TokenId> output,
                        std::span<const uint8_t> forced, const Vocabulary* vocabulary) {
  std::vector<uint8_t> drawn;
  std::vector<TokenId> tokens = AllTokens(prompt, output, forced, drawn);
  const size_t window =
      stages.dry_penalty_last_n < 0
          ? tokens.size()
          : std::min(tokens.size(), static_cast<size_t>(stages.dry_penalty_last_n));
  tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(window));
  drawn.erase(drawn.begin(), drawn.end() - static_cast<ptrdiff_t>(window));
  const auto allowed = static_cast<size_t>(stages.dry_allowed_length);
  const size_t most = TokensBehindBreaker(tokens, stages, vocabulary);
  if (tokens.size() <= allowed || most < allowed) return;
  // The Z function of the tokens from the end on: how long the match of the end is with what ends
  // one token before place i.
  const size_t n = tokens.size();
  const auto back = [&](size_t i) { return tokens[n - 1 - i]; };
  std::vector<size_t> match(n, 0);
  for (size_t k = 1, left = 0, right = 0; k < n; ++k) {
    size_t length = k < right ? std::min(right - k, match[k - left]) : 0;
    while (k + length < n && back(length) == back(k + length)) ++length;
    match[k] = length;
    if (k + length > right) left = k, right = k + length;
  }
  // How many of the last tokens were drawn.
  std::vector<size_t> drawn_before(n + 1, 0);
  for (size_t i = 0; i < n; ++i) drawn_before[i + 1] = drawn_before[i] + drawn[n - 1 - i];
  std::unordered_map<TokenId, size_t> lengths;
  for (size_t k = 1; k < n; ++k) {
    const size_t length = drawn_before[std::min(match[k], most)];
    if (length < allowed) continue;
    size_t& longest = lengths[back(k - 1)];
    longest = std::max(longest, length);
  }
  // float's largest exponent, as llama.cpp has it.
  const double base = double{stages.dry_base};
  const double most_exponent =
      base > 1.000001 ? 88.7228391 / std::log(base) : std::numeric_limits<double>::max();
  for (SamplerCandidate& c : candidates) {
    const auto found = lengths.find(c.token);
    if (found == lengths.end() || HasBreaker(c.token, stages, vocabulary)) continue;
    const double exponent = std::min(static_cast<double>(found->second - allowed), most_exponent);
    c.score -= static_cast<float>(double{stages.dry_multiplier} * std::pow(base, exponent));
    c.score = std::max(c.score, std::numeric_limits<float>::lowest());
  }
}

// ---- Momentum ----

// How many of the last tokens, the candidate as the last one, stand in the text before. Repetitions
// of more than five tokens are not told apart. Tokens that were not drawn do not count.
void KeepMomentum(SamplerCandidates& candidates, const SamplerStages& stages,
                  std::span<const TokenId> prompt, std::span<const TokenId> output,
                  std::span<const uint8_t> forced) {
  constexpr size_t kLongest = 6;
  std::vector<uint8_t> drawn;
  const std::vector<TokenId> tokens = AllTokens(prompt, output, forced, drawn);
  std::unordered_map<TokenId, size_t> repeated;
  for (size_t at = 0; at < tokens.size(); ++at) {
    size_t length = 1, matched = 0;
    while (length < kLongest && matched < at &&
           tokens[at - 1 - matched] == tokens[tokens.size() - 1 - matched]) {
      length += drawn[tokens.size() - 1 - matched];
      ++matched;
    }
    size_t& longest = repeated[tokens[at]];
    longest = std::max(longest, length);
  }
  const std::vector<double> law = SortedLaw(candidates, 1);
  KeepFirst(candidates, static_cast<size_t>(stages.momentum_k));
  size_t best = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto found = repeated.find(candidates[i].token);
    const size_t length = found == repeated.end() ? 0 : found->second;
    if (length >= kLongest && stages.momentum_alpha > 0) continue;
    const double value = law[i] - double{stages.momentum_alpha} * static_cast<double>(length);
    // At 0 the probabilities alone count, whose order is that of the candidates.
    if (value <= most || (i > 0 && stages.momentum_alpha == 0)) continue;
    best = i;
    most = value;
  }
  candidates = {candidates[best]};
}

}  // namespace pawl
