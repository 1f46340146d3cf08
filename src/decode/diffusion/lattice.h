// CanvasLattice: which tokens may stand at the masks of a window so that the whole output can still
// be one that the constraint accepts, and how probable each is among these outputs.
//
//   CanvasLattice lattice(rules, place, window, scores, witness, behind);
//   lattice.Weigh();
//   for (const auto& [token, share] : lattice.Shares(3)) ...   // the most probable first
//   lattice.Commit(3, token);
//   witness = lattice.Best();
#ifndef PAWL_SRC_DECODE_DIFFUSION_LATTICE_H_
#define PAWL_SRC_DECODE_DIFFUSION_LATTICE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"

namespace pawl {

// Stands at a mask that its gap does not need, as at all masks of the gap behind it.
constexpr TokenId kBlank = -2;

// Behind an end token, or in a constraint.
struct CanvasPlace {
  std::shared_ptr<const LoopConstraint> at;
  bool ended = false;
  int blank = -1;  // the gap whose text has ended
};

struct CanvasRules {
  std::vector<TokenId> ends;  // end tokens; the first one fills what is left of a canvas
  int width = 0;              // tokens from here on never stand in an output
  int candidates = 32;        // tokens that each state takes at a mask
  int states = 64;            // that are kept behind a position

  bool IsEnd(TokenId token) const;
  // nullptr and not ended: the token may not follow.
  CanvasPlace Next(const CanvasPlace& place, TokenId token) const;
};

// Masks of places by key, so that a place is looked up once however often it is met.
using CanvasMasks = std::unordered_map<uint64_t, std::shared_ptr<const Mask>>;

class CanvasLattice {
 public:
  // `window`: tokens, kNoToken for masks. `scores`: log-probabilities by position, where there is a
  // mask. `witness`: tokens of the window that lead to an output; they are always candidates.
  // `behind`: positions of the canvas behind the window, all masks. `masks`: those known, and gets
  // those that are looked up. `gaps`: the gap of each position, -1 for none; empty: there are none.
  CanvasLattice(const CanvasRules& rules, CanvasPlace root, std::span<const TokenId> window,
                std::span<const std::vector<float>> scores, std::span<const TokenId> witness,
                int behind, CanvasMasks* masks = nullptr, std::span<const int> gaps = {});

  // Whether an output is left.
  bool alive() const { return !nodes_.empty() && nodes_[0][0].alive; }
  // Finds the shares of all tokens among the outputs that are left.
  void Weigh();
  struct Share {
    TokenId token;
    double share;
  };
  // Of tokens that an output that is left has there; by falling share, as Weigh found it.
  std::vector<Share> Shares(size_t position) const;
  // Only outputs with this token there are left. REQUIRES: Shares(position) has it.
  void Commit(size_t position, TokenId token);
  // The most probable output that is left.
  std::vector<TokenId> Best() const;
  int64_t looks() const { return looks_; }  // at masks that were not known

 private:
  struct Node {
    CanvasPlace place;
    double best = 0;  // the score of the best path to it
    bool alive = false;
    double before = 0, behind = 0;  // logarithms of sums over paths
  };
  struct Edge {
    int32_t from, to;
    TokenId token;
    float score;
    double share = 0;
    bool alive = true;
  };
  struct Step {
    double score;
    int32_t from;
    TokenId token;
    bool witness;
  };
  void FindOrder(std::span<const float> scores, size_t most);
  const std::vector<TokenId>& BestOf(const std::shared_ptr<const Mask>& mask,
                                     std::span<const float> scores);
  void Candidates(size_t position, int32_t from, std::span<const float> scores, TokenId witness,
                  std::vector<Step>& steps);
  int GapOf(size_t position) const { return gaps_.empty() ? -1 : gaps_[position]; }
  std::shared_ptr<const Mask> MaskOf(const CanvasPlace& place);
  void Extend(size_t position, std::vector<Step>& steps, int left, int& witness_node);
  // Which nodes and edges lie on a path from the first to the last position.
  void FindAlive();

  const CanvasRules& rules_;
  std::span<const TokenId> window_;
  CanvasMasks* const masks_;
  std::span<const int> gaps_;
  std::vector<std::vector<Node>> nodes_;  // in front of each position, and behind the last one
  std::vector<std::vector<Edge>> edges_;
  std::vector<TokenId> order_;  // the best tokens of the position
  std::vector<std::pair<std::shared_ptr<const Mask>, std::vector<TokenId>>> best_of_;
  int64_t looks_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_LATTICE_H_
