// The tuner on objectives whose optimum is known, compared with random search, and that it is a
// function of what it was told.
#include "src/eval/tuner.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pawl::eval {
namespace {

// Two numbers and three choices; which values are best depends on the seed.
struct Objective {
  explicit Objective(uint64_t seed) : x(0.1 + 0.8 * Part(seed, 1)), y(0.1 + 0.8 * Part(seed, 2)) {
    for (uint64_t k = 0; k < 3; ++k) choice[k] = std::floor(4 * Part(seed, 3 + k));
  }
  static double Part(uint64_t seed, uint64_t k) {
    const double z = std::sin(static_cast<double>(seed * 131 + k * 71)) * 43758.5453;
    return z - std::floor(z);
  }
  static std::vector<Knob> Knobs() {
    const std::vector<std::string> four = {"a", "b", "c", "d"};
    return {{.name = "x"},
            {.name = "y", .least = 0.01, .most = 100, .log = true},
            {.name = "p", .choices = four},
            {.name = "q", .choices = four},
            {.name = "r", .choices = four}};
  }
  double ScoreOf(const std::vector<double>& v) const {
    const double log_y = (std::log10(v[1]) + 2) / 4;
    double score = -std::abs(v[0] - x) - std::abs(log_y - y);
    for (size_t k = 0; k < 3; ++k) score -= v[2 + k] == choice[k] ? 0 : 0.5;
    return score;
  }
  // All choices, and both numbers nearly.
  static constexpr double kFound = -0.45;

  double x, y;
  double choice[3];
};

TEST(TunerTest, FindsTheOptimumMoreOftenThanChance) {
  int found = 0, by_chance = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Objective objective(seed);
    Tuner tuner(Objective::Knobs(), seed);
    double best = -100, random = -100;
    for (uint64_t i = 0; i < 50; ++i) {
      const std::vector<double> values = tuner.Next();
      tuner.Tell(values, objective.ScoreOf(values));
      best = std::max(best, objective.ScoreOf(values));
      random = std::max(random, objective.ScoreOf(tuner.Random(i)));
    }
    EXPECT_EQ(tuner.trials()[tuner.best()].score, best);
    found += best >= Objective::kFound ? 1 : 0;
    by_chance += random >= Objective::kFound ? 1 : 0;
  }
  EXPECT_GE(found, 95);
  EXPECT_LT(by_chance, 70);
  RecordProperty("found", found);
  RecordProperty("by_chance", by_chance);
}

TEST(TunerTest, ValuesAreInTheirRanges) {
  Tuner tuner({{.name = "n", .least = 1, .most = 16, .whole = true, .log = true},
               {.name = "t", .least = -1, .most = 2},
               {.name = "c", .choices = {"one"}}},
              3);
  for (int i = 0; i < 60; ++i) {
    const std::vector<double> values = tuner.Next();
    EXPECT_GE(values[0], 1);
    EXPECT_LE(values[0], 16);
    EXPECT_EQ(values[0], std::round(values[0]));
    EXPECT_GE(values[1], -1);
    EXPECT_LE(values[1], 2);
    EXPECT_EQ(values[2], 0);
    tuner.Tell(values, values[1]);
  }
  EXPECT_GT(tuner.trials()[tuner.best()].values[1], 1.8);
}

// A run that was ended goes on as if nothing had happened.
TEST(TunerTest, NextDependsOnWhatWasTold) {
  const Objective objective(5);
  Tuner one(Objective::Knobs(), 9), two(Objective::Knobs(), 9), other(Objective::Knobs(), 10);
  for (int i = 0; i < 30; ++i) one.Tell(one.Next(), objective.ScoreOf(one.Next()));
  for (const Trial& trial : one.trials()) two.Tell(trial.values, trial.score);
  EXPECT_EQ(one.Next(), two.Next());
  EXPECT_NE(one.Random(0), other.Random(0));
  // No values twice.
  for (size_t i = 0; i < one.trials().size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(one.trials()[i].values, one.trials()[j].values);
  }
  // What was ended early is never the best.
  two.Tell(two.Next(), 1e9, false);
  EXPECT_EQ(two.best(), one.best());
}

}  // namespace
}  // namespace pawl::eval
