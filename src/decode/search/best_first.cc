// Best first: of all hypotheses the one with the largest log P is expanded next. log P never rises
// along an output, so the first complete one that is next is the most probable output of all, then
// the second one, and so on. (Dijkstra 1959; for models Meister et al., arXiv 2007.03909.)
//
// Where only the rows of a call and of one output are left, the best beginning is completed
// greedily. So there is an answer at the limit.
//
// Where a critic's scores are above 0 somewhere, or spellings are merged, this is a heuristic.
// Candidates wait in a list that has room for as many as the limits let be expanded: what does not
// get into it would never be next.
#include <algorithm>
#include <set>
#include <utility>

#include "src/decode/search/strategy.h"

namespace pawl {
namespace {

class BestFirst {
 public:
  explicit BestFirst(SearchRun& run) : run_(run) {
    run_.KeepBranches();
    run_.SetMost(static_cast<size_t>(run_.options().n));
  }

  Result<SearchResult> Go() {
    const auto batch = static_cast<int64_t>(run_.Argument("batch", 4));
    const auto wanted = static_cast<size_t>(run_.options().n);
    waiting_.insert({.score = 0, .number = 0, .h = SearchRun::kRoot});
    std::vector<Hypo> open;
    bool dived = false;
    while (found_ < wanted && !waiting_.empty() && !run_.limited()) {
      if (!dived && run_.rows_left() <= run_.longest() + std::max(batch, most_rows_)) {
        dived = true;
        if (Status status = Dive(); !status.ok()) return status.error();
        continue;
      }
      open.clear();
      if (Status status = TakeBest(static_cast<size_t>(batch), open); !status.ok())
        return status.error();
      if (open.empty() || run_.limited()) continue;
      const int64_t before = run_.rows();
      SearchRun::LawOptions options;
      options.seen = [&](size_t i, RankedTokens& law) {
        AddTokens(open[i], law);
        law = RankedTokens();
      };
      const Result<std::vector<RankedTokens>> laws = run_.Laws(open, options);
      if (!laws.ok()) return laws.error();
      if (run_.limited()) break;
      most_rows_ = std::max(most_rows_, run_.rows() - before);
    }
    bool has_open = false;
    for (const Waiting& one : waiting_) {
      if (one.h != kNoHypo && run_.Complete(one.h)) {
        if (run_.limited()) run_.Offer(one.h, one.score);
      } else if (!std::exchange(has_open, true)) {
        open.push_back(one.h == kNoHypo ? one.parent : one.h);
      }
    }
    return run_.Finish(open);
  }

 private:
  struct Waiting {
    double score;
    int64_t number;    // of two with the same score the one that came first is next
    Hypo h = kNoHypo;  // kNoHypo: still to be made
    Hypo parent = kNoHypo;
    RankedTokens::Item item = {};
    bool operator<(const Waiting& other) const {
      return score != other.score ? score > other.score : number < other.number;
    }
  };

  double ScoreOf(Hypo h) const { return run_.at(h).log_probability + run_.at(h).critic; }

  // The next hypotheses to expand. A complete output that is next by itself is one that was found.
  Status TakeBest(size_t most, std::vector<Hypo>& open) {
    while (!waiting_.empty() && open.size() < most) {
      Waiting next = *waiting_.begin();
      if (next.h != kNoHypo && run_.Complete(next.h)) {
        if (!open.empty()) return {};
        waiting_.erase(waiting_.begin());
        run_.Offer(next.h, next.score);
        if (++found_ == static_cast<size_t>(run_.options().n)) return {};
        continue;
      }
      waiting_.erase(waiting_.begin());
      if (next.h == kNoHypo) {
        const Result<Hypo> child = run_.Child(next.parent, next.item);
        if (!child.ok()) return child.error();
        if (run_.limited()) return {};
        if (*child == kNoHypo) continue;
        if (!run_.IsNew(*child, seen_)) {
          run_.Drop(*child);
          continue;
        }
        next.h = *child;
        next.score = ScoreOf(*child);
        // A critic may have put it behind others; a complete one waits until it is next.
        waiting_.insert(next);
        if (waiting_.begin()->h != next.h || run_.Complete(next.h)) continue;
        waiting_.erase(waiting_.begin());
      }
      open.push_back(next.h);
    }
    return {};
  }

  // The greedy output behind the best beginning, so that there is a complete one at the limit.
  Status Dive() {
    std::vector<Hypo> open;
    if (Status status = TakeBest(1, open); !status.ok()) return status;
    while (!open.empty() && !run_.Complete(open[0])) {
      Result<std::vector<RankedTokens>> laws = run_.Laws(open);
      if (!laws.ok()) return laws.error();
      if (run_.limited()) break;
      const Hypo from = open[0];
      open.clear();
      size_t rank = 0;
      while (open.empty() && rank < (*laws)[0].size()) {
        const Result<Hypo> child = run_.Child(from, (*laws)[0].At(rank++));
        if (!child.ok()) return child.error();
        if (*child != kNoHypo) open = {*child};
      }
      AddTokens(from, (*laws)[0], rank);
    }
    for (const Hypo h : open) waiting_.insert({.score = ScoreOf(h), .number = ++number_, .h = h});
    return {};
  }

  void AddTokens(Hypo parent, RankedTokens& law, size_t first = 0) {
    const int64_t left = std::min(run_.options().max_nodes - run_.nodes(), run_.rows_left());
    const int64_t room = std::max<int64_t>(left, 0) + run_.options().n + 1;
    const double base = ScoreOf(parent);
    for (size_t i = first; i < law.size(); ++i) {
      const RankedTokens::Item& item = law.At(i);
      const Waiting one = {
          .score = base + item.score, .number = ++number_, .parent = parent, .item = item};
      if (static_cast<int64_t>(waiting_.size()) >= room) {
        const auto last = std::prev(waiting_.end());
        if (!(one < *last)) return;
        if (last->h == kNoHypo) waiting_.erase(last);
      }
      waiting_.insert(one);
    }
  }

  SearchRun& run_;
  std::set<Waiting> waiting_;
  SearchRun::Seen seen_;
  int64_t number_ = 0;
  int64_t most_rows_ = 0;  // of a call so far
  size_t found_ = 0;
};

}  // namespace

Result<SearchResult> SearchBestFirst(SearchRun& run) { return BestFirst(run).Go(); }

}  // namespace pawl
