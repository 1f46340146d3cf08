// Superposed decoding (Shen et al., arXiv 2405.18400): n outputs from the rows of one. A row reads
// the last tokens of all drafts at a time, as the sum of their embeddings, weighted by how probable
// the drafts are. What follows is one law, from which each draft takes the tokens that its own
// constraint allows; of all continuations of all drafts the most probable ones are the next drafts.
//
// The law behind more than one draft is an approximation: it is that of no draft alone. So log P of
// the outputs is one, too. With one draft the rows are those of greedy decoding, bit for bit, and
// so is forced text; several drafts share their rows, so none is forced. The paper corrects the law
// by n-gram tables of a large corpus; here there are none.
//
// A draft that has ended keeps its place. So there are never more outputs than drafts, and the
// search ends with the longest one.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "src/decode/search/strategy.h"

namespace pawl {
namespace {

class Superposed {
 public:
  explicit Superposed(SearchRun& run) : run_(run), left_(static_cast<size_t>(run.options().n)) {
    run_.SetMost(left_);
  }

  Result<SearchResult> Go() {
    drafts_ = {SearchRun::kRoot};
    while (!drafts_.empty()) {
      Result<std::vector<RankedTokens>> laws =
          run_.options().n == 1 ? run_.Laws(drafts_) : run_.MixedLaws(drafts_, Weights());
      if (!laws.ok()) return laws.error();
      if (run_.limited()) break;
      Result<std::vector<Hypo>> next = Best(*laws);
      if (!next.ok()) return next.error();
      if (run_.limited()) break;
      for (const Hypo h : drafts_) run_.Drop(h);
      drafts_.clear();
      for (const Hypo h : *next) {
        if (!run_.Complete(h)) {
          drafts_.push_back(h);
          continue;
        }
        run_.Offer(h, run_.ScoreOf(h));
        --left_;
      }
    }
    return run_.Finish(drafts_);
  }

 private:
  // How probable the drafts are, so that the sum is 1.
  std::vector<double> Weights() const {
    std::vector<double> weights;
    double sum = 0;
    for (const Hypo h : drafts_) {
      const double most = run_.at(drafts_[0]).log_probability;
      weights.push_back(std::exp(run_.at(h).log_probability - most));
      sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }

  // The most probable continuations that may be, the best one first: as many as there are places.
  Result<std::vector<Hypo>> Best(std::vector<RankedTokens>& laws) {
    std::vector<Hypo> next;
    std::vector<size_t> rank(laws.size(), 0);
    SearchRun::Seen seen;
    while (next.size() < left_) {
      size_t best = laws.size();
      double most = 0;
      for (size_t i = 0; i < laws.size(); ++i) {
        if (rank[i] >= laws[i].size()) continue;
        const double score = run_.at(drafts_[i]).log_probability + laws[i].At(rank[i]).log_mass;
        if (best == laws.size() || score > most) std::tie(best, most) = std::tuple(i, score);
      }
      if (best == laws.size()) break;
      const Result<Hypo> child = run_.Child(drafts_[best], laws[best].At(rank[best]++));
      if (!child.ok()) return child.error();
      if (run_.limited()) return next;
      if (*child != kNoHypo && run_.IsNew(*child, seen)) next.push_back(*child);
    }
    return next;
  }

  SearchRun& run_;
  size_t left_;  // places of drafts that have not ended
  std::vector<Hypo> drafts_;
};

}  // namespace

Result<SearchResult> SearchSuperposed(SearchRun& run) { return Superposed(run).Go(); }

}  // namespace pawl
