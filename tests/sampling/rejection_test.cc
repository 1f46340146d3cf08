// The estimators of adaptive weighted rejection sampling, run over every possible order of draws
// in exact arithmetic: E[w 1{Y = y}] = P(y) 1{y in A} has to come out to the last digit.
#include "src/decode/sampling/rejection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "src/decode/sampling/step_law.h"
#include "tests/sampling/exact_number.h"
#include "tests/sampling/trail.h"

namespace pawl {
namespace {

// Items with small whole masses. A mass is a share of their total.
class EveryOrder {
 public:
  struct Mass {
    uint32_t times = 0, over = 1;  // and of the total
  };
  EveryOrder(Trail& trail, const std::vector<uint32_t>& masses, const std::vector<bool>& accepted)
      : trail_(trail),
        masses_(masses),
        accepted_(accepted),
        seen_(masses.size()),
        rejected_(masses.size()) {}

  std::optional<int> Next() {
    std::vector<int> live;
    uint32_t sum = 0;
    for (size_t i = 0; i < masses_.size(); ++i) {
      if (seen_[i] || rejected_[i]) continue;
      live.push_back(static_cast<int>(i));
      sum += masses_[i];
    }
    if (live.empty()) return std::nullopt;
    const int item = live[static_cast<size_t>(trail_.Choose(static_cast<int>(live.size())))];
    const auto i = static_cast<size_t>(item);
    path_ = path_.Times(masses_[i], sum);
    seen_[i] = true;
    return item;
  }
  void Restart() { seen_.assign(seen_.size(), false); }
  bool Accepts(int item) { return accepted_[static_cast<size_t>(item)]; }
  void Reject(int item) { rejected_[static_cast<size_t>(item)] = true; }
  Mass MassOf(int item) const { return {masses_[static_cast<size_t>(item)], 1}; }
  uint32_t Sum(bool rejected) const {
    uint32_t sum = 0;
    for (size_t i = 0; i < masses_.size(); ++i) sum += rejected_[i] == rejected ? masses_[i] : 0;
    return sum;
  }
  Mass Total() const { return {Sum(true) + Sum(false), 1}; }
  Mass Remaining() const { return {Sum(false), 1}; }
  static Mass Zero() { return {}; }
  static Mass Scale(Mass m, int64_t numerator, int64_t denominator) {
    return {m.times * static_cast<uint32_t>(numerator),
            m.over * static_cast<uint32_t>(denominator)};
  }
  int64_t Phantoms(int64_t most) {
    const uint32_t gone = Sum(true), left = Sum(false);
    if (left == 0) return most;
    const int k = trail_.Choose(static_cast<int>(most) + 1);
    for (int i = 0; i < k; ++i) path_ = path_.Times(gone, gone + left);
    if (k < most) path_ = path_.Times(left, gone + left);
    return k;
  }
  const ExactNumber& path() const { return path_; }

 private:
  Trail& trail_;
  const std::vector<uint32_t>& masses_;
  const std::vector<bool>& accepted_;
  std::vector<bool> seen_, rejected_;
  ExactNumber path_ = ExactNumber::One();
};

struct RejectionCase {
  std::vector<uint32_t> masses;
  std::vector<bool> accepted;
  std::vector<uint32_t> target;  // of the model, where draws come from a proposal; else empty
  uint32_t total() const { return std::accumulate(masses.begin(), masses.end(), 0u); }
  uint32_t valid() const {
    uint32_t sum = 0;
    for (size_t i = 0; i < masses.size(); ++i) sum += accepted[i] ? masses[i] : 0;
    return sum;
  }
  int rejected_items() const {
    return static_cast<int>(std::count(accepted.begin(), accepted.end(), false));
  }
};

struct Expectation {
  std::vector<ExactNumber> weighted;  // E[w 1{Y = i}], of the total
  std::vector<ExactNumber> drawn;     // P(Y = i)
  ExactNumber looks;                  // E[looks]
  bool invalid_with_weight = false;
  bool valid_without_weight = false;
};

using Run = std::function<Drawn<EveryOrder::Mass>(EveryOrder&)>;

Expectation Enumerate(const RejectionCase& c, const Run& run) {
  Expectation e;
  e.weighted.resize(c.masses.size());
  e.drawn.resize(c.masses.size());
  Trail trail;
  do {
    EveryOrder source(trail, c.masses, c.accepted);
    const Drawn<EveryOrder::Mass> drawn = run(source);
    e.looks += source.path().Times(static_cast<uint32_t>(drawn.looks), 1);
    if (drawn.item < 0) {
      e.invalid_with_weight |= drawn.weight.times != 0;
      continue;
    }
    const auto i = static_cast<size_t>(drawn.item);
    e.invalid_with_weight |= !c.accepted[i] && drawn.weight.times != 0;
    e.valid_without_weight |= c.accepted[i] && drawn.weight.times == 0;
    ExactNumber w = source.path().Times(drawn.weight.times, drawn.weight.over * c.total());
    if (!c.target.empty()) w = w.Times(c.target[i], c.masses[i]);
    e.weighted[i] += w;
    e.drawn[i] += source.path();
  } while (trail.Advance());
  return e;
}

RejectionCase RandomRejectionCase(std::mt19937& random, int most_items) {
  RejectionCase c;
  const int items = std::uniform_int_distribution<int>(1, most_items)(random);
  const int most = std::uniform_int_distribution<int>(1, 60 / items)(random);
  for (int i = 0; i < items; ++i) {
    c.masses.push_back(std::uniform_int_distribution<uint32_t>(
        1, static_cast<uint32_t>(std::min(most, 10)))(random));
    c.accepted.push_back(random() % 2 == 0);
  }
  return c;
}

// How many items of all cases do not get exactly their probability.
int Mismatches(const RejectionCase& c, const Expectation& e, bool whole) {
  int wrong = int{e.invalid_with_weight} + int{whole && e.valid_without_weight};
  for (size_t i = 0; i < c.masses.size(); ++i) {
    const uint32_t p = c.target.empty() ? c.masses[i] : c.target[i];
    ExactNumber right;
    if (c.accepted[i]) right = ExactNumber::One().Times(p, c.total());
    wrong += e.weighted[i] != right;
    if (!whole) continue;
    ExactNumber marginal;
    if (c.accepted[i]) marginal = ExactNumber::One().Times(c.masses[i], c.valid());
    wrong += e.drawn[i] != marginal;
  }
  return wrong;
}

TEST(RejectionTest, ProperlyWeightedInExactArithmetic) {
  std::mt19937 random(17);
  int mismatches = 0;
  for (int n = 0; n < 200; ++n) {
    const RejectionCase c = RandomRejectionCase(random, 6);
    mismatches +=
        Mismatches(c, Enumerate(c, [](EveryOrder& s) { return DrawRecursive(s, 1 << 20); }), true);
    mismatches += Mismatches(c, Enumerate(c, [](EveryOrder& s) { return DrawTwoLoop(s); }), true);
    for (int most = 1; most <= 5; ++most) {
      mismatches +=
          Mismatches(c, Enumerate(c, [&](EveryOrder& s) { return DrawRecursive(s, most); }), false);
    }
  }
  EXPECT_EQ(mismatches, 0);
}

// With truncation everything can be listed. Without it a geometric number of phantoms has no end:
// geometric_test.cc sums them up in closed form.
TEST(RejectionTest, GeometricIsProperlyWeightedInExactArithmetic) {
  std::mt19937 random(18);
  int mismatches = 0;
  for (int n = 0; n < 200; ++n) {
    const RejectionCase c = RandomRejectionCase(random, n % 20 == 0 ? 6 : 4);
    for (const auto& [accepts, most] : {std::pair(2, 1), {2, 3}, {3, 2}, {4, 3}, {2, 4}}) {
      if (c.masses.size() > 4 && accepts + most > 5) continue;
      const RejectionLimits drawn{.max_rejects = most, .accepts = accepts};
      const Expectation e =
          Enumerate(c, [&drawn](EveryOrder& s) { return DrawGeometric(s, drawn); });
      mismatches += Mismatches(c, e, false);
    }
  }
  EXPECT_EQ(mismatches, 0);
}

TEST(RejectionTest, ProposalIsProperlyWeightedInExactArithmetic) {
  std::mt19937 random(19);
  int mismatches = 0;
  for (int n = 0; n < 200; ++n) {
    RejectionCase c = RandomRejectionCase(random, 5);
    // The model's masses have the sum of the proposal's; some may be 0.
    c.target = c.masses;
    std::shuffle(c.target.begin(), c.target.end(), random);
    for (size_t i = 0; i + 1 < c.target.size(); i += 2) {
      const uint32_t moved =
          c.target[i] / 2 + (random() % 4 == 0 ? c.target[i] - c.target[i] / 2 : 0);
      c.target[i] -= moved;
      c.target[i + 1] += moved;
    }
    for (const int most : {1, 2, 1 << 20}) {
      Expectation e = Enumerate(c, [&](EveryOrder& s) { return DrawRecursive(s, most); });
      mismatches += Mismatches(c, e, false);
    }
    mismatches += Mismatches(c, Enumerate(c, [](EveryOrder& s) { return DrawTwoLoop(s); }), false);
  }
  EXPECT_EQ(mismatches, 0);
}

TEST(RejectionTest, LooksMatchTheClosedForms) {
  std::mt19937 random(20);
  for (int n = 0; n < 200; ++n) {
    const RejectionCase c = RandomRejectionCase(random, 6);
    const uint32_t z = c.valid();
    if (z == 0) continue;
    const Expectation two = Enumerate(c, [](EveryOrder& s) { return DrawTwoLoop(s); });
    const Expectation one = Enumerate(c, [](EveryOrder& s) { return DrawRecursive(s, 1 << 20); });
    // 2 + sum over rejected v of 1 - (Z / (P(v) + Z))^2, and 2 + sum of P(v) / (P(v) + Z).
    ExactNumber expected_two = ExactNumber::One().Times(2, 1);
    ExactNumber expected_one = expected_two;
    for (size_t i = 0; i < c.masses.size(); ++i) {
      if (c.accepted[i]) continue;
      const uint32_t p = c.masses[i];
      expected_two += ExactNumber::One().Times(p * (p + 2 * z), p + z).Times(1, p + z);
      expected_one += ExactNumber::One().Times(p, p + z);
    }
    EXPECT_EQ(two.looks, expected_two);
    const bool lone = std::count(c.accepted.begin(), c.accepted.end(), true) == 1;
    if (lone) {
      EXPECT_LE(one.looks.ToDouble(), expected_one.ToDouble() + 1e-9);
    } else {
      EXPECT_EQ(one.looks, expected_one);
    }
    // The first loop alone costs no more than plain rejection, nor than trying everything.
    const double first_loop = expected_one.ToDouble() - 1;
    EXPECT_LE(first_loop, static_cast<double>(c.total()) / z + 1e-9);
    EXPECT_LE(first_loop, 1 + c.rejected_items() + 1e-9);
  }
}

// ---- With real draws ----

// Accepts what a table says.
class Table : public GumbelOrder {
 public:
  Table(std::span<const Candidate> candidates, double log_total, const Noise& noise,
        std::function<bool(int)> accepts)
      : GumbelOrder(candidates, log_total, noise), accepts_(std::move(accepts)) {}
  bool Accepts(int item) {
    ++asked;
    return accepts_(item);
  }
  int asked = 0;

 private:
  std::function<bool(int)> accepts_;
};

std::vector<Candidate> Candidates(const std::vector<double>& masses) {
  std::vector<Candidate> out;
  for (size_t i = 0; i < masses.size(); ++i) {
    out.push_back({static_cast<TokenId>(i), std::log(masses[i])});
  }
  return out;
}

TEST(RejectionTest, DrawsOfAllEstimatorsAreUnbiased) {
  const std::vector<double> masses = {0.05, 0.3, 0.02, 0.2, 0.03};  // 0.6: a mask took the rest
  const std::vector<bool> accepted = {true, false, true, true, false};
  const auto candidates = Candidates(masses);
  constexpr int kDraws = 60000;
  const std::vector<std::pair<Estimator, RejectionLimits>> ways = {
      {Estimator::kRecursive, {}},
      {Estimator::kRecursive, {.max_rejects = 2}},
      {Estimator::kTwoLoop, {}},
      {Estimator::kGeometric, {}},
      {Estimator::kGeometric, {.accepts = 5}},
      {Estimator::kGeometric, {.max_rejects = 5, .accepts = 3}}};
  for (size_t way = 0; way < ways.size(); ++way) {
    std::vector<double> sum(masses.size()), squares(masses.size());
    for (int n = 0; n < kDraws; ++n) {
      Table source(candidates, std::log(0.6), Noise(way + 1, static_cast<uint64_t>(n)),
                   [&](int i) { return accepted[static_cast<size_t>(i)]; });
      const Drawn<double> drawn = DrawAccepted(source, ways[way].first, ways[way].second);
      if (drawn.item < 0) continue;
      const auto i = static_cast<size_t>(drawn.item);
      sum[i] += std::exp(drawn.weight);
      squares[i] += std::exp(2 * drawn.weight);
    }
    for (size_t i = 0; i < masses.size(); ++i) {
      const double mean = sum[i] / kDraws;
      const double error = std::sqrt(std::max(0.0, squares[i] / kDraws - mean * mean) / kDraws);
      EXPECT_NEAR(mean, accepted[i] ? masses[i] : 0, 4.5 * error + 1e-12) << way << " " << i;
    }
  }
}

TEST(RejectionTest, RejectedMassThatRoundsToOne) {
  // 1 - 1e-15 is rejected; what is left has no digits in 1 - 0.999999999999999.
  std::vector<double> masses(9, 1.25e-16);
  masses[0] = 1 - 1e-15;
  const auto candidates = Candidates(masses);
  constexpr int kDraws = 4000;
  for (const Estimator estimator : {Estimator::kRecursive, Estimator::kTwoLoop}) {
    double sum = 0, squares = 0;
    for (uint64_t n = 0; n < kDraws; ++n) {
      Table source(candidates, 0, Noise(5, n), [](int i) { return i == 3 || i == 4; });
      const Drawn<double> drawn = DrawAccepted(source, estimator, {});
      ASSERT_TRUE(drawn.item == 3 || drawn.item == 4);
      ASSERT_GT(drawn.weight, kNoMass);
      ASSERT_LE(drawn.weight, std::log(1e-15) + 1e-6);
      const double w = std::exp(drawn.weight) / 2.5e-16;
      sum += w;
      squares += w * w;
    }
    // Half of what kTwoLoop weighs is where the first token does not come first, which never
    // happens.
    if (estimator != Estimator::kRecursive) continue;
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 1, 4.5 * std::sqrt((squares / kDraws - mean * mean) / kDraws));
  }
  // 1e15 phantoms come before the next live token.
  Table source(candidates, 0, Noise(5, 0), [](int i) { return i == 3; });
  EXPECT_EQ(DrawGeometric(source, {.max_rejects = 1 << 30}).item, -1);
  Table patient(candidates, 0, Noise(5, 0), [](int i) { return i == 3; });
  const Drawn<double> drawn = DrawGeometric(patient, {.max_rejects = int64_t{1} << 62});
  EXPECT_EQ(drawn.item, 3);
  EXPECT_LT(drawn.weight, std::log(1e-13));
}

TEST(RejectionTest, OneValidTokenInFiftyThousand) {
  std::vector<Candidate> candidates;
  for (TokenId t = 0; t < 50000; ++t) candidates.push_back({t, -0.002 * t});
  const double total = LogSum(candidates);
  for (Candidate& c : candidates) c.log_mass -= total;
  constexpr int kValid = 31337;
  for (const Estimator estimator : {Estimator::kRecursive, Estimator::kTwoLoop}) {
    Table source(candidates, 0, Noise(9, 4), [](int i) { return i == kValid; });
    const Drawn<double> drawn = DrawAccepted(source, estimator, {});
    EXPECT_EQ(drawn.item, kValid);
    EXPECT_TRUE(std::isfinite(drawn.weight));
    EXPECT_LE(source.asked, 50000 + 2);
  }
}

TEST(RejectionTest, EverythingIsRejected) {
  const auto candidates = Candidates({0.5, 0.25, 0.125, 0.125});
  for (const Estimator estimator :
       {Estimator::kRecursive, Estimator::kTwoLoop, Estimator::kGeometric}) {
    Table source(candidates, 0, Noise(1, 2), [](int) { return false; });
    const Drawn<double> drawn = DrawAccepted(source, estimator, {});
    EXPECT_EQ(drawn.item, -1);
    EXPECT_EQ(drawn.weight, kNoMass);
    EXPECT_EQ(source.asked, 4);
  }
  const std::vector<Candidate> none;
  Table source(none, kNoMass, Noise(1, 2), [](int) { return true; });
  EXPECT_EQ(DrawRecursive(source, 5).item, -1);
}

}  // namespace
}  // namespace pawl
