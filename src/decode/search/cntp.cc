// Cautious next-token prediction (arXiv 2507.03038): sampling that tries several continuations
// where the model is uncertain. The number of trials grows with the entropy of the next token; each
// trial samples up to a punctuation mark, and the one with the lowest perplexity is kept.
//
// A token is drawn as the sampler draws it: the noise belongs to seed, position and token. The
// first trial has the seed of the request, so with one trial the outputs are those of plain
// sampling.
#include <algorithm>
#include <limits>

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
        walk_(run, TreeWalk::kWholeLaws),
        low_(run.Argument("entropy_threshold_low", 0.01)),
        high_(run.Argument("entropy_threshold_high", 1.5)),
        least_(run.Argument("min_trials", 1)),
        most_(run.Argument("max_trials", 10)),
        temperature_(static_cast<float>(run.Argument("temperature", 1))) {}

  Result<SearchResult> Go() {
    return walk_.Follow([this](Hypo h) {
      const double share =
          std::clamp((walk_.EntropyOf(h) - low_) / std::max(high_ - low_, 1e-9), 0.0, 1.0);
      const int trials = static_cast<int>(least_ + (most_ - least_) * share);
      return trials <= 1 ? walk_.Draw(h, run_.options().seed, temperature_) : Try(h, trials);
    });
  }

 private:
  bool Ends(Hypo h) const {
    const std::string_view bytes = run_.task().BytesOf(run_.at(h).token);
    return bytes.find_first_of(".,\n?!:;)]}") != std::string_view::npos;
  }

  Result<Hypo> Try(Hypo from, int trials) {
    walk_.Pause();
    std::vector<Hypo> last(static_cast<size_t>(trials), from);
    const auto draw = [&](size_t i, Hypo h) {
      const uint64_t seed = run_.options().seed;
      return walk_.Draw(h, i == 0 ? seed : SeedFor(seed, i, kTrialSeeds), temperature_);
    };
    const Status drawn = walk_.Extend(last, std::numeric_limits<int>::max(), draw,
                                      [&](Hypo h) { return h != from && Ends(h); });
    if (!drawn.ok()) return drawn.error();
    Hypo best = kNoHypo;
    double most = kNoMass;
    for (const Hypo h : last) {
      if (h == from || run_.limited()) continue;
      const double mean = run_.MeanBehind(from, h);
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
