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
// lattice: a sum over paths, forward and backward, as in a hidden Markov model. A path goes over
// bundles: tokens that lead from one state to another are summed once.
#include "src/decode/diffusion/lattice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace pawl {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr double kLeastScore = -1e9;  // also of what is no number
constexpr double kFarBelow = 600;     // exp(-kFarBelow) is a number
constexpr int kMostRefused = 8;       // more than were taken, of tokens that are tried
// Of states whose shortest text is too long, so that shorter texts are searched for among tokens. A
// search may take milliseconds and megabytes of the grammar. The best states come first.
constexpr int kMostSearches = 4, kMostSearchesOfPosition = 2;

// Behind the window the end must be known to fit. Inside, a state that has no end is one less, so
// it is asked for only where the canvas is nearly full, and in front of its last positions now and
// then.
bool AsksForEnd(int left, bool last) {
  constexpr int kNearlyFull = 64, kFull = 16, kEach = 8;
  return last || left < kFull || (left < kNearlyFull && left % kEach == 0);
}

}  // namespace

CanvasLattice::CanvasLattice(const CanvasRules& rules, CanvasPlace root,
                             std::span<const TokenId> window,
                             std::span<const std::vector<float>> scores,
                             std::span<const TokenId> witness, int behind, CanvasStates* states,
                             std::span<const int> gaps)
    : rules_(rules),
      root_(std::move(root)),
      window_(window),
      own_states_(states != nullptr ? nullptr : std::make_unique<CanvasStates>(rules)),
      states_(states != nullptr ? *states : *own_states_),
      gaps_(gaps),
      nodes_(window.size() + 1),
      layers_(window.size()),
      scratch_(
          std::make_unique<Scratch>(Scratch{.best = BestTokens(rules.width, rules.candidates)})) {
  const int64_t before = states_.looks();
  nodes_[0].push_back({states_.Of(root_)});
  scratch_->slot_of.resize(static_cast<size_t>(rules.width) + 1);
  int32_t witness_node = 0;
  for (size_t i = 0; i < window.size(); ++i) {
    const auto left = static_cast<int>(window.size() - i) - 1 + behind;
    if (i > 0) MakeSpace(i);
    BeginSteps(i, scores[i]);
    const TokenId known = witness.empty() ? kNoToken : witness[i];
    witness_node = TakeWitness(i, scores[i], known, witness_node);
    Extend(i, scores[i], AsksForEnd(left, i + 1 == window.size()) ? left : -1);
  }
  looks_ = states_.looks() - before;
  scratch_.reset();
  FindAlive();
}

std::vector<std::vector<TokenId>> CanvasLattice::PathsTo(size_t position) const {
  std::vector<std::vector<TokenId>> paths(nodes_[position].size());
  for (size_t n = 0; n < paths.size(); ++n) {
    auto at = static_cast<int32_t>(n);
    for (size_t i = position; i-- > 0;) {
      const Layer& layer = layers_[i];
      const auto leads = [&](const Edge& edge) {
        return layer.bundles[static_cast<size_t>(edge.bundle)].to == at;
      };
      const Edge& edge = *std::ranges::find_if(layer.edges, leads);
      paths[n].push_back(layer.slots[static_cast<size_t>(edge.slot)].token);
      at = layer.bundles[static_cast<size_t>(edge.bundle)].from;
    }
    std::ranges::reverse(paths[n]);
  }
  return paths;
}

// The nodes of the layer are found again, which takes a part of what they have met.
void CanvasLattice::MakeSpace(size_t position) {
  if (!states_.MakeSpace(root_)) return;
  const std::vector<std::vector<TokenId>> paths = PathsTo(position);
  for (size_t n = 0; n < paths.size(); ++n) {
    CanvasStates::Id at = states_.Of(root_);
    for (size_t i = 0; i < position; ++i) {
      const TokenId token = paths[n][i];
      at = token == kBlank ? states_.Blank(at, GapOf(i)) : states_.After(at, token);
      if (at == CanvasStates::kRefused) {
        throw std::logic_error("a grammar that was rebuilt refuses its text");
      }
    }
    nodes_[position][n].state = at;
  }
  if (root_.at != nullptr) root_.at->NeedsAll();
}

// What ends an output is as probable as what ends a gap.
int32_t CanvasLattice::SlotOf(Layer& layer, TokenId token, std::span<const float> scores) {
  // Tokens of a vocabulary that is larger than the model have no score.
  const size_t index = token == kBlank ? static_cast<size_t>(rules_.width)
                                       : std::min<size_t>(static_cast<size_t>(token),
                                                          static_cast<size_t>(rules_.width));
  int32_t& slot = scratch_->slot_of[index];
  const bool known = slot >= 0 && static_cast<size_t>(slot) < layer.slots.size() &&
                     layer.slots[static_cast<size_t>(slot)].token == token;
  if (known) return slot;
  const auto scored = static_cast<size_t>(token == kBlank ? rules_.ends[0] : token);
  const double score = scored < scores.size() ? static_cast<double>(scores[scored]) : 0;
  slot = static_cast<int32_t>(layer.slots.size());
  layer.slots.push_back({token, score > kLeastScore ? score : kLeastScore});
  return slot;
}

std::span<const int32_t> CanvasLattice::ChoicesOf(Layer& layer, const CanvasMask& mask,
                                                  std::span<const float> scores) {
  Scratch& scratch = *scratch_;
  for (size_t i = 0; i < scratch.known; ++i) {
    if (scratch.choices[i].mask == &mask) return scratch.choices[i].slots;
  }
  if (scratch.known == scratch.choices.size()) scratch.choices.emplace_back();
  Choices& choices = scratch.choices[scratch.known++];
  choices.mask = &mask;
  choices.slots.clear();
  for (const TokenId token : scratch.best.Of(mask)) {
    choices.slots.push_back(SlotOf(layer, token, scores));
  }
  return choices.slots;
}

void CanvasLattice::BeginSteps(size_t position, std::span<const float> scores) {
  Layer& layer = layers_[position];
  Scratch& scratch = *scratch_;
  most_searches_ = std::min(kMostSearches, searches_ + kMostSearchesOfPosition);
  scratch.known = 0;
  scratch.best.Begin(scores);
  scratch.heap.clear();
  const std::vector<Node>& nodes = nodes_[position];
  scratch.cursors.resize(std::max(scratch.cursors.size(), nodes.size()));
  scratch.bundle_of.assign(nodes.size() * (static_cast<size_t>(rules_.states) + 1), -1);
  const int gap = GapOf(position);
  for (size_t n = 0; n < nodes.size(); ++n) {
    Cursor& cursor = scratch.cursors[n];
    std::vector<int32_t> own = std::move(cursor.own);
    own.clear();
    cursor = {.from = static_cast<int32_t>(n), .own = std::move(own)};
    const CanvasStates::Id state = nodes[n].state;
    const bool blank = gap >= 0 && states_.blank(state) == gap;
    if (window_[position] != kNoToken) {
      if (!blank) cursor.own.push_back(SlotOf(layer, window_[position], {}));
    } else if (blank) {
      cursor.own.push_back(SlotOf(layer, kBlank, scores));
    } else if (state == CanvasStates::kEnded) {
      cursor.own.push_back(SlotOf(layer, rules_.ends[0], scores));
    } else if (gap >= 0) {
      const auto choices = ChoicesOf(layer, states_.MaskOf(state), scores);
      cursor.own.assign(choices.begin(), choices.end());
      const int32_t slot = SlotOf(layer, kBlank, scores);
      const auto score_of = [&](int32_t s) { return layer.slots[static_cast<size_t>(s)].score; };
      const auto at =
          std::ranges::upper_bound(cursor.own, score_of(slot), std::greater(), score_of);
      cursor.own.insert(at, slot);
    } else if (!states_.knows_mask(state) && states_.tries_steps(state)) {
      cursor.tries = true;
      const auto first = static_cast<size_t>(scratch.best.Nth(0));
      cursor.score = nodes[n].best + std::max(kLeastScore, static_cast<double>(scores[first]));
      continue;
    } else {
      cursor.slots = ChoicesOf(layer, states_.MaskOf(state), scores);
      continue;
    }
    cursor.slots = cursor.own;
  }
}

// Tokens by rank: those that the constraint takes are what its mask would allow. Where it refuses
// many, or may end, the mask is looked up. It allows the same tokens, so it goes on behind those
// that were taken.
bool CanvasLattice::TryStep(size_t position, Cursor& cursor, std::span<const float> scores) {
  Layer& layer = layers_[position];
  const Node& node = nodes_[position][static_cast<size_t>(cursor.from)];
  while (cursor.taken < rules_.candidates && cursor.refused <= cursor.taken + kMostRefused) {
    const TokenId token = scratch_->best.Nth(cursor.next);
    if (token == kNoToken) break;
    const CanvasStates::Id to = states_.After(node.state, token);
    if (to == CanvasStates::kEnded) break;
    ++cursor.next;
    (to == CanvasStates::kRefused ? cursor.refused : cursor.taken) += 1;
    if (to == CanvasStates::kRefused || token == cursor.without) continue;
    cursor.slot = SlotOf(layer, token, scores);
    cursor.to = to;
    return true;
  }
  cursor.tries = false;
  cursor.to = kNotAsked;
  if (cursor.taken == rules_.candidates) return false;
  cursor.slots = ChoicesOf(layer, states_.MaskOf(node.state), scores);
  cursor.next = static_cast<size_t>(cursor.taken);
  return false;
}

bool CanvasLattice::NextStep(size_t position, Cursor& cursor, std::span<const float> scores) {
  const Layer& layer = layers_[position];
  const double before = nodes_[position][static_cast<size_t>(cursor.from)].best;
  cursor.met = true;
  bool found = cursor.tries && TryStep(position, cursor, scores);
  while (!found && cursor.next < cursor.slots.size()) {
    cursor.slot = cursor.slots[cursor.next++];
    found = layer.slots[static_cast<size_t>(cursor.slot)].token != cursor.without;
  }
  if (found) cursor.score = before + layer.slots[static_cast<size_t>(cursor.slot)].score;
  return found;
}

int32_t CanvasLattice::TakeWitness(size_t position, std::span<const float> scores, TokenId witness,
                                   int32_t witness_node) {
  if (witness == kNoToken || witness_node < 0) return -1;
  Layer& layer = layers_[position];
  const Node& node = nodes_[position][static_cast<size_t>(witness_node)];
  Cursor& cursor = scratch_->cursors[static_cast<size_t>(witness_node)];
  const auto has = [&](int32_t slot) {
    return layer.slots[static_cast<size_t>(slot)].token == witness;
  };
  // Where there is no choice it is the only step or none.
  const bool fixed = window_[position] != kNoToken;
  const bool alone = fixed || node.state == CanvasStates::kEnded ||
                     (GapOf(position) >= 0 && states_.blank(node.state) == GapOf(position));
  if (alone && std::ranges::none_of(cursor.own, has)) return -1;
  Cursor step = {.from = witness_node};
  step.slot = SlotOf(layer, witness, fixed ? std::span<const float>() : scores);
  step.score = node.best + layer.slots[static_cast<size_t>(step.slot)].score;
  cursor.without = witness;
  return Take(position, step, true, -1);
}

void CanvasLattice::SiftDown() {
  std::vector<Ahead>& heap = scratch_->heap;
  const Ahead moved = heap[0];
  size_t at = 0;
  const auto before = [](const Ahead& a, const Ahead& b) {
    return a.score != b.score ? a.score > b.score : a.cursor < b.cursor;
  };
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap.size()) break;
    if (child + 1 < heap.size() && before(heap[child + 1], heap[child])) ++child;
    if (!before(heap[child], moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

// Takes the steps of all nodes, the best first, until there are enough states: nodes whose steps
// do not come up are not asked for them.
void CanvasLattice::Extend(size_t position, std::span<const float> scores, int left) {
  Scratch& scratch = *scratch_;
  std::vector<Ahead>& heap = scratch.heap;
  for (size_t n = 0; n < nodes_[position].size(); ++n) {
    Cursor& cursor = scratch.cursors[n];
    if (!cursor.tries && !NextStep(position, cursor, scores)) continue;
    heap.push_back({cursor.score, static_cast<int32_t>(n)});
  }
  std::ranges::make_heap(heap, [](const Ahead& a, const Ahead& b) {
    return a.score != b.score ? a.score < b.score : a.cursor > b.cursor;
  });
  const std::vector<Node>& next = nodes_[position + 1];
  while (!heap.empty() && next.size() <= static_cast<size_t>(rules_.states)) {
    Cursor& cursor = scratch.cursors[static_cast<size_t>(heap[0].cursor)];
    if (cursor.met) Take(position, cursor, false, left);
    if (NextStep(position, cursor, scores)) {
      heap[0].score = cursor.score;
    } else {
      heap[0] = heap.back();
      heap.pop_back();
      if (heap.empty()) break;
    }
    SiftDown();
  }
}

// The node of the state; -1: no output is known that goes on from there.
int32_t CanvasLattice::NodeOf(size_t position, CanvasStates::Id state, double score, bool witness,
                              int left) {
  std::vector<Node>& next = nodes_[position + 1];
  std::vector<int32_t>& node_of = scratch_->node_of;
  const auto index = static_cast<size_t>(state);
  if (node_of.size() <= index) node_of.resize(2 * index + 64);
  int32_t& node = node_of[index];
  const bool known =
      static_cast<size_t>(node) < next.size() && next[static_cast<size_t>(node)].state == state;
  if (known) return node;
  if (!witness && left >= 0 && !states_.Completes(state, left)) {
    if (searches_ == most_searches_) return -1;
    ++searches_;
    if (!states_.CompletesBySearch(state, left)) return -1;
  }
  node = static_cast<int32_t>(next.size());
  next.push_back({state, score});
  return node;
}

// Returns the node that the step leads to, or -1.
int32_t CanvasLattice::Take(size_t position, const Cursor& cursor, bool witness, int left) {
  Layer& layer = layers_[position];
  const Slot& slot = layer.slots[static_cast<size_t>(cursor.slot)];
  CanvasStates::Id state = cursor.to;
  if (state == kNotAsked) {
    const CanvasStates::Id from = nodes_[position][static_cast<size_t>(cursor.from)].state;
    state = slot.token == kBlank ? states_.Blank(from, GapOf(position))
                                 : states_.After(from, slot.token);
  }
  if (state == CanvasStates::kRefused) return -1;
  const int32_t to = NodeOf(position, state, cursor.score, witness, left);
  if (to < 0) return -1;
  // The step of the witness comes first, and may not be the best one.
  Node& node = nodes_[position + 1][static_cast<size_t>(to)];
  node.best = std::max(node.best, cursor.score);
  const size_t width = static_cast<size_t>(rules_.states) + 1;
  int32_t& bundle =
      scratch_->bundle_of[static_cast<size_t>(cursor.from) * width + static_cast<size_t>(to)];
  if (bundle < 0) {
    bundle = static_cast<int32_t>(layer.bundles.size());
    layer.bundles.push_back({cursor.from, to, slot.score});
  }
  double& best = layer.bundles[static_cast<size_t>(bundle)].best;
  best = std::max(best, slot.score);
  layer.edges.push_back({bundle, cursor.slot});
  return to;
}

void CanvasLattice::FindAlive() {
  const auto node_at = [&](size_t i, int32_t n) -> Node& {
    return nodes_[i][static_cast<size_t>(n)];
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (Node& node : nodes_[i]) node.alive = i == 0;
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    for (Bundle& bundle : layers_[i].bundles) {
      bundle.alive = bundle.alive && node_at(i, bundle.from).alive;
      if (bundle.alive) node_at(i + 1, bundle.to).alive = true;
    }
  }
  for (size_t i = layers_.size(); i-- > 0;) {
    for (Node& node : nodes_[i]) node.alive = false;
    for (Bundle& bundle : layers_[i].bundles) {
      bundle.alive = bundle.alive && node_at(i + 1, bundle.to).alive;
      if (bundle.alive) node_at(i, bundle.from).alive = true;
    }
  }
}

// A node without a bundle that ends there, or begins there, takes those on its other side along; no
// other node loses its last one. Most commits reach a few positions.
void CanvasLattice::FindAliveAround(size_t position) {
  std::vector<uint8_t> has;
  // Whether a node has gone that the side says the bundles' end of.
  const auto lost = [&](std::vector<Node>& nodes, const Layer& layer, int32_t Bundle::*side) {
    has.assign(nodes.size(), 0);
    for (const Bundle& bundle : layer.bundles) {
      if (bundle.alive) has[static_cast<size_t>(bundle.*side)] = 1;
    }
    bool any = false;
    for (size_t n = 0; n < nodes.size(); ++n) {
      any = any || (nodes[n].alive && has[n] == 0);
      nodes[n].alive = nodes[n].alive && has[n] != 0;
    }
    return any;
  };
  const auto drop = [&](Layer& layer, const std::vector<Node>& nodes, int32_t Bundle::*side) {
    for (Bundle& bundle : layer.bundles) {
      bundle.alive = bundle.alive && nodes[static_cast<size_t>(bundle.*side)].alive;
    }
  };
  for (size_t i = position; lost(nodes_[i + 1], layers_[i], &Bundle::to); ++i) {
    if (i + 1 == layers_.size()) break;
    drop(layers_[i + 1], nodes_[i + 1], &Bundle::from);
  }
  for (size_t i = position; lost(nodes_[i], layers_[i], &Bundle::from); --i) {
    if (i == 0) break;
    drop(layers_[i - 1], nodes_[i], &Bundle::to);
  }
}

// The sum of each bundle. Weights are those of tokens relative to the best one of the layer; a
// bundle whose tokens are all far below has its own.
void CanvasLattice::WeighLayer(Layer& layer) const {
  layer.best = kNever;
  for (Bundle& bundle : layer.bundles) {
    bundle.weight = 0;
    if (bundle.alive) layer.best = std::max(layer.best, bundle.best);
  }
  for (Bundle& bundle : layer.bundles) bundle.far = bundle.best < layer.best - kFarBelow;
  for (Slot& slot : layer.slots) slot.weight = std::exp(slot.score - layer.best);
  for (const Edge& edge : layer.edges) {
    if (!Left(layer, edge)) continue;
    Bundle& bundle = layer.bundles[static_cast<size_t>(edge.bundle)];
    const Slot& slot = layer.slots[static_cast<size_t>(edge.slot)];
    bundle.weight += bundle.far ? std::exp(slot.score - bundle.best) : slot.weight;
  }
  for (Bundle& bundle : layer.bundles) {
    if (!bundle.alive) continue;
    bundle.weight = std::log(bundle.weight) + (bundle.far ? bundle.best : layer.best);
  }
}

// Sums over the paths in front of each node and behind it, in logarithms: what is small in the
// middle may be all that is left at the end.
void CanvasLattice::WeighPaths() {
  std::vector<double> most, sums;
  const auto pass = [&](const Layer& layer, std::vector<Node>& to, auto&& target, auto&& value,
                        auto&& out) {
    most.assign(to.size(), kNever);
    sums.assign(to.size(), 0);
    for (const Bundle& bundle : layer.bundles) {
      if (!bundle.alive) continue;
      double& best = most[static_cast<size_t>(target(bundle))];
      best = std::max(best, value(bundle));
    }
    for (const Bundle& bundle : layer.bundles) {
      if (!bundle.alive) continue;
      const auto n = static_cast<size_t>(target(bundle));
      sums[n] += std::exp(value(bundle) - most[n]);
    }
    for (size_t n = 0; n < to.size(); ++n) out(to[n]) = most[n] + std::log(sums[n]);
  };
  const auto begin_of = [](const Bundle& bundle) { return bundle.from; };
  const auto end_of = [](const Bundle& bundle) { return bundle.to; };
  for (size_t i = 0; i < layers_.size(); ++i) {
    pass(
        layers_[i], nodes_[i + 1], end_of,
        [&](const Bundle& bundle) {
          return nodes_[i][static_cast<size_t>(bundle.from)].before + bundle.weight;
        },
        [](Node& node) -> double& { return node.before; });
  }
  for (size_t i = layers_.size(); i-- > 0;) {
    pass(
        layers_[i], nodes_[i], begin_of,
        [&](const Bundle& bundle) {
          return nodes_[i + 1][static_cast<size_t>(bundle.to)].behind + bundle.weight;
        },
        [](Node& node) -> double& { return node.behind; });
  }
}

void CanvasLattice::Weigh() {
  for (Layer& layer : layers_) WeighLayer(layer);
  for (Node& node : nodes_.front()) node.before = 0;
  for (Node& node : nodes_.back()) node.behind = 0;
  WeighPaths();
  const double all = nodes_[0][0].behind;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    for (Bundle& bundle : layer.bundles) {
      if (!bundle.alive) continue;
      const double around = nodes_[i][static_cast<size_t>(bundle.from)].before +
                            nodes_[i + 1][static_cast<size_t>(bundle.to)].behind - all;
      bundle.scale = bundle.far ? around : std::exp(around + layer.best);
    }
  }
}

std::vector<CanvasLattice::Share> CanvasLattice::Shares(size_t position) const {
  const Layer& layer = layers_[position];
  std::vector<double> sums(layer.slots.size(), -1);
  size_t count = 0;
  for (const Edge& edge : layer.edges) {
    if (!Left(layer, edge)) continue;
    const Bundle& bundle = layer.bundles[static_cast<size_t>(edge.bundle)];
    const Slot& slot = layer.slots[static_cast<size_t>(edge.slot)];
    double& sum = sums[static_cast<size_t>(edge.slot)];
    if (sum < 0) {
      sum = 0;
      ++count;
    }
    sum += bundle.far ? std::exp(bundle.scale + slot.score) : bundle.scale * slot.weight;
  }
  std::vector<Share> shares;
  shares.reserve(count);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] >= 0) shares.push_back({layer.slots[i].token, sums[i]});
  }
  std::ranges::sort(shares, [](const Share& a, const Share& b) {
    return a.share != b.share ? a.share > b.share : a.token < b.token;
  });
  return shares;
}

std::optional<TokenId> CanvasLattice::Only(size_t position) const {
  const Layer& layer = layers_[position];
  std::optional<int32_t> only;
  for (const Edge& edge : layer.edges) {
    if (!Left(layer, edge)) continue;
    if (only && *only != edge.slot) return std::nullopt;
    only = edge.slot;
  }
  if (!only) return std::nullopt;
  return layer.slots[static_cast<size_t>(*only)].token;
}

void CanvasLattice::Commit(size_t position, TokenId token) {
  Layer& layer = layers_[position];
  const auto slot = std::ranges::find(layer.slots, token, &Slot::token);
  layer.committed = static_cast<int32_t>(slot - layer.slots.begin());
  std::vector<uint8_t> has(layer.bundles.size(), 0);
  for (const Edge& edge : layer.edges) {
    if (edge.slot == layer.committed) has[static_cast<size_t>(edge.bundle)] = 1;
  }
  for (size_t b = 0; b < layer.bundles.size(); ++b) {
    layer.bundles[b].alive = layer.bundles[b].alive && has[b] != 0;
    if (has[b] != 0) layer.bundles[b].best = slot->score;
  }
  FindAliveAround(position);
}

std::vector<TokenId> CanvasLattice::Best() const {
  // The best score behind each node, from the end on.
  std::vector<std::vector<double>> behind(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    behind[i].assign(nodes_[i].size(), i + 1 == nodes_.size() ? 0 : kNever);
  }
  for (size_t i = layers_.size(); i-- > 0;) {
    for (const Bundle& bundle : layers_[i].bundles) {
      if (!bundle.alive) continue;
      double& best = behind[i][static_cast<size_t>(bundle.from)];
      best = std::max(best, bundle.best + behind[i + 1][static_cast<size_t>(bundle.to)]);
    }
  }
  std::vector<TokenId> tokens;
  int32_t at = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const Slot* chosen = nullptr;
    int32_t to = 0;
    double best = kNever;
    for (const Edge& edge : layer.edges) {
      const Bundle& bundle = layer.bundles[static_cast<size_t>(edge.bundle)];
      if (bundle.from != at || !Left(layer, edge)) continue;
      const Slot& slot = layer.slots[static_cast<size_t>(edge.slot)];
      const double score = slot.score + behind[i + 1][static_cast<size_t>(bundle.to)];
      if (chosen != nullptr && !(score > best)) continue;
      chosen = &slot;
      to = bundle.to;
      best = score;
    }
    if (chosen == nullptr) return {};
    tokens.push_back(chosen->token);
    at = to;
  }
  return tokens;
}

}  // namespace pawl
