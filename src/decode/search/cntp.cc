// Cautious next-token prediction (arXiv 2507.03038): sampling that tries several continuations
// where the model is uncertain. The number of trials grows with the entropy of the next token; each
// trial samples up to a punctuation mark, and the one with the lowest perplexity is kept.
//
// A token is drawn as the sampler draws it: the noise belongs to seed, position and token. The
// first trial has the seed of the request, so with one trial the outputs are those of plain
// sampling.
#include <algorithm>
#include <cmath>

#include "src/base/random.h"
#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

constexpr uint64_t kTrialSeeds = 77;

class Cautious {
 public:
  explicit Cautious(SearchRun& run)
      : run_(run),
        walk_(run),
        low_(run.Argument("entropy_threshold_low", 0.01)),
        high_(run.Argument("entropy_threshold_high", 1.5)),
        least_(run.Argument("min_trials", 1)),
        most_(run.Argument("max_trials", 10)),
        temperature_(static_cast<float>(run.Argument("temperature", 1))) {}

  Result<SearchResult> Go() {
    Hypo at = SearchRun::kRoot;
    while (!run_.Complete(at)) {
      const Hypo open[] = {at};
      if (Status status = walk_.Ask(open); !status.ok()) return status.error();
      if (run_.limited()) return run_.Finish(open);
      const double share =
          std::clamp((walk_.EntropyOf(at) - low_) / std::max(high_ - low_, 1e-9), 0.0, 1.0);
      const int trials = static_cast<int>(least_ + std::max(0.0, most_ - least_) * share);
      const Result<Hypo> next = trials <= 1 ? Draw(at, run_.options().seed) : Try(at, trials);
      if (!next.ok()) return next.error();
      if (run_.limited() || *next == kNoHypo) return run_.Finish(open);
      at = *next;
    }
    run_.Offer(at, run_.Ranked(run_.at(at).log_probability, run_.at(at).length));
    return run_.Finish({});
  }

 private:
  // The child that the sampler would draw; of those that may not be the next one.
  Result<Hypo> Draw(Hypo h, uint64_t seed) {
    RankedTokens& law = walk_.LawOf(h);
    const auto position = static_cast<uint64_t>(run_.at(h).length);
    std::vector<std::pair<float, size_t>> order;
    for (size_t i = 0; i < law.size(); ++i) {
      const RankedTokens::Item& item = law.At(i);
      const float noise = GumbelAt(seed, position, static_cast<uint64_t>(item.token));
      order.push_back({Perturbed(law.LogitOf(item), temperature_, noise), i});
    }
    std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first
                                : law.At(a.second).token < law.At(b.second).token;
    });
    for (const auto& [value, i] : order) {
      const Result<Hypo> child = walk_.ChildAt(h, i);
      if (!child.ok() || run_.limited() || *child != kNoHypo) return child;
    }
    return kNoHypo;
  }

  bool Ends(Hypo h) const {
    if (run_.Complete(h)) return true;
    const std::string_view bytes = run_.task().BytesOf(run_.at(h).token);
    return bytes.find_first_of(".,\n?!:;)]}") != std::string_view::npos;
  }

  Result<Hypo> Try(Hypo from, int trials) {
    std::vector<Hypo> last(static_cast<size_t>(trials), from);
    std::vector<bool> done(last.size(), false);
    while (std::ranges::find(done, false) != done.end()) {
      std::vector<Hypo> open;
      for (size_t i = 0; i < last.size(); ++i) {
        if (!done[i]) open.push_back(last[i]);
      }
      if (Status status = walk_.Ask(open); !status.ok()) return status.error();
      if (run_.limited()) return kNoHypo;
      for (size_t i = 0; i < last.size(); ++i) {
        if (done[i]) continue;
        const uint64_t seed =
            i == 0 ? run_.options().seed : SeedFor(run_.options().seed, i, kTrialSeeds);
        const Result<Hypo> next = Draw(last[i], seed);
        if (!next.ok() || run_.limited()) return next;
        if (*next != kNoHypo) last[i] = *next;
        done[i] = *next == kNoHypo || Ends(last[i]);
      }
    }
    Hypo best = kNoHypo;
    double most = kNoMass;
    for (const Hypo h : last) {
      if (h == from) continue;
      const double mean = (run_.at(h).log_probability - run_.at(from).log_probability) /
                          (run_.at(h).length - run_.at(from).length);
      if (best != kNoHypo && mean <= most) continue;
      best = h;
      most = mean;
    }
    return best;
  }

  SearchRun& run_;
  TreeWalk walk_;
  const double low_, high_, least_, most_;
  const float temperature_;
};

}  // namespace

Result<SearchResult> SearchCautious(SearchRun& run) { return Cautious(run).Go(); }

}  // namespace pawl
