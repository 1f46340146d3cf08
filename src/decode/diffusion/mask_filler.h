// MaskFiller: the loop of a diffusion model over one canvas, without the model. It says which
// positions it wants the laws of, commits tokens, and goes on block by block.
//
//   MaskFiller filler(task, options);
//   Status status = filler.Start();
//   while (!filler.done()) {
//     ... run the canvas; scores[i] for i of filler.Wanted() ...
//     status = filler.Take(scores);
//   }
//   filler.output()
#ifndef PAWL_SRC_DECODE_DIFFUSION_MASK_FILLER_H_
#define PAWL_SRC_DECODE_DIFFUSION_MASK_FILLER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/result.h"
#include "src/decode/diffusion/fill_schedule.h"
#include "src/decode/diffusion/lattice.h"

namespace pawl {

struct FillTask {
  const Vocabulary* vocabulary = nullptr;
  const Encoder* encode = nullptr;  // for forced texts; nullptr: their tokens are chosen
  std::shared_ptr<const LoopConstraint> constraint;  // nullptr: none
  CanvasRules rules;
  int length = 0;  // of the canvas
  // With gaps: what stands in the canvas, the gap of each position (-1: none), and an output that
  // fits, with kBlank at masks that it does not need.
  std::vector<TokenId> canvas = {};
  std::vector<int> gap_of = {};
  std::vector<TokenId> witness = {};
};

// A copy goes on from where the original is.
class MaskFiller {
 public:
  MaskFiller(FillTask task, const FillOptions& options);

  // Errors: kLimit with "max_tokens" where no output fits the canvas.
  Status Start();
  bool done() const { return done_; }
  // kNoToken: a mask.
  std::span<const TokenId> canvas() const { return canvas_; }
  int block_begin() const { return block_begin_; }
  int block_end() const { return block_end_; }
  // Masks of the block.
  std::vector<int> Wanted() const;
  // `scores`: log-probabilities at these positions, by place in Wanted().
  Status Take(std::vector<std::vector<float>> scores);

  // What is committed from the beginning on, without the end token.
  std::span<const TokenId> output() const;
  // What stands in each gap, as far as it is committed.
  const std::vector<std::vector<TokenId>>& fills() const { return fills_; }
  bool ended() const { return place_.ended || only_end_; }
  int forced() const { return forced_; }
  int64_t looks() const { return looks_; }
  // Moves to the grammar as it is now, where it was rebuilt: the old one is held no longer.
  void Renew() {
    if (constrained_) place_ = states_->BeginCall(place_);
  }
  // REQUIRES: done, or given up; or a copy that takes no more.
  std::shared_ptr<const LoopConstraint> TakeConstraint() {
    return std::exchange(place_.at, nullptr);
  }

 private:
  // Reads on what is committed, and writes what is forced, until a mask of a block is open.
  Status Settle();
  bool Force();
  CanvasPlace PlaceAfter(TokenId token);
  Status FindWitness();
  bool HasIslands() const;
  bool has_gaps() const { return !task_.canvas.empty(); }
  // Takes masks out that their gaps do not need.
  void RemoveBlanks();
  // What stands at the masks of the block becomes tokens, as the schedule says.
  void Commit(std::span<const std::vector<float>> scores, CanvasLattice* lattice);
  // Of a position from first_ on.
  std::vector<CanvasLattice::Share> SharesOf(size_t place,
                                             std::span<const std::vector<float>> scores,
                                             const CanvasLattice* lattice) const;
  double ConfidenceOf(std::span<const CanvasLattice::Share> shares, int position) const;
  TokenId Choose(std::span<const CanvasLattice::Share> shares, int position) const;

  FillTask task_;
  bool constrained_;  // place_ alone has the constraint, so that old parts of its grammar go
  FillOptions options_;
  std::vector<TokenId> canvas_;
  std::vector<TokenId> witness_;  // of the block, from first_ on
  std::vector<TokenId> known_;    // an output that fits, from known_from_ on
  int known_from_ = 0;
  std::vector<int> gap_of_;
  std::vector<std::vector<TokenId>> fills_;
  CanvasPlace place_;  // in front of first_
  int first_ = 0;      // the first mask
  int block_begin_ = 0, block_end_ = 0;
  FillSchedule schedule_;
  std::shared_ptr<CanvasStates> states_;  // copies share it
  int calls_ = 0, forced_ = 0;
  int64_t looks_ = 0;
  bool done_ = false, only_end_ = false;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_MASK_FILLER_H_
