// Beam search as transformers has it (GenerationMixin._beam_search, Apache 2.0; facts alone were
// taken), and its diverse form (Vijayakumar et al., arXiv 1610.02424).
//
// A step. Of all tokens behind the open beams, the (1 + number of end tokens) * width best
// candidates count. Those that end an output are put into a pool of `width` outputs, but only where
// they are among the first `width`; the best of the others are the next beams. Outputs rank by
// log P / length^length_penalty, open beams by log P, which are all of one length.
//
// The end. EarlyStopping::kTrue: when the pool is full. Otherwise when the pool is full and the
// best open beam, as if it ended now (kFalse) or at the best length (kNever), would not be better
// than the worst of the pool. With one beam the search is greedy: it ends with the first end.
//
// Look-ahead (DeAL, arXiv 2402.06147): the critic judges a candidate by the greedy continuation of
// `lookahead` tokens. Complete outputs are judged as they are.
//
// Groups take turns at a step. A token that g beams of the groups before have taken at this step
// has g * diversity_penalty less.
#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

struct LiveBeam {
  Hypo h = kNoHypo;
  double score = 0;   // log P with penalties and the critic's score
  double critic = 0;  // the critic's part
};

struct PooledOutput {
  Hypo h;
  double score;
};

struct BeamGroup {
  std::vector<LiveBeam> live;
  std::vector<PooledOutput> pool;  // the best first
  bool done = false;
};

class BeamSearch {
 public:
  BeamSearch(SearchRun& run, int width, int groups, double penalty)
      : run_(run),
        width_(static_cast<size_t>(width)),
        penalty_(penalty),
        lookahead_(static_cast<int>(run.Argument("lookahead", 0))) {
    if (lookahead_ > 0) walk_.emplace(run, TreeWalk::kBestTokens);
    groups_.resize(static_cast<size_t>(groups));
    for (BeamGroup& group : groups_) group.live = {{SearchRun::kRoot, 0, 0}};
  }

  Result<SearchResult> Go() {
    while (AnyOpen()) {
      if (Status status = Step(); !status.ok()) return status.error();
      if (run_.limited()) break;
    }
    run_.SetMost(width_ * groups_.size());
    std::vector<Hypo> open;
    for (const BeamGroup& group : groups_) {
      for (const PooledOutput& one : group.pool) run_.Offer(one.h, one.score);
      for (const LiveBeam& beam : group.live) open.push_back(beam.h);
    }
    return run_.Finish(open);
  }

 private:
  struct Candidate {
    double score;
    size_t beam;
    size_t rank;  // among the tokens of the beam
    bool operator<(const Candidate& other) const {
      if (score != other.score) return score < other.score;
      return beam != other.beam ? beam > other.beam : rank > other.rank;
    }
  };
  struct Next {
    Hypo h;
    double score;
    double critic;
    bool ended;
  };

  bool AnyOpen() const {
    return std::ranges::any_of(groups_, [](const BeamGroup& group) { return !group.done; });
  }

  Status Step() {
    std::vector<Hypo> open;
    for (const BeamGroup& group : groups_) {
      if (group.done) continue;
      for (const LiveBeam& beam : group.live) {
        if (std::ranges::find(open, beam.h) == open.end()) open.push_back(beam.h);
      }
    }
    Result<std::vector<RankedTokens>> laws = LawsOf(open);
    if (!laws.ok()) return laws.error();
    if (run_.limited()) return {};
    taken_.clear();
    for (BeamGroup& group : groups_) {
      if (group.done) continue;
      std::vector<RankedTokens> own;
      for (const LiveBeam& beam : group.live) {
        RankedTokens& law =
            (*laws)[static_cast<size_t>(std::ranges::find(open, beam.h) - open.begin())];
        if (groups_.size() == 1) {
          own.push_back(std::move(law));
        } else {
          own.push_back(law);
        }
        Penalize(own.back());
      }
      if (Status status = StepGroup(group, own); !status.ok() || run_.limited()) return status;
      for (const LiveBeam& beam : group.live) ++taken_[run_.at(beam.h).token];
    }
    for (const Hypo h : open) {
      const auto lives = [h](const BeamGroup& group) {
        return std::ranges::any_of(group.live, [h](const LiveBeam& beam) { return beam.h == h; });
      };
      if (std::ranges::none_of(groups_, lives)) Drop(h);
    }
    return {};
  }

  void Penalize(RankedTokens& law) const {
    if (penalty_ == 0 || taken_.empty()) return;
    law.Rescore([&](const RankedTokens::Item& item) {
      const auto found = taken_.find(item.token);
      return item.log_mass - (found == taken_.end() ? 0 : penalty_ * found->second);
    });
  }

  // Of many beams the best tokens of each.
  Result<std::vector<RankedTokens>> LawsOf(const std::vector<Hypo>& open) {
    if (!walk_) {
      SearchRun::LawOptions options;
      options.most_items = SearchRun::kMostItems;
      return run_.Laws(open, options);
    }
    std::vector<RankedTokens> laws;
    if (Status status = walk_->Ask(open); !status.ok()) return status.error();
    for (const Hypo h : open) {
      if (!run_.limited()) laws.push_back(walk_->LawOf(h));
    }
    return laws;
  }
  // The walk comes back to hypotheses.
  void Drop(Hypo h) {
    if (!walk_) run_.Drop(h);
  }

  // The best candidates behind the beams, the best first.
  Result<std::vector<Next>> Candidates(const BeamGroup& group, std::vector<RankedTokens>& laws) {
    std::priority_queue<Candidate> queue;
    const auto push = [&](size_t beam, size_t rank) -> Status {
      if (!laws[beam].Knows(rank)) {
        Result<RankedTokens> whole = run_.WholeLaw(group.live[beam].h);
        if (!whole.ok()) return whole.error();
        laws[beam] = *std::move(whole);
        Penalize(laws[beam]);
      }
      if (rank >= laws[beam].size()) return {};
      queue.push({group.live[beam].score + laws[beam].At(rank).score, beam, rank});
      return {};
    };
    for (size_t beam = 0; beam < laws.size(); ++beam) {
      if (Status status = push(beam, 0); !status.ok()) return status.error();
    }
    const size_t most = std::max<size_t>(2, 1 + run_.end_count()) * width_;
    const bool critic = run_.options().critic != nullptr;
    std::vector<Next> next;
    size_t open = 0;
    SearchRun::Seen seen;
    while (!queue.empty() && next.size() < most) {
      if (!critic && open >= width_ && next.size() >= width_) break;
      const Candidate best = queue.top();
      queue.pop();
      const Hypo parent = group.live[best.beam].h;
      const RankedTokens::Item item = laws[best.beam].At(best.rank);
      if (Status status = push(best.beam, best.rank + 1); !status.ok()) return status.error();
      if (run_.limited()) break;
      const Result<Hypo> child = walk_ ? walk_->ChildOf(parent, item) : run_.Child(parent, item);
      if (!child.ok()) return child.error();
      if (run_.limited()) break;
      if (*child == kNoHypo) continue;
      if (!run_.IsNew(*child, seen)) {
        Drop(*child);
        continue;
      }
      const double critics = run_.at(*child).critic;
      const bool ended = run_.Complete(*child);
      next.push_back({*child, best.score - group.live[best.beam].critic + critics, critics, ended});
      open += ended ? 0 : 1;
    }
    if (walk_ && !run_.limited()) {
      if (Status status = LookAhead(next); !status.ok()) return status.error();
    }
    if (critic) {
      std::ranges::stable_sort(next, std::ranges::greater(), &Next::score);
    }
    return next;
  }

  // The critic's scores of what follows the candidates.
  Status LookAhead(std::vector<Next>& next) {
    std::vector<Hypo> ahead;
    for (const Next& one : next) ahead.push_back(one.h);
    if (Status status = walk_->Complete(ahead, lookahead_); !status.ok()) return status;
    for (size_t i = 0; i < next.size() && !run_.limited(); ++i) {
      const double critic = run_.at(ahead[i]).critic;
      next[i].score += critic - next[i].critic;
      next[i].critic = critic;
    }
    return {};
  }

  Status StepGroup(BeamGroup& group, std::vector<RankedTokens>& laws) {
    const Result<std::vector<Next>> next = Candidates(group, laws);
    if (!next.ok()) return next.error();
    if (run_.limited()) return {};
    std::vector<LiveBeam> live;
    for (size_t i = 0; i < next->size(); ++i) {
      const Next& one = (*next)[i];
      if (one.ended && i < width_) {
        AddToPool(group, one);
      } else if (!one.ended && live.size() < width_) {
        live.push_back({one.h, one.score, one.critic});
      } else {
        Drop(one.h);
      }
    }
    const bool greedy = width_ == 1 && !next->empty() && next->front().ended;
    group.live = std::move(live);
    group.done = greedy || group.live.empty() || CannotImprove(group);
    return {};
  }

  bool CannotImprove(const BeamGroup& group) const {
    if (group.pool.size() < width_) return false;
    const EarlyStopping when = run_.options().early_stopping;
    if (when == EarlyStopping::kTrue) return true;
    const LiveBeam& best = group.live.front();
    const bool longest = when == EarlyStopping::kNever && run_.options().length_penalty > 0;
    const int length = longest ? run_.longest() : run_.at(best.h).length;
    return run_.Ranked(best.score, length) <= group.pool.back().score;
  }

  void AddToPool(BeamGroup& group, const Next& one) {
    const double score = run_.Ranked(one.score, run_.at(one.h).length);
    if (run_.options().merge_spellings) {
      const std::string text = run_.TextOf(one.h);
      const auto same = std::ranges::find_if(
          group.pool, [&](const PooledOutput& other) { return run_.TextOf(other.h) == text; });
      if (same != group.pool.end()) {
        if (same->score >= score) return;
        group.pool.erase(same);
      }
    }
    const auto after = std::ranges::find_if(
        group.pool, [&](const PooledOutput& other) { return other.score < score; });
    group.pool.insert(after, {one.h, score});
    if (group.pool.size() > width_) group.pool.pop_back();
  }

  SearchRun& run_;
  const size_t width_;  // of a group
  const double penalty_;
  const int lookahead_;
  std::optional<TreeWalk> walk_;
  std::unordered_map<TokenId, int> taken_;  // at this step, by groups before
  std::vector<BeamGroup> groups_;
};

}  // namespace

Result<SearchResult> SearchBeam(SearchRun& run) {
  if (!run.options().force_phrases.empty()) return SearchForcedBeam(run);
  return BeamSearch(run, run.options().num_beams, 1, 0).Go();
}

Result<SearchResult> SearchDiverseBeam(SearchRun& run) {
  const SearchOptions& o = run.options();
  return BeamSearch(run, o.num_beams / o.num_beam_groups, o.num_beam_groups, o.diversity_penalty)
      .Go();
}

}  // namespace pawl
