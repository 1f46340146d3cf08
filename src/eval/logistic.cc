// Each step solves for the place where the gradient of the likelihood would be zero if its
// curvature stayed. A step that makes the likelihood smaller is halved.
#include "src/eval/logistic.h"

#include <algorithm>
#include <cmath>

namespace pawl::eval {
namespace {

constexpr double kPenalty = 1e-6;  // of the slope's square, for each point

double LogisticLoss(std::span<const std::pair<double, bool>> points, const LogisticFit& fit) {
  double loss = 0;
  for (const auto& [x, yes] : points) {
    const double z = (fit.intercept + fit.slope * x) * (yes ? -1 : 1);
    loss += z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
  }
  return loss + kPenalty * static_cast<double>(points.size()) * fit.slope * fit.slope / 2;
}

}  // namespace

LogisticFit FitLogistic(std::span<const std::pair<double, bool>> points) {
  const auto yes = std::ranges::count_if(points, [](const auto& point) { return point.second; });
  LogisticFit fit;
  if (yes == 0 || yes == std::ssize(points)) return fit;
  double loss = LogisticLoss(points, fit);
  for (int round = 0; round < 100; ++round) {
    const double penalty = kPenalty * static_cast<double>(points.size());
    double g0 = 0, g1 = penalty * fit.slope, h00 = 0, h01 = 0, h11 = penalty;
    for (const auto& [x, is] : points) {
      const double p = 1 / (1 + std::exp(-(fit.intercept + fit.slope * x)));
      const double w = p * (1 - p), d = p - (is ? 1 : 0);
      g0 += d;
      g1 += d * x;
      h00 += w;
      h01 += w * x;
      h11 += w * x * x;
    }
    h00 += 1e-12;
    const double determinant = h00 * h11 - h01 * h01;
    if (!(determinant > 0)) break;
    const double d0 = (h11 * g0 - h01 * g1) / determinant, d1 = (h00 * g1 - h01 * g0) / determinant;
    double step = 1, next_loss = loss;
    LogisticFit next;
    for (; step > 1e-9; step /= 2) {
      next = {fit.intercept - step * d0, fit.slope - step * d1};
      next_loss = LogisticLoss(points, next);
      if (next_loss < loss) break;
    }
    if (!(next_loss < loss)) break;
    const bool done = loss - next_loss < 1e-12 * (1 + loss);
    fit = next;
    loss = next_loss;
    if (done) break;
  }
  return fit;
}

}  // namespace pawl::eval
