// A lattice of outputs (Xu and Durrett, arXiv 2112.07660): best-first search in which each
// beginning is completed greedily, and beginnings after which the same may come become one.
//
// Two beginnings are one node where the constraint is in the same state and the last `ngram` tokens
// are equal. Parts of outputs are then shared, and every path of the lattice is an output that the
// constraint accepts. There are far more paths than beginnings that the model has seen. The
// probabilities along a path are those behind the beginnings that were seen first, so the best
// paths are computed once more, with their own.
//
// Beginnings wait by log P / length^length_penalty, since by log P alone no search leaves the short
// ones. What would make a circle is not merged.
//
// The first output is completed in any case. So is the best beginning, where checks have left no
// output when `nodes` beginnings are expanded.
#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

struct LatticeEdge {
  size_t to;
  TokenId token;
  double log_mass;
};

struct LatticeNode {
  Hypo h;  // the first beginning
  std::vector<LatticeEdge> edges;
};

class Lattice {
 public:
  explicit Lattice(SearchRun& run)
      : run_(run),
        walk_(run, TreeWalk::kBestTokens),
        ngram_(static_cast<size_t>(run.Argument("ngram", 4))),
        most_(static_cast<int64_t>(run.Argument("nodes", 1024))) {
    run_.SetMost(static_cast<size_t>(run.options().n));
    AddNode(SearchRun::kRoot);
  }

  Result<SearchResult> Go() {
    if (Status status = Complete(0, true); !status.ok()) return status.error();
    while (!waiting_.empty() && expanded_ < most_ && !run_.limited()) {
      if (Status status = CompleteNext(false); !status.ok()) return status.error();
    }
    const bool all_waited_for = waiting_.empty();
    for (int i = 0; i < 8 && !waiting_.empty() && run_.found().empty() && !run_.limited(); ++i) {
      if (Status status = CompleteNext(true); !status.ok()) return status.error();
    }
    const Hypo open[] = {nodes_.back().h};
    if (!run_.limited()) {
      if (Status status = OfferPaths(); !status.ok()) return status.error();
    }
    const bool lacks = run_.found().size() < static_cast<size_t>(run_.options().n);
    if (!run_.limited() && !all_waited_for && (expanded_ > most_ || lacks)) {
      run_.EndAtLimit("nodes");
    }
    Result<SearchResult> result = run_.Finish(open);
    if (!result.ok()) return result;
    result->paths = CountPaths();
    if (run_.options().keep_graph) result->graph = Graph();
    return result;
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  struct Waiting {
    double score;
    size_t node, rank;  // the child
    bool operator<(const Waiting& other) const {
      if (score != other.score) return score < other.score;
      return node != other.node ? node > other.node : rank > other.rank;
    }
  };

  size_t AddNode(Hypo h) {
    nodes_.push_back({h, {}});
    return nodes_.size() - 1;
  }

  void Push(size_t node, size_t rank) {
    const Hypo h = nodes_[node].h;
    if (rank >= walk_.LawOf(h).size()) return;
    const Hypothesis& from = run_.at(h);
    const double log_p = from.log_probability + walk_.LawOf(h).At(rank).log_mass + from.critic;
    waiting_.push({run_.Ranked(log_p, from.length + 1), node, rank});
  }

  // The beginning that waits in front.
  Status CompleteNext(bool beyond) {
    const Waiting next = waiting_.top();
    waiting_.pop();
    const Result<size_t> node = Follow(next.node, next.rank);
    if (!node.ok()) return node.error();
    if (*node == kNone || run_.limited()) return {};
    return Complete(*node, beyond);
  }

  // Goes on greedily, until an output is complete or a node comes that was there. `beyond`: the
  // limit of nodes does not end it.
  Status Complete(size_t node, bool beyond) {
    while (node != kNone && (beyond || expanded_ < most_)) {
      const Hypo open[] = {nodes_[node].h};
      if (run_.Complete(open[0])) {
        walk_.Remember(open[0]);
        return {};
      }
      if (Status status = walk_.Ask(open); !status.ok() || run_.limited()) return status;
      ++expanded_;
      const Result<size_t> next = Follow(node, 0);
      if (!next.ok()) return next.error();
      if (run_.limited()) return {};
      node = *next;
    }
    return {};
  }

  // The new node of the first child from `rank` on that may be; kNone: there is no child, or it is
  // a node already. The next one waits.
  Result<size_t> Follow(size_t node, size_t rank) {
    const Hypo from = nodes_[node].h;
    const Hypo open[] = {from};
    if (Status status = walk_.Ask(open); !status.ok()) return status.error();
    if (run_.limited()) return kNone;
    for (; rank < walk_.LawOf(from).size(); ++rank) {
      const RankedTokens::Item item = walk_.LawOf(from).At(rank);
      const Result<Hypo> child = walk_.ChildOf(from, item);
      if (!child.ok()) return child.error();
      if (run_.limited()) return kNone;
      if (*child == kNoHypo) continue;
      Push(node, rank + 1);
      size_t same = SameAs(*child);
      if (same != kNone && Reaches(same, node)) same = kNone;
      const size_t to = same == kNone ? AddNode(*child) : same;
      nodes_[node].edges.push_back({to, item.token, item.log_mass});
      if (same != kNone) return kNone;
      if (run_.Complete(*child)) run_.Offer(*child, run_.ScoreOf(*child));
      return to;
    }
    return kNone;
  }

  std::vector<TokenId> LastTokens(Hypo h) const {
    std::vector<TokenId> last;
    for (; h != SearchRun::kRoot && last.size() < ngram_; h = run_.at(h).parent) {
      last.push_back(run_.at(h).token);
    }
    return last;
  }

  // A node after which the same may come. If there is none, the hypothesis is remembered as one.
  size_t SameAs(Hypo h) {
    const Hypothesis& one = run_.at(h);
    if (run_.Complete(h)) return kNone;
    uint64_t key = one.at != nullptr ? one.at->key() : 1;
    if (key == 0) return kNone;
    const std::vector<TokenId> last = LastTokens(h);
    for (const TokenId token : last) key = MixedKeys(key, static_cast<uint64_t>(token) + 1);
    const auto [begin, end] = seen_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      const Hypothesis& other = run_.at(nodes_[it->second].h);
      const bool alike = one.at == nullptr || other.at->key() == one.at->key();
      if (alike && LastTokens(nodes_[it->second].h) == last) return it->second;
    }
    seen_.emplace(key, nodes_.size());
    return kNone;
  }

  bool Reaches(size_t from, size_t to) const {
    std::vector<bool> seen(nodes_.size(), false);
    std::vector<size_t> open = {from};
    while (!open.empty()) {
      const size_t node = open.back();
      open.pop_back();
      if (node == to) return true;
      if (seen[node]) continue;
      seen[node] = true;
      for (const LatticeEdge& edge : nodes_[node].edges) open.push_back(edge.to);
    }
    return false;
  }

  // Nodes with those that they lead to first.
  std::vector<size_t> FromTheEnd() const {
    std::vector<size_t> order;
    std::vector<uint8_t> state(nodes_.size(), 0);
    std::vector<std::pair<size_t, size_t>> path = {{0, 0}};
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < nodes_[node].edges.size()) {
        const size_t to = nodes_[node].edges[next++].to;
        if (std::exchange(state[to], 1) == 0) path.emplace_back(to, 0);
        continue;
      }
      order.push_back(node);
      path.pop_back();
    }
    return order;
  }

  double CountPaths() const {
    std::vector<double> counts(nodes_.size(), 0);
    for (const size_t node : FromTheEnd()) {
      counts[node] = run_.Complete(nodes_[node].h) ? 1 : 0;
      for (const LatticeEdge& edge : nodes_[node].edges) counts[node] += counts[edge.to];
    }
    return counts[0];
  }

  SearchGraph Graph() const {
    SearchGraph graph;
    for (size_t from = 0; from < nodes_.size(); ++from) {
      graph.nodes.push_back(run_.NodeOf(nodes_[from].h));
      for (const LatticeEdge& edge : nodes_[from].edges) {
        graph.edges.push_back({static_cast<int>(from), static_cast<int>(edge.to),
                               std::string(run_.task().BytesOf(edge.token))});
      }
    }
    return graph;
  }

  // The most probable paths by the lattice's own probabilities.
  std::vector<std::vector<TokenId>> BestPaths(size_t most) const {
    std::vector<double> rest(nodes_.size(), kNoMass);
    for (const size_t node : FromTheEnd()) {
      if (run_.Complete(nodes_[node].h)) rest[node] = 0;
      for (const LatticeEdge& edge : nodes_[node].edges) {
        rest[node] = std::max(rest[node], edge.log_mass + rest[edge.to]);
      }
    }
    struct Path {
      double bound, log_mass;
      size_t node;
      std::vector<TokenId> tokens;
      bool operator<(const Path& other) const { return bound < other.bound; }
    };
    std::priority_queue<Path> open;
    open.push({rest[0], 0, 0, {}});
    std::vector<std::vector<TokenId>> paths;
    while (!open.empty() && paths.size() < most) {
      const Path path = open.top();
      open.pop();
      if (run_.Complete(nodes_[path.node].h)) paths.push_back(path.tokens);
      for (const LatticeEdge& edge : nodes_[path.node].edges) {
        if (!(rest[edge.to] > kNoMass)) continue;
        Path longer = path;
        longer.log_mass += edge.log_mass;
        longer.bound = longer.log_mass + rest[edge.to];
        longer.node = edge.to;
        longer.tokens.push_back(edge.token);
        open.push(std::move(longer));
      }
    }
    return paths;
  }

  // The best paths with their own probabilities. Of one that is too long for the budget nothing
  // comes.
  Status OfferPaths() {
    const std::vector<std::vector<TokenId>> paths =
        BestPaths(2 * static_cast<size_t>(run_.options().n) + 8);
    std::vector<Hypo> ends(paths.size(), SearchRun::kRoot);
    const auto next = [&](size_t i, Hypo h) -> Result<Hypo> {
      const auto length = static_cast<size_t>(run_.at(h).length);
      for (size_t rank = 0; length < paths[i].size() && rank < walk_.LawOf(h).size(); ++rank) {
        const RankedTokens::Item item = walk_.LawOf(h).At(rank);
        if (item.token == paths[i][length]) return walk_.ChildOf(h, item);
      }
      return kNoHypo;
    };
    const Status status =
        walk_.Extend(ends, std::numeric_limits<int>::max(), next, [](Hypo) { return false; });
    for (const Hypo h : ends) {
      if (run_.Complete(h)) run_.Offer(h, run_.ScoreOf(h));
    }
    return status;
  }

  SearchRun& run_;
  TreeWalk walk_;
  const size_t ngram_;
  const int64_t most_;
  int64_t expanded_ = 0;
  std::vector<LatticeNode> nodes_;
  std::unordered_multimap<uint64_t, size_t> seen_;
  std::priority_queue<Waiting> waiting_;
};

}  // namespace

Result<SearchResult> SearchLattice(SearchRun& run) { return Lattice(run).Go(); }

}  // namespace pawl
