// Logistic regression: against a grid of the likelihood, and where there is nothing to fit.
#include "src/eval/logistic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace pawl::eval {
namespace {

using Points = std::vector<std::pair<double, bool>>;

double SlowLoss(const Points& points, double intercept, double slope) {
  double loss = 0;
  for (const auto& [x, yes] : points) {
    const double p = 1 / (1 + std::exp(-(intercept + slope * x)));
    loss -= std::log(yes ? p : 1 - p);
  }
  return loss;
}

TEST(LogisticTest, NothingNearIsMoreLikely) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    const double intercept = 4 * unit(random) - 3, slope = 3 * unit(random);
    Points points;
    for (int i = 0; i < 2000; ++i) {
      const double x = 4 * unit(random);
      points.emplace_back(x, unit(random) < 1 / (1 + std::exp(-(intercept + slope * x))));
    }
    const LogisticFit fit = FitLogistic(points);
    const double least = SlowLoss(points, fit.intercept, fit.slope);
    for (const double da : {-0.01, 0.0, 0.01}) {
      for (const double db : {-0.01, 0.0, 0.01}) {
        EXPECT_LE(least, SlowLoss(points, fit.intercept + da, fit.slope + db) + 1e-3) << seed;
      }
    }
    EXPECT_NEAR(fit.slope, slope, 0.8) << seed;
  }
}

TEST(LogisticTest, PointsThatAreApartAndPointsOfOneKind) {
  Points apart;
  for (int i = 0; i < 20; ++i) apart.emplace_back(i, i >= 10);
  const LogisticFit fit = FitLogistic(apart);
  EXPECT_TRUE(std::isfinite(fit.slope) && fit.slope > 0);
  EXPECT_NEAR(-fit.intercept / fit.slope, 9.5, 0.1);
  EXPECT_EQ(FitLogistic(Points{{1, true}, {2, true}}).slope, 0);
  EXPECT_EQ(FitLogistic({}).slope, 0);
}

}  // namespace
}  // namespace pawl::eval
