// Sampling with a trie of what was tried. With theta of PrefixTrie, a token y is drawn behind a
// visited prefix x with probability P(y | x) theta(xy) / theta(x). What is drawn behind a prefix
// that is visited for the first time makes the methods:
//
//   kAsap      (ASAp, Park et al., arXiv 2405.21047) from the tokens that the mask allows. Every
//              output is valid; early ones are drawn as masks draw them, later ones ever more as
//              the model does. How probable the output was is known, so it gets the weight P / q,
//              the product of theta(x) / theta(xy) over its steps, with the mass of the mask for
//              theta(x) where x is new.
//   kCars      (CARS, arXiv 2510.01902) from all tokens; what is invalid ends the attempt. The
//              product of the steps' probabilities is then P(y) / theta(root) for every valid y, so
//              an accepted output has exactly the model's law, whatever the trie knows. Knowing
//              more only makes attempts fail less often. The root itself is drawn under its mask.
//   kArs       the same without masks: only what was drawn and was invalid is known to be.
//   kRs        knows nothing.
//
// Walking over what is known asks nothing of the model: edges have their probabilities. Logits are
// needed where a walk leaves the trie, and where it takes a token that was not tried yet behind a
// known prefix. Then the model's branch goes to that prefix; what it shares with the last attempt
// is still there.
#include "src/decode/sampling/aligned.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/stop_scope.h"
#include "src/decode/sampling/resampling.h"

namespace pawl {
namespace {

constexpr uint64_t kLineSeeds = 3, kAttemptSeeds = 4, kChoiceSeeds = 5;

bool Learns(SamplerKind mode) {
  return mode == SamplerKind::kAsap || mode == SamplerKind::kArs || mode == SamplerKind::kCars;
}
bool IsExact(SamplerKind mode) {
  return mode == SamplerKind::kRs || mode == SamplerKind::kArs || mode == SamplerKind::kCars;
}

const Candidate* FindCandidate(const StepLaw& law, TokenId token) {
  const auto it = std::lower_bound(law.allowed.begin(), law.allowed.end(), token,
                                   [](const Candidate& c, TokenId t) { return c.token < t; });
  return it != law.allowed.end() && it->token == token ? &*it : nullptr;
}

}  // namespace

struct TrieSampler::Attempt {
  OutputSoFar output;
  // The node of the output so far, or kNone; then `parent` and what leads from it, where that has a
  // node.
  int32_t node = PrefixTrie::kNone;
  int32_t parent = PrefixTrie::kNone;
  TokenId token = kNoToken;
  double probability = 1;
  WeightedOutput out;
};

struct TrieSampler::Choice {
  TokenId token = kNoToken;  // kNoToken: the attempt has failed
  double log_probability = 0;
  double log_factor = 0;             // of the weight
  int32_t next = PrefixTrie::kNone;  // the node behind it, or kEnd, where there is one
};

TrieSampler::~TrieSampler() {
  if (branch_ >= 0) branches_.Free(branch_);
}

namespace {

// The logits behind the output; the prompt's are there already.
Result<std::span<const float>> LogitsBehind(Branches& branches, int& branch,
                                            const std::vector<TokenId>& tokens) {
  if (tokens.empty()) return branches.prompt_logits();
  if (branch < 0) {
    Result<int> made = branches.New();
    if (!made.ok()) return made.error();
    branch = *made;
  }
  branches.Seek(branch, tokens);
  const int run[] = {branch};
  if (Status status = branches.Run(run); !status.ok()) return status.error();
  return branches.logits(0);
}

TokenId DrawFrom(const StepLaw& law, const Noise& noise) {
  GumbelOrder order(law.allowed, law.log_allowed, noise, 1);
  const std::optional<int> item = order.Next();
  return item ? law.allowed[static_cast<size_t>(*item)].token : kNoToken;
}

}  // namespace

// Behind a prefix that is not in the trie: its node is made.
Result<TrieSampler::Choice> TrieSampler::ChooseNew(Attempt& a, SamplerKind mode,
                                                   const Noise& noise) {
  const bool root = a.output.tokens().empty();
  const Allowed allowed = a.output.AllowedNext();
  const Result<std::span<const float>> logits = LogitsBehind(branches_, branch_, a.output.tokens());
  if (!logits.ok()) return logits.error();
  Result<StepLaw> law = LawOf(task_, *logits, allowed);
  if (!law.ok()) return law.error();
  const bool masked = mode == SamplerKind::kAsap || mode == SamplerKind::kCars;
  if (Learns(mode) && (root || a.parent != PrefixTrie::kNone)) {
    const double mass = masked ? std::min(1.0, std::exp(law->log_allowed)) : 1;
    const int count =
        masked ? static_cast<int>(law->allowed.size()) : static_cast<int>(logits->size());
    a.node = trie_.Visit(a.parent, a.token, a.probability, mass, count);
  }
  if (mode == SamplerKind::kGcd || masked) {
    a.out.report.removed.push_back(0 - std::expm1(std::min(0.0, law->log_allowed)));
    a.out.report.mask_surprise -= law->log_allowed;
  }
  if (mode == SamplerKind::kGcd || mode == SamplerKind::kAsap) {
    Result<StepDraw> draw = DrawStep(task_, a.output, *law, nullptr, noise);
    if (!draw.ok()) return draw.error();
    a.out.report.evaluations += draw->counts.asked;
    a.out.report.draws += draw->counts.draws;
    for (const TokenId token : draw->rejected) {
      trie_.AddDead(a.node, token, std::exp(law->LogProbability(*logits, token)));
    }
    return Choice{draw->token, draw->log_probability, draw->log_weight};
  }
  if (mode == SamplerKind::kCars && root) {
    const TokenId token = DrawFrom(*law, noise);
    if (token == kNoToken) return Choice{};
    return Checked(a, {token, FindCandidate(*law, token)->log_mass});
  }
  const Result<StepLaw> whole =
      MakeStepLaw(*logits, task_.temperature, nullptr, static_cast<int>(logits->size()));
  if (!whole.ok()) return whole.error();
  const TokenId token = DrawFrom(*whole, noise);
  const Choice choice{token, whole->LogProbability(*logits, token)};
  if (FindCandidate(*law, token) == nullptr) {
    // kCars knows already: it is not among what is allowed.
    if (mode == SamplerKind::kArs) {
      trie_.AddDead(a.node, token, std::exp(choice.log_probability));
    }
    return Choice{};
  }
  return Checked(a, choice);
}

Result<TrieSampler::Choice> TrieSampler::ChooseVisited(Attempt& a, SamplerKind mode,
                                                       const Noise& noise) {
  if (mode != SamplerKind::kArs) {
    const double allowed = std::min(1.0, trie_.Allowed(a.node));
    a.out.report.removed.push_back(1 - allowed);
    a.out.report.mask_surprise -= std::log(allowed);
  }
  const double rest = trie_.Remainder(a.node);
  double sum = rest;
  const PrefixTrie::Edge* last = nullptr;
  for (const PrefixTrie::Edge& edge : trie_.edges(a.node)) {
    const double mass = edge.probability * trie_.ThetaOf(edge);
    sum += mass;
    if (mass > 0) last = &edge;
  }
  if (!(sum > 0)) return Choice{};
  double left = noise.Uniform(0, 1) * sum;
  const PrefixTrie::Edge* chosen = nullptr;
  for (const PrefixTrie::Edge& edge : trie_.edges(a.node)) {
    const double mass = edge.probability * trie_.ThetaOf(edge);
    if (left < mass) {
      chosen = &edge;
      break;
    }
    left -= mass;
  }
  if (chosen == nullptr && rest > 0) {
    Result<Choice> untried = ChooseUntried(a, mode, noise);
    if (untried.ok()) untried->log_factor += std::log(sum);
    return untried;
  }
  if (chosen == nullptr) chosen = last;  // what rounding left over
  return Choice{chosen->token, std::log(chosen->probability),
                std::log(sum) - std::log(trie_.ThetaOf(*chosen)), chosen->node};
}

// One of the tokens behind a known prefix that have no edge yet. The factor is the weight relative
// to their mass.
Result<TrieSampler::Choice> TrieSampler::ChooseUntried(Attempt& a, SamplerKind mode,
                                                       const Noise& noise) {
  const Allowed allowed = a.output.AllowedNext();
  const Result<std::span<const float>> logits = LogitsBehind(branches_, branch_, a.output.tokens());
  if (!logits.ok()) return logits.error();
  Result<StepLaw> law = LawOf(task_, *logits, allowed);
  if (!law.ok()) return law.error();
  StepLaw from = *law;
  if (mode == SamplerKind::kArs) {
    Result<StepLaw> whole =
        MakeStepLaw(*logits, task_.temperature, nullptr, static_cast<int>(logits->size()));
    if (!whole.ok()) return whole.error();
    from = *std::move(whole);
  }
  std::erase_if(from.allowed,
                [&](const Candidate& c) { return trie_.Find(a.node, c.token) != nullptr; });
  from.log_allowed = LogSum(from.allowed);
  if (from.allowed.empty()) return Choice{};
  if (mode == SamplerKind::kAsap) {
    Result<StepDraw> draw = DrawStep(task_, a.output, from, nullptr, noise);
    if (!draw.ok()) return draw.error();
    a.out.report.evaluations += draw->counts.asked;
    a.out.report.draws += draw->counts.draws;
    for (const TokenId token : draw->rejected) {
      trie_.AddDead(a.node, token, std::exp(law->LogProbability(*logits, token)));
    }
    return Choice{draw->token, draw->log_probability, draw->log_weight - from.log_allowed};
  }
  const TokenId token = DrawFrom(from, noise);
  const Choice choice{token, law->LogProbability(*logits, token)};
  if (FindCandidate(*law, token) == nullptr) {
    trie_.AddDead(a.node, token, std::exp(choice.log_probability));
    return Choice{};
  }
  return Checked(a, choice);
}

// The choice, if the checks let it be; else it is known to be dead from now on.
Result<TrieSampler::Choice> TrieSampler::Checked(Attempt& a, Choice choice) {
  if (task_.checks.empty()) return choice;
  StepCounts counts;
  const Result<bool> fine = a.output.ChecksAllow(choice.token, counts);
  if (!fine.ok()) return fine.error();
  a.out.report.evaluations += counts.asked;
  ++a.out.report.draws;
  if (*fine) return choice;
  trie_.AddDead(a.node, choice.token, std::exp(choice.log_probability));
  return Choice{};
}

Result<WeightedOutput> TrieSampler::Try(SamplerKind mode, uint64_t seed) {
  Attempt a{.output = OutputSoFar(task_), .out = {}};
  a.out.report.sampler = mode;
  if (Learns(mode)) {
    a.node = trie_.root();
    a.out.report.theta = trie_.theta();
    a.out.report.found = trie_.found();
  }
  const int64_t rows = branches_.rows();
  double log_weight = 0;
  bool failed = false;
  int32_t deepest = PrefixTrie::kNone;
  while (!failed && !a.output.ended()) {
    task_.CheckTime();
    const Noise noise(seed, a.output.tokens().size());
    a.out.report.at_budget |= a.output.at_budget();
    Result<Choice> choice =
        a.node != PrefixTrie::kNone ? ChooseVisited(a, mode, noise) : ChooseNew(a, mode, noise);
    if (!choice.ok()) return choice.error();
    if (a.node != PrefixTrie::kNone) deepest = a.node;
    if (choice->token == kNoToken) {
      failed = true;
      break;
    }
    log_weight += choice->log_factor;
    if (!a.output.Append(choice->token, choice->log_probability)) {
      return Error{
          ErrorCode::kInternal,
          "the mask allowed token " + std::to_string(choice->token) + ", the state did not", ""};
    }
    const double probability = std::exp(choice->log_probability);
    if (a.output.ended()) {
      trie_.AddEnd(a.node, choice->token, probability);
    } else {
      a.parent = a.node;
      a.token = choice->token;
      a.probability = probability;
      a.node = choice->next >= 0 ? choice->next : PrefixTrie::kNone;
    }
  }
  trie_.Update(deepest);
  a.out.tokens = a.output.tokens();
  a.out.text = a.output.text();
  a.out.log_probability = a.output.log_probability;
  a.out.report.valid = !failed;
  a.out.report.model_rows = branches_.rows() - rows;
  a.out.log_weight = failed ? kZeroWeight : IsExact(mode) ? 0 : log_weight;
  if (IsExact(mode)) a.out.report.distance_at_most = failed ? -1 : 0;
  return std::move(a.out);
}

namespace {

// What attempts cost is the output's.
void AddCosts(const SamplerReport& from, SamplerReport& to) {
  to.evaluations += from.evaluations;
  to.draws += from.draws;
  to.model_rows += from.model_rows;
}

class AlignedRun {
 public:
  AlignedRun(const SamplerSetting& setting, PrefixTrie& trie, Branches& branches)
      : options_(setting.options), trie_(trie), sampler_(setting.task, branches, trie) {}

  // Until an attempt is valid, or up to the limit; of the last one, what became of it.
  Result<WeightedOutput> Exact(SamplerKind mode, uint64_t seed) {
    const bool limited = options_.attempts > 0;
    const int most = limited ? options_.attempts : kDefaultExactAttempts;
    SamplerReport costs;
    for (int k = 0;; ++k) {
      Result<WeightedOutput> out =
          sampler_.Try(mode, SeedFor(seed, static_cast<uint64_t>(k), kAttemptSeeds));
      if (!out.ok()) return out;
      AddCosts(costs, out->report);
      costs = {};
      AddCosts(out->report, costs);
      out->report.attempts = k + 1;
      // Where nothing can be valid no attempt will be.
      const bool spent = !limited && out->report.model_rows >= kDefaultExactRows;
      if (out->report.valid || k + 1 >= most || spent || trie_.theta() <= 0) return out;
    }
  }

  // `count` outputs, of which one is chosen by weight and gets the average weight.
  Result<WeightedOutput> Aligned(SamplerKind mode, uint64_t seed, int count) {
    std::vector<WeightedOutput> outs;
    std::vector<double> logs;
    SamplerReport costs;
    const double known = trie_.theta() > 0 ? trie_.found() / trie_.theta() : 0;
    for (int k = 0; k < count; ++k) {
      Result<WeightedOutput> out = TryInTime(mode, seed, k, outs.empty());
      if (timed_out_) {
        count = k;
        break;
      }
      if (!out.ok()) return out;
      AddCosts(out->report, costs);
      logs.push_back(out->report.valid ? out->log_weight : kNoMass);
      outs.push_back(*std::move(out));
    }
    const double total = LogSum(logs);
    size_t chosen = 0;
    if (total > kNoMass) {
      chosen = static_cast<size_t>(Resample(Normalised(logs), 1, Resampling::kMultinomial,
                                            Noise(SeedFor(seed, 0, kChoiceSeeds), 0))[0]);
    }
    WeightedOutput out = std::move(outs[chosen]);
    out.log_weight = total > kNoMass ? total - std::log(static_cast<double>(count)) : kZeroWeight;
    out.report.evaluations = out.report.draws = out.report.model_rows = 0;
    AddCosts(costs, out.report);
    out.report.attempts = count;
    // With a probability of at least known^count all of them were outputs seen before, and these
    // are drawn in proportion to P.
    if (mode == SamplerKind::kAsap) {
      out.report.distance_at_most = 1 - std::pow(std::min(1.0, known), count);
    }
    return out;
  }

  Result<WeightedOutput> Line(SamplerKind mode, std::optional<Fidelity> fidelity, uint64_t line) {
    const uint64_t seed = SeedFor(options_.seed, line, kLineSeeds);
    const int attempts = options_.attempts;
    Result<WeightedOutput> out =
        IsExact(mode) ? Exact(mode, seed) : Aligned(mode, seed, attempts > 0 ? attempts : 1);
    if (out.ok() && fidelity == Fidelity::kExact && !out->report.valid) {
      const SamplerReport costs = out->report;
      out = Aligned(SamplerKind::kAsap, SeedFor(seed, 1, kChoiceSeeds), 1);
      if (!out.ok()) return out;
      AddCosts(costs, out->report);
      out->report.attempts += costs.attempts;
      // Next to lines of weight 1, which stand for P / (mass of what is valid): about that mass.
      if (out->report.valid) out->log_weight -= std::log(trie_.theta());
    }
    if (out.ok()) {
      out->report.theta = trie_.theta();
      out->report.found = trie_.found();
    }
    return out;
  }

  bool timed_out() const { return timed_out_; }

 private:
  // Attempt k; where the time is over and there are others, they are what there is.
  Result<WeightedOutput> TryInTime(SamplerKind mode, uint64_t seed, int k, bool first) {
    try {
      return sampler_.Try(mode, SeedFor(seed, static_cast<uint64_t>(k), kAttemptSeeds));
    } catch (const OutOfTime&) {
      if (first) throw;
      timed_out_ = true;
      return WeightedOutput();
    }
  }

  const SamplerOptions& options_;
  PrefixTrie& trie_;
  TrieSampler sampler_;
  bool timed_out_ = false;
};

void Finish(const Branches& branches, SamplerResult& result) {
  result.model_calls = branches.calls();
  result.model_rows = branches.rows();
}

bool Hand(WeightedOutput out, const SamplerOptions& options, SamplerResult& result) {
  result.outputs.push_back(std::move(out));
  result.cancelled = options.on_output && !options.on_output(result.outputs.back());
  if (!options.keep_outputs) result.outputs.clear();
  return !result.cancelled;
}

}  // namespace

Result<SamplerResult> SampleAligned(const SamplerSetting& setting, PrefixTrie* trie,
                                    std::optional<Fidelity> fidelity) {
  Branches branches(setting.host, setting.model, setting.prompt, setting.capacity);
  if (Status status = branches.Start(); !status.ok()) return status.error();
  PrefixTrie own;
  PrefixTrie& used = trie != nullptr ? *trie : own;
  SamplerResult result;
  {
    AlignedRun run(setting, used, branches);
    const SamplerOptions& options = setting.options;
    try {
      for (int i = 0; i < options.n && !result.timed_out; ++i) {
        Result<WeightedOutput> out = run.Line(options.sampler, fidelity, static_cast<uint64_t>(i));
        if (!out.ok()) return out.error();
        result.timed_out = run.timed_out();
        if (!Hand(*std::move(out), options, result)) break;
      }
    } catch (const OutOfTime&) {
      result.timed_out = true;
    }
  }
  Finish(branches, result);
  result.trie_nodes = used.node_count();
  result.trie_bytes = static_cast<int64_t>(used.bytes());
  return result;
}

}  // namespace pawl
