// Several lanes of noise: a token keeps its law at any number of them, drafts change no token, and
// more of a draft model's guesses are right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/model_source.h"
#include "src/decode/sampler.h"
#include "tests/decode/sixteen_model.h"

namespace pawl {
namespace {

std::vector<float> SixteenLogits() {
  std::vector<float> logits;
  for (size_t v = 0; v < 16; ++v) logits.push_back(SixteenModel::Logit(v));
  return logits;
}

// PAWL_LANE_DRAWS sets how many are drawn.
TEST(DraftLanesTest, ATokenHasItsLawAtEveryNumberOfLanes) {
  const char* const given = std::getenv("PAWL_LANE_DRAWS");
  const int draws = given == nullptr ? 20'000 : std::max(1000, std::atoi(given));
  const std::vector<float> logits = SixteenLogits();
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  std::vector<TokenId> last;
  for (const int lanes : {1, 2, 4, 8}) {
    Sampler sampler({.temperature = 1, .seed = 11, .draft_lanes = lanes});
    std::vector<int> counts(16);
    std::vector<TokenId> drawn;
    for (int i = 0; i < draws; ++i) {
      const Result<TokenId> token = sampler.Sample(logits, nullptr, static_cast<uint64_t>(i), {});
      ASSERT_TRUE(token.ok());
      ++counts[static_cast<size_t>(*token)];
      if (i < 100) drawn.push_back(*token);
      // The guesses from the same logits begin with it.
      if (i >= 200) continue;
      std::vector<TokenId> guesses;
      const auto position = static_cast<uint64_t>(i);
      ASSERT_TRUE(sampler.SampleLanes(logits, nullptr, position, {}, guesses).ok());
      ASSERT_LE(guesses.size(), static_cast<size_t>(lanes));
      ASSERT_EQ(guesses[0], *token) << i;
    }
    double chi = 0;
    for (size_t v = 0; v < 16; ++v) {
      const double expected = draws * std::exp(double{logits[v]}) / sum;
      chi += (counts[v] - expected) * (counts[v] - expected) / expected;
    }
    EXPECT_LT(chi, 37.7) << lanes;  // the 99.9 % quantile for 15 degrees of freedom
    EXPECT_NE(drawn, last);
    last = std::move(drawn);
  }
}

struct LaneRun {
  std::string text;
  double accepted = 0;  // by call
};

// `off`: 0: no drafts; else a draft model whose logits are off by so much.
LaneRun RunLanes(int lanes, float off, bool always, int tokens) {
  SixteenModel model;
  const auto vocabulary = SixteenLetters();
  BatchOptions options;
  if (off != 0) {
    DraftSetting setting;
    setting.vocabulary = vocabulary;
    setting.vocabulary_size = 16;
    setting.options.sources = "off";
    setting.options.always = always;
    setting.options.nodes = 16;
    auto draft =
        std::make_unique<ToyModel>(kSixteen, [off](const ToyModel::Place&, std::span<float> out) {
          for (size_t v = 0; v < out.size(); ++v) {
            out[v] = SixteenModel::Logit(v) + (v % 3 == 0 ? off : v % 3 == 1 ? -off : 0);
          }
        });
    static DraftSetting kept;  // outlives the source
    kept = setting;
    std::vector<Drafter::Named> more;
    more.emplace_back("model", MakeModelSourceFrom(kept, std::move(draft)));
    Result<std::unique_ptr<Drafter>> drafter =
        Drafter::Make(std::move(setting), {}, std::move(more));
    EXPECT_TRUE(drafter.ok());
    options.drafter = *std::move(drafter);
  }
  BatchEngine engine(model, vocabulary, {}, options);
  LaneRun run;
  GenerateOptions generate;
  generate.sampling = {.temperature = 1, .seed = 5, .draft_lanes = lanes};
  generate.max_tokens = tokens;
  engine.Add({.prompt = {0},
              .constraint = nullptr,
              .options = generate,
              .done = [&run](Result<Generation> output) {
                run.text = output.ok() ? output->text : output.error().ToString();
              }});
  while (engine.Step()) {
  }
  run.accepted =
      static_cast<double>(engine.stats().accepted) / static_cast<double>(engine.stats().steps);
  return run;
}

TEST(DraftLanesTest, DraftsChangeNoTokenAndMoreLanesAreMoreOftenRight) {
  constexpr float kOff = 1;
  const std::vector<float> p = SixteenLogits();
  double of_p = 0, of_q = 0, distance = 0;
  const auto q = [&](size_t v) { return p[v] + (v % 3 == 0 ? kOff : v % 3 == 1 ? -kOff : 0); };
  for (size_t v = 0; v < 16; ++v) {
    of_p += std::exp(double{p[v]});
    of_q += std::exp(double{q(v)});
  }
  for (size_t v = 0; v < 16; ++v) {
    distance += std::abs(std::exp(double{p[v]}) / of_p - std::exp(double{q(v)}) / of_q) / 2;
  }
  EXPECT_NEAR(distance, 0.3, 0.03);
  const int tokens = 3000;
  double accepted[5] = {};
  for (const int lanes : {1, 4}) {
    const LaneRun plain = RunLanes(lanes, 0, false, tokens);
    const LaneRun drafted = RunLanes(lanes, kOff, true, tokens);
    EXPECT_EQ(plain.text.size(), static_cast<size_t>(tokens));
    EXPECT_EQ(drafted.text, plain.text) << lanes;
    EXPECT_EQ(RunLanes(lanes, kOff, false, 500).text, plain.text.substr(0, 500)) << lanes;
    accepted[lanes] = drafted.accepted;
    RecordProperty("accepted_" + std::to_string(lanes), std::to_string(drafted.accepted));
  }
  EXPECT_NE(RunLanes(1, 0, false, 100).text, RunLanes(4, 0, false, 100).text);
  EXPECT_GE(accepted[4], 1.15 * accepted[1]) << accepted[1] << " and " << accepted[4];
}

TEST(DraftLanesTest, TheNumberIsChecked) {
  for (const int lanes : {0, -1, 65}) {
    SamplingParams params;
    params.draft_lanes = lanes;
    const Status status = CheckSamplingParams(params);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().ToString(),
              "draft_lanes: must be from 1 to 64, not " + std::to_string(lanes));
  }
}

}  // namespace
}  // namespace pawl
