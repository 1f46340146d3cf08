// Outputs of models that fill masks: the lattice against brute force, canvases that are filled in
// any order, and tiny random models under constraints.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/decode/batch.h"
#include "src/decode/check_input.h"
#include "src/decode/diffusion/mask_filler.h"
#include "src/model/transformer_cpu.h"
#include "tests/search/toy_language.h"
#include "tests/source_dir.h"

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

// Tokens 0 to 44 are letters and digits, 45 is the end, 46 the mask.
struct TinyFiller {
  explicit TinyFiller(const std::string& name) {
    ModelOptions options;
    options.threads = 1;
    model = *LoadModel(SourceDir() + "/tests/data/models/diffusion/" + name, options);
    std::vector<std::string> tokens;
    for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
    for (char c = '0'; c <= '9'; ++c) tokens.emplace_back(1, c);
    for (const char* more : {"{", "}", "\"", ":", ",", "[", "]", "12", "ab"}) {
      tokens.emplace_back(more);
    }
    vocabulary = VocabularyOf(tokens);
  }
  std::vector<Result<Generation>> Run(int count, const std::string& regex,
                                      const GenerateOptions& options) {
    BatchEngine engine(*model, vocabulary, {}, {.max_batch = 4});
    std::vector<Result<Generation>> outputs;
    for (int i = 0; i < count; ++i) {
      BatchRequest request;
      for (int t = 0; t < 5 + 3 * i; ++t) request.prompt.push_back((7 * t + i) % 40);
      if (!regex.empty()) {
        request.constraint = MakeConstraint(*Compiler(vocabulary).CompileRegex(regex));
      }
      request.options = options;
      outputs.emplace_back(Error{ErrorCode::kInternal, "", ""});
      request.done = [&outputs, i](Result<Generation> output) {
        outputs[static_cast<size_t>(i)] = std::move(output);
      };
      engine.Add(std::move(request));
    }
    while (engine.Step()) {
    }
    calls = engine.stats().steps;
    return outputs;
  }
  std::unique_ptr<Model> model;
  std::shared_ptr<const Vocabulary> vocabulary;
  int64_t calls = 0;
};

TEST(DiffusionWorkTest, RequestsShareCallsAndKeepTheirOutputs) {
  for (const char* name : {"llada", "dream"}) {
    TinyFiller tiny(name);
    GenerateOptions options;
    options.max_tokens = 40;
    const std::string regex = "\\{\"ab\":[0-9]{3,9},\"x\":\\[\"[a-z]{2,20}\"\\]\\}";
    std::vector<std::string> streamed(1);
    const auto together = tiny.Run(4, regex, options);
    const int64_t shared = tiny.calls;
    int64_t alone = 0;
    options.on_token = [&](TokenId, std::string_view bytes) {
      streamed[0] += bytes;
      return true;
    };
    const auto first = tiny.Run(1, regex, options);
    for (const Result<Generation>& output : together) {
      ASSERT_TRUE(output.ok()) << output.error().ToString();
      EXPECT_EQ(output->stop, StopReason::kEnd);
      const Grammar grammar = *Compiler(tiny.vocabulary).CompileRegex(regex);
      alone += output->stats.forward_calls;
      const auto end = grammar.Start().Advance(std::string_view(output->text));
      ASSERT_TRUE(end.has_value()) << output->text;
      EXPECT_TRUE(end->accepting()) << output->text;
    }
    EXPECT_EQ(first[0]->text, together[0]->text);
    EXPECT_EQ(streamed[0], together[0]->text);
    EXPECT_LT(shared, alone);
    EXPECT_EQ(dynamic_cast<const TransformerCpu&>(*tiny.model).sequences().pool().in_use(), 0);
  }
}

TEST(DiffusionWorkTest, RefusesWhatMeansNothing) {
  TinyFiller tiny("dream");
  GenerateOptions options;
  options.max_tokens = 8;
  const auto place = [&] {
    const auto output = tiny.Run(1, "", options);
    return output[0].ok() ? "" : output[0].error().place;
  };
  EXPECT_EQ(place(), "");
  options.logprobs = 3;
  EXPECT_EQ(place(), "logprobs");
  options.logprobs = -1;
  options.sampling.top_k = 5;
  EXPECT_EQ(place(), "top_k");
  options.sampling.top_k = 0;
  options.sampling.repetition_penalty = 2;
  EXPECT_EQ(place(), "repetition_penalty");
}

// All outputs take 20 tokens of the 24 of the canvas.
TEST(DiffusionWorkTest, OptionsSayHowManyCalls) {
  TinyFiller tiny("dream");
  GenerateOptions options;
  options.max_tokens = 24;
  const auto calls = [&](const DiffusionOptions& given) {
    options.diffusion = given;
    const auto output = tiny.Run(1, "[xyz]{20}", options);
    if (!output[0].ok()) return -1;
    EXPECT_EQ(output[0]->text.size(), 20u);
    return output[0]->stats.forward_calls;
  };
  EXPECT_EQ(calls({.threshold = 0}), 1);
  EXPECT_EQ(calls({.threshold = 0, .block_length = 5}), 4);
  EXPECT_GE(calls({.threshold = 1}), 20);
  EXPECT_EQ(calls({.steps = 4}), 4);
  EXPECT_EQ(calls({.steps = 1, .block_length = 10}), 2) << "a call for each block";
  EXPECT_EQ(calls({.steps = 5, .block_length = 1 << 30}), 5);
  // At most as sure as by the share.
  const int by_share = calls({.threshold = 0.5, .alg = "maskgit_plus"});
  EXPECT_EQ(by_share, calls({.threshold = 0.5}));
  EXPECT_GT(calls({.threshold = 0.5, .alg = "topk_margin"}), by_share);
  EXPECT_GT(calls({.threshold = 0.5, .alg = "entropy"}), by_share);
}

TEST(DiffusionWorkTest, RandomMasksFollowTheSeed) {
  TinyFiller tiny("llada");
  GenerateOptions options;
  options.max_tokens = 24;
  options.diffusion = {.steps = 12, .remasking = "random"};
  std::set<std::string> texts;
  for (const uint64_t seed : {1, 2, 3, 1, 2, 3}) {
    options.sampling.seed = seed;
    const auto output = tiny.Run(1, "[a-z]{10,20}", options);
    ASSERT_TRUE(output[0].ok()) << output[0].error().ToString();
    texts.insert(output[0]->text);
  }
  EXPECT_GT(texts.size(), 1u);
  EXPECT_LE(texts.size(), 3u);
}

TEST(DiffusionWorkTest, ErrorsNameTheOptionOfTheLoop) {
  TinyFiller dream("dream"), llada("llada");
  const auto place = [&](const DiffusionOptions& given, TinyFiller& tiny) {
    GenerateOptions options;
    options.max_tokens = 4;
    options.diffusion = given;
    const auto output = tiny.Run(1, "", options);
    return output[0].ok() ? "" : output[0].error().place;
  };
  EXPECT_EQ(place({.threshold = 1.1}, dream), "diffusion.threshold");
  EXPECT_EQ(place({.threshold = -0.1}, dream), "diffusion.threshold");
  EXPECT_EQ(place({.threshold = std::nan("")}, dream), "diffusion.threshold");
  EXPECT_EQ(place({.steps = 0}, dream), "diffusion.steps");
  EXPECT_EQ(place({.threshold = 0.5, .steps = 3}, dream), "diffusion.steps");
  EXPECT_EQ(place({.block_length = 0}, dream), "diffusion.block_length");
  EXPECT_EQ(place({.remasking = "low_confidence"}, dream), "diffusion.remasking");
  EXPECT_EQ(place({.remasking = "low_confidence"}, llada), "");
  EXPECT_EQ(place({.remasking = "surest"}, llada), "diffusion.remasking");
  EXPECT_EQ(place({.remasking = "random"}, llada), "diffusion.remasking");
  EXPECT_EQ(place({.alg = "entropy"}, llada), "diffusion.alg");
  EXPECT_EQ(place({.alg = "origin"}, dream), "diffusion.alg");
}

TEST(DiffusionWorkTest, CausalModelsRefuseTheOptions) {
  for (const auto& [given, name] :
       std::vector<std::pair<DiffusionOptions, std::string>>{{{.threshold = 0.9}, "threshold"},
                                                             {{.steps = 8}, "steps"},
                                                             {{.block_length = 8}, "block_length"},
                                                             {{.remasking = "random"}, "remasking"},
                                                             {{.alg = "entropy"}, "alg"}}) {
    const Status status = RefuseDiffusion(given);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().place, "diffusion." + name);
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  }
  EXPECT_TRUE(RefuseDiffusion({}).ok());
}

TEST(DiffusionWorkTest, TheSeedDecides) {
  TinyFiller tiny("llada");
  GenerateOptions options;
  options.max_tokens = 24;
  options.sampling.temperature = 2;
  std::set<std::string> texts;
  for (const uint64_t seed : {1, 2, 3, 1, 2, 3}) {
    options.sampling.seed = seed;
    const auto output = tiny.Run(1, "[a-z]{10,20}", options);
    ASSERT_TRUE(output[0].ok());
    texts.insert(output[0]->text);
  }
  EXPECT_EQ(texts.size(), 3u);
}

}  // namespace
}  // namespace pawl
