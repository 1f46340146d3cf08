// By steps: LLaDA splits the masks of a block evenly (Nie et al., arXiv 2502.09992), Dream by times
// that fall from 1 to eps (Ye et al., arXiv 2508.15487), and draws masks where there is a
// temperature. By a threshold or a factor: Fast-dLLM (Wu et al., arXiv 2505.22618); with neighbours
// of sure masks: LocalLeap (Kong et al., arXiv 2510.07081). Prophet (Li et al., arXiv 2508.19982)
// ends a block early. A call commits one mask at least, as a call without a commit would come
// again.
#include "src/decode/diffusion/fill_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "src/base/random.h"

namespace pawl {
namespace {

constexpr double kAnySureness = -std::numeric_limits<double>::infinity();

double LotOf(const FillOptions& options, int call, int position) {
  return static_cast<double>(UniformAt(options.seed ^ 0x6d61736b, static_cast<uint64_t>(call),
                                       static_cast<uint64_t>(position)));
}

std::vector<size_t> OrderBy(std::span<const double> keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return keys[a] > keys[b]; });
  return order;
}

}  // namespace

void FillSchedule::Begin(int calls) {
  calls_ = std::max(1, calls);
  step_ = 0;
}

FillSchedule::Choice FillSchedule::Choose(std::span<const Mask> masks, int call) {
  Choice choice;
  if (options_.by_threshold()) {
    choice.commits = BySureness(masks);
    return choice;
  }
  choice.all = options_.schedule == FillOptions::Schedule::kProphet && Sure(masks);
  if (!choice.all) choice.commits = BySteps(masks, call);
  ++step_;
  return choice;
}

double FillSchedule::StepShare() const {
  if (step_ + 1 >= calls_) return 1;
  const double fall = (1 - options_.eps.value_or(0)) / calls_;
  return fall / (1 - fall * step_);
}

std::vector<FillSchedule::Commit> FillSchedule::BySteps(std::span<const Mask> masks,
                                                        int call) const {
  std::vector<double> keys;
  for (const Mask& mask : masks) {
    const double lot =
        options_.by_lot || options_.alg_temp > 0 ? LotOf(options_, call, mask.position) : 0;
    if (options_.by_lot) {
      keys.push_back(-lot);
    } else if (options_.alg_temp > 0) {
      const double sure = options_.confidence == MaskConfidence::kEntropy
                              ? std::log(std::max(mask.confidence, 1e-300))
                              : mask.confidence;
      keys.push_back(sure - options_.alg_temp * std::log(-std::log(lot)));
    } else {
      keys.push_back(mask.confidence);
    }
  }
  std::vector<size_t> order = OrderBy(keys);
  const auto count = static_cast<double>(masks.size());
  double quota = std::ceil(count / std::max(1, calls_ - step_));
  if (options_.by_lot) {
    quota = static_cast<double>(
        std::ranges::count_if(keys, [&](double key) { return -key < StepShare(); }));
  } else if (options_.eps) {
    quota = std::floor(count * StepShare() + 1e-9);
  }
  order.resize(static_cast<size_t>(std::clamp(quota, 1.0, count)));
  std::vector<Commit> commits;
  for (const size_t n : order) commits.push_back({n, kAnySureness});
  return commits;
}

// Where no mask is sure, the first of the surest ones, which knows all that stands in front of it.
std::vector<FillSchedule::Commit> FillSchedule::BySureness(std::span<const Mask> masks) const {
  std::vector<double> keys;
  for (const Mask& mask : masks) keys.push_back(mask.confidence);
  std::vector<Commit> commits;
  for (const size_t n : OrderBy(keys)) {
    double least = options_.threshold;
    if (options_.factor) least = 1 - *options_.factor / (static_cast<double>(commits.size()) + 2);
    if (options_.schedule == FillOptions::Schedule::kLocalLeap && keys[n] < least &&
        options_.leap_radius > 0) {
      const bool near = std::ranges::any_of(masks, [&](const Mask& other) {
        return other.confidence >= options_.threshold &&
               std::abs(other.position - masks[n].position) <= options_.leap_radius;
      });
      if (near) least = std::min(least, options_.leap_threshold);
    }
    if (commits.empty()) least = kAnySureness;
    if (keys[n] < least) {
      if (options_.factor) break;
      continue;
    }
    commits.push_back({n, least});
  }
  return commits;
}

bool FillSchedule::Sure(std::span<const Mask> masks) const {
  double sum = 0;
  int count = 0;
  for (const Mask& mask : masks) {
    if (!mask.lead) continue;
    sum += *mask.lead;
    ++count;
  }
  const auto third = static_cast<size_t>(std::clamp(3 * step_ / calls_, 0, 2));
  return sum >= options_.prophet_leads[third] * count;
}

}  // namespace pawl
