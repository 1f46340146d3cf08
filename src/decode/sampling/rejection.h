// Adaptive weighted rejection sampling: one step under a check that is asked about single items.
//
// There are items with masses p_i, of which the check accepts a set A. Each function draws an
// accepted item y and a weight w that are properly weighted: for every y
//   E[w 1{Y = y}] = p_y 1{y in A},   so E[w] = Z = the mass of A,
// and Y itself is distributed as p_y / Z. Only items that are drawn are checked.
//
// Items come in the order of sampling without replacement (Gumbel keys, or exponential clocks). A
// rejected item is gone. The estimators differ in what they look at once an item was accepted:
//   kTwoLoop    a second, fresh order over what was not rejected counts further rejections up to
//               the next accepted item (Lipkin et al., "Fast Controlled Generation from Language
//               Models with Adaptive Weighted Rejection Sampling", arXiv 2504.05410).
//   kRecursive  one more item of the same order decides between two weights. The fewest checks.
//   kGeometric  rejection sampling with replacement is played until `accepts` items were accepted;
//               how often a rejected item would have come again is drawn, not checked.
// With `max_rejects` the step gives up after so many rejections, with weight 0; the law above
// holds all the same.
//
// The functions are templates over where items come from and what a mass is, so that tests run
// these very lines over every possible order in rational arithmetic. A source has
//   using Mass = ...;
//   std::optional<int> Next();     the next item of this order; none when all were seen
//   void Restart();                a fresh order over the items that were not rejected
//   bool Accepts(int item);        asks the check, or knows from before
//   void Reject(int item);
//   Mass MassOf(int item);
//   Mass Total();                  of all items
//   Mass Remaining();              of those that were not rejected
//   Mass Scale(Mass m, int64_t numerator, int64_t denominator);
//   Mass Zero();
//   int64_t Phantoms(int64_t most);  how many draws with replacement hit rejected items before one
//                                    that is not; `most` stands for that and more
#ifndef PAWL_SRC_DECODE_SAMPLING_REJECTION_H_
#define PAWL_SRC_DECODE_SAMPLING_REJECTION_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "pawl/sampling.h"

namespace pawl {

template <typename Mass>
struct Drawn {
  int item = -1;  // -1: none was accepted, or max_rejects were rejected; the weight is then 0
  Mass weight;
  int looks = 0;  // items that were drawn and looked at, those included whose verdict was known
};

struct RejectionLimits {
  int64_t max_rejects = std::numeric_limits<int32_t>::max();  // at least 1
  int accepts = 2;                                            // of kGeometric, at least 2
};

template <typename Source>
Drawn<typename Source::Mass> DrawRecursive(Source& source, int64_t max_rejects) {
  Drawn<typename Source::Mass> drawn{-1, source.Zero(), 0};
  int64_t rejects = 0;
  while (const std::optional<int> item = source.Next()) {
    ++drawn.looks;
    if (source.Accepts(*item)) {
      drawn.item = *item;
      drawn.weight = source.Remaining();
      if (rejects == max_rejects - 1) return drawn;
      const std::optional<int> peek = source.Next();
      if (!peek.has_value()) return drawn;
      ++drawn.looks;
      if (!source.Accepts(*peek)) drawn.weight = source.MassOf(*item);
      return drawn;
    }
    source.Reject(*item);
    if (++rejects == max_rejects) break;
  }
  return drawn;
}

// Without truncation.
template <typename Source>
Drawn<typename Source::Mass> DrawTwoLoop(Source& source) {
  Drawn<typename Source::Mass> drawn{-1, source.Zero(), 0};
  int64_t rejects = 0;
  const auto first_accepted = [&]() -> std::optional<int> {
    while (const std::optional<int> item = source.Next()) {
      ++drawn.looks;
      if (source.Accepts(*item)) return item;
      source.Reject(*item);
      ++rejects;
    }
    return std::nullopt;
  };
  const std::optional<int> first = first_accepted();
  if (!first.has_value()) return drawn;
  drawn.item = *first;
  const auto left = source.Remaining();
  source.Restart();
  first_accepted();
  drawn.weight = source.Scale(left, 1, rejects + 1);
  return drawn;
}

template <typename Source>
Drawn<typename Source::Mass> DrawGeometric(Source& source, const RejectionLimits& limits) {
  Drawn<typename Source::Mass> drawn{-1, source.Zero(), 0};
  int64_t rejects = 0, accepts = 0;
  while (accepts < limits.accepts && rejects < limits.max_rejects) {
    if (rejects > 0) {
      rejects += source.Phantoms(limits.max_rejects - rejects);
      if (rejects >= limits.max_rejects) break;
      source.Restart();
    } else if (accepts > 0) {
      source.Restart();
    }
    const std::optional<int> item = source.Next();
    if (!item.has_value()) break;
    ++drawn.looks;
    if (source.Accepts(*item)) {
      if (accepts++ == 0) drawn.item = *item;
    } else {
      source.Reject(*item);
      ++rejects;
    }
  }
  if (accepts == 0) return drawn;
  // How probable it was, of all orders of these draws that end alike, that the first was accepted.
  drawn.weight = source.Scale(source.Total(), std::min<int64_t>(limits.accepts - 1, accepts),
                              accepts + rejects - 1);
  return drawn;
}

template <typename Source>
Drawn<typename Source::Mass> DrawAccepted(Source& source, Estimator estimator,
                                          const RejectionLimits& limits) {
  switch (estimator) {
    case Estimator::kTwoLoop:
      return DrawTwoLoop(source);
    case Estimator::kGeometric:
      return DrawGeometric(source, limits);
    case Estimator::kRecursive:
      break;
  }
  return DrawRecursive(source, limits.max_rejects);
}

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_REJECTION_H_
