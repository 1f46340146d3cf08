// Forward calls that are told which tokens are allowed: the logits that they compute have the bits
// of full calls, the rest of the head is not touched, and a sampler sees no difference.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/kernels.h"
#include "src/decode/sampler.h"
#include "src/model/model.h"
#include "src/model/random_weights.h"
#include "tests/support/kernel_variants.h"

namespace pawl {
namespace {

// Not a multiple of 32, and more than one piece of the head.
constexpr int kHeadVocabulary = 1337;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Random = std::mt19937;
using Words = std::vector<uint32_t>;

std::unique_ptr<Model> MakeModel(KernelVariant kernels, WeightDtype dtype, float soft_cap,
                                 int threads) {
  TransformerConfig config = *ShapeNamed("135m");
  config.hidden = 96;
  config.vocabulary = kHeadVocabulary;
  config.layers.resize(2);
  for (Layer& layer : config.layers) {
    layer.mlp().width = 160;
    layer.attention().heads = 4;
    layer.attention().kv_heads = 2;
    layer.attention().head_dim = 24;
  }
  config.logit_soft_cap = soft_cap;
  ModelOptions options;
  options.kernels = kernels;
  options.dtype = dtype;
  options.threads = threads;
  Result<std::unique_ptr<Model>> model = RandomModel(config, options, 5);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().ToString();
    return nullptr;
  }
  return *std::move(model);
}

bool Allows(const Words& words, int token) {
  const auto w = static_cast<size_t>(token / 32);
  return w < words.size() && (words[w] >> token % 32 & 1) != 0;
}

// A few tokens, a run of them, most of them, every one, or words that end early.
Words RandomMask(Random& random, int kind) {
  const size_t size = (kHeadVocabulary + 31) / 32;
  Words words(kind == 4 ? size / 2 : size, 0);
  const int last = std::min(kHeadVocabulary, static_cast<int>(words.size()) * 32);
  const auto allow = [&](int token) {
    words[static_cast<size_t>(token / 32)] |= uint32_t{1} << token % 32;
  };
  if (kind == 0) {
    for (int i = 0; i < 5; ++i) allow(static_cast<int>(random() % static_cast<unsigned>(last)));
  } else if (kind == 1) {
    const int first = static_cast<int>(random() % 900);
    for (int t = first; t < first + 200; ++t) allow(t);
  } else {
    for (int t = 0; t < last; ++t) {
      if (kind == 3 || random() % 8 != 0) allow(t);
    }
  }
  return words;
}

TEST(MaskedHeadTest, AllowedLogitsHaveTheBitsOfAFullCall) {
  Random random(1);
  for (const KernelVariant kernels : kAllKernels) {
    if (FindKernels(kernels) == nullptr) continue;
    for (const WeightDtype dtype : {WeightDtype::kBf16, WeightDtype::kInt8}) {
      for (const int threads : {1, 3}) {
        const std::unique_ptr<Model> model =
            MakeModel(kernels, dtype, threads == 1 ? 0.0f : 20.0f, threads);
        ASSERT_NE(model, nullptr);
        for (int round = 0; round < 12; ++round) {
          const int count = 1 + static_cast<int>(random() % 5);
          std::vector<Row> rows;
          std::vector<Words> masks;
          for (int i = 0; i < count; ++i) {
            const SequenceId sequence = *model->NewSequence(4);
            rows.push_back({static_cast<TokenId>(random() % kHeadVocabulary), 0, sequence, 0, i});
            masks.push_back(RandomMask(random, static_cast<int>(random() % 5)));
          }
          // One row may want everything.
          const int full = round % 3 == 0 ? static_cast<int>(random()) % count : -1;
          std::vector<float> expected(static_cast<size_t>(count) * kHeadVocabulary, kNan);
          std::vector<float> got = expected;
          ASSERT_TRUE(model->Forward(rows, expected).ok());
          for (int i = 0; i < count; ++i) {
            if (i != full) rows[static_cast<size_t>(i)].allowed = masks[static_cast<size_t>(i)];
          }
          ASSERT_TRUE(model->Forward(rows, got).ok());
          for (int i = 0; i < count; ++i) {
            for (int t = 0; t < kHeadVocabulary; ++t) {
              const size_t at = static_cast<size_t>(i) * kHeadVocabulary + static_cast<size_t>(t);
              if (i != full && !Allows(masks[static_cast<size_t>(i)], t)) continue;
              ASSERT_EQ(std::memcmp(&expected[at], &got[at], sizeof(float)), 0)
                  << model->info().kernels << " row " << i << " token " << t;
            }
          }
          for (const Row& row : rows) model->FreeSequence(row.sequence);
        }
      }
    }
  }
}

TEST(MaskedHeadTest, RowsOfTheHeadThatNobodyAllowsAreSkipped) {
  const std::unique_ptr<Model> model =
      MakeModel(KernelVariant::kAuto, WeightDtype::kAsStored, 0.0f, 1);
  const SequenceId one = *model->NewSequence(4), two = *model->NewSequence(4);
  Words first((kHeadVocabulary + 31) / 32, 0), second = first;
  first[3] = 1;
  second[20] = 0x80000000u;
  std::vector<Row> rows = {{7, 0, one, 0, 0}, {8, 0, two, 0, 1}};
  rows[0].allowed = first;
  rows[1].allowed = second;
  std::vector<float> logits(2 * kHeadVocabulary, kNan);
  ASSERT_TRUE(model->Forward(rows, logits).ok());
  int computed = 0;
  for (const float logit : logits) computed += std::isnan(logit) ? 0 : 1;
  EXPECT_EQ(computed, 2 * 2 * 32) << "the words of both masks, for both rows";
  // Nothing allowed: nothing computed, and no error.
  const Words none(first.size(), 0);
  rows.resize(1);
  rows[0].allowed = none;
  std::fill(logits.begin(), logits.end(), kNan);
  ASSERT_TRUE(model->Forward(rows, logits).ok());
  for (const float logit : logits) EXPECT_TRUE(std::isnan(logit));
}

TEST(MaskedHeadTest, TheSamplerSeesNoDifference) {
  Random random(2);
  const std::unique_ptr<Model> model =
      MakeModel(KernelVariant::kAuto, WeightDtype::kAsStored, 0.0f, 1);
  const SequenceId sequence = *model->NewSequence(64);
  const auto unit = [&] { return static_cast<float>(random() % 1000) / 1000.0f; };
  std::vector<TokenId> prompt, output;
  for (int i = 0; i < 20; ++i) prompt.push_back(static_cast<TokenId>(random() % kHeadVocabulary));
  for (int i = 0; i < 10; ++i) output.push_back(static_cast<TokenId>(random() % kHeadVocabulary));
  for (int round = 0; round < 600; ++round) {
    Words words = RandomMask(random, round % 4);
    const Mask mask(round, words);
    if (mask.count() == 0) continue;
    SamplingParams params;
    params.temperature = round % 5 == 0 ? 0.0f : 2 * unit();
    params.top_k = random() % 2 == 0 ? 0 : 1 + static_cast<int>(random() % 50);
    params.top_p = random() % 2 == 0 ? 1.0f : 0.05f + 0.9f * unit();
    params.min_p = random() % 2 == 0 ? 0.0f : 0.3f * unit();
    params.repetition_penalty = random() % 2 == 0 ? 1.0f : 0.5f + unit();
    params.presence_penalty = random() % 2 == 0 ? 0.0f : unit();
    params.frequency_penalty = random() % 2 == 0 ? 0.0f : unit();
    params.seed = random();
    Row row = {static_cast<TokenId>(random() % kHeadVocabulary), 0, sequence, 0, 0};
    std::vector<float> full(kHeadVocabulary, kNan), masked(kHeadVocabulary, kNan);
    ASSERT_TRUE(model->Forward({&row, 1}, full).ok());
    row.allowed = mask.words();
    ASSERT_TRUE(model->Forward({&row, 1}, masked).ok());
    Sampler sampler(params);
    const auto position = static_cast<uint64_t>(round);
    const Result<TokenId> expected = sampler.Sample(full, &mask, position, {prompt, output});
    const Result<TokenId> got = sampler.Sample(masked, &mask, position, {prompt, output});
    ASSERT_TRUE(expected.ok() && got.ok());
    ASSERT_EQ(*expected, *got) << round;
  }
}

TEST(RandomModelTest, HasTheShapeAndDependsOnTheSeed) {
  EXPECT_EQ(ShapeNames().size(), 4u);
  EXPECT_FALSE(ShapeNamed("7b").has_value());
  ModelOptions options;
  options.threads = 1;
  const Result<std::unique_ptr<Model>> smol = RandomModel(*ShapeNamed("135m"), options, 1);
  ASSERT_TRUE(smol.ok());
  EXPECT_EQ((*smol)->info().parameters, 134515008);
  EXPECT_EQ((*smol)->info().dtype, "bf16");
  EXPECT_EQ((*smol)->info().step_bytes, (*smol)->info().weight_bytes);
  const auto answer = [](uint64_t seed, WeightDtype dtype) {
    TransformerConfig config = *ShapeNamed("8b");
    config.hidden = 64;
    config.vocabulary = 100;
    config.layers.resize(1);
    Attention& attention = config.layers[0].attention();
    attention.heads = attention.kv_heads = 4;
    attention.head_dim = 16;
    config.layers[0].mlp().width = 64;
    ModelOptions small;
    small.threads = 1;
    small.dtype = dtype;
    const Result<std::unique_ptr<Model>> model = RandomModel(config, small, seed);
    std::vector<float> logits(100, kNan);
    EXPECT_TRUE(model.ok());
    const Row row = {3, 0, *(*model)->NewSequence(4), 0, 0};
    EXPECT_TRUE((*model)->Forward({&row, 1}, logits).ok());
    EXPECT_LT((*model)->info().step_bytes, (*model)->info().weight_bytes);
    return logits;
  };
  for (const WeightDtype dtype : {WeightDtype::kAsStored, WeightDtype::kFp32, WeightDtype::kFp16,
                                  WeightDtype::kInt8, WeightDtype::kInt4}) {
    EXPECT_EQ(answer(1, dtype), answer(1, dtype));
    EXPECT_NE(answer(1, dtype), answer(2, dtype));
  }
}

}  // namespace
}  // namespace pawl
