// A model's call reads its weights once, whatever the number of rows; beyond some number arithmetic
// takes longer than memory. Where that is depends on the machine, the weights' type and the other
// work that is going on, so it is measured: at the start with short contexts, and then with every
// call that the decode loop makes. A point of the curve moves towards what a call near it took, at
// first by half of the difference.
//
// The start must not cost more than it saves: an output of a small model takes as long as some
// dozen calls. So each number of rows runs once, up to where twice the rows take nearly twice as
// long: arithmetic decides from there on. A call that was interrupted shows as one that took longer
// than more rows did.
//
// Attention adds a part that grows with the context of each row. What that is, the calls tell: the
// difference between what a call takes and what the curve says goes to the context's share where
// contexts are long.
#include "src/decode/draft/latency_model.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

namespace pawl {
namespace {

constexpr int kMeasured = 32;
// Twice the rows in so many times the time: from here on it is arithmetic.
constexpr double kLinear = 1.85;
constexpr double kNewest = 1.0 / 16;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Status LatencyModel::Measure(Model& model) {
  const ModelInfo& info = model.info();
  const int most = std::min({kMeasured, info.context_length - 2, kMaxTreeRows - 1});
  if (most < 1) return {};
  Result<SequenceId> sequence = model.NewSequence(most + 2);
  if (!sequence.ok()) return sequence.error();
  struct Scope {
    Model& model;
    SequenceId sequence;
    ~Scope() { model.FreeSequence(sequence); }
  } const scope{model, *sequence};
  std::vector<float> logits(static_cast<size_t>(most) * static_cast<size_t>(info.vocabulary_size));
  Status status;
  size_t points = 0;
  // The first call alone pays for what is not in the caches yet.
  for (int rows : {1, 1, 2, 4, 8, 16, 32}) {
    if (rows > most) break;
    std::vector<Row> call;
    for (int i = 0; i < rows; ++i) {
      const auto token = static_cast<TokenId>((7919 * (i + 1)) % info.vocabulary_size);
      call.push_back({.token = token, .position = i, .sequence = *sequence, .output = i});
    }
    const double start = Now();
    status = model.Forward(call, logits);
    const double took = Now() - start;
    model.Truncate(*sequence, 0);
    if (!status.ok()) break;
    if (rows == 1) points = 0;
    points_[points++] = took;
    // Both doublings before say so.
    if (rows >= 8 && took > kLinear * points_[points - 2] &&
        points_[points - 2] > kLinear * points_[points - 3]) {
      break;
    }
  }
  if (!status.ok()) return status;
  for (size_t i = points; i < kPoints; ++i) points_[i] = points_[i - 1] * 2;
  for (size_t i = kPoints - 1; i-- > 0;) points_[i] = std::min(points_[i], points_[i + 1]);
  calls_.fill(0);
  known_ = true;
  return {};
}

double LatencyModel::Seconds(int rows, int context) const {
  rows = std::max(1, rows);
  const int low =
      std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(rows))) - 1, kPoints - 2);
  const double x = static_cast<double>(rows) / (1 << low) - 1;  // 0 at the point, 1 at the next
  const auto n = static_cast<size_t>(low);
  return points_[n] + x * (points_[n + 1] - points_[n]) + per_context_ * rows * context;
}

void LatencyModel::Learn(int rows, int context, double seconds) {
  if (!known_ || rows < 1 || rows > 1 << (kPoints - 1) || !(seconds > 0)) return;
  const double expected = Seconds(rows, context);
  // A call that was interrupted for long tells nothing.
  const double off = std::clamp(seconds - expected, -expected, expected);
  const double seen = static_cast<double>(rows) * std::max(1, context);
  if (context > 256) per_context_ = std::max(0.0, per_context_ + 0.25 * kNewest * off / seen);
  const int low =
      std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(rows))) - 1, kPoints - 2);
  const double x = static_cast<double>(rows) / (1 << low) - 1;
  const auto n = static_cast<size_t>(low);
  const auto learn = [&](size_t point, double share) {
    calls_[point] += static_cast<float>(share);
    points_[point] += std::max(kNewest, 1.0 / (1 + double{calls_[point]})) * share * off;
  };
  learn(n, 1 - x);
  learn(n + 1, x);
  // More rows never take less: what one point learned holds for its neighbours.
  for (size_t i = n + 1; i < kPoints; ++i) points_[i] = std::max(points_[i], points_[i - 1]);
  for (size_t i = n; i-- > 0;) points_[i] = std::min(points_[i], points_[i + 1]);
}

}  // namespace pawl
