// The rule takes each of k draws with the same chance b, one after the other, so one of them is
// taken with 1 - (1 - b)^k, and this is what is counted. The best number of draws for n nodes is
// found for all n: with the best shares for the nodes behind each draw.
#include "src/decode/draft/verify/draw_plan.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

constexpr double kPriorMiss = 0.25, kPriorCount = 32, kMostCounted = 4000;
// How misses fall with the number of draws, before it is counted.
constexpr double kFall = -0.6;
// A plan is made anew where a chance has changed by so much.
constexpr double kMadeAnew = 0.02;

}  // namespace

void DrawPlan::Count(int draws, bool taken) {
  if (draws < 1 || draws > kMostDraws) return;
  const auto k = static_cast<size_t>(draws);
  ++asked_[k];
  if (!taken) ++missed_[k];
  if (asked_[k] < kMostCounted) return;
  asked_[k] /= 2;
  missed_[k] /= 2;
}

double DrawPlan::Taken(int draws) const {
  const auto missed = [&](size_t k, double prior) {
    return (missed_[k] + prior * kPriorCount) / (asked_[k] + kPriorCount);
  };
  const double one = missed(1, kPriorMiss);
  if (draws == 1) return 1 - one;
  const auto k = static_cast<size_t>(draws);
  // More draws are never taken less often.
  return 1 - std::min(one, missed(k, one * std::pow(draws, kFall)));
}

double DrawPlan::TakenAt(int draws, int nth) const {
  const double none = std::pow(1 - Taken(draws), 1.0 / draws);
  return (1 - none) * std::pow(none, nth);
}

const DrawPlan::Choice& DrawPlan::At(int nodes) {
  bool old = choices_.empty();
  for (int k = 1; k <= kMostDraws; ++k) {
    old |= std::abs(Taken(k) - made_for_[static_cast<size_t>(k)]) > kMadeAnew;
  }
  if (old) Make();
  return choices_[static_cast<size_t>(std::clamp(nodes, 0, kMostNodes))];
}

void DrawPlan::Make() {
  for (int k = 1; k <= kMostDraws; ++k) made_for_[static_cast<size_t>(k)] = Taken(k);
  choices_.assign(1, {});
  for (int n = 1; n <= kMostNodes; ++n) {
    Choice best;
    for (int k = 1; k <= std::min(n, kMostDraws); ++k) {
      // Node by node to the draw that gains most by one more.
      Choice choice = {.draws = k};
      choice.expected = made_for_[static_cast<size_t>(k)];
      for (int left = n - k; left > 0; --left) {
        int to = 0;
        double most = -1;
        for (int i = 0; i < k; ++i) {
          const auto behind = static_cast<size_t>(choice.behind[static_cast<size_t>(i)]);
          const double gain =
              TakenAt(k, i) * (choices_[behind + 1].expected - choices_[behind].expected);
          if (gain > most) {
            most = gain;
            to = i;
          }
        }
        ++choice.behind[static_cast<size_t>(to)];
        choice.expected += most;
      }
      if (choice.expected > best.expected) best = choice;
    }
    choices_.push_back(best);
  }
}

}  // namespace pawl
