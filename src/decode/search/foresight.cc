// Foresight (phi-decoding, arXiv 2503.13288): an output is written in steps, and a step is chosen
// by what would follow it.
//
// From each beam several steps are drawn, each of which ends with a line, or after `step` tokens.
// Steps far less probable than the mean are dropped. Each of the others is continued greedily by
// `horizon` tokens. A step has two weights: the gain of its continuation's mean log-probability
// over that of the step before, and the share of continuations that agree with its own. The next
// beams are drawn by the mean of both softmaxes. Where enough continuations agree, the outputs are
// completed greedily.
//
// Own to Pawl: continuations agree where the constraint is in the same state behind them, or where
// their next line is the same. The paper clusters embeddings. First tokens of the steps behind a
// beam are drawn without repetition, and the answer is the best complete output that was seen.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "src/base/random.h"
#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

constexpr uint64_t kStepSeeds = 78, kKeptSeeds = 79;

std::vector<double> SoftmaxOf(const std::vector<double>& values) {
  const double largest = *std::ranges::max_element(values);
  std::vector<double> shares;
  double sum = 0;
  for (const double value : values) sum += shares.emplace_back(std::exp(value - largest));
  for (double& share : shares) share /= sum;
  return shares;
}

class Foresight {
 public:
  explicit Foresight(SearchRun& run)
      : run_(run),
        walk_(run, TreeWalk::kWholeLaws),
        rollouts_(static_cast<size_t>(run.Argument("num_rollouts", 4))),
        beams_(static_cast<size_t>(run.Argument("beams", 4))),
        step_(static_cast<int>(run.Argument("step", 16))),
        horizon_(static_cast<int>(run.Argument("horizon", 8))),
        temperature_(static_cast<float>(run.Argument("temperature", 1))),
        sigma_(run.Argument("sigma", 1)),
        agreement_(run.Argument("agreement", 0.7)) {
    run_.SetMost(static_cast<size_t>(run.options().n));
  }

  Result<SearchResult> Go() {
    std::vector<Beam> beams = {{SearchRun::kRoot, 0}};
    while (!beams.empty()) {
      Result<std::vector<Beam>> next = Step(beams);
      if (!next.ok()) return next.error();
      if (run_.limited()) break;
      beams = *std::move(next);
    }
    std::vector<Hypo> open;
    for (const Beam& beam : beams) open.push_back(beam.at);
    return run_.Finish(open);
  }

 private:
  struct Beam {
    Hypo at;
    double ahead;  // mean log-probability of what followed its last step
  };
  struct Steps {
    std::vector<Hypo> from, path, ahead;
    std::vector<double> before;  // Beam::ahead
  };

  Result<std::vector<Beam>> Step(const std::vector<Beam>& beams) {
    ++round_;
    std::vector<Beam> next;
    Steps steps;
    if (Status status = DrawSteps(beams, steps); !status.ok()) return status.error();
    if (run_.limited() || steps.path.empty()) return next;
    Prune(steps);
    steps.ahead = steps.path;
    if (Status status = walk_.Complete(steps.ahead, horizon_); !status.ok()) return status.error();
    if (run_.limited()) return next;
    OfferComplete(steps.ahead);
    std::vector<double> gains, shares;
    double largest = 0;
    const std::vector<double> agree = Agreement(steps);
    for (size_t i = 0; i < steps.path.size(); ++i) {
      gains.push_back((AheadOf(steps, i) - steps.before[i]) / double{temperature_});
      shares.push_back(agree[i] / double{temperature_});
      largest = std::max(largest, agree[i]);
    }
    if (steps.path.size() > 1 && largest >= agreement_) {
      constexpr int kMost = std::numeric_limits<int>::max();
      if (Status status = walk_.Complete(steps.ahead, kMost); !status.ok()) return status.error();
      OfferComplete(steps.ahead);
      return next;
    }
    return Choose(steps, SoftmaxOf(gains), SoftmaxOf(shares));
  }

  // The tokens after which a line ends.
  bool EndsLine(Hypo h) const {
    return run_.task().BytesOf(run_.at(h).token).find('\n') != std::string_view::npos;
  }

  Status DrawSteps(const std::vector<Beam>& beams, Steps& steps) {
    std::vector<Hypo> open;
    for (const Beam& beam : beams) open.push_back(beam.at);
    if (Status status = walk_.Ask(open); !status.ok() || run_.limited()) return status;
    for (size_t b = 0; b < beams.size(); ++b) {
      RankedTokens& law = walk_.LawOf(open[b]);
      std::vector<std::pair<float, size_t>> order;
      for (size_t i = 0; i < law.size(); ++i) {
        const float noise = GumbelAt(SeedFor(run_.options().seed, round_, kStepSeeds), b,
                                     static_cast<uint64_t>(law.At(i).token));
        order.push_back({-Perturbed(law.LogitOf(law.At(i)), temperature_, noise), i});
      }
      std::ranges::sort(order);
      size_t drawn = 0;
      for (const auto& [value, i] : order) {
        if (drawn == rollouts_) break;
        const Result<Hypo> child = walk_.ChildAt(open[b], i);
        if (!child.ok()) return child.error();
        if (run_.limited()) return {};
        if (*child == kNoHypo) continue;
        steps.from.push_back(open[b]);
        steps.before.push_back(beams[b].ahead);
        steps.path.push_back(*child);
        ++drawn;
      }
    }
    return walk_.Extend(
        steps.path, step_ - 1,
        [&](size_t i, Hypo h) {
          const uint64_t seed = SeedFor(run_.options().seed, round_ << 16 | i, kStepSeeds);
          return walk_.Draw(h, seed, temperature_);
        },
        [this](Hypo h) { return EndsLine(h); });
  }

  void Prune(Steps& steps) const {
    std::vector<double> means;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < steps.path.size(); ++i) {
      means.push_back(run_.MeanBehind(steps.from[i], steps.path[i]));
      sum += means.back();
    }
    const double mean = sum / static_cast<double>(means.size());
    for (const double one : means) squares += (one - mean) * (one - mean);
    const double least =
        mean - sigma_ * std::sqrt(squares / static_cast<double>(means.size())) - 1e-9;
    Steps kept;
    for (size_t i = 0; i < means.size(); ++i) {
      if (means[i] < least) continue;
      kept.from.push_back(steps.from[i]);
      kept.path.push_back(steps.path[i]);
      kept.before.push_back(steps.before[i]);
    }
    steps = std::move(kept);
  }

  void OfferComplete(const std::vector<Hypo>& ahead) {
    for (const Hypo h : ahead) {
      if (run_.Complete(h)) run_.Offer(h, run_.ScoreOf(h));
    }
  }

  // Where nothing follows, that of the step itself.
  double AheadOf(const Steps& steps, size_t i) const {
    const bool goes_on = steps.ahead[i] != steps.path[i];
    return run_.MeanBehind(goes_on ? steps.path[i] : steps.from[i], steps.ahead[i]);
  }

  // Of each step the share of continuations that agree with its own.
  std::vector<double> Agreement(const Steps& steps) const {
    std::map<std::pair<uint64_t, std::string>, double> sizes;
    std::vector<std::pair<uint64_t, std::string>> clusters;
    for (size_t i = 0; i < steps.path.size(); ++i) {
      const Hypothesis& ahead = run_.at(steps.ahead[i]);
      const uint64_t key = ahead.at != nullptr ? ahead.at->key() : 0;
      std::string line;
      if (run_.Complete(steps.path[i])) {
        line = run_.TextOf(steps.path[i]);
      } else if (key == 0) {
        line = run_.TextOf(steps.ahead[i]).substr(run_.TextOf(steps.path[i]).size());
        line.resize(std::min(line.size(), line.find('\n')));
      }
      clusters.emplace_back(key, std::move(line));
      ++sizes[clusters.back()];
    }
    std::vector<double> shares;
    for (const auto& cluster : clusters) {
      shares.push_back(sizes[cluster] / static_cast<double>(clusters.size()));
    }
    return shares;
  }

  // Steps drawn without repetition. Complete ones take a place, and go on no more.
  std::vector<Beam> Choose(const Steps& steps, const std::vector<double>& gains,
                           const std::vector<double>& shares) const {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < steps.path.size(); ++i) {
      const float noise = GumbelAt(SeedFor(run_.options().seed, round_, kKeptSeeds), round_, i);
      order.emplace_back(-(std::log((gains[i] + shares[i]) / 2) + double{noise}), i);
    }
    std::ranges::sort(order);
    std::vector<Hypo> chosen;
    std::vector<Beam> next;
    for (const auto& [value, i] : order) {
      if (chosen.size() == beams_) break;
      if (std::ranges::find(chosen, steps.path[i]) != chosen.end()) continue;
      chosen.push_back(steps.path[i]);
      if (!run_.Complete(steps.path[i])) next.push_back({steps.path[i], AheadOf(steps, i)});
    }
    return next;
  }

  SearchRun& run_;
  TreeWalk walk_;
  const size_t rollouts_, beams_;
  const int step_, horizon_;
  const float temperature_;
  const double sigma_, agreement_;
  uint64_t round_ = 0;
};

}  // namespace

Result<SearchResult> SearchForesight(SearchRun& run) { return Foresight(run).Go(); }

}  // namespace pawl
