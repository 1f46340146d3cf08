// LLaDA and Dream: rows that see both sides, against goldens of another program
// (scripts/make_diffusion_goldens.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/model/diffusion_twins.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

std::unique_ptr<Model> LoadDiffusion(const std::string& folder, int threads = 1) {
  ModelOptions options;
  options.threads = threads;
  options.kernels = KernelVariant::kPortable;
  Result<std::unique_ptr<Model>> model = LoadModel(folder, options);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().ToString());
  return model.ok() ? *std::move(model) : nullptr;
}

// All rows, and then again those from `keep` on and in front of `end`.
std::vector<float> CanvasLogits(Model& model, std::span<const int32_t> tokens, size_t keep = 0,
                                size_t end = std::string::npos) {
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  std::vector<float> logits(tokens.size() * width);
  const SequenceId sequence = *model.NewSequence(static_cast<int>(tokens.size()));
  for (const size_t from : {size_t{0}, keep}) {
    std::vector<Row> rows;
    for (size_t i = from; i < (from == 0 ? tokens.size() : std::min(end, tokens.size())); ++i) {
      rows.push_back({.token = tokens[i],
                      .position = static_cast<int32_t>(i),
                      .sequence = sequence,
                      .output = static_cast<int32_t>(i)});
    }
    EXPECT_TRUE(model.Forward(rows, logits).ok());
    if (keep == 0) break;
  }
  model.FreeSequence(sequence);
  return logits;
}

class DiffusionModelTest : public testing::TestWithParam<const char*> {};

TEST_P(DiffusionModelTest, CanvasesEqualTheGoldens) {
  const std::string name = std::string("diffusion/") + GetParam();
  const auto model = LoadDiffusion(GoldenFolder(name));
  const auto threads = LoadDiffusion(GoldenFolder(name), 4);
  ASSERT_NE(model, nullptr);
  const auto filling = model->filling();
  ASSERT_TRUE(filling.has_value());
  EXPECT_EQ(filling->mask, 46);
  EXPECT_EQ(filling->shifted, GetParam() == std::string("dream"));
  const auto file = SafetensorsFile::Open(GoldenFolder(name) + "/golden.safetensors");
  ASSERT_TRUE(file.ok());
  for (const char* length : {"1", "29", "150"}) {
    const auto tokens = ReadTensor<int32_t>(*file, std::string("tokens.") + length);
    const auto expected = ReadTensor<float>(*file, std::string("logits.") + length);
    const std::vector<float> logits = CanvasLogits(*model, tokens);
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-3) << i;
    EXPECT_EQ(logits, CanvasLogits(*threads, tokens));
    // An interval, with what stands in front of it and behind it kept: nothing has changed.
    if (tokens.size() == 150) {
      EXPECT_EQ(logits, CanvasLogits(*model, tokens, 120));
      EXPECT_EQ(logits, CanvasLogits(*model, tokens, 40, 72));
    }
  }
  EXPECT_EQ(dynamic_cast<const TransformerCpu&>(*model).sequences().Check(), "");
}

INSTANTIATE_TEST_SUITE_P(All, DiffusionModelTest, testing::Values("llada", "dream"),
                         [](const auto& name) { return std::string(name.param); });

// Rows of one token each see what causal rows see.
void ExpectCausalTwin(const std::string& from, const std::string& folder) {
  const auto filler = LoadDiffusion(from), causal = LoadDiffusion(folder);
  ASSERT_NE(filler, nullptr);
  ASSERT_NE(causal, nullptr);
  EXPECT_TRUE(filler->filling().has_value());
  EXPECT_FALSE(causal->filling().has_value());
  std::vector<std::vector<float>> answers;
  for (Model* const model : {filler.get(), causal.get()}) {
    const SequenceId sequence = *model->NewSequence(20);
    std::vector<float> all(20 * static_cast<size_t>(model->info().vocabulary_size));
    for (int i = 0; i < 20; ++i) {
      const Row row = {.token = i * 7 % 48, .position = i, .sequence = sequence, .output = i};
      ASSERT_TRUE(model->Forward(std::span(&row, 1), all).ok());
    }
    answers.push_back(std::move(all));
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(DiffusionModelOneByOneTest, DreamIsQwen2) {
  ExpectCausalTwin(GoldenFolder("diffusion/dream"), DreamAsQwen2());
}

TEST(DiffusionModelOneByOneTest, LladaIsLlama) {
  ExpectCausalTwin(GoldenFolder("diffusion/llada"), LladaAsLlama());
}

TEST(DiffusionModelErrorsTest, Trees) {
  const auto model = LoadDiffusion(GoldenFolder("diffusion/llada"));
  const SequenceId sequence = *model->NewSequence(20);
  const Row rows[] = {{.token = 1, .position = 0, .sequence = sequence},
                      {.token = 2, .position = 1, .sequence = sequence, .ancestors = 1}};
  const Status status = model->Forward(rows, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace pawl
