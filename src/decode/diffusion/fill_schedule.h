// FillSchedule: which masks of a block a call commits.
//
//   FillSchedule schedule(options);
//   schedule.Begin(calls);                                // at each block
//   const FillSchedule::Choice choice = schedule.Choose(masks, call);
#ifndef PAWL_SRC_DECODE_DIFFUSION_FILL_SCHEDULE_H_
#define PAWL_SRC_DECODE_DIFFUSION_FILL_SCHEDULE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pawl {

// How sure a position is: the share of its best token, its lead over the second best, how little
// entropy there is, or a number drawn by lot.
enum class MaskConfidence { kShare, kMargin, kEntropy, kRandom };

struct FillOptions {
  enum class Schedule { kStepwise, kThreshold, kProphet, kLocalLeap, kSsd };
  int block_length = 32;
  Schedule schedule = Schedule::kStepwise;
  // Calls for the whole canvas, by which masks are split; 0: one for each position.
  int steps = 0;
  // All positions of the block are committed that are at least so sure, and one in any case.
  double threshold = 0.9;
  std::optional<double> factor;  // in its place: the n surest, where the last has 1 - factor/(n+1)
  MaskConfidence confidence = MaskConfidence::kShare;
  bool by_lot = false;        // "origin": each mask has the same chance
  std::optional<double> eps;  // the last time of Dream's steps; none: masks are split evenly
  double alg_temp = 0;        // of drawing masks by confidence
  // Of Prophet: the mean lead, in nats, at which all is committed, by third of the steps.
  std::array<double, 3> prophet_leads = {7.5, 5, 2.5};
  // Of LocalLeap: so near to a mask that is sure, this is enough.
  int leap_radius = 4;
  double leap_threshold = 0.75;
  int drafts = 3;  // of SSD: further canvases of a call
  double temperature = 0;
  uint64_t seed = 0;

  bool by_threshold() const {
    return schedule == Schedule::kThreshold || schedule == Schedule::kLocalLeap;
  }
};

class FillSchedule {
 public:
  struct Mask {
    int position = 0;
    double confidence = 0;
    // How far the best token is before the second one, in nats; nullopt: there is no other.
    std::optional<double> lead;
  };
  struct Commit {
    size_t mask = 0;
    double least = 0;  // it is left out where it is less sure once those before it are committed
  };
  struct Choice {
    std::vector<Commit> commits;  // in order
    bool all = false;             // the best output of the block, in place of them
  };

  explicit FillSchedule(const FillOptions& options) : options_(options) {}
  // A block with so many calls.
  void Begin(int calls);
  // REQUIRES: there is a mask. `call`: its number, for what is drawn.
  Choice Choose(std::span<const Mask> masks, int call);

 private:
  std::vector<Commit> BySteps(std::span<const Mask> masks, int call) const;
  std::vector<Commit> BySureness(std::span<const Mask> masks) const;
  bool Sure(std::span<const Mask> masks) const;
  // Of Dream's step: how many of the masks that are left become tokens.
  double StepShare() const;

  FillOptions options_;
  int calls_ = 1, step_ = 0;  // of the block
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_FILL_SCHEDULE_H_
