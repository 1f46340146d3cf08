// Draft models that go on while a device verifies: outputs are those without drafts, what was
// drafted in time is used, and the rest is dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/random.h"
#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/model_source.h"
#include "tests/decode/sixteen_model.h"

namespace pawl {
namespace {

constexpr ToyOptions kReadingToy = {.vocabulary_size = 16, .context_length = 2000};
constexpr ToyOptions kDrawingToy = {.vocabulary_size = 16, .context_length = 2000, .draws = true};

// A model that draws, and knows whether its device is at work.
class DeviceToy : public ToyModel {
 public:
  explicit DeviceToy(Logits logits) : ToyModel(kDrawingToy, std::move(logits)) {}
  Status Run(const ModelCall& call) override {
    ModelCall watched = call;
    if (call.late) {
      watched.late = [&] {
        at_work = true;
        call.late();
        at_work = false;
      };
    }
    Status ran = ToyModel::Run(watched);
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    return ran;
  }
  bool at_work = false;
  double seconds = 0;  // that a call takes at least
};

// Every fourth token is one of two that are equally likely, and the draft model knows neither.
TokenId FirstOfTwo(std::span<const TokenId> tokens) {
  return static_cast<TokenId>(HashOf(tokens) % 8);
}
void ForkingLogits(std::span<const TokenId> tokens, bool knows, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  const auto first = static_cast<size_t>(FirstOfTwo(tokens));
  if (tokens.size() % 4 != 0) {
    out[first + 8 * (HashOf(tokens, 3) % 2)] = 40;
  } else if (knows) {
    out[first] = out[first + 8] = 40;
  } else {
    out[(first + 1) % 8] = 40;
  }
}

class ForkSource : public DraftSource {
 public:
  std::unique_ptr<DraftSession> Follow(const DraftRequest&) override {
    return std::make_unique<Session>();
  }

 private:
  class Session : public DraftSession {
    void Propose(const DraftPlace& place, DraftCursor&, std::vector<DraftProposal>& out) override {
      std::vector<TokenId> tokens(place.tokens.begin(), place.tokens.end());
      tokens.insert(tokens.end(), place.path.begin(), place.path.end());
      if (tokens.size() % 4 != 0) return;
      const TokenId first = FirstOfTwo(tokens);
      out.push_back({.token = first, .bucket = 0, .chance = 0.5f});
      out.push_back({.token = first + 8, .bucket = 1, .chance = 0.5f});
    }
  };
};

// What a draft model and its target did.
struct OverlapRun {
  std::vector<std::vector<TokenId>> outputs;
  BatchStats stats;
  int64_t calls = 0, late = 0;  // of the draft model
  int64_t told = 0, told_late = 0;
  int most_lines = 0;
};

struct OverlapCase {
  ToyModel::Logits target, draft;
  std::shared_ptr<const Constraint> constraint = nullptr;
  int batch = 1, nodes = 4, lanes = 1, tokens = 60;
  float temperature = 0.8f;
  bool drafts = true, always = true, forks = false;
  double device_seconds = 0;
};

OverlapRun RunOverlap(const OverlapCase& one) {
  DeviceToy model(one.target);
  model.seconds = one.device_seconds;
  auto small = std::make_unique<ToyModel>(kReadingToy, one.draft);
  ToyModel& draft = *small;
  OverlapRun run;
  draft.before = [&](std::span<const Row>) -> Status {
    ++run.calls;
    run.late += model.at_work ? 1 : 0;
    run.most_lines = std::max(run.most_lines, draft.alive);
    return {};
  };
  DraftSetting setting;
  setting.vocabulary = SixteenLetters();
  setting.vocabulary_size = 16;
  setting.options.sources = "off";
  setting.options.always = one.always;
  setting.options.nodes = one.nodes;
  const DraftSetting kept = setting;
  BatchOptions options;
  options.max_batch = one.batch;
  options.threads = 1;
  if (one.drafts) {
    std::vector<Drafter::Named> more;
    if (one.forks) more.emplace_back("fork", std::make_unique<ForkSource>());
    more.emplace_back("model", MakeModelSourceFrom(kept, std::move(small)));
    auto drafter = Drafter::Make(setting, {}, std::move(more));
    EXPECT_TRUE(drafter.ok());
    options.drafter = *std::move(drafter);
  }
  BatchEngine engine(model, SixteenLetters(), {}, options);
  run.outputs.resize(3);
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    GenerateOptions generate;
    generate.max_tokens = one.tokens;
    generate.sampling = {.temperature = one.temperature, .seed = 7 * i, .draft_lanes = one.lanes};
    engine.Add({.prompt = {3, static_cast<TokenId>(i), 5},
                .constraint = one.constraint,
                .options = generate,
                .done = [&run, i](Result<Generation> output) {
                  EXPECT_TRUE(output.ok()) << output.error().ToString();
                  if (!output.ok()) return;
                  run.outputs[i] = output->tokens;
                  for (const DraftSourceStats& source : output->stats.drafts.sources) {
                    run.told += source.model_calls;
                    run.told_late += source.late_calls;
                  }
                }});
  }
  while (engine.Step()) {
    if (one.drafts) {
      EXPECT_EQ(draft.sequences.Check(), "");
    }
  }
  run.stats = engine.stats();
  EXPECT_TRUE(!one.drafts || draft.alive == 0);
  EXPECT_EQ(run.told, run.calls);
  EXPECT_EQ(run.told_late, run.late);
  return run;
}

// The target's logits, but for one place in so many.
ToyModel::Logits Wrong(double share) {
  return [share](const ToyModel::Place& place, std::span<float> out) {
    HashedLogits(place, out);
    if (UniformAt(HashOf(place.tokens), 9, 0) >= share) return;
    for (size_t v = 0; v < out.size(); ++v) out[v] += v % 2 == 0 ? 3.0f : 0.0f;
  };
}

TEST(OverlapTest, OutputsAreThoseWithoutDrafts) {
  const Compiler compiler(SixteenLetters());
  const auto runs = MakeConstraint(*compiler.CompileRegex("([acegj-p]{1,3}bdf)*"));
  for (const auto& constraint : {std::shared_ptr<const Constraint>(), runs}) {
    for (const int lanes : {1, 4}) {
      OverlapCase one = {.target = HashedLogits, .draft = Wrong(0), .constraint = constraint};
      one.lanes = lanes;
      one.drafts = false;
      const OverlapRun plain = RunOverlap(one);
      one.drafts = true;
      for (const double share : {0.0, 0.3, 1.0}) {
        for (const int batch : {1, 3}) {
          one.draft = Wrong(share);
          one.batch = batch;
          one.nodes = batch == 1 ? 4 : 7;
          const OverlapRun run = RunOverlap(one);
          EXPECT_EQ(run.outputs, plain.outputs) << share << ", " << batch << ", " << lanes;
          EXPECT_GT(run.stats.drafts, 0);
          // Of several lanes the host draws, so the device has no time of its own.
          if (lanes > 1) continue;
          EXPECT_GE(2 * run.late, run.calls) << share << ", " << batch << ", " << lanes;
          // One call at most for a tree before the device begins.
          EXPECT_LE(run.calls - run.late, batch * run.stats.steps);
        }
      }
    }
  }
}

TEST(OverlapTest, WhatWasRightIsUsed) {
  OverlapCase one = {.target = HashedLogits, .draft = Wrong(0), .tokens = 200};
  const OverlapRun run = RunOverlap(one);
  EXPECT_EQ(run.stats.accepted, run.stats.drafts);
  EXPECT_GT(run.stats.accepted, 3 * run.stats.steps);
  // The first tree of each output needs a call in front, and no other one.
  EXPECT_LE(run.calls - run.late, 2 * std::ssize(run.outputs));
  one.draft = Wrong(1);
  one.drafts = false;
  const OverlapRun plain = RunOverlap(one);
  EXPECT_EQ(run.outputs, plain.outputs);
}

// Where time decides, the first call tells how long the device leaves.
TEST(OverlapTest, RunsWhereADeviceLeavesTime) {
  OverlapCase one = {.target = HashedLogits, .draft = Wrong(0.2), .batch = 3};
  one.drafts = false;
  const OverlapRun plain = RunOverlap(one);
  one.drafts = true;
  one.always = false;
  EXPECT_EQ(RunOverlap(one).outputs, plain.outputs);
  one.device_seconds = 0.002;
  const OverlapRun run = RunOverlap(one);
  EXPECT_EQ(run.outputs, plain.outputs);
  EXPECT_GT(run.late, 0);
}

// ---- Two leaves ----

TEST(OverlapTest, GoesOnBehindTheTwoLikeliestLeaves) {
  OverlapCase one = {.target = [](const ToyModel::Place& place,
                                  std::span<float> out) { ForkingLogits(place.tokens, true, out); },
                     .draft = [](const ToyModel::Place& place,
                                 std::span<float> out) { ForkingLogits(place.tokens, false, out); },
                     .tokens = 400,
                     .temperature = 1};
  one.drafts = false;
  const OverlapRun plain = RunOverlap(one);
  one.drafts = true;
  one.forks = true;
  const OverlapRun run = RunOverlap(one);
  EXPECT_EQ(run.outputs, plain.outputs);
  EXPECT_EQ(run.most_lines, 2);
  // Behind one leaf alone, every second of the 300 forks would need a call in front.
  EXPECT_LE(run.calls - run.late, 30);
  EXPECT_GT(run.stats.accepted, run.stats.steps);
}

}  // namespace
}  // namespace pawl
