// A model's call reads its weights once, whatever the number of rows; beyond some number arithmetic
// takes longer than memory. Where that is depends on the machine, the weights' type and the other
// work that is going on, so it is measured: with every call that the decode loop makes. A point of
// the curve moves towards what a call near it took, at first by half of the difference.
//
// No call is made only to measure. The first call without drafts gives the height of the curve. Its
// shape is a guess by the size of the model: small weights are in a cache, and then arithmetic
// decides from the first row on. When calls of two sizes are known, they tell the shape. Calls with
// drafts have at most twice the rows of those that were measured, so the guess is never far from
// what is known.
//
// Attention adds a part that grows with the context of each row. What that is, the calls tell: the
// difference between what a call takes and what the curve says goes to the context's share where
// contexts are long.
//
// Other programs interrupt calls, and make the machine slower for a while. A single call that takes
// far too long tells nothing. Where one number of rows takes longer, so do others.
//
// A draft takes longer than a row of forced text: its logits are computed too, and it stands in a
// tree. In a call of the shipped model for eight
// outputs a row of forced text took 42 us, and a draft 60 us. So where calls without drafts have
// told what rows take, calls with drafts tell what a draft takes on top.
#include "src/decode/draft/latency_model.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace pawl {
namespace {

constexpr double kNewest = 1.0 / 16;
// Weights that a cache may hold, and what a row takes more then.
constexpr int64_t kCached = int64_t{32} << 20;
constexpr double kCachedShare = 0.3;
// Calls near a point before it tells the shape, and the largest share.
constexpr float kKnownCalls = 4;
constexpr double kMostShare = 1;
// In times of what is expected: a call that takes longer was interrupted.
constexpr double kInterrupted = 2;
// A machine that is slower for one number of rows is slower for others: their share of the change.
constexpr double kLevel = 0.5;
// What a call takes from what is known of other numbers of rows, and from the price of a draft.
constexpr double kForgotten = 1.0 / 256, kCheaper = 1.0 / 1024;

// What a row takes more in times of one row, from two numbers of rows and what these take.
// `otherwise`: where they do not tell.
double ShareOf(double few, double few_seconds, double many, double many_seconds, double otherwise) {
  const double ratio = many_seconds / few_seconds;
  const double left = (many - 1) - ratio * (few - 1);
  return ratio < 1 || left <= 0 ? otherwise : std::min((ratio - 1) / left, kMostShare);
}

}  // namespace

LatencyModel::LatencyModel(const ModelInfo& info) {
  if (info.step_bytes < kCached) share_ = kCachedShare;
}

double LatencyModel::Seconds(int rows, int context, int drafts) const {
  rows = std::max(1, rows);
  const int low =
      std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(rows))) - 1, kPoints - 2);
  const double x = static_cast<double>(rows) / (1 << low) - 1;  // 0 at the point, 1 at the next
  const auto n = static_cast<size_t>(low);
  return points_[n] + x * (points_[n + 1] - points_[n]) + per_context_ * rows * context +
         per_draft_ * drafts;
}

void LatencyModel::FollowShape(size_t low, size_t high) {
  const auto shape = [&](size_t point) {
    return 1 + share_ * static_cast<double>((size_t{1} << point) - 1);
  };
  for (size_t i = high + 1; i < kPoints && calls_[i] == 0; ++i) {
    points_[i] = points_[i - 1] * shape(i) / shape(i - 1);
  }
  for (size_t i = low; i-- > 0 && calls_[i] == 0;) {
    points_[i] = points_[i + 1] * shape(i) / shape(i + 1);
  }
}

bool LatencyModel::LearnDrafts(size_t low, size_t high, int drafts, double off) {
  if (std::min(plain_calls_[low], plain_calls_[high]) < kKnownCalls) return false;
  const double share = std::max(kNewest, 1.0 / static_cast<double>(1 + ++draft_calls_));
  per_draft_ = std::clamp(per_draft_ + share * off / drafts, 0.0, points_[0]);
  return true;
}

void LatencyModel::Learn(int rows, int context, double seconds, int drafts) {
  if (rows < 1 || rows > 1 << (kPoints - 1) || !(seconds > 0)) return;
  const int point =
      std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(rows))) - 1, kPoints - 2);
  const double x = static_cast<double>(rows) / (1 << point) - 1;
  const auto n = static_cast<size_t>(point);
  if (!known_) {
    points_[0] = 1;
    FollowShape(0, 0);
    const double scale = seconds / Seconds(rows, 0);
    for (double& one : points_) one *= scale;
    known_ = true;
  }
  most_rows_ = std::max(most_rows_, rows);
  const double expected = Seconds(rows, context, drafts);
  // A call that was interrupted tells nothing; two in a row tell that calls take longer now. Where
  // it happens often, what was known is wrong.
  const size_t next = x > 0 ? n + 1 : n;
  const bool sure = std::min(calls_[n], calls_[next]) >= kKnownCalls;
  const bool slow = sure && seconds > kInterrupted * expected;
  if (slow && !std::exchange(slow_, true)) {
    calls_[n] /= 2;
    if (next != n) calls_[next] /= 2;
    return;
  }
  slow_ = slow;
  const double off = std::clamp(seconds - expected, -expected, expected);
  const double seen = static_cast<double>(rows) * std::max(1, context);
  if (drafts > 0 && LearnDrafts(n, next, drafts, off)) return;
  if (context > 256) per_context_ = std::max(0.0, per_context_ + 0.25 * kNewest * off / seen);
  const auto learn = [&](size_t at, double share) {
    calls_[at] += static_cast<float>(share);
    if (drafts == 0) plain_calls_[at] += static_cast<float>(share);
    points_[at] += std::max(kNewest, 1.0 / (1 + double{calls_[at]})) * share * off;
  };
  learn(n, 1 - x);
  learn(n + 1, x);
  if (drafts == 0) per_draft_ *= 1 - kCheaper;
  // Points that few calls were near, or none lately, go back to the shape. Otherwise a few slow
  // calls would mean that no such call is made again.
  const auto shape = [&](size_t at) {
    return 1 + share_ * static_cast<double>((size_t{1} << at) - 1);
  };
  for (size_t i = 0; i < kPoints; ++i) {
    if (i == n || i == next || calls_[i] == 0) continue;
    calls_[i] *= static_cast<float>(1 - kForgotten);
    if (sure) points_[i] *= 1 + kLevel * kNewest * off / expected;
    const double unknown = std::max(0.0, 1 - double{calls_[i] / kKnownCalls});
    points_[i] += kNewest * unknown * (points_[n] * shape(i) / shape(n) - points_[i]);
  }
  // More rows never take less: what one point learned holds for its neighbours.
  for (size_t i = n + 1; i < kPoints; ++i) points_[i] = std::max(points_[i], points_[i - 1]);
  for (size_t i = n; i-- > 0;) points_[i] = std::min(points_[i], points_[i + 1]);
  size_t low = 0, high = kPoints - 1;
  while (low < high && calls_[low] < kKnownCalls) ++low;
  while (high > low && calls_[high] < kKnownCalls) --high;
  if (high > low) {
    share_ = ShareOf(static_cast<double>(size_t{1} << low), points_[low],
                     static_cast<double>(size_t{1} << high), points_[high], share_);
  } else if (share_ > kCachedShare) {
    share_ += kNewest * (kCachedShare - share_);
  }
  FollowShape(n, next);
}

}  // namespace pawl
