// Planning-guided decoding (PG-TD, arXiv 2303.05510): Monte Carlo tree search over tokens, for
// outputs that are good by a check or a critic of the whole output.
//
// A rollout goes down the tree by P-UCB, expands one token, completes the output greedily under the
// constraint, and gives its reward to the nodes of its path. Programs are deterministic, so a
// node's value is the largest reward behind it. The reward is 0 where a check refuses the output,
// else the exponential of the critic's score; without both it is the mean probability of a token.
//
// What the tree knows is not asked again: laws, children and greedy completions (tree_walk.h).
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "src/base/stop_scope.h"
#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

class PlannedSearch {
 public:
  explicit PlannedSearch(SearchRun& run)
      : run_(run),
        walk_(run),
        rollouts_(static_cast<int64_t>(run.Argument("rollouts", 100))),
        width_(static_cast<size_t>(run.Argument("width", 3))),
        c_(run.Argument("c", 4)),
        c_base_(run.Argument("c_base", 10)) {
    run_.LeaveEndsToAccepts();
    run_.SetMost(static_cast<size_t>(run.options().n));
  }

  Result<SearchResult> Go() {
    for (int64_t i = 0; i < rollouts_ && !run_.limited(); ++i) {
      StopScope::Check();
      if (Status status = Rollout(); !status.ok()) return status.error();
      if (spent_) break;
    }
    const Hypo root[] = {SearchRun::kRoot};
    return run_.Finish(root);
  }

 private:
  struct Node {
    std::vector<Hypo> children;
    std::vector<double> priors;
    bool expanded = false;
    bool closed = false;  // all that is behind it was seen
    int64_t visits = 0;
    double value = 0;  // the largest reward
  };

  // The children of an open node, once.
  Status Expand(Hypo h) {
    if (nodes_[h].expanded) return {};
    const Hypo open[] = {h};
    if (Status status = walk_.Ask(open); !status.ok()) return status;
    if (run_.limited()) return {};
    Node node = nodes_[h];
    double sum = 0;
    for (size_t i = 0; i < walk_.LawOf(h).size() && node.children.size() < width_; ++i) {
      const Result<Hypo> child = walk_.ChildAt(h, i);
      if (!child.ok()) return child.error();
      if (run_.limited()) return {};
      if (*child == kNoHypo) continue;
      node.children.push_back(*child);
      node.priors.push_back(std::exp(walk_.LawOf(h).At(i).log_mass));
      sum += node.priors.back();
    }
    for (double& prior : node.priors) prior /= sum > 0 ? sum : 1;
    node.expanded = true;
    node.closed = node.children.empty();
    nodes_[h] = std::move(node);
    return {};
  }

  // The child with the largest upper bound, of those that are not closed.
  Hypo Select(Hypo h) {
    const Node& node = nodes_[h];
    const auto visits = static_cast<double>(std::max<int64_t>(1, node.visits));
    const double weight = std::log((visits + c_base_ + 1) / c_base_) + c_;
    Hypo best = kNoHypo;
    double most = 0;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const Node& child = nodes_[node.children[i]];
      if (child.closed) continue;
      const double bound = child.value + weight * node.priors[i] * std::sqrt(std::log(visits)) /
                                             (1 + static_cast<double>(child.visits));
      if (best != kNoHypo && bound <= most) continue;
      best = node.children[i];
      most = bound;
    }
    return best;
  }

  Status Rollout() {
    std::vector<Hypo> path = {SearchRun::kRoot};
    for (;;) {
      const Hypo at = path.back();
      if (run_.Complete(at)) break;
      if (Status status = Expand(at); !status.ok() || run_.limited()) return status;
      const Hypo next = Select(at);
      if (next == kNoHypo) break;
      path.push_back(next);
      if (nodes_[next].visits == 0) break;
    }
    const Result<double> reward = Evaluate(path.back());
    if (!reward.ok()) return reward.error();
    if (run_.limited()) return {};
    for (auto h = path.rbegin(); h != path.rend(); ++h) {
      Node& node = nodes_[*h];
      ++node.visits;
      node.value = std::max(node.value, *reward);
      if (run_.Complete(*h)) node.closed = true;
      if (node.expanded) {
        node.closed =
            std::ranges::all_of(node.children, [&](Hypo child) { return nodes_[child].closed; });
      }
    }
    spent_ = nodes_[SearchRun::kRoot].closed;
    return {};
  }

  // The reward of the greedy completion.
  Result<double> Evaluate(Hypo h) {
    while (!run_.Complete(h)) {
      const Hypo open[] = {h};
      if (Status status = walk_.Ask(open); !status.ok()) return status.error();
      if (run_.limited()) return 0;
      const Result<Hypo> next = walk_.Greedy(h);
      if (!next.ok()) return next.error();
      if (run_.limited() || *next == kNoHypo) return 0;
      h = *next;
    }
    if (const auto known = rewards_.find(h); known != rewards_.end()) return known->second;
    walk_.Remember(h);
    const Result<bool> accepted = run_.Accepts(h);
    if (!accepted.ok()) return accepted.error();
    const bool plain = run_.options().checks.empty() && run_.options().critic == nullptr;
    const double mean = std::exp(run_.at(h).log_probability / run_.at(h).length);
    double reward = plain ? mean : std::exp(run_.at(h).critic);
    if (!*accepted) reward = 0;
    rewards_[h] = reward;
    // Of equal rewards the more probable output.
    if (*accepted) run_.Offer(h, reward + 1e-9 * mean);
    return reward;
  }

  SearchRun& run_;
  TreeWalk walk_;
  const int64_t rollouts_;
  const size_t width_;
  const double c_, c_base_;
  std::unordered_map<Hypo, Node> nodes_;
  std::unordered_map<Hypo, double> rewards_;
  bool spent_ = false;
};

}  // namespace

Result<SearchResult> SearchPlanned(SearchRun& run) { return PlannedSearch(run).Go(); }

}  // namespace pawl
