// The lattice against brute force, and canvases that are filled in any order.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "src/decode/diffusion/canvas_cache.h"
#include "src/decode/diffusion/gap_canvas.h"
#include "src/decode/diffusion/mask_filler.h"
#include "tests/search/toy_language.h"

namespace pawl {
namespace {

constexpr int kToyWidth = kTheEnd + 1;

std::vector<std::vector<float>> RandomScores(std::mt19937& random, size_t positions) {
  std::vector<std::vector<float>> scores(positions);
  std::normal_distribution<float> normal(0, 2);
  for (std::vector<float>& law : scores) {
    double sum = 0;
    for (int t = 0; t < kToyWidth; ++t) law.push_back(normal(random));
    for (const float x : law) sum += std::exp(static_cast<double>(x));
    for (float& x : law) x -= static_cast<float>(std::log(sum));
  }
  return scores;
}

struct ByTryingAll {
  double best = -1e300, all = 0;
  std::vector<std::map<TokenId, double>> shares;
};

// All canvases of these positions, by trying them.
void TryAll(const CanvasRules& rules, const CanvasPlace& place,
            const std::vector<std::vector<float>>& scores, std::vector<TokenId>& canvas,
            double score, ByTryingAll& out) {
  if (canvas.size() == scores.size()) {
    if (!place.ended && !place.at->accepting()) return;
    out.best = std::max(out.best, score);
    out.all += std::exp(score);
    for (size_t i = 0; i < canvas.size(); ++i) out.shares[i][canvas[i]] += std::exp(score);
    return;
  }
  for (TokenId t = 0; t < kToyWidth; ++t) {
    const CanvasPlace next = rules.Next(place, t);
    if (!next.ended && next.at == nullptr) continue;
    canvas.push_back(t);
    const auto law = static_cast<double>(scores[canvas.size() - 1][static_cast<size_t>(t)]);
    TryAll(rules, next, scores, canvas, score + law, out);
    canvas.pop_back();
  }
}

TEST(CanvasLatticeTest, AllTokensAndStatesAreExact) {
  int with_outputs = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    const auto root = ForLoop(
        MakeConstraint(*Compiler(vocabulary).CompileRegex(RandomRegex(random))), *vocabulary);
    const CanvasRules rules = {{kTheEnd}, kToyWidth, kToyWidth, 1000};
    const size_t length = 4;
    const auto scores = RandomScores(random, length);
    ByTryingAll expected;
    expected.shares.resize(length);
    std::vector<TokenId> canvas;
    TryAll(rules, {root}, scores, canvas, 0, expected);
    const std::vector<TokenId> masks(length, kNoToken);
    CanvasLattice lattice(rules, {root}, masks, scores, {}, 0);
    ASSERT_EQ(lattice.alive(), expected.all > 0) << seed;
    if (expected.all == 0) continue;
    ++with_outputs;
    lattice.Weigh();
    double best = 0;
    const std::vector<TokenId> found = lattice.Best();
    for (size_t i = 0; i < length; ++i) {
      best += static_cast<double>(scores[i][static_cast<size_t>(found[i])]);
      const auto shares = lattice.Shares(i);
      ASSERT_EQ(shares.size(), expected.shares[i].size()) << seed;
      for (const auto& [token, share] : shares) {
        EXPECT_NEAR(share, expected.shares[i][token] / expected.all, 1e-5) << seed;
      }
    }
    EXPECT_NEAR(best, expected.best, 1e-5) << seed;
  }
  EXPECT_GT(with_outputs, 300);
}

// One candidate, one state, and an order drawn by lot.
TEST(MaskFillerTest, IsNeverStuckInAnyOrder) {
  int runs = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    FillTask task;
    task.vocabulary = vocabulary.get();
    task.constraint = ForLoop(
        MakeConstraint(*Compiler(vocabulary).CompileRegex(RandomRegex(random, 4))), *vocabulary);
    const int few = static_cast<int>(1 + seed % 3);
    task.rules = {{kTheEnd}, kToyWidth, few, few};
    task.length = 12;
    const auto root = task.constraint;
    FillOptions options;
    options.block_length = seed % 2 == 0 ? 12 : 5;
    options.steps = seed % 5 == 0 ? 4 : 12;
    options.confidence = MaskConfidence::kRandom;
    options.temperature = seed % 7 == 0 ? 1 : 0;
    options.seed = seed;
    MaskFiller filler(task, options);
    const Status started = filler.Start();
    if (!started.ok()) {
      EXPECT_EQ(started.error().place, "max_tokens");
      continue;
    }
    ++runs;
    int calls = 0;
    while (!filler.done()) {
      ASSERT_LT(calls++, 40);
      const Status taken = filler.Take(RandomScores(random, filler.Wanted().size()));
      ASSERT_TRUE(taken.ok()) << seed << ": " << taken.error().ToString();
    }
    std::shared_ptr<const LoopConstraint> at = root;
    for (const TokenId token : filler.output()) {
      at = at->Next(token);
      ASSERT_NE(at, nullptr) << seed;
    }
    EXPECT_TRUE(at->accepting()) << seed;
  }
  EXPECT_GT(runs, 200);
}

TEST(MaskFillerTest, SaysWhatDoesNotFit) {
  const auto vocabulary = ToyVocabulary();
  FillTask task;
  task.vocabulary = vocabulary.get();
  task.constraint =
      ForLoop(MakeConstraint(*Compiler(vocabulary).CompileRegex("[01]{30}")), *vocabulary);
  task.rules = {{kTheEnd}, kToyWidth};
  task.length = 10;
  const Status status = MaskFiller(task, {}).Start();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().place, "max_tokens");
  EXPECT_NE(status.error().message.find("the budget is 10"), std::string::npos);
}

// A text of the language, of which 1 to 3 parts are taken out. What is put there fits, whatever the
// order, and no gap is longer than it may be.
TEST(MaskFillerTest, GapsOfRandomLanguagesAreFilled) {
  int runs = 0, shorter = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    const Grammar grammar = *Compiler(vocabulary).CompileRegex(RandomRegex(random, 4));
    std::string text;
    State walked = grammar.Start();
    for (int i = 0; i < 6; ++i) {
      const std::string bit(1, random() % 2 ? '0' : '1');
      const auto next = walked.Advance(std::string_view(bit));
      if (!next) continue;
      walked = *next;
      text += bit;
    }
    text += *walked.CompletionBytes();
    GenerateOptions options;
    options.diffusion.gap_tokens = 4;
    size_t at = random() % (text.size() + 1);
    options.diffusion.prefix = text.substr(0, at);
    for (size_t gaps = 1 + random() % 3; gaps > 0; --gaps) {
      at = std::min(text.size(), at + random() % 4);
      const size_t behind = gaps == 1 ? text.size() : std::min(text.size(), at + 1 + random() % 3);
      options.diffusion.gaps.push_back(text.substr(at, behind - at));
      at = behind;
    }
    FillTask task;
    task.vocabulary = vocabulary.get();
    task.constraint = ForLoop(MakeConstraint(grammar), *vocabulary);
    const int few = static_cast<int>(1 + seed % 3);
    task.rules = {{kTheEnd}, kToyWidth, few, few};
    const Status laid = LayOutGaps(options, nullptr, 100, task);
    if (!laid.ok()) {
      EXPECT_TRUE(laid.error().place.starts_with("diffusion.gap")) << laid.error().ToString();
      continue;
    }
    ++runs;
    const int masks = task.length;
    FillOptions how;
    how.block_length = task.length;
    how.confidence = MaskConfidence::kRandom;
    how.steps = seed % 5 == 0 ? 3 : 0;
    how.seed = seed;
    MaskFiller filler(task, how);
    ASSERT_TRUE(filler.Start().ok());
    for (int calls = 0; !filler.done(); ++calls) {
      ASSERT_LT(calls, 40);
      const Status taken = filler.Take(RandomScores(random, filler.Wanted().size()));
      ASSERT_TRUE(taken.ok()) << seed << ": " << taken.error().ToString();
    }
    shorter += static_cast<int>(filler.canvas().size()) < masks;
    std::string filled = options.diffusion.prefix;
    ASSERT_EQ(filler.fills().size(), options.diffusion.gaps.size());
    for (size_t gap = 0; gap < filler.fills().size(); ++gap) {
      EXPECT_LE(filler.fills()[gap].size(), 4u);
      for (const TokenId token : filler.fills()[gap]) filled += vocabulary->bytes(token);
      filled += options.diffusion.gaps[gap];
    }
    const auto whole = grammar.Start().Advance(filled);
    ASSERT_TRUE(whole.has_value()) << seed << " " << filled;
    EXPECT_TRUE(whole->accepting()) << seed << " " << filled;
  }
  EXPECT_GT(runs, 1500);
  EXPECT_GT(shorter, 500);
}

// Texts that stand fixed in the window: each token that is left is one of some output, and there is
// a path where there is an output.
TEST(CanvasLatticeTest, IslandsAreExact) {
  int alive = 0, dead = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = ToyVocabulary();
    const auto root = ForLoop(
        MakeConstraint(*Compiler(vocabulary).CompileRegex(RandomRegex(random, 4))), *vocabulary);
    const CanvasRules rules = {{kTheEnd}, kToyWidth, kToyWidth, 1000};
    const size_t length = 5;
    std::vector<TokenId> window(length, kNoToken);
    const size_t islands = 1 + random() % 3;
    for (size_t i = 0; i < islands; ++i) {
      window[random() % length] = static_cast<TokenId>(random() % kToyWidth);
    }
    std::vector<std::vector<float>> scores = RandomScores(random, length);
    for (size_t i = 0; i < length; ++i) {
      if (window[i] == kNoToken) continue;
      scores[i].assign(kToyWidth, -1e30f);
      scores[i][static_cast<size_t>(window[i])] = 0;
    }
    ByTryingAll expected;
    expected.shares.resize(length);
    std::vector<TokenId> canvas;
    TryAll(rules, {root}, scores, canvas, 0, expected);
    CanvasLattice lattice(rules, {root}, window, scores, {}, 0);
    ASSERT_EQ(lattice.alive(), expected.all > 0) << seed;
    (lattice.alive() ? alive : dead) += 1;
    if (!lattice.alive()) continue;
    lattice.Weigh();
    for (size_t i = 0; i < length; ++i) {
      for (const auto& [token, share] : lattice.Shares(i)) {
        EXPECT_NEAR(share, expected.shares[i][token] / expected.all, 1e-5) << seed;
      }
    }
  }
  EXPECT_GT(alive, 300);
  EXPECT_GT(dead, 300);
}

TEST(CanvasLatticeTest, PlacesThatAreKnownAreNotLookedUp) {
  const auto vocabulary = ToyVocabulary();
  const auto root = ForLoop(
      MakeConstraint(*Compiler(vocabulary).CompileRegex("(01|1[01]|0(0|11)){2,6}")), *vocabulary);
  const CanvasRules rules = {{kTheEnd}, kToyWidth, kToyWidth, 1000};
  std::mt19937 random(1);
  const std::vector<TokenId> masks(8, kNoToken);
  CanvasStates known(rules);
  const auto looks = [&] {
    const auto scores = RandomScores(random, masks.size());
    return CanvasLattice(rules, {root}, masks, scores, {}, 0, &known).looks();
  };
  const int64_t first = looks();
  EXPECT_GT(first, 4);
  EXPECT_LE(first, static_cast<int64_t>(known.size()));
  EXPECT_EQ(looks(), 0) << "other scores, the same places";
}

std::vector<size_t> MasksOf(const FillSchedule::Choice& choice) {
  std::vector<size_t> masks;
  for (const FillSchedule::Commit& commit : choice.commits) masks.push_back(commit.mask);
  return masks;
}

TEST(FillScheduleTest, StepsSplitTheMasks) {
  const auto sizes = [](const FillOptions& options, int calls) {
    FillSchedule schedule(options);
    schedule.Begin(calls);
    std::vector<FillSchedule::Mask> masks(24, FillSchedule::Mask{0, 0.5, 1.0});
    std::vector<size_t> counts;
    for (int call = 0; !masks.empty(); ++call) {
      counts.push_back(schedule.Choose(masks, call).commits.size());
      masks.resize(masks.size() - counts.back());
    }
    return counts;
  };
  EXPECT_EQ(sizes({}, 4), (std::vector<size_t>{6, 6, 6, 6}));
  EXPECT_EQ(sizes({}, 5), (std::vector<size_t>{5, 5, 5, 5, 4}));
  FillOptions dream;
  dream.eps = 0;
  EXPECT_EQ(sizes(dream, 4), (std::vector<size_t>{6, 6, 6, 6})) << "at its limit the split is even";
  EXPECT_EQ(sizes(dream, 5), (std::vector<size_t>{4, 5, 5, 5, 5}));
  dream.eps = 0.9;
  EXPECT_EQ(sizes(dream, 3), (std::vector<size_t>{1, 1, 22}));
  dream.eps = 1e-3;
  dream.by_lot = true;
  const std::vector<size_t> lots = sizes(dream, 4);
  EXPECT_LE(lots.size(), 4u);
  EXPECT_NE(lots, (std::vector<size_t>{6, 6, 6, 6}));
}

TEST(FillScheduleTest, SureMasksAndTheirNeighbours) {
  std::vector<FillSchedule::Mask> masks;
  for (const double confidence : {0.95, 0.8, 0.4, 0.1, 0.2, 0.76, 0.85}) {
    masks.push_back({static_cast<int>(masks.size()), confidence, 1.0});
  }
  FillOptions options;
  options.schedule = FillOptions::Schedule::kThreshold;
  EXPECT_EQ(MasksOf(FillSchedule(options).Choose(masks, 0)), (std::vector<size_t>{0}));
  options.factor = 0.4;  // 0.8, 0.867, 0.9 ...
  EXPECT_EQ(MasksOf(FillSchedule(options).Choose(masks, 0)), (std::vector<size_t>{0}));
  options.factor = 0.5;  // 0.75, 0.833, 0.875
  EXPECT_EQ(MasksOf(FillSchedule(options).Choose(masks, 0)), (std::vector<size_t>{0, 6}));
  options.factor.reset();
  options.schedule = FillOptions::Schedule::kLocalLeap;
  EXPECT_EQ(MasksOf(FillSchedule(options).Choose(masks, 0)), (std::vector<size_t>{0, 1}));
  options.leap_radius = 5;
  EXPECT_EQ(MasksOf(FillSchedule(options).Choose(masks, 0)), (std::vector<size_t>{0, 1, 5}));
  options.leap_radius = 0;
  EXPECT_EQ(MasksOf(FillSchedule(options).Choose(masks, 0)), (std::vector<size_t>{0})) << "off";
}

TEST(FillScheduleTest, ProphetEndsABlockThatIsSure) {
  FillOptions options;
  options.schedule = FillOptions::Schedule::kProphet;
  const auto call_of_all = [&](double lead) {
    FillSchedule schedule(options);
    schedule.Begin(9);
    const std::vector<FillSchedule::Mask> masks(9, FillSchedule::Mask{0, 0.5, lead});
    for (int call = 0; call < 9; ++call) {
      if (schedule.Choose(masks, call).all) return call;
    }
    return -1;
  };
  EXPECT_EQ(call_of_all(8), 0);
  EXPECT_EQ(call_of_all(5), 3);
  EXPECT_EQ(call_of_all(3), 6);
  EXPECT_EQ(call_of_all(2), -1);
  options.prophet_leads.fill(std::numeric_limits<double>::infinity());
  EXPECT_EQ(call_of_all(100), -1) << "off";
}

TEST(CanvasCacheTest, RowsThatRunAgain) {
  const TokenId m = kNoToken;
  const std::vector<TokenId> masks(8, m), some = {7, m, 7, m, m, m, m, m};
  const CanvasWindow window = {0, 4, 8};
  const auto rows = [&](CanvasCache::Kind kind, bool shifted, bool again = false) {
    CanvasCache cache(kind, 0, 3, shifted);
    EXPECT_EQ(cache.Rows(masks, window).size(), 11u);
    cache.Ran(masks, window);
    if (again) {
      EXPECT_EQ(cache.Rows(some, window).size(), 8u);
      cache.Ran(some, window);
    }
    return cache.Rows(some, window);
  };
  using Rows = std::vector<int>;
  EXPECT_EQ(rows(CanvasCache::Kind::kNone, false).size(), 11u);
  EXPECT_EQ(rows(CanvasCache::Kind::kPrefix, false), (Rows{3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(rows(CanvasCache::Kind::kPrefix, true), (Rows{2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(rows(CanvasCache::Kind::kDual, false), (Rows{3, 4, 5, 6}));
  EXPECT_EQ(rows(CanvasCache::Kind::kDual, true), (Rows{2, 3, 4, 5, 6}));
  // Just decoded, so it runs once more.
  EXPECT_EQ(rows(CanvasCache::Kind::kDelayed, false), (Rows{3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(rows(CanvasCache::Kind::kDelayed, false, true), (Rows{4, 6, 7, 8, 9, 10}));
  CanvasCache cache(CanvasCache::Kind::kDual, 2, 3, false);
  cache.Ran(masks, window);
  EXPECT_FALSE(cache.Refreshes(window));
  EXPECT_TRUE(cache.Refreshes({4, 8, 8})) << "a block begins";
  cache.Ran(masks, window);
  EXPECT_TRUE(cache.Refreshes(window)) << "each second call";
}

}  // namespace
}  // namespace pawl
