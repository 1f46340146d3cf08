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
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/decode/diffusion/best_tokens.h"
#include "src/decode/diffusion/canvas_states.h"

namespace pawl {

class CanvasLattice {
 public:
  // `window`: tokens, kNoToken for masks. `scores`: log-probabilities by position, where there is a
  // mask. `witness`: tokens of the window that lead to an output; they are always candidates.
  // `behind`: positions of the canvas behind the window, all masks. `states`: those known, and gets
  // those that are met. `gaps`: the gap of each position, -1 for none; empty: there are none.
  CanvasLattice(const CanvasRules& rules, CanvasPlace root, std::span<const TokenId> window,
                std::span<const std::vector<float>> scores, std::span<const TokenId> witness,
                int behind, CanvasStates* states = nullptr, std::span<const int> gaps = {});

  // `root`, in the grammar as it is now.
  const CanvasPlace& root() const { return root_; }
  // Whether an output is left.
  bool alive() const { return nodes_[0][0].alive; }
  // Finds the shares of all tokens among the outputs that are left.
  void Weigh();
  struct Share {
    TokenId token;
    double share;
  };
  // Of tokens that an output that is left has there; by falling share, as Weigh found it.
  std::vector<Share> Shares(size_t position) const;
  // The token where there is one alone.
  std::optional<TokenId> Only(size_t position) const;
  // Only outputs with this token there are left. REQUIRES: Shares(position) has it.
  void Commit(size_t position, TokenId token);
  // The most probable output that is left.
  std::vector<TokenId> Best() const;
  // Look-ups of masks that were not known.
  int64_t looks() const { return looks_; }

 private:
  struct Node {
    CanvasStates::Id state;
    double best = 0;  // the score of the best path to it
    bool alive = false;
    double before = 0, behind = 0;  // logarithms of sums over paths
  };
  // A token that stands at the position in some path.
  struct Slot {
    TokenId token;
    double score;
    double weight = 0;  // relative to the best score of the layer
  };
  // All tokens that lead from one node to another.
  struct Bundle {
    int32_t from, to;
    double best;                     // score
    double weight = 0, scale = 0;    // logarithm of the sum, and what makes shares of weights
    bool alive = true, far = false;  // far: weights of the layer are too small to tell
  };
  struct Edge {
    int32_t bundle, slot;
  };
  struct Layer {
    std::vector<Slot> slots;
    std::vector<Bundle> bundles;
    std::vector<Edge> edges;  // from the best one on
    int32_t committed = -1;   // the slot
    double best = 0;          // score
  };
  // The best tokens of a mask at the position, by slot.
  struct Choices {
    const CanvasMask* mask;
    std::vector<int32_t> slots;
  };
  // Where a node is in its steps, the best of which come first.
  struct Cursor {
    int32_t from = 0;
    double score = 0;  // of the step; where none is met, not less than that of the first one
    bool met = false;
    bool tries = false;          // tokens are tried by the order of all, without a mask
    int taken = 0, refused = 0;  // of those that were tried
    std::span<const int32_t> slots = {};
    size_t next = 0;                  // in `slots`, or in the order
    int32_t slot = 0;                 // of the step
    CanvasStates::Id to = kNotAsked;  // where it leads
    TokenId without = kNoToken;       // was taken before all others
    std::vector<int32_t> own = {};    // what `slots` may be
  };
  static constexpr CanvasStates::Id kNotAsked = -2;
  struct Ahead {
    double score;
    int32_t cursor;
  };
  // Of one position.
  struct Scratch {
    BestTokens best;
    std::vector<Choices> choices = {};
    size_t known = 0;  // of choices
    std::vector<Cursor> cursors = {};
    std::vector<Ahead> heap = {};
    std::vector<int32_t> slot_of = {};    // by token, where the slot says so too
    std::vector<int32_t> node_of = {};    // by state, where the node says so too
    std::vector<int32_t> bundle_of = {};  // by both nodes
  };
  int32_t SlotOf(Layer& layer, TokenId token, std::span<const float> scores);
  std::span<const int32_t> ChoicesOf(Layer& layer, const CanvasMask& mask,
                                     std::span<const float> scores);
  // Lets go what is known of states behind which the lattice is, where that has become much.
  void MakeSpace(size_t position);
  // Of each node there, tokens that lead to it.
  std::vector<std::vector<TokenId>> PathsTo(size_t position) const;
  // Cursors of all nodes.
  void BeginSteps(size_t position, std::span<const float> scores);
  // To its next step; false: there is none.
  bool NextStep(size_t position, Cursor& cursor, std::span<const float> scores);
  bool TryStep(size_t position, Cursor& cursor, std::span<const float> scores);
  // Takes the step of the witness from its node. Returns where it leads to, or -1.
  int32_t TakeWitness(size_t position, std::span<const float> scores, TokenId witness,
                      int32_t witness_node);
  // The first one in the heap has moved.
  void SiftDown();
  void Extend(size_t position, std::span<const float> scores, int left);
  int32_t Take(size_t position, const Cursor& cursor, bool witness, int left);
  int32_t NodeOf(size_t position, CanvasStates::Id state, double score, bool witness, int left);
  int GapOf(size_t position) const { return gaps_.empty() ? -1 : gaps_[position]; }
  bool Left(const Layer& layer, const Edge& edge) const {
    return layer.bundles[static_cast<size_t>(edge.bundle)].alive &&
           (layer.committed < 0 || layer.committed == edge.slot);
  }
  // Which nodes and bundles lie on a path from the first to the last position.
  void FindAlive();
  // The same where bundles of one position have gone.
  void FindAliveAround(size_t position);
  void WeighLayer(Layer& layer) const;
  void WeighPaths();

  const CanvasRules& rules_;
  CanvasPlace root_;
  std::span<const TokenId> window_;
  std::unique_ptr<CanvasStates> own_states_;
  CanvasStates& states_;
  std::span<const int> gaps_;
  std::vector<std::vector<Node>> nodes_;  // in front of each position, and behind the last one
  std::vector<Layer> layers_;
  std::unique_ptr<Scratch> scratch_;
  int64_t looks_ = 0;
  int searches_ = 0, most_searches_ = 0;  // so far, and up to the end of the position
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_LATTICE_H_
