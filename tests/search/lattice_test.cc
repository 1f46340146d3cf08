// The lattice with few candidates and states against a slow one, its best tokens against sorting,
// and its look-ups of masks as a constraint counts them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/decode/diffusion/mask_filler.h"
#include "tests/search/toy_language.h"

namespace pawl {
namespace {

constexpr int kWidth = kTheEnd + 1;
constexpr double kNo = -std::numeric_limits<double>::infinity();

std::vector<std::vector<float>> NormalScores(std::mt19937& random, size_t positions, int width) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<std::vector<float>> scores(positions);
  for (auto& law : scores) {
    for (int t = 0; t < width; ++t) law.push_back(normal(random));
  }
  return scores;
}

// One edge for each token from state to state; paths are tried one by one.
class SlowLattice {
 public:
  using Scores = std::vector<std::vector<float>>;
  SlowLattice(const CanvasRules& rules, const CanvasPlace& root, std::span<const TokenId> window,
              const Scores& scores, std::span<const TokenId> witness, int behind) {
    layers_.resize(window.size());
    std::vector<Node> nodes = {{root, 0}};
    int on_witness = 0;
    for (size_t i = 0; i < window.size(); ++i) {
      std::vector<Edge> steps;
      for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
        const TokenId known = n == on_witness && !witness.empty() ? witness[i] : kNoToken;
        const Node& node = nodes[static_cast<size_t>(n)];
        for (const TokenId token : Candidates(rules, node.place, window[i], scores[i], known)) {
          const double score = window[i] != kNoToken
                                   ? 0
                                   : static_cast<double>(scores[i][static_cast<size_t>(token)]);
          steps.push_back({n, -1, token, score, node.best + score, token == known});
        }
      }
      std::ranges::stable_sort(steps, [](const Edge& a, const Edge& b) {
        return a.witness != b.witness ? a.witness : a.best > b.best;
      });
      const int left = static_cast<int>(window.size() - i) - 1 + behind;
      nodes = Take(rules, nodes, steps, left, layers_[i], on_witness);
    }
    std::vector<Edge> path;
    Follow(0, 0, 0, path);
  }
  bool alive() const { return !paths_.empty(); }
  std::vector<std::map<TokenId, double>> Shares() const {
    double all = 0;
    for (const auto& [tokens, score] : paths_) all += std::exp(score);
    std::vector<std::map<TokenId, double>> shares(layers_.size());
    for (const auto& [tokens, score] : paths_) {
      for (size_t i = 0; i < tokens.size(); ++i) shares[i][tokens[i]] += std::exp(score) / all;
    }
    return shares;
  }
  double BestScore() const {
    double best = kNo;
    for (const auto& [tokens, score] : paths_) best = std::max(best, score);
    return best;
  }
  bool Has(const std::vector<TokenId>& path) const {
    return std::ranges::find(paths_, path, &Path::first) != paths_.end();
  }
  void Commit(size_t position, TokenId token) {
    std::erase_if(paths_, [&](const Path& path) { return path.first[position] != token; });
  }

 private:
  using Path = std::pair<std::vector<TokenId>, double>;
  struct Node {
    CanvasPlace place;
    double best;
  };
  struct Edge {
    int from, to;
    TokenId token;
    double score, best;
    bool witness;
  };

  static std::vector<TokenId> Candidates(const CanvasRules& rules, const CanvasPlace& place,
                                         TokenId fixed, const std::vector<float>& scores,
                                         TokenId witness) {
    if (fixed != kNoToken) return {fixed};
    if (place.ended) return {rules.ends[0]};
    std::vector<TokenId> tokens = place.at->mask()->Tokens();
    std::ranges::stable_sort(tokens, [&](TokenId a, TokenId b) {
      return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
    });
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(rules.candidates)));
    if (witness != kNoToken && std::ranges::find(tokens, witness) == tokens.end()) {
      tokens.push_back(witness);
    }
    return tokens;
  }

  static std::vector<Node> Take(const CanvasRules& rules, const std::vector<Node>& nodes,
                                const std::vector<Edge>& steps, int left, std::vector<Edge>& out,
                                int& on_witness) {
    std::vector<Node> next;
    std::map<uint64_t, int> known;
    on_witness = -1;
    for (Edge step : steps) {
      if (static_cast<int>(next.size()) > rules.states) break;
      const CanvasPlace place = rules.Next(nodes[static_cast<size_t>(step.from)].place, step.token);
      if (!place.ended && place.at == nullptr) continue;
      const uint64_t key = place.ended ? 0 : place.at->key();
      if (!known.contains(key)) {
        if (!step.witness && !place.ended && place.at->CompletionLength(left) < 0) continue;
        known[key] = static_cast<int>(next.size());
        next.push_back({place, step.best});
      }
      step.to = known[key];
      double& best = next[static_cast<size_t>(step.to)].best;
      best = std::max(best, step.best);
      if (step.witness) on_witness = step.to;
      out.push_back(step);
    }
    return next;
  }

  void Follow(size_t position, int node, double score, std::vector<Edge>& path) {
    if (position == layers_.size()) {
      std::vector<TokenId> tokens;
      for (const Edge& edge : path) tokens.push_back(edge.token);
      paths_.emplace_back(tokens, score);
      return;
    }
    for (const Edge& edge : layers_[position]) {
      if (edge.from != node) continue;
      path.push_back(edge);
      Follow(position + 1, edge.to, score + edge.score, path);
      path.pop_back();
    }
  }

  std::vector<std::vector<Edge>> layers_;
  std::vector<Path> paths_;
};

void ExpectSame(const SlowLattice& slow, CanvasLattice& fast, uint32_t seed) {
  const auto shares = slow.Shares();
  EXPECT_TRUE(slow.Has(fast.Best())) << seed;
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto got = fast.Shares(i);
    ASSERT_EQ(got.size(), shares[i].size()) << seed;
    for (const auto& [token, share] : got) {
      EXPECT_NEAR(share, shares[i].at(token), 1e-9) << seed;
    }
    EXPECT_EQ(fast.Only(i).has_value(), got.size() == 1) << seed;
  }
}

TEST(PrunedLatticeTest, EqualsASlowOne) {
  int lattices = 0, chosen = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    const auto root = ForLoop(
        MakeConstraint(*Compiler(vocabulary).CompileRegex(RandomRegex(random, 5))), *vocabulary);
    const int few = static_cast<int>(1 + seed % 3);
    const CanvasRules rules = {{kTheEnd}, kWidth, few, static_cast<int>(1 + seed % 4)};
    const size_t length = 6;
    const int behind = static_cast<int>(seed % 5);
    auto witness = root->Completion(static_cast<int>(length));
    if (!witness || witness->size() > length) continue;
    witness->resize(length, kTheEnd);
    const std::vector<TokenId> masks(length, kNoToken);
    CanvasStates states(rules);
    // The states go on from call to call, and so does the witness.
    for (int call = 0; call < 3; ++call) {
      auto scores = NormalScores(random, length, kWidth);
      if (seed % 4 == 0) {
        for (auto& law : scores) {  // many ties, and some that are far below
          for (float& x : law) x = std::round(x / 2) * (seed % 8 == 0 ? 400.0f : 1.0f);
        }
      }
      SlowLattice slow(rules, {root}, masks, scores, *witness, behind);
      CanvasLattice fast(rules, {root}, masks, scores, *witness, behind, &states);
      ASSERT_TRUE(slow.alive()) << seed;
      ASSERT_TRUE(fast.alive()) << seed;
      ++lattices;
      if (seed % 8 == 0) {  // sums of exp() would vanish in the slow one
        EXPECT_TRUE(slow.Has(fast.Best())) << seed;
        fast.Weigh();
        for (size_t i = 0; i < length; ++i) {
          double sum = 0;
          for (const auto& [token, share] : fast.Shares(i)) sum += share;
          EXPECT_NEAR(sum, 1, 1e-9) << seed;
        }
        *witness = fast.Best();
        continue;
      }
      fast.Weigh();
      ExpectSame(slow, fast, seed);
      double best = 0;
      const std::vector<TokenId> path = fast.Best();
      for (size_t i = 0; i < length; ++i) {
        best += static_cast<double>(scores[i][static_cast<size_t>(path[i])]);
      }
      EXPECT_NEAR(best, slow.BestScore(), 1e-5) << seed;
      // What is left after commits, in any order; shares are again those of what is left.
      const size_t at = random() % length;
      const auto shares = fast.Shares(at);
      const TokenId token = shares[random() % shares.size()].token;
      chosen += shares.size() > 1;
      fast.Commit(at, token);
      slow.Commit(at, token);
      fast.Weigh();
      ExpectSame(slow, fast, seed);
      EXPECT_EQ(fast.Only(at), token) << seed;
      *witness = fast.Best();
    }
  }
  EXPECT_GT(lattices, 500);
  EXPECT_GT(chosen, 100);
}

// What is left of the mask's tokens when all are sorted.
TEST(BestTokensTest, AreThoseOfSorting) {
  constexpr int kTokens = 20000, kMost = 32;
  std::mt19937 random(3);
  BestTokens best(kTokens - 7, kMost);
  for (int round = 0; round < 12; ++round) {
    std::vector<float> scores;
    std::normal_distribution<float> normal(0, 3);
    for (int t = 0; t < kTokens; ++t) {
      const float x = normal(random);
      scores.push_back(round % 3 == 0 ? std::round(x) : x);  // ties
    }
    if (round % 4 == 1) std::ranges::sort(scores);  // all of the best ones at the end
    if (round % 4 == 2) scores[5] = std::numeric_limits<float>::quiet_NaN();
    scores[8] = 0.0f;
    scores[9] = -0.0f;
    best.Begin(scores);
    std::vector<TokenId> sorted(kTokens - 7);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::ranges::stable_sort(sorted, [&](TokenId a, TokenId b) {
      const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
      return std::isnan(y) ? !std::isnan(x) : x > y;
    });
    for (const double share : {0.0, 0.001, 0.1, 0.3, 1.0}) {
      for (const bool worst : {false, true}) {
        std::vector<uint32_t> words(kTokens / 32);
        std::bernoulli_distribution takes(share);
        for (int t = 0; t < kTokens; ++t) {
          const bool bad = scores[static_cast<size_t>(t)] < -1;
          if (worst && !bad) continue;
          if (takes(random)) words[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
        }
        CanvasMask mask;
        mask.mask = std::make_shared<const Mask>(1, words);
        if (mask.few()) {
          mask.tokens = mask.mask->Tokens();
          std::erase_if(mask.tokens, [&](TokenId token) { return token >= kTokens - 7; });
        }
        std::vector<TokenId> expected;
        for (const TokenId token : sorted) {
          if (expected.size() < kMost && mask.mask->Allows(token)) expected.push_back(token);
        }
        const auto got = best.Of(mask);
        ASSERT_EQ(std::vector<TokenId>(got.begin(), got.end()), expected)
            << round << " " << share << " " << worst;
      }
    }
  }
}

// Counts the masks that it is asked for, by the number of tokens in front of the place.
class CountedPlace final : public LoopConstraint {
 public:
  using Counts = std::map<int, int>;
  CountedPlace(std::shared_ptr<const LoopConstraint> of, Counts& counts, bool merges, int depth = 0)
      : of_(std::move(of)), counts_(counts), merges_(merges), depth_(depth) {}
  Place Look() const override { return {.mask = mask(), .accepting = accepting()}; }
  std::shared_ptr<const Mask> mask() const override {
    ++counts_[depth_];
    return of_->mask();
  }
  bool accepting() const override { return of_->accepting(); }
  std::string forced(size_t limit) const override { return of_->forced(limit); }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    auto next = of_->Next(token);
    if (next == nullptr) return nullptr;
    return std::make_shared<CountedPlace>(std::move(next), counts_, merges_, depth_ + 1);
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return of_->Completion(most);
  }
  int CompletionLength(int most) const override { return of_->CompletionLength(most); }
  uint64_t key() const override {
    return merges_ ? of_->key() : MixedKeys(of_->key(), static_cast<uint64_t>(depth_) + 1);
  }

 private:
  const std::shared_ptr<const LoopConstraint> of_;
  Counts& counts_;
  const bool merges_;
  const int depth_;
};

int SumOf(const CountedPlace::Counts& counts) {
  int sum = 0;
  for (const auto& [depth, count] : counts) sum += count;
  return sum;
}

TEST(LookUpsTest, AreAtMostStatesTimesPositionsOfACall) {
  int calls = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    CountedPlace::Counts counts;
    FillTask task;
    task.vocabulary = vocabulary.get();
    task.constraint = std::make_shared<CountedPlace>(
        ForLoop(MakeConstraint(*Compiler(vocabulary).CompileRegex(RandomRegex(random, 6))),
                *vocabulary),
        counts, seed % 2 == 0);
    const int states = static_cast<int>(1 + seed % 4);
    task.rules = {{kTheEnd}, kWidth, 2, states};
    task.length = 12;
    FillOptions options;
    options.block_length = seed % 3 == 0 ? 12 : 6;
    options.confidence = MaskConfidence::kRandom;
    options.seed = seed;
    MaskFiller filler(task, options);
    if (!filler.Start().ok()) continue;
    while (!filler.done()) {
      const int64_t before = SumOf(counts);
      const auto positions = static_cast<int>(filler.block_end() - filler.Wanted()[0]);
      ASSERT_TRUE(filler.Take(NormalScores(random, filler.Wanted().size(), kWidth)).ok());
      // The witness has a state of its own, and one place more is looked at for a forced text.
      EXPECT_LE(SumOf(counts) - before, (states + 1) * positions + 1) << seed;
      EXPECT_EQ(SumOf(counts), filler.looks()) << seed;
      ++calls;
    }
  }
  EXPECT_GT(calls, 300);
}

// A token is committed in the middle, and the laws behind it change: what is in front of it is not
// looked up again, not even where most of the candidates and states are left out.
TEST(LookUpsTest, NoneWhereNothingBeforeThePositionChanged) {
  int behind = 0, lattices = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    CountedPlace::Counts counts;
    const auto root = std::make_shared<CountedPlace>(
        ForLoop(MakeConstraint(*Compiler(vocabulary).CompileRegex(RandomRegex(random, 6))),
                *vocabulary),
        counts, false);
    const CanvasRules rules = {{kTheEnd}, kWidth, 2, static_cast<int>(1 + seed % 4)};
    const size_t length = 8;
    auto witness = root->Completion(static_cast<int>(length));
    if (!witness || witness->size() > length) continue;
    witness->resize(length, kTheEnd);
    CanvasStates states(rules);
    std::vector<TokenId> window(length, kNoToken);
    auto scores = NormalScores(random, length, kWidth);
    for (int call = 0; call < 2; ++call) {  // the witness is then the best path
      *witness = CanvasLattice(rules, {root}, window, scores, *witness, 2, &states).Best();
    }
    const size_t at = random() % length;
    window[at] = (*witness)[at];
    for (size_t i = at + 1; i < length; ++i) scores[i] = NormalScores(random, 1, kWidth)[0];
    counts.clear();
    const CanvasLattice lattice(rules, {root}, window, scores, *witness, 2, &states);
    EXPECT_EQ(lattice.looks(), SumOf(counts));
    for (const auto& [depth, count] : counts) {
      EXPECT_GT(depth, static_cast<int>(at)) << seed << ": " << count;
    }
    behind += SumOf(counts);
    ++lattices;
  }
  EXPECT_GT(lattices, 150);
  EXPECT_GT(behind, 50) << "behind it there are new places";
}

// Finds a completion at the beginning alone, or there and its length everywhere.
class ForgetfulPlace final : public LoopConstraint {
 public:
  ForgetfulPlace(std::shared_ptr<const LoopConstraint> of, bool knows_lengths, bool first = true)
      : of_(std::move(of)), knows_lengths_(knows_lengths), first_(first) {}
  Place Look() const override { return of_->Look(); }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    auto next = of_->Next(token);
    if (next == nullptr) return nullptr;
    return std::make_shared<ForgetfulPlace>(std::move(next), knows_lengths_, false);
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return first_ ? of_->Completion(most) : std::nullopt;
  }
  int CompletionLength(int most) const override {
    return first_ || knows_lengths_ ? of_->CompletionLength(most) : -1;
  }
  uint64_t key() const override { return of_->key(); }

 private:
  const std::shared_ptr<const LoopConstraint> of_;
  const bool knows_lengths_, first_;
};

// What was known to fit still stands where nothing is found behind its first tokens.
TEST(MaskFillerTest, CompletionsThatAreNotFoundAgain) {
  int runs = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    const auto root = ForLoop(
        MakeConstraint(*Compiler(vocabulary).CompileRegex(RandomRegex(random, 6))), *vocabulary);
    FillTask task;
    task.vocabulary = vocabulary.get();
    task.constraint = std::make_shared<ForgetfulPlace>(root, seed % 2 == 0);
    task.rules = {{kTheEnd}, kWidth, 2, 3};
    task.length = 12;
    FillOptions options;
    // With lengths alone another path may be taken at the end of a block, and nothing tells its
    // end.
    options.block_length = seed % 2 == 0 ? 12 : 5;
    options.confidence = MaskConfidence::kRandom;
    options.seed = seed;
    MaskFiller filler(std::move(task), options);
    if (!filler.Start().ok()) continue;
    ++runs;
    while (!filler.done()) {
      const Status taken = filler.Take(NormalScores(random, filler.Wanted().size(), kWidth));
      ASSERT_TRUE(taken.ok()) << seed << ": " << taken.error().ToString();
    }
    std::shared_ptr<const LoopConstraint> at = root;
    for (const TokenId token : filler.output()) at = at->Next(token);
    EXPECT_TRUE(at->accepting()) << seed;
  }
  EXPECT_GT(runs, 100);
}

// Letters, marks and a few longer tokens, for schemas with free keys: places that differ for each
// text.
std::shared_ptr<const Vocabulary> KeysVocabulary() {
  std::vector<std::string> tokens;
  for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
  for (const char* more : {"{", "}", "\"", ":", ",", "1", "2", "ab", "xyz"}) {
    tokens.emplace_back(more);
  }
  return VocabularyOf(tokens);
}

// A grammar's place that tells how much all grammars take, now and then.
class WeighedPlace final : public LoopConstraint {
 public:
  struct Scales {
    const Compiler& compiler;
    size_t most = 0;
    int questions = 0;
  };
  WeighedPlace(std::shared_ptr<const LoopConstraint> of, Scales& scales)
      : of_(std::move(of)), scales_(scales) {}
  Place Look() const override { return {.mask = mask(), .accepting = accepting()}; }
  std::shared_ptr<const Mask> mask() const override {
    Weigh();
    return of_->mask();
  }
  bool accepting() const override { return of_->accepting(); }
  std::string forced(size_t limit) const override { return of_->forced(limit); }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    return Of(of_->Next(token));
  }
  std::optional<uint64_t> KeyAfter(TokenId token) const override {
    Weigh();
    return of_->KeyAfter(token);
  }
  std::shared_ptr<const LoopConstraint> NextHere(TokenId token) const override {
    return Of(of_->NextHere(token));
  }
  bool outdated() const override { return of_->outdated(); }
  std::shared_ptr<const LoopConstraint> Renewed() const override { return Of(of_->Renewed()); }
  void NeedsAll() const override { of_->NeedsAll(); }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return of_->Completion(most);
  }
  int CompletionLength(int most) const override { return of_->CompletionLength(most); }
  uint64_t key() const override { return of_->key(); }
  const Grammar* grammar() const override { return of_->grammar(); }

 private:
  std::shared_ptr<const LoopConstraint> Of(std::shared_ptr<const LoopConstraint> at) const {
    return at == nullptr ? nullptr : std::make_shared<WeighedPlace>(std::move(at), scales_);
  }
  void Weigh() const {
    constexpr int kEach = 400;
    if (++scales_.questions % kEach != 0) return;
    scales_.most = std::max(scales_.most, scales_.compiler.memory_bytes());
  }
  const std::shared_ptr<const LoopConstraint> of_;
  Scales& scales_;
};

// One block: the lattice of each call goes over all positions. What it meets is let go while the
// call goes on, and the output is that of a call which keeps all.
TEST(LookUpsTest, OneCallStaysInTheBudgetOfItsGrammar) {
  const auto vocabulary = KeysVocabulary();
  const auto width = static_cast<int>(vocabulary->size());
  const auto fill = [&](const Compiler& compiler, size_t& most) {
    const Grammar grammar = *compiler.CompileJsonSchema(
        R"({"type":"object","minProperties":2,"additionalProperties":{"enum":[1,12,"a"]}})");
    WeighedPlace::Scales scales = {compiler};
    FillTask task;
    task.vocabulary = vocabulary.get();
    task.constraint =
        std::make_shared<WeighedPlace>(ForLoop(MakeConstraint(grammar), *vocabulary), scales);
    task.rules = {{vocabulary->end_tokens()[0]}, width, 16, 32};
    task.length = 160;
    FillOptions options;
    options.block_length = task.length;
    options.steps = 6;
    MaskFiller filler(std::move(task), options);
    EXPECT_TRUE(filler.Start().ok());
    std::mt19937 random(5);
    while (!filler.done()) {
      const Status taken = filler.Take(NormalScores(random, filler.Wanted().size(), width));
      EXPECT_TRUE(taken.ok()) << taken.error().ToString();
      if (!taken.ok()) break;
    }
    most = scales.most;
    std::string text;
    for (const TokenId token : filler.output()) text += vocabulary->bytes(token);
    return text;
  };
  const Compiler bound(vocabulary, {.memory_budget = size_t{1} << 20});
  const Compiler free(vocabulary, {.memory_budget = size_t{1} << 40});
  size_t little = 0, much = 0;
  EXPECT_EQ(fill(bound, little), fill(free, much));
  EXPECT_GT(much, size_t{4} << 20);
  EXPECT_LT(little, size_t{2} << 20);
}

// A small budget has the grammar rebuilt in the middle of a call. That changes no output.
TEST(LookUpsTest, GrammarsThatAreRebuiltMeanwhile) {
  const auto vocabulary = KeysVocabulary();
  const auto width = static_cast<int>(vocabulary->size());
  const auto fill = [&](const Compiler& compiler, uint32_t seed, bool& rebuilt) {
    const Grammar grammar = *compiler.CompileJsonSchema(
        R"({"type":"object","minProperties":2,"additionalProperties":{"enum":[1,12,"a"]}})");
    std::mt19937 random(seed);
    FillTask task;
    task.vocabulary = vocabulary.get();
    task.constraint = ForLoop(MakeConstraint(grammar), *vocabulary);
    task.rules = {{vocabulary->end_tokens()[0]}, width, 8, 16};
    task.length = 40;
    FillOptions options;
    options.block_length = 20;
    options.steps = 12;
    MaskFiller filler(task, options);
    EXPECT_TRUE(filler.Start().ok());
    while (!filler.done()) {
      const Status taken = filler.Take(NormalScores(random, filler.Wanted().size(), width));
      EXPECT_TRUE(taken.ok()) << taken.error().ToString();
      if (!taken.ok()) break;
    }
    rebuilt = task.constraint->Renewed() != nullptr;
    std::string text;
    for (const TokenId token : filler.output()) text += vocabulary->bytes(token);
    const auto end = grammar.Start().Advance(std::string_view(text));
    EXPECT_TRUE(end.has_value() && end->accepting()) << text;
    return text;
  };
  const Compiler bound(vocabulary, {.memory_budget = size_t{64} << 10});
  const Compiler free(vocabulary, {.memory_budget = size_t{1} << 40});
  int rebuilds = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    bool rebuilt = false, never = false;
    EXPECT_EQ(fill(bound, seed, rebuilt), fill(free, seed, never));
    EXPECT_FALSE(never);
    rebuilds += rebuilt ? 1 : 0;
  }
  EXPECT_EQ(rebuilds, 4);
}

}  // namespace
}  // namespace pawl
