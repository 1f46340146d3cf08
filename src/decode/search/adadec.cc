// AdaDec (arXiv 2506.08980): greedy decoding that pauses where the model is uncertain. Where the
// entropy of the next token is above the threshold, the best tokens are each continued greedily for
// a few tokens, and the one whose continuation has the highest mean log-probability is taken.
//
// A continuation that was looked at is known when decoding goes on along it.
#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

class AdaDec {
 public:
  explicit AdaDec(SearchRun& run)
      : run_(run),
        walk_(run, TreeWalk::kWholeLaws),
        threshold_(run.Argument("threshold", 1)),
        lookahead_(static_cast<int>(run.Argument("lookahead", 5))),
        beams_(static_cast<size_t>(run.Argument("beams", 3))) {}

  Result<SearchResult> Go() {
    return walk_.Follow([this](Hypo h) {
      const bool pauses = walk_.EntropyOf(h) > threshold_ && walk_.LawOf(h).size() > 1;
      return pauses ? LookAhead(h) : walk_.Greedy(h);
    });
  }

 private:
  Result<Hypo> LookAhead(Hypo from) {
    walk_.Pause();
    std::vector<Hypo> first;
    for (size_t i = 0; i < walk_.LawOf(from).size() && first.size() < beams_; ++i) {
      const Result<Hypo> child = walk_.ChildAt(from, i);
      if (!child.ok() || run_.limited()) return child;
      if (*child != kNoHypo) first.push_back(*child);
    }
    std::vector<Hypo> last = first;
    if (Status status = walk_.Complete(last, lookahead_); !status.ok()) return status.error();
    Hypo best = kNoHypo;
    double most = kNoMass;
    for (size_t i = 0; i < first.size() && !run_.limited(); ++i) {
      const double mean = run_.MeanBehind(from, last[i]);
      if (best != kNoHypo && mean <= most) continue;
      best = first[i];
      most = mean;
    }
    return best;
  }

  SearchRun& run_;
  TreeWalk walk_;
  const double threshold_;
  const int lookahead_;
  const size_t beams_;
};

}  // namespace

Result<SearchResult> SearchAdaDec(SearchRun& run) { return AdaDec(run).Go(); }

}  // namespace pawl
