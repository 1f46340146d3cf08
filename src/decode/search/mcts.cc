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
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/base/stop_scope.h"
#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

class PlannedSearch {
 public:
  explicit PlannedSearch(SearchRun& run)
      : run_(run),
        walk_(run, TreeWalk::kBestTokens),
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
  struct Child {
    Hypo h;
    float prior;
  };
  // Of each hypothesis, so it is small.
  struct Node {
    uint32_t first = 0;  // of its children
    uint16_t children = 0;
    bool expanded = false;
    bool closed = false;  // all that is behind it was seen
    uint32_t visits = 0;
    float value = 0;  // the largest reward
  };

  Node& NodeOf(Hypo h) {
    const auto at = static_cast<size_t>(h);
    if (at >= nodes_.size()) nodes_.resize(static_cast<size_t>(run_.nodes()));
    return nodes_[at];
  }
  std::span<const Child> ChildrenOf(const Node& node) const {
    return std::span(children_).subspan(node.first, node.children);
  }

  // The children of an open node, once.
  Status Expand(Hypo h) {
    if (NodeOf(h).expanded) return {};
    const Hypo open[] = {h};
    if (Status status = walk_.Ask(open); !status.ok()) return status;
    if (run_.limited()) return {};
    std::vector<Child> children;
    double sum = 0;
    for (size_t i = 0; i < walk_.LawOf(h).size() && children.size() < width_; ++i) {
      const Result<Hypo> child = walk_.ChildAt(h, i);
      if (!child.ok()) return child.error();
      if (run_.limited()) return {};
      if (*child == kNoHypo) continue;
      const double p = std::exp(walk_.LawOf(h).At(i).log_mass);
      children.push_back({*child, static_cast<float>(p)});
      sum += p;
    }
    for (Child& child : children) child.prior /= static_cast<float>(sum > 0 ? sum : 1);
    Node& node = NodeOf(h);
    node.first = static_cast<uint32_t>(children_.size());
    node.children = static_cast<uint16_t>(children.size());
    node.expanded = true;
    node.closed = children.empty();
    children_.insert(children_.end(), children.begin(), children.end());
    // Its children are all that is asked of it from here on.
    walk_.Close(h, children.empty() ? kNoHypo : children.front().h);
    if (h != SearchRun::kRoot) run_.Drop(h);
    return {};
  }

  // The child with the largest upper bound, of those that are not closed.
  Hypo Select(Hypo h) {
    const Node node = NodeOf(h);
    const auto visits = static_cast<double>(std::max<uint32_t>(1, node.visits));
    const double weight = std::log((visits + c_base_ + 1) / c_base_) + c_;
    Hypo best = kNoHypo;
    double most = 0;
    for (const Child& child : ChildrenOf(node)) {
      const Node& of = NodeOf(child.h);
      if (of.closed) continue;
      const double bound = double{of.value} + weight * double{child.prior} *
                                                  std::sqrt(std::log(visits)) /
                                                  (1 + static_cast<double>(of.visits));
      if (best != kNoHypo && bound <= most) continue;
      best = child.h;
      most = bound;
    }
    return best;
  }

  Status Rollout() {
    path_.assign(1, SearchRun::kRoot);
    for (;;) {
      const Hypo at = path_.back();
      if (run_.Complete(at)) break;
      if (Status status = Expand(at); !status.ok() || run_.limited()) return status;
      const Hypo next = Select(at);
      if (next == kNoHypo) break;
      path_.push_back(next);
      if (NodeOf(next).visits == 0) break;
    }
    const Result<double> reward = Evaluate(path_.back());
    if (!reward.ok()) return reward.error();
    if (run_.limited()) return {};
    (void)NodeOf(static_cast<Hypo>(run_.nodes() - 1));  // none moves below
    for (auto h = path_.rbegin(); h != path_.rend(); ++h) {
      Node& node = NodeOf(*h);
      ++node.visits;
      node.value = std::max(node.value, static_cast<float>(*reward));
      if (run_.Complete(*h)) node.closed = true;
      if (node.expanded) {
        node.closed = std::ranges::all_of(
            ChildrenOf(node), [&](const Child& child) { return NodeOf(child.h).closed; });
      }
    }
    spent_ = NodeOf(SearchRun::kRoot).closed;
    return {};
  }

  // The reward of the greedy completion.
  Result<double> Evaluate(Hypo h) {
    while (!run_.Complete(h)) {
      const Hypo open[] = {h};
      if (!walk_.KnowsGreedy(h)) {
        if (Status status = walk_.Ask(open); !status.ok()) return status.error();
        if (run_.limited()) return 0;
      }
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
  std::vector<Node> nodes_;  // by hypothesis
  std::vector<Child> children_;
  std::vector<Hypo> path_;
  std::unordered_map<Hypo, double> rewards_;
  bool spent_ = false;
};

}  // namespace

Result<SearchResult> SearchPlanned(SearchRun& run) { return PlannedSearch(run).Go(); }

}  // namespace pawl
