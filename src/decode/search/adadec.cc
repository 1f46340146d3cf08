// AdaDec (arXiv 2506.08980): greedy decoding that pauses where the model is uncertain. Where the
// entropy of the next token is above the threshold, the best tokens are each continued greedily for
// a few tokens, and the one whose continuation has the highest mean log-probability is taken.
//
// A continuation that was looked at is known when decoding goes on along it.
#include <algorithm>

#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

class AdaDec {
 public:
  explicit AdaDec(SearchRun& run)
      : run_(run),
        walk_(run),
        threshold_(run.Argument("threshold", 1)),
        lookahead_(static_cast<int>(run.Argument("lookahead", 5))),
        beams_(static_cast<size_t>(run.Argument("beams", 3))) {}

  Result<SearchResult> Go() {
    Hypo at = SearchRun::kRoot;
    while (!run_.Complete(at)) {
      const Hypo open[] = {at};
      if (Status status = walk_.Ask(open); !status.ok()) return status.error();
      if (run_.limited()) return run_.Finish(open);
      const bool pauses = walk_.EntropyOf(at) > threshold_ && walk_.LawOf(at).size() > 1;
      const Result<Hypo> next = pauses ? LookAhead(at) : walk_.Greedy(at);
      if (!next.ok()) return next.error();
      if (run_.limited() || *next == kNoHypo) return run_.Finish(open);
      at = *next;
    }
    run_.Offer(at, run_.Ranked(run_.at(at).log_probability, run_.at(at).length));
    return run_.Finish({});
  }

 private:
  struct Continued {
    Hypo first, last;
  };

  Result<Hypo> LookAhead(Hypo from) {
    std::vector<Continued> all;
    for (size_t i = 0; i < walk_.LawOf(from).size() && all.size() < beams_; ++i) {
      const Result<Hypo> child = walk_.ChildAt(from, i);
      if (!child.ok() || run_.limited()) return child;
      if (*child != kNoHypo) all.push_back({*child, *child});
    }
    for (int step = 0; step < lookahead_; ++step) {
      std::vector<Hypo> open;
      for (const Continued& one : all) open.push_back(one.last);
      if (Status status = walk_.Ask(open); !status.ok()) return status.error();
      if (run_.limited()) return kNoHypo;
      for (Continued& one : all) {
        if (run_.Complete(one.last)) continue;
        const Result<Hypo> next = walk_.Greedy(one.last);
        if (!next.ok() || run_.limited()) return next;
        if (*next != kNoHypo) one.last = *next;
      }
    }
    Hypo best = kNoHypo;
    double most = kNoMass;
    for (const Continued& one : all) {
      const double gained = run_.at(one.last).log_probability - run_.at(from).log_probability;
      const double mean = gained / (run_.at(one.last).length - run_.at(from).length);
      if (best != kNoHypo && mean <= most) continue;
      best = one.first;
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
