// The geometric estimator without truncation, exactly, for up to six tokens.
//
// Between two draws it plays a number of phantoms, hits of what was rejected, that has no largest
// value, and the weight holds one over that number. So E[w 1{Y = y}] is a sum over infinitely many
// paths, and what a single path contributes is not even rational: only the sum is. It is taken
// apart. Let N be all rejections of a run, phantoms included, r the accepts it waits for, Z the
// share that is valid.
//
//   1. The weight of a run is T (r - 1) / (r - 1 + N), T the total: it depends on nothing else.
//      Checked for every path, whatever the numbers of phantoms are.
//   2. P(Y = y, N = n) is what with-replacement rejection sampling has: p_y / Z times the negative
//      binomial law of n. Checked by its generating function in t, where each run of phantoms is
//      summed in closed form: with g the rejected share, the sum over k of (1 - g) g^k t^k is
//      (1 - g) / (1 - g t). The sum over all paths must be p_y / Z (Z / (1 - (1 - Z) t))^r.
//   3. The sum over n of C(n + r - 1, n) Z^r (1 - Z)^n (r - 1) / (r - 1 + n) is
//      Z sum C(n + r - 2, n) Z^(r-1) (1 - Z)^n = Z, since the binomials differ by just that factor
//      and the negative binomial law of r - 1 has the sum 1. Hence E[w 1{Y = y}] = p_y.
//
// Numbers are fractions modulo the prime 2^61 - 1, with t drawn from all of them. Two different
// rational functions of degree d agree there with probability d / 2^61, so an equality that
// does not hold would be seen.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

#include "src/decode/sampling/rejection.h"
#include "tests/sampling/trail.h"

namespace pawl {
namespace {

// A fraction modulo 2^61 - 1.
class Residue {
 public:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  Residue(uint64_t value = 0) : value_(value % kPrime) {}  // NOLINT: a number is one
  friend Residue operator+(Residue a, Residue b) { return {a.value_ + b.value_}; }
  friend Residue operator-(Residue a, Residue b) { return {a.value_ + (kPrime - b.value_)}; }
  friend Residue operator*(Residue a, Residue b) {
    __extension__ using Wide = unsigned __int128;
    return {static_cast<uint64_t>(Wide{a.value_} * b.value_ % kPrime)};
  }
  friend Residue operator/(Residue a, Residue b) {
    return a * (b.value_ < kSmall ? OfSmall()[b.value_] : b.Power(kPrime - 2));
  }
  Residue Power(uint64_t n) const {
    Residue power = 1, square = *this;
    for (; n != 0; n >>= 1, square = square * square) {
      if (n & 1) power = power * square;
    }
    return power;
  }
  friend bool operator==(Residue, Residue) = default;

 private:
  static constexpr uint64_t kSmall = 8192;
  // 1 / n for small n.
  static const std::vector<Residue>& OfSmall() {
    static const std::vector<Residue> inverses = [] {
      std::vector<Residue> made(kSmall, 1);
      for (uint64_t n = 2; n < kSmall; ++n)
        made[n] = Residue(kPrime - kPrime / n) * made[kPrime % n];
      return made;
    }();
    return inverses;
  }
  uint64_t value_;
};

struct GeometricCase {
  std::vector<uint32_t> masses;
  std::vector<bool> accepted;
  uint32_t total = 0, valid = 0;
};

GeometricCase RandomGeometricCase(std::mt19937& random) {
  GeometricCase c;
  const int items = std::uniform_int_distribution<int>(1, 6)(random);
  for (int i = 0; i < items; ++i) {
    c.masses.push_back(std::uniform_int_distribution<uint32_t>(1, 1000)(random));
    c.accepted.push_back(random() % 2 == 0);
    c.total += c.masses.back();
    if (c.accepted.back()) c.valid += c.masses.back();
  }
  return c;
}

// A source of src/decode/sampling/rejection.h whose every path can be walked.
class EveryDraw {
 public:
  using Mass = Residue;  // a share of the total
  // `t`: paths are multiplied with it for each rejection, phantoms in closed form, of which a run
  // is told `phantoms`. Without it every number of phantoms up to the limit is a path of its own.
  // `sums` remembers the closed form by the mass that is gone.
  using Sums = std::unordered_map<uint32_t, Residue>;
  EveryDraw(Trail& trail, const GeometricCase& c, std::optional<Residue> t, int64_t phantoms,
            Sums& sums)
      : trail_(trail),
        c_(c),
        t_(t),
        told_(phantoms),
        sums_(sums),
        seen_(c.masses.size()),
        gone_(seen_) {}

  std::optional<int> Next() {
    std::vector<size_t> live;
    uint32_t sum = 0;
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i] || gone_[i]) continue;
      live.push_back(i);
      sum += c_.masses[i];
    }
    if (live.empty()) return std::nullopt;
    const size_t i = live[static_cast<size_t>(trail_.Choose(static_cast<int>(live.size())))];
    path_ = path_ * c_.masses[i] / sum;
    seen_[i] = true;
    return static_cast<int>(i);
  }
  void Restart() { seen_.assign(seen_.size(), false); }
  bool Accepts(int item) { return c_.accepted[static_cast<size_t>(item)]; }
  void Reject(int item) {
    gone_[static_cast<size_t>(item)] = true;
    gone_mass_ += c_.masses[static_cast<size_t>(item)];
    ++rejections;
    if (t_.has_value()) path_ = path_ * *t_;
  }
  int64_t Phantoms(int64_t most) {
    if (gone_mass_ == c_.total) return most;
    const Residue gone = Residue(gone_mass_) / c_.total;
    if (t_.has_value()) {
      const auto known = sums_.find(gone_mass_);
      const Residue sum =
          known != sums_.end() ? known->second : (Residue(1) - gone) / (Residue(1) - gone * *t_);
      sums_.emplace(gone_mass_, sum);
      path_ = path_ * sum;
      rejections += told_;
      return told_;
    }
    const int k = trail_.Choose(static_cast<int>(most) + 1);
    path_ = path_ * gone.Power(static_cast<uint64_t>(k));
    if (k < most) path_ = path_ * (Residue(1) - gone);
    return k;
  }
  Mass MassOf(int item) const { return Residue(c_.masses[static_cast<size_t>(item)]) / c_.total; }
  static Mass Total() { return 1; }
  Mass Remaining() const { return Residue(c_.total - gone_mass_) / c_.total; }
  static Mass Zero() { return 0; }
  static Mass Scale(Mass m, int64_t numerator, int64_t denominator) {
    return m * static_cast<uint64_t>(numerator) / static_cast<uint64_t>(denominator);
  }

  Residue path() const { return path_; }
  int64_t rejections = 0;  // with the phantoms that were told

 private:
  Trail& trail_;
  const GeometricCase& c_;
  std::optional<Residue> t_;
  int64_t told_;
  Sums& sums_;
  std::vector<bool> seen_, gone_;
  uint32_t gone_mass_ = 0;
  Residue path_ = 1;
};

TEST(GeometricTest, ProperlyWeightedWithoutTruncation) {
  std::mt19937_64 wide(7);
  std::mt19937 random(21);
  int mismatches = 0, six = 0;
  for (int n = 0; n < 200; ++n) {
    const GeometricCase c = RandomGeometricCase(random);
    six += c.masses.size() == 6;
    for (const int accepts : {2, 3, 4}) {
      if (accepts == 4 && n % 4 != 0) continue;
      const auto r = static_cast<uint64_t>(accepts);
      const Residue t = wide() >> 3;
      const auto phantoms = static_cast<int64_t>(wide() % 1000);
      std::vector<Residue> sums(c.masses.size());
      EveryDraw::Sums closed;
      Trail trail;
      do {
        EveryDraw source(trail, c, t, phantoms, closed);
        const Drawn<Residue> drawn =
            DrawGeometric(source, {.max_rejects = int64_t{1} << 40, .accepts = accepts});
        if (drawn.item < 0) {
          mismatches += !(drawn.weight == 0) + (c.valid != 0);
          continue;
        }
        const auto all = r - 1 + static_cast<uint64_t>(source.rejections);
        mismatches += !(drawn.weight == Residue(r - 1) / all);
        sums[static_cast<size_t>(drawn.item)] =
            sums[static_cast<size_t>(drawn.item)] + source.path();
      } while (trail.Advance());
      if (c.valid == 0) continue;
      const Residue z = Residue(c.valid) / c.total;
      const Residue law = (z / (Residue(1) - (Residue(1) - z) * t)).Power(r);
      for (size_t i = 0; i < sums.size(); ++i) {
        const Residue right = c.accepted[i] ? Residue(c.masses[i]) / c.valid * law : Residue(0);
        mismatches += !(sums[i] == right);
      }
    }
  }
  EXPECT_GT(six, 20);
  EXPECT_EQ(mismatches, 0);
}

// With truncation, up to six tokens, every number of phantoms a path of its own.
TEST(GeometricTest, ProperlyWeightedWithTruncation) {
  std::mt19937 random(22);
  int mismatches = 0;
  for (int n = 0; n < 200; ++n) {
    const GeometricCase c = RandomGeometricCase(random);
    for (const auto& [accepts, most] : {std::pair(2, 1), {2, 4}, {3, 3}, {4, 2}}) {
      std::vector<Residue> weighted(c.masses.size());
      EveryDraw::Sums closed;
      Trail trail;
      do {
        EveryDraw source(trail, c, std::nullopt, 0, closed);
        const Drawn<Residue> drawn =
            DrawGeometric(source, {.max_rejects = most, .accepts = accepts});
        if (drawn.item < 0) continue;
        Residue& sum = weighted[static_cast<size_t>(drawn.item)];
        sum = sum + source.path() * drawn.weight;
      } while (trail.Advance());
      for (size_t i = 0; i < weighted.size(); ++i) {
        const Residue right = c.accepted[i] ? Residue(c.masses[i]) / c.total : Residue(0);
        mismatches += !(weighted[i] == right);
      }
    }
  }
  EXPECT_EQ(mismatches, 0);
}

}  // namespace
}  // namespace pawl
