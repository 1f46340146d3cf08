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
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/result.h"
#include "src/decode/diffusion/lattice.h"

namespace pawl {

// How sure a position is: the share of its best token, its lead over the second best, how little
// entropy there is, or a number drawn by lot.
enum class MaskConfidence { kShare, kMargin, kEntropy, kRandom };

struct FillOptions {
  int block_length = 32;
  // Calls for the whole canvas, by which masks are split evenly. 0: as `threshold` says.
  int steps = 0;
  // All positions of the block are committed that are at least so sure, and one in any case.
  double threshold = 0.9;
  MaskConfidence confidence = MaskConfidence::kShare;
  double temperature = 0;
  uint64_t seed = 0;
};

struct FillTask {
  const Vocabulary* vocabulary = nullptr;
  const Encoder* encode = nullptr;  // for forced texts; nullptr: their tokens are chosen
  std::shared_ptr<const LoopConstraint> constraint;  // nullptr: none
  CanvasRules rules;
  int length = 0;  // of the canvas
};

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
  bool ended() const { return place_.ended || only_end_; }
  int forced() const { return forced_; }
  int64_t looks() const { return looks_; }

 private:
  // Reads on what is committed, and writes what is forced, until a mask of a block is open.
  Status Settle();
  bool Force();
  Status FindWitness();
  bool HasIslands() const;
  void CommitFree(std::vector<std::vector<float>> scores);
  Status CommitInLattice(std::vector<std::vector<float>> scores);
  double ConfidenceOf(std::span<const CanvasLattice::Share> shares, int position) const;
  TokenId Choose(std::span<const CanvasLattice::Share> shares, int position) const;
  // How many masks of the block this call commits; 0: as many as are sure.
  int Quota(int masks);

  const FillTask task_;
  const FillOptions options_;
  std::vector<TokenId> canvas_;
  std::vector<TokenId> witness_;  // of the block, from first_ on
  CanvasPlace place_;             // in front of first_
  int first_ = 0;                 // the first mask
  int block_begin_ = 0, block_end_ = 0, steps_left_ = 0;
  int calls_ = 0, forced_ = 0;
  int64_t looks_ = 0;
  bool done_ = false, only_end_ = false;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_MASK_FILLER_H_
