// A lattice over the states of the constraint, one layer a position. At a fixed token each state
// advances; at a mask it takes its best tokens. Equal states are one. A state is kept if an output
// can still be completed in the positions that are left. So each path is the beginning of an output
// of the canvas, and a token on a path may be committed.
//
// With all tokens and all states this is exact, and Best is the optimum that DINGO (Suresh et al.,
// arXiv 2505.23061) finds for regular languages. With few of them the witness, one known output,
// is among the paths, so the lattice is never empty.
//
// Shares are those of the product of the positions' laws, given that the output is one of the
// lattice: a sum over paths, forward and backward, as in a hidden Markov model.
#include "src/decode/diffusion/lattice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace pawl {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr uint64_t kEndedKey = 1;
constexpr int kRoomBehind = 64;  // tokens

double LogSum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

uint64_t CanvasKey(const CanvasPlace& place) {
  if (place.ended) return kEndedKey;
  const uint64_t key = place.at->key();
  const uint64_t at = key != 0 ? key : reinterpret_cast<uintptr_t>(place.at.get());
  return place.blank < 0 ? at : MixedKeys(at, static_cast<uint64_t>(place.blank) + 2);
}

}  // namespace

bool CanvasRules::IsEnd(TokenId token) const {
  return std::ranges::find(ends, token) != ends.end();
}

CanvasPlace CanvasRules::Next(const CanvasPlace& place, TokenId token) const {
  if (place.ended) return {nullptr, IsEnd(token), -1};
  if (IsEnd(token)) return {nullptr, place.at->accepting(), -1};
  return {place.at->Next(token), false, -1};
}

CanvasLattice::CanvasLattice(const CanvasRules& rules, CanvasPlace root,
                             std::span<const TokenId> window,
                             std::span<const std::vector<float>> scores,
                             std::span<const TokenId> witness, int behind, CanvasMasks* masks,
                             std::span<const int> gaps)
    : rules_(rules), window_(window), masks_(masks), gaps_(gaps) {
  nodes_.resize(window.size() + 1);
  edges_.resize(window.size());
  nodes_[0].push_back({std::move(root)});
  int witness_node = 0;
  std::vector<Step> steps;
  for (size_t i = 0; i < window.size(); ++i) {
    steps.clear();
    order_.clear();
    best_of_.clear();
    for (size_t n = 0; n < nodes_[i].size(); ++n) {
      const bool known = static_cast<int>(n) == witness_node && !witness.empty();
      Candidates(i, static_cast<int32_t>(n), scores[i], known ? witness[i] : kNoToken, steps);
    }
    // Behind the window the end must be known to fit. Inside, a state that has no end is one less,
    // so it is asked for only where the canvas is nearly full.
    const bool asks = i + 1 == window.size() || behind < kRoomBehind;
    const auto left = static_cast<int>(window.size() - i) - 1 + behind;
    Extend(i, steps, asks ? left : -1, witness_node);
  }
  FindAlive();
}

std::shared_ptr<const Mask> CanvasLattice::MaskOf(const CanvasPlace& place) {
  const uint64_t key = masks_ == nullptr ? 0 : place.at->key();
  if (key == 0) {
    ++looks_;
    return place.at->mask();
  }
  std::shared_ptr<const Mask>& known = (*masks_)[key];
  if (known == nullptr) {
    ++looks_;
    known = place.at->mask();
  }
  return known;
}

// The best tokens at the position. Most tokens are no better than the least of those that are
// there, so runs of them are compared at once.
void CanvasLattice::FindOrder(std::span<const float> scores, size_t most) {
  constexpr size_t kRun = 64;
  const auto better = [&](TokenId a, TokenId b) {
    const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto width = static_cast<size_t>(rules_.width);
  for (size_t run = 0; run < width; run += kRun) {
    const size_t end = std::min(width, run + kRun);
    if (order_.size() == most) {
      const float least = scores[static_cast<size_t>(order_.front())];
      unsigned any = 0;
      for (size_t t = run; t < end; ++t) any |= scores[t] > least ? 1u : 0u;
      if (any == 0) continue;
    }
    for (size_t t = run; t < end; ++t) {
      const auto token = static_cast<TokenId>(t);
      if (order_.size() == most) {
        if (!better(token, order_.front())) continue;
        std::ranges::pop_heap(order_, better);
        order_.pop_back();
      }
      order_.push_back(token);
      std::ranges::push_heap(order_, better);
    }
  }
  std::ranges::sort_heap(order_, better);
}

// The best tokens of the mask at the position. Equal masks are one, and many states have one mask.
const std::vector<TokenId>& CanvasLattice::BestOf(const std::shared_ptr<const Mask>& mask,
                                                  std::span<const float> scores) {
  for (const auto& [known, tokens] : best_of_) {
    if (known == mask) return tokens;
  }
  const auto most = static_cast<size_t>(rules_.candidates);
  std::vector<TokenId> tokens;
  if (static_cast<size_t>(mask->count()) > most) {
    if (order_.empty()) FindOrder(scores, std::min(4 * most, static_cast<size_t>(rules_.width)));
    for (const TokenId token : order_) {
      if (tokens.size() < most && mask->Allows(token)) tokens.push_back(token);
    }
  }
  if (tokens.size() < most) {
    tokens = mask->Tokens();
    std::erase_if(tokens, [&](TokenId token) { return token >= rules_.width; });
    if (tokens.size() > most) {
      const auto end = tokens.begin() + static_cast<ptrdiff_t>(most);
      std::ranges::partial_sort(tokens, end, [&](TokenId a, TokenId b) {
        const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
        return x != y ? x > y : a < b;
      });
      tokens.resize(most);
    }
  }
  return best_of_.emplace_back(mask, std::move(tokens)).second;
}

// What the state takes at the position.
void CanvasLattice::Candidates(size_t position, int32_t from, std::span<const float> scores,
                               TokenId witness, std::vector<Step>& steps) {
  const Node& node = nodes_[position][static_cast<size_t>(from)];
  const auto take = [&](TokenId token) {
    // What ends an output is as probable as what ends a gap.
    const TokenId scored = token == kBlank ? rules_.ends[0] : token;
    const float score = scores.empty() ? 0.0f : scores[static_cast<size_t>(scored)];
    steps.push_back({node.best + static_cast<double>(score), from, token, token == witness});
  };
  const int gap = GapOf(position);
  const bool blank = gap >= 0 && node.place.blank == gap;
  if (window_[position] != kNoToken) {
    if (blank) return;
    steps.push_back({node.best, from, window_[position], window_[position] == witness});
    return;
  }
  if (blank) return take(kBlank);
  if (node.place.ended) return take(rules_.ends[0]);
  const size_t begin = steps.size();
  const std::shared_ptr<const Mask> mask = MaskOf(node.place);
  for (const TokenId token : BestOf(mask, scores)) take(token);
  if (gap >= 0) take(kBlank);
  const auto taken = std::span(steps).subspan(begin);
  if (witness != kNoToken && std::ranges::find(taken, witness, &Step::token) == taken.end()) {
    take(witness);
  }
}

// The best steps first, until there are enough states. Equal states are one; the first step to a
// state is the best one.
void CanvasLattice::Extend(size_t position, std::vector<Step>& steps, int left, int& witness_node) {
  std::ranges::stable_sort(steps, [](const Step& a, const Step& b) {
    return a.witness != b.witness ? a.witness : a.score > b.score;
  });
  std::vector<Node>& next = nodes_[position + 1];
  std::unordered_map<uint64_t, int32_t> known;
  const int32_t before = witness_node;
  witness_node = -1;
  for (const Step& step : steps) {
    if (static_cast<int>(next.size()) > rules_.states) break;
    const Node& from = nodes_[position][static_cast<size_t>(step.from)];
    CanvasPlace place = step.token == kBlank
                            ? CanvasPlace{from.place.at, from.place.ended, GapOf(position)}
                            : rules_.Next(from.place, step.token);
    if (!place.ended && place.at == nullptr) continue;
    const uint64_t key = CanvasKey(place);
    auto found = known.find(key);
    if (found == known.end()) {
      const bool fits = place.ended || left < 0 || place.at->CompletionLength(left) >= 0;
      if (!fits && !step.witness) continue;
      found = known.emplace(key, static_cast<int32_t>(next.size())).first;
      next.push_back({std::move(place), step.score});
    }
    Node& to = next[static_cast<size_t>(found->second)];
    to.best = std::max(to.best, step.score);
    edges_[position].push_back(
        {step.from, found->second, step.token, static_cast<float>(step.score - from.best)});
    if (step.witness && step.from == before) witness_node = found->second;
  }
}

void CanvasLattice::FindAlive() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (Node& node : nodes_[i]) node.alive = i == 0;
  }
  for (size_t i = 0; i < edges_.size(); ++i) {
    for (Edge& edge : edges_[i]) {
      edge.alive = edge.alive && nodes_[i][static_cast<size_t>(edge.from)].alive;
      if (edge.alive) nodes_[i + 1][static_cast<size_t>(edge.to)].alive = true;
    }
  }
  for (size_t i = edges_.size(); i-- > 0;) {
    for (Node& node : nodes_[i]) node.alive = false;
    for (Edge& edge : edges_[i]) {
      edge.alive = edge.alive && nodes_[i + 1][static_cast<size_t>(edge.to)].alive;
      if (edge.alive) nodes_[i][static_cast<size_t>(edge.from)].alive = true;
    }
  }
}

void CanvasLattice::Weigh() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (Node& node : nodes_[i]) {
      node.before = i == 0 ? 0 : kNever;
      node.behind = i + 1 == nodes_.size() && node.alive ? 0 : kNever;
    }
  }
  for (size_t i = 0; i < edges_.size(); ++i) {
    for (const Edge& edge : edges_[i]) {
      if (!edge.alive) continue;
      double& sum = nodes_[i + 1][static_cast<size_t>(edge.to)].before;
      sum = LogSum(
          sum, nodes_[i][static_cast<size_t>(edge.from)].before + static_cast<double>(edge.score));
    }
  }
  for (size_t i = edges_.size(); i-- > 0;) {
    for (const Edge& edge : edges_[i]) {
      if (!edge.alive) continue;
      double& sum = nodes_[i][static_cast<size_t>(edge.from)].behind;
      sum = LogSum(sum, nodes_[i + 1][static_cast<size_t>(edge.to)].behind +
                            static_cast<double>(edge.score));
    }
  }
  const double all = nodes_[0][0].behind;
  for (size_t i = 0; i < edges_.size(); ++i) {
    for (Edge& edge : edges_[i]) {
      if (!edge.alive) continue;
      edge.share = std::exp(nodes_[i][static_cast<size_t>(edge.from)].before +
                            static_cast<double>(edge.score) +
                            nodes_[i + 1][static_cast<size_t>(edge.to)].behind - all);
    }
  }
}

std::vector<CanvasLattice::Share> CanvasLattice::Shares(size_t position) const {
  std::vector<Share> shares;
  for (const Edge& edge : edges_[position]) {
    if (!edge.alive) continue;
    const auto found = std::ranges::find(shares, edge.token, &Share::token);
    if (found == shares.end()) {
      shares.push_back({edge.token, edge.share});
    } else {
      found->share += edge.share;
    }
  }
  std::ranges::sort(shares, [](const Share& a, const Share& b) {
    return a.share != b.share ? a.share > b.share : a.token < b.token;
  });
  return shares;
}

void CanvasLattice::Commit(size_t position, TokenId token) {
  for (Edge& edge : edges_[position]) edge.alive = edge.alive && edge.token == token;
  FindAlive();
}

std::vector<TokenId> CanvasLattice::Best() const {
  // The best score behind each node, from the end on.
  std::vector<std::vector<double>> behind(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    behind[i].assign(nodes_[i].size(), i + 1 == nodes_.size() ? 0 : kNever);
  }
  for (size_t i = edges_.size(); i-- > 0;) {
    for (const Edge& edge : edges_[i]) {
      if (!edge.alive) continue;
      double& best = behind[i][static_cast<size_t>(edge.from)];
      best = std::max(
          best, static_cast<double>(edge.score) + behind[i + 1][static_cast<size_t>(edge.to)]);
    }
  }
  std::vector<TokenId> tokens;
  int32_t at = 0;
  for (size_t i = 0; i < edges_.size(); ++i) {
    const Edge* chosen = nullptr;
    double best = kNever;
    for (const Edge& edge : edges_[i]) {
      if (!edge.alive || edge.from != at) continue;
      const double score =
          static_cast<double>(edge.score) + behind[i + 1][static_cast<size_t>(edge.to)];
      if (chosen != nullptr && !(score > best)) continue;
      chosen = &edge;
      best = score;
    }
    if (chosen == nullptr) return {};
    tokens.push_back(chosen->token);
    at = chosen->to;
  }
  return tokens;
}

}  // namespace pawl
