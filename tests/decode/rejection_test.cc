// Rules of rejection in the decode loop: with a draft model and with guesses of other sources, the
// law of each token given the one before it stays that of the model, and better rules take more.
// PAWL_REJECTION_DRAWS sets how many tokens are drawn for each rule.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/model_source.h"
#include "src/decode/draft/verify/draw_plan.h"
#include "tests/decode/sixteen_model.h"

namespace pawl {
namespace {

// Of token `v` behind `last`.
float PairLogit(TokenId last, size_t v) {
  return 0.37f * static_cast<float>((v * 7 + static_cast<size_t>(last) * 3) % 16) - 2;
}
float OffLogit(TokenId last, size_t v) {
  return PairLogit(last, v) + (v % 3 == 0 ? 1.0f : v % 3 == 1 ? -1.0f : 0.0f);
}

std::unique_ptr<ToyModel> PairsModel(float (*logit)(TokenId, size_t)) {
  return std::make_unique<ToyModel>(kSixteen,
                                    [logit](const ToyModel::Place& place, std::span<float> out) {
                                      for (size_t v = 0; v < out.size(); ++v)
                                        out[v] = logit(place.row.token, v);
                                    });
}

struct RejectionRun {
  std::vector<TokenId> tokens;
  double accepted = 0;  // by call
  double expected = 0;
};

struct RejectionCase {
  std::string verify = "coupled", shape = "heap", sources = "off";
  bool model = true;
  int nodes = 8;
  std::shared_ptr<const Constraint> constraint = nullptr;
};

RejectionRun RunRule(const RejectionCase& one, int tokens, uint64_t seed = 5,
                     float temperature = 1) {
  const auto model = PairsModel(&PairLogit);
  const auto vocabulary = SixteenLetters();
  DraftSetting setting;
  setting.vocabulary = vocabulary;
  setting.vocabulary_size = 16;
  setting.options.sources = one.sources;
  setting.options.verify = one.verify;
  setting.options.shape = one.shape;
  setting.options.always = true;
  setting.options.nodes = one.nodes;
  const auto indices = ParseDraftSources(setting.options);
  DraftSetting kept = setting;  // outlives the source
  kept.rules = *ParseDraftRules(setting.options);
  std::vector<Drafter::Named> more;
  if (one.model) more.emplace_back("model", MakeModelSourceFrom(kept, PairsModel(&OffLogit)));
  auto drafter = Drafter::Make(std::move(setting), *indices, std::move(more));
  EXPECT_TRUE(drafter.ok()) << drafter.error().ToString();
  BatchOptions options;
  options.drafter = *std::move(drafter);
  RejectionRun run;
  {
    BatchEngine engine(*model, vocabulary, {}, options);
    GenerateOptions generate;
    generate.sampling = {.temperature = temperature, .seed = seed};
    generate.max_tokens = tokens;
    engine.Add({.prompt = {0},
                .constraint = one.constraint,
                .options = generate,
                .done = [&run](Result<Generation> output) {
                  EXPECT_TRUE(output.ok());
                  if (!output.ok()) return;
                  run.tokens = output->tokens;
                  run.expected = output->stats.drafts.expected;
                }});
    while (engine.Step()) {
    }
    run.expected /= static_cast<double>(engine.stats().steps);
    run.accepted =
        static_cast<double>(engine.stats().accepted) / static_cast<double>(engine.stats().steps);
  }
  options.drafter.reset();
  return run;
}

// The chi-square of all pairs of tokens that follow each other. `allowed`: of 16 tokens.
double ChiOfPairs(const std::vector<TokenId>& tokens, uint32_t allowed = 0xffff) {
  std::map<TokenId, std::vector<int>> counts;
  TokenId last = 0;
  for (const TokenId token : tokens) {
    auto& row = counts[last];
    row.resize(16);
    ++row[static_cast<size_t>(token)];
    last = token;
  }
  double chi = 0;
  for (const auto& [before, row] : counts) {
    double sum = 0, all = 0;
    for (size_t v = 0; v < 16; ++v) {
      if ((allowed >> v & 1) != 0) sum += std::exp(double{PairLogit(before, v)});
      all += row[v];
    }
    for (size_t v = 0; v < 16; ++v) {
      if ((allowed >> v & 1) == 0) {
        EXPECT_EQ(row[v], 0);
        continue;
      }
      const double expected = all * std::exp(double{PairLogit(before, v)}) / sum;
      chi += (row[v] - expected) * (row[v] - expected) / expected;
    }
  }
  return chi;
}

int DrawsOfRule() {
  const char* const given = std::getenv("PAWL_REJECTION_DRAWS");
  return given == nullptr ? 10'000 : std::max(1000, std::atoi(given));
}

TEST(RejectionTest, EveryRuleKeepsTheLawOfTokens) {
  const Compiler compiler(SixteenLetters());
  const auto letters = MakeConstraint(*compiler.CompileRegex("[acegj-p]*"));
  std::map<std::string, double> accepted;
  for (const std::string rule : {"token", "block", "rsd", "spectr", "traversal"}) {
    for (const std::string shape : {"heap", "delayed:1,3"}) {
      const RejectionRun run = RunRule({.verify = rule, .shape = shape}, DrawsOfRule());
      accepted[rule + " " + shape] = run.accepted;
      RecordProperty("expected " + rule + " " + shape, std::to_string(run.expected));
      // The 99.9 % quantile for 16 * 15 degrees of freedom.
      EXPECT_LT(ChiOfPairs(run.tokens), 313.4) << rule << ", " << shape;
    }
    const RejectionRun masked = RunRule({.verify = rule, .constraint = letters}, DrawsOfRule() / 2);
    // For 11 * 10.
    EXPECT_LT(ChiOfPairs(masked.tokens, 0xfe55), 161.6) << rule;
    const RejectionRun guesses = RunRule(
        {.verify = rule, .sources = "suffix,ngram,random", .model = false}, DrawsOfRule() / 2);
    EXPECT_LT(ChiOfPairs(guesses.tokens), 313.4) << rule;
    EXPECT_GT(guesses.accepted, 0.02) << rule;
  }
  for (const auto& [name, count] : accepted) RecordProperty(name, std::to_string(count));
  EXPECT_GT(accepted["block heap"], 0.97 * accepted["token heap"]);
  EXPECT_GT(accepted["rsd heap"], 0.95 * accepted["token heap"]);
  EXPECT_GT(accepted["traversal heap"], 0.97 * accepted["rsd heap"]);
  for (const std::string rule : {"rsd", "spectr", "traversal"}) {
    EXPECT_GT(accepted[rule + " heap"], 0.97 * accepted[rule + " delayed:1,3"]) << rule;
  }
}

// With more nodes a place gets several independent draws, where they pay.
TEST(RejectionTest, TheHeapKnowsWhatIndependentDrawsAreWorth) {
  std::map<std::string, double> accepted;
  for (const std::string shape : {"heap", "delayed:0,2", "delayed:1,3", "delayed:0,1"}) {
    const RejectionRun run =
        RunRule({.verify = "spectr", .shape = shape, .nodes = 24}, DrawsOfRule());
    accepted[shape] = run.accepted;
    RecordProperty(shape, std::to_string(run.accepted));
    EXPECT_LT(ChiOfPairs(run.tokens), 313.4) << shape;
  }
  for (const std::string shape : {"delayed:0,2", "delayed:1,3", "delayed:0,1"}) {
    EXPECT_GT(accepted["heap"], 0.97 * accepted[shape]) << shape;
  }
  EXPECT_GT(accepted["heap"], 1.05 * accepted["delayed:0,1"]);
}

// The most expected tokens of `nodes` nodes behind a place, over all shapes.
double BestOfShapes(const DrawPlan& plan, int nodes) {
  static std::map<int, double> known;
  if (nodes == 0) return 0;
  if (const auto found = known.find(nodes); found != known.end()) return found->second;
  double best = 0;
  for (int draws = 1; draws <= std::min(nodes, DrawPlan::kMostDraws); ++draws) {
    const std::function<double(int, int)> share = [&](int nth, int left) -> double {
      if (nth == draws) return 0;
      double most = 0;
      for (int behind = 0; behind <= left; ++behind) {
        most = std::max(most, plan.TakenAt(draws, nth) * (1 + BestOfShapes(plan, behind)) +
                                  share(nth + 1, left - behind));
      }
      return most;
    };
    best = std::max(best, share(0, nodes - draws));
  }
  return known[nodes] = best;
}

TEST(DrawPlanTest, SharesNodesAsWellAsAnyShape) {
  DrawPlan plan;
  // One draw is taken seven times in ten, two eight times.
  for (int i = 0; i < 2000; ++i) {
    plan.Count(1, i % 10 < 7);
    plan.Count(2, i % 10 < 8);
  }
  EXPECT_NEAR(plan.Taken(1), 0.7, 0.01);
  EXPECT_NEAR(plan.TakenAt(2, 0) + plan.TakenAt(2, 1), plan.Taken(2), 1e-9);
  EXPECT_EQ(plan.At(0).draws, 0);
  for (int nodes = 1; nodes <= 16; ++nodes) {
    const DrawPlan::Choice& choice = plan.At(nodes);
    EXPECT_GE(choice.expected, 0.995 * BestOfShapes(plan, nodes)) << nodes;
    EXPECT_EQ(
        choice.draws + choice.behind[0] + choice.behind[1] + choice.behind[2] + choice.behind[3],
        nodes);
  }
  EXPECT_EQ(plan.At(4).draws, 1);
  EXPECT_GT(plan.At(24).draws, 1);
}

// At temperature 0 nothing is drawn, so every rule gives the output without drafts.
TEST(RejectionTest, WithoutNoiseEveryRuleGivesTheSame) {
  const RejectionRun plain = RunRule({.model = false}, 200, 5, 0);
  for (const std::string rule : {"token", "block", "rsd", "spectr", "traversal"}) {
    const RejectionRun run = RunRule({.verify = rule}, 200, 5, 0);
    EXPECT_EQ(run.tokens, plain.tokens) << rule;
    EXPECT_GT(run.accepted, 0.5) << rule;
  }
}

TEST(RejectionTest, ShapesChangeNoTokenUnderTheCoupledRule) {
  const RejectionRun plain = RunRule({.model = false}, 400);
  for (const std::string shape : {"heap", "delayed:0,4", "delayed:3,2"}) {
    const RejectionRun run =
        RunRule({.shape = shape, .sources = "suffix,random", .model = true}, 400);
    EXPECT_EQ(run.tokens, plain.tokens) << shape;
  }
  EXPECT_NE(RunRule({.verify = "token"}, 400).tokens, plain.tokens);
}

TEST(RejectionTest, OptionsAreChecked) {
  const auto error = [](const std::string& verify, const std::string& shape, float lossy = 0) {
    const auto rules = ParseDraftRules({.lossy = lossy, .verify = verify, .shape = shape});
    return rules.ok() ? "" : rules.error().ToString();
  };
  EXPECT_EQ(error("coupled", "heap"), "");
  EXPECT_EQ(error("traversal", "delayed:62,8"), "");
  EXPECT_EQ(
      error("luck", "heap"),
      "draft_verify: there is no rule \"luck\"; there are coupled, token, block, rsd, spectr, "
      "traversal");
  EXPECT_EQ(error("token", "heap", 0.1f), "draft_verify: is not there together with draft_lossy");
  for (const char* bad :
       {"", "tree", "delayed", "delayed:", "delayed:1", "delayed:1,", "delayed:1,0", "delayed:1,9",
        "delayed:63,1", "delayed:-1,1", "delayed:1,2x", "delayed:1;2", "delayed:99999999999,1"}) {
    EXPECT_EQ(
        error("coupled", bad),
        "draft_shape: must be heap, or delayed:D,K with D from 0 to 62 and K from 1 to 8, not \"" +
            std::string(bad) + "\"");
  }
}

}  // namespace
}  // namespace pawl
