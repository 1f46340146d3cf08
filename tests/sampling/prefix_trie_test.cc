// Aligned decoding on the language of 17 strings, whose laws are known exactly.
#include "src/decode/sampling/prefix_trie.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/sampling/toy_model.h"

namespace pawl {
namespace {

std::vector<std::string> Seventeen() {
  std::vector<std::string> all = {"00000"};
  for (int i = 0; i < 16; ++i) {
    std::string s = "1";
    for (int b = 3; b >= 0; --b) s += (i >> b & 1) != 0 ? '1' : '0';
    all.push_back(s);
  }
  return all;
}

// The law that the next output is drawn from, by what the trie knows.
double NextLaw(const PrefixTrie& trie, const std::string& text) {
  double q = 1;
  int32_t node = trie.root();
  for (size_t i = 0; i < text.size(); ++i) {
    const bool lone = i > 0 && text[0] == '0';  // the mask allows one bit there
    const TokenId token = text[i] == '0' ? kZero : kOne;
    if (node == PrefixTrie::kNone) {
      q *= lone ? 1 : 0.5;
      continue;
    }
    double sum = trie.Remainder(node);
    for (const PrefixTrie::Edge& e : trie.edges(node)) sum += e.probability * trie.ThetaOf(e);
    const PrefixTrie::Edge* edge = trie.Find(node, token);
    q *= 0.5 * (edge != nullptr ? trie.ThetaOf(*edge) : 1) / sum;
    node = edge != nullptr ? edge->node : PrefixTrie::kNone;
  }
  return q;
}

double Divergence(const PrefixTrie& trie, double* variation = nullptr) {
  double kl = 0, tv = 0;
  for (const std::string& text : Seventeen()) {
    const double q = NextLaw(trie, text);
    kl += q * std::log(q * 17);
    tv += std::abs(q - 1.0 / 17) / 2;
  }
  if (variation != nullptr) *variation = tv;
  return kl;
}

struct Bench {
  Bench() : toy(FairBits), branches(toy.model, toy.prompt, 60) {
    toy.Constrain(kSeventeen);
    options.max_tokens = 6;
    task = toy.Task(options);
    EXPECT_TRUE(branches.Start().ok());
  }
  Toy toy;
  SamplerOptions options;
  SamplingTask task;
  Branches branches;
};

TEST(OracleTrieTest, NothingIsLeftWhereAllTokensAreKnown) {
  // Ten tenths taken from 1 leave 1.4e-16 in doubles, and nothing.
  PrefixTrie trie;
  const int32_t root = trie.MakeRoot(1, 10);
  for (TokenId token = 0; token < 9; ++token) trie.AddDead(root, token, 0.1);
  EXPECT_NEAR(trie.Remainder(root), 0.1, 1e-12);
  trie.AddDead(root, 9, 0.1);
  EXPECT_EQ(trie.Remainder(root), 0);
  trie.Update(root);
  EXPECT_EQ(trie.theta(), 0);
}

TEST(OracleTrieTest, DivergenceOfAlignedDecoding) {
  const std::map<int, double> expected = {{1, .392}, {2, .215}, {5, .030}, {10, .0038}, {20, 0}};
  constexpr int kRuns = 400;
  std::map<int, double> sum;
  Bench bench;
  EXPECT_NEAR(Divergence(PrefixTrie()), .7538, 1e-4);
  for (uint64_t run = 0; run < kRuns; ++run) {
    PrefixTrie trie;
    TrieSampler sampler(bench.task, bench.branches, trie);
    double theta = 1;
    for (int n = 1; n <= 20; ++n) {
      double variation = 0;
      Divergence(trie, &variation);
      EXPECT_LE(variation, 1 - trie.found() / trie.theta() + 1e-12);
      const Result<WeightedOutput> out =
          sampler.Try(SamplerKind::kAsap, SeedFor(run, static_cast<uint64_t>(n), 77));
      ASSERT_TRUE(out.ok());
      EXPECT_TRUE(out->report.valid);
      EXPECT_LE(trie.theta(), theta);
      EXPECT_GE(trie.theta(), kSeventeenMass - 1e-12);
      EXPECT_LE(trie.found(), kSeventeenMass + 1e-12);
      theta = trie.theta();
      if (!expected.contains(n)) continue;
      const double kl = Divergence(trie);
      sum[n] += kl;
    }
    if (run % 50 != 0) continue;
    // Once every string was seen, theta is the mass and the law is exact.
    for (uint64_t n = 0; n < 300; ++n) {
      ASSERT_TRUE(sampler.Try(SamplerKind::kAsap, SeedFor(run, n, 78)).ok());
    }
    EXPECT_NEAR(trie.theta(), kSeventeenMass, 1e-12);
    EXPECT_NEAR(trie.found(), kSeventeenMass, 1e-12);
    for (const std::string& text : Seventeen()) EXPECT_NEAR(NextLaw(trie, text), 1.0 / 17, 1e-9);
  }
  // The first output that is 00000 teaches everything, so a run is as bad as masks or perfect, and
  // the figures, means of 200 runs, are counts of those that have not met it: 104, 57, 8, 1, 0.
  for (const auto& [n, kl] : expected) {
    const double left = std::pow(0.5, n);
    const double deviation = .7538 * std::sqrt(left * (1 - left));
    EXPECT_NEAR(sum[n] / kRuns, .7538 * left, 4 * deviation / std::sqrt(kRuns) + 1e-4) << n;
    EXPECT_NEAR(sum[n] / kRuns, kl, 4 * deviation * std::sqrt(1.0 / kRuns + 1.0 / 200) + 5e-4) << n;
  }
}

TEST(OracleTrieTest, AcceptedSamplesAreExactFromTheFirstOne) {
  constexpr int kRuns = 20000;
  Bench bench;
  const std::vector<std::string> all = Seventeen();
  const std::map<SamplerKind, double> expected_tries = {
      {SamplerKind::kRs, 1.88}, {SamplerKind::kArs, 1.44}, {SamplerKind::kCars, 1.30}};
  for (const auto& [kind, expected] : expected_tries) {
    std::map<std::string, int> first, fifth;
    int64_t tries = 0;
    for (uint64_t run = 0; run < kRuns; ++run) {
      PrefixTrie trie;
      TrieSampler sampler(bench.task, bench.branches, trie);
      int accepted = 0;
      for (uint64_t n = 0; accepted < 5; ++n) {
        const Result<WeightedOutput> out = sampler.Try(kind, SeedFor(run, n, 79));
        ASSERT_TRUE(out.ok());
        ++tries;
        if (!out->report.valid) continue;
        EXPECT_EQ(out->log_weight, 0);
        if (++accepted == 1) ++first[out->text];
        if (accepted == 5) ++fifth[out->text];
      }
    }
    for (const auto* counts : {&first, &fifth}) {
      double chi = 0;
      for (const std::string& text : all) {
        const double seen = counts->contains(text) ? counts->at(text) : 0;
        chi += (seen - kRuns / 17.0) * (seen - kRuns / 17.0) / (kRuns / 17.0);
      }
      EXPECT_LT(chi, 39.3) << static_cast<int>(kind);  // 16 degrees of freedom, 0.1 %
      EXPECT_GT(chi, 3.0);
    }
    EXPECT_NEAR(static_cast<double>(tries) / kRuns / 5, expected, 0.02);
  }
}

// A walk over what is known asks the model nothing.
TEST(OracleTrieTest, KnownOutputsNeedNoModel) {
  Bench bench;
  PrefixTrie trie;
  TrieSampler sampler(bench.task, bench.branches, trie);
  for (uint64_t n = 0; n < 500; ++n) {
    ASSERT_TRUE(sampler.Try(SamplerKind::kAsap, n).ok());
  }
  const int64_t rows = bench.branches.rows();
  for (uint64_t n = 500; n < 1000; ++n) {
    const Result<WeightedOutput> out = sampler.Try(SamplerKind::kAsap, n);
    ASSERT_TRUE(out.ok());
    EXPECT_NEAR(out->log_weight, std::log(kSeventeenMass), 1e-9);
    EXPECT_EQ(out->report.model_rows, 0);
  }
  EXPECT_EQ(bench.branches.rows(), rows);
}

TEST(OracleTrieTest, BoundedAndStillExact) {
  Bench bench;
  std::map<std::string, int> counts;
  constexpr int kRuns = 17000;
  PrefixTrie trie({.max_bytes = 700});
  TrieSampler sampler(bench.task, bench.branches, trie);
  double theta = 1;
  int accepted = 0;
  for (uint64_t n = 0; accepted < kRuns; ++n) {
    const Result<WeightedOutput> out = sampler.Try(SamplerKind::kCars, n);
    ASSERT_TRUE(out.ok());
    EXPECT_LE(trie.theta(), theta);
    theta = trie.theta();
    if (!out->report.valid) continue;
    ++accepted;
    ++counts[out->text];
  }
  EXPECT_TRUE(trie.full());
  EXPECT_LE(trie.bytes(), 700u);
  double chi = 0;
  for (const std::string& text : Seventeen()) {
    chi += (counts[text] - 1000.0) * (counts[text] - 1000.0) / 1000.0;
  }
  EXPECT_LT(chi, 39.3);
}

TEST(OracleTrieTest, SavedAndLoaded) {
  Bench bench;
  PrefixTrie trie;
  TrieSampler sampler(bench.task, bench.branches, trie);
  for (uint64_t n = 0; n < 6; ++n) ASSERT_TRUE(sampler.Try(SamplerKind::kAsap, n).ok());
  const std::string bytes = trie.Save("key");
  Result<PrefixTrie> loaded = PrefixTrie::Load(bytes, "key");
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->theta(), trie.theta());
  EXPECT_EQ(loaded->found(), trie.found());
  EXPECT_EQ(loaded->bytes(), trie.bytes());
  for (const std::string& text : Seventeen()) {
    EXPECT_EQ(NextLaw(*loaded, text), NextLaw(trie, text));
  }
  EXPECT_FALSE(PrefixTrie::Load(bytes, "other").ok());
  EXPECT_FALSE(PrefixTrie::Load(bytes, "key", {.max_bytes = 100}).ok());
  // Damaged bytes are refused or give a trie whose numbers are in range.
  std::mt19937 random(5);
  for (int n = 0; n < 3000; ++n) {
    std::string damaged = bytes;
    if (n % 2 == 0) damaged.resize(random() % bytes.size());
    if (!damaged.empty()) damaged[random() % damaged.size()] ^= static_cast<char>(1 << n % 8);
    const Result<PrefixTrie> read = PrefixTrie::Load(damaged, "key");
    if (read.ok()) {
      EXPECT_GE(read->theta(), 0);
      EXPECT_LE(read->theta(), 1 + 1e-6);
    }
  }
}

// Other models than fair bits, and more than one spelling: the law of the next output always sums
// to 1, and theta is never below the mass.
TEST(OracleTrieTest, ThetaIsAnUpperBound) {
  for (const SamplerKind kind : {SamplerKind::kAsap, SamplerKind::kArs, SamplerKind::kCars}) {
    Toy toy(HashedLaw);
    toy.Constrain("0{1,3}1?|1(0|10)1*\n?");
    const Grammar grammar = toy.Compile("0{1,3}1?|1(0|10)1*\n?");
    double mass = 0;
    for (const auto& [y, p] : Enumerate(HashedLaw, &grammar, 5)) mass += p;
    SamplerOptions options{.sampler = kind, .n = 1, .max_tokens = 5};
    PrefixTrie trie;
    double theta = 1;
    for (uint64_t n = 0; n < 800; ++n) {
      options.seed = n;
      ASSERT_TRUE(toy.Run(options, &trie).ok());
      EXPECT_LE(trie.theta(), theta);
      EXPECT_GE(trie.theta(), mass - 1e-6);  // logits are floats
      EXPECT_LE(trie.found(), mass + 1e-6);
      theta = trie.theta();
    }
    if (kind != SamplerKind::kArs) {
      EXPECT_NEAR(theta, mass, 0.01);
    }
  }
}

}  // namespace
}  // namespace pawl
