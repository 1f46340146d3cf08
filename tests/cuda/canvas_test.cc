// Canvases of models whose rows see both sides (LLaDA, Dream) against the CPU, and their bits in
// any company.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/model_util.h"
#include "tests/model/diffusion_twins.h"
#include "tests/search/tiny_filler.h"

namespace pawl::PAWL_GPU {
namespace {

TransformerCudaOptions Exact() {
  TransformerCudaOptions options;
  options.cache = CacheType::kF32;
  options.library = false;
  return options;
}

std::unique_ptr<Model> Filler(const std::string& name, const TransformerCudaOptions& options) {
  Result<std::unique_ptr<Model>> model = LoadCuda(GoldenFolder("diffusion/" + name), options);
  EXPECT_TRUE(model.ok()) << model.error().ToString();
  return model.ok() ? *std::move(model) : nullptr;
}

std::unique_ptr<Model> FillerOnCpu(const std::string& name) {
  ModelOptions options;
  options.threads = 1;
  Result<std::unique_ptr<Model>> model = LoadModel(GoldenFolder("diffusion/" + name), options);
  EXPECT_TRUE(model.ok());
  return model.ok() ? *std::move(model) : nullptr;
}

// A canvas, and the rows of it that a call runs.
struct Canvas {
  Canvas(Model& of, int length) : model(&of), sequence(MakeSequence(of, length)) {}
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;
  ~Canvas() { model->FreeSequence(sequence); }
  // Those of the positions that `runs` takes, with logits.
  std::vector<Row> Rows(std::span<const TokenId> tokens,
                        const std::function<bool(int)>& runs) const {
    std::vector<Row> rows;
    for (int i = 0; i < static_cast<int>(tokens.size()); ++i) {
      if (!runs(i)) continue;
      rows.push_back({.token = tokens[static_cast<size_t>(i)],
                      .position = i,
                      .sequence = sequence,
                      .output = static_cast<int32_t>(rows.size())});
    }
    return rows;
  }
  std::vector<float> Run(std::span<const TokenId> tokens,
                         const std::function<bool(int)>& runs) const {
    return RunRows(*model, Rows(tokens, runs));
  }

  Model* model;
  SequenceId sequence;
};

bool All(int) { return true; }

// Of each row.
void AddErrors(std::span<const float> got, std::span<const float> expected, size_t width,
               std::vector<double>& errors) {
  EXPECT_EQ(got.size(), expected.size());
  for (size_t at = 0; at < got.size(); at += width) {
    const double error = RelativeError(got.subspan(at, width), expected.subspan(at, width));
    errors.push_back(std::isnan(error) ? 1e9 : error);
  }
}

class CanvasTest : public GpuTest, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, CanvasTest, testing::Values("llada", "dream"),
                         [](const auto& name) { return name.param; });

// All rows; a block with what stands on both sides kept; the rows of a delayed cache; a canvas that
// has grown, and one that was cut off. Tokens change in between. The errors of all rows, ascending.
std::vector<double> ErrorsOfCanvas(Model& cuda, Model& cpu, int length) {
  Random random(31);
  const auto width = static_cast<size_t>(cpu.info().vocabulary_size);
  std::vector<TokenId> tokens = RandomTokens(random, length + 9, static_cast<int>(width));
  const Canvas on_device(cuda, length + 9), on_cpu(cpu, length + 9);
  std::vector<double> errors;
  const auto compare = [&](int end, const std::function<bool(int)>& runs) {
    const auto canvas = std::span(tokens).first(static_cast<size_t>(end));
    AddErrors(on_device.Run(canvas, runs), on_cpu.Run(canvas, runs), width, errors);
    for (size_t i = 3; i < tokens.size(); i += 5) tokens[i] = (tokens[i] + 11) % 40;
  };
  compare(length, All);
  compare(length, [&](int i) { return i >= length / 3 && i < length / 2; });
  compare(length, [](int i) { return i % 5 == 3 || i % 7 == 0; });
  compare(length + 9, [&](int i) { return i >= length / 4; });
  cuda.Truncate(on_device.sequence, length / 2);
  cpu.Truncate(on_cpu.sequence, length / 2);
  compare(length / 2, [&](int i) { return i >= 4; });
  std::ranges::sort(errors);
  return errors;
}

TEST_P(CanvasTest, LogitsAreTheCpus) {
  const auto cuda = Filler(GetParam(), Exact());
  const auto cpu = FillerOnCpu(GetParam());
  ASSERT_TRUE(cuda != nullptr && cpu != nullptr);
  const auto filling = cuda->filling();
  ASSERT_TRUE(filling.has_value());
  EXPECT_EQ(filling->mask, cpu->filling()->mask);
  EXPECT_EQ(filling->shifted, cpu->filling()->shifted);
  for (const int length : {20, 70}) {
    const std::vector<double> errors = ErrorsOfCanvas(*cuda, *cpu, length);
    EXPECT_LT(errors[errors.size() * 19 / 20], 1e-4) << length;
    EXPECT_LT(errors.back(), 4e-4) << length;
  }
}

// Activations are bf16 there, and keys and values too. All rows of a canvas lie behind each other's
// roundings, so a few are further away than those of prompts.
TEST_P(CanvasTest, LargeCanvasesThroughTheLibraryAreNear) {
  const auto cuda = Filler(GetParam(), {});
  const auto cpu = FillerOnCpu(GetParam());
  ASSERT_TRUE(cuda != nullptr && cpu != nullptr);
  for (const int length : {75, 135}) {  // memory for rows grows
    const std::vector<double> errors = ErrorsOfCanvas(*cuda, *cpu, length);
    EXPECT_LT(errors[errors.size() * 19 / 20], 8e-2);
    EXPECT_LT(errors.back(), 1.6e-1);
    EXPECT_GT(errors[errors.size() / 2], 2e-4) << "it did not go that way";
    EXPECT_LT(errors[errors.size() / 2], 3e-2);
  }
}

// Two canvases share a call, their rows mixed with those of a third.
void ExpectTheSameInCompany(Model& model, int length) {
  Random random(32);
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  const std::vector<TokenId> tokens = RandomTokens(random, length, static_cast<int>(width));
  const Canvas alone(model, length), first(model, length), second(model, 80), third(model, 40);
  const std::vector<float> expected = alone.Run(tokens, All);
  const auto block = [&](int i) { return i >= length / 4 && i < length / 2; };
  const std::vector<float> of_block = alone.Run(tokens, block);
  EXPECT_TRUE(SameBits(of_block, std::span(expected).subspan(
                                     static_cast<size_t>(length / 4) * width, of_block.size())) ||
              length > kMostSkinnyRows)
      << "a block is what it was in the whole canvas";
  for (const bool whole : {true, false}) {
    std::vector<Row> rows;
    const std::vector<Row> mine = first.Rows(tokens, whole ? std::function<bool(int)>(All) : block);
    std::vector<Row> others;
    for (const Canvas* other : {&second, &third}) {
      const int count = other == &second ? 70 : 21;
      const std::vector<TokenId> theirs = RandomTokens(random, count, static_cast<int>(width));
      for (Row row : other->Rows(theirs, All)) {
        row.output = -1;
        others.push_back(row);
      }
    }
    size_t next[2] = {0, 0};
    while (next[0] < mine.size() || next[1] < others.size()) {
      const size_t from = next[0] == mine.size() || (next[1] < others.size() && random() % 3 == 0);
      rows.push_back((from == 0 ? mine : others)[next[from]++]);
    }
    std::vector<float> logits(mine.size() * width);
    const Status status = model.Forward(rows, logits);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_TRUE(SameBits(logits, whole ? expected : of_block)) << whole;
  }
}

TEST_P(CanvasTest, RowsHaveTheSameBitsInAnyCompany) {
  for (const bool library : {false, true}) {
    TransformerCudaOptions options = Exact();
    options.library = library;
    const auto model = Filler(GetParam(), options);
    ASSERT_NE(model, nullptr);
    ExpectTheSameInCompany(*model, library ? 130 : 41);
  }
}

// Without the library, canvases of any size have the bits of blocks.
TEST_P(CanvasTest, BlocksChangeNoBit) {
  Random random(33);
  const auto model = Filler(GetParam(), Exact());
  ASSERT_NE(model, nullptr);
  const auto width = static_cast<size_t>(model->info().vocabulary_size);
  const std::vector<TokenId> tokens = RandomTokens(random, 75, static_cast<int>(width));
  const Canvas canvas(*model, 75);
  const std::vector<float> expected = canvas.Run(tokens, All);
  for (const auto& [from, to] : {std::pair(60, 75), std::pair(20, 52), std::pair(3, 70)}) {
    const auto got =
        canvas.Run(tokens, [first = from, end = to](int i) { return i >= first && i < end; });
    const auto old = std::span(expected).subspan(static_cast<size_t>(from) * width, got.size());
    EXPECT_TRUE(SameBits(got, old)) << from;
  }
  // A copy has what was kept.
  const Canvas copy(*model, 75);
  ASSERT_TRUE(model->CopySequence(canvas.sequence, copy.sequence).ok());
  const auto rows = [](int i) { return i % 3 == 0; };
  EXPECT_TRUE(SameBits(copy.Run(tokens, rows), canvas.Run(tokens, rows)));
}

// Rows one by one see what causal rows see.
TEST_P(CanvasTest, OneByOneTheyAreCausalModels) {
  const auto filler = Filler(GetParam(), Exact());
  Result<std::unique_ptr<Model>> causal =
      LoadCuda(GetParam() == "dream" ? DreamAsQwen2() : LladaAsLlama(), Exact());
  ASSERT_TRUE(filler != nullptr && causal.ok());
  EXPECT_FALSE((*causal)->filling().has_value());
  const SequenceId one = MakeSequence(**causal, 40), other = MakeSequence(*filler, 40);
  for (int i = 0; i < 40; ++i) {
    const TokenId token[] = {i * 7 % 48};
    ASSERT_TRUE(SameBits(RunChunk(*filler, other, i, token), RunChunk(**causal, one, i, token)));
  }
}

// Outputs of the whole loop are the CPU's, with each cache and with canvases that are drafted. The
// language has few states: where a lattice leaves some out, nearly equal scores may choose others.
TEST_P(CanvasTest, OutputsAreTheCpus) {
  TinyFiller tiny(GetParam()), on_device(GetParam());
  on_device.model = Filler(GetParam(), Exact());
  ASSERT_NE(on_device.model, nullptr);
  GenerateOptions options;
  options.max_tokens = 40;
  for (const DiffusionOptions& diffusion :
       {DiffusionOptions{.steps = 3, .block_length = 20, .cache = "dual"},
        DiffusionOptions{.steps = 3, .cache = "dkv", .kv_refresh = 3},
        DiffusionOptions{.schedule = "ssd", .steps = 6, .cache = "prefix"}}) {
    options.diffusion = diffusion;
    options.sampling.temperature = diffusion.schedule.empty() ? 0 : 0.7f;
    options.sampling.seed = 5;
    const auto expected = tiny.Run(2, "[a-z]{20,38}", options);
    const auto got = on_device.Run(2, "[a-z]{20,38}", options);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i].ok()) << got[i].error().ToString();
      ASSERT_TRUE(expected[i].ok());
      EXPECT_EQ(got[i]->text, expected[i]->text) << diffusion.cache;
      EXPECT_EQ(got[i]->stats.forward_calls, expected[i]->stats.forward_calls);
    }
  }
}

class CanvasErrorsTest : public GpuTest {};

TEST_F(CanvasErrorsTest, WhatIsNotThereIsNamed) {
  const auto model = Filler("llada", Exact());
  ASSERT_NE(model, nullptr);
  const SequenceId sequence = MakeSequence(*model, 20);
  const Row rows[] = {{.token = 1, .position = 0, .sequence = sequence},
                      {.token = 2, .position = 1, .sequence = sequence, .ancestors = 1}};
  Status status = model->Forward(rows, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().place, "row 1");
  // Its rows see both sides, so a window means nothing that the kernels have.
  auto [config, weights] = StoredModelOf(GoldenFolder("diffusion/llada"));
  ASSERT_TRUE(config.ok() && weights.ok());
  for (Layer& layer : config->layers) std::get<pawl::Attention>(layer.mixer).window = 8;
  const auto refused = TransformerCuda::Make(*config, *weights, Exact());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("windows of rows that see both sides"), std::string::npos);
}

TEST_F(CanvasErrorsTest, ABadRowIsNamedByItsPlaceInTheCall) {
  auto [config, weights] = StoredModelOf(GoldenFolder("diffusion/dream"));
  ASSERT_TRUE(config.ok() && weights.ok());
  const auto size = static_cast<size_t>(weights->embedding.rows * weights->embedding.cols);
  std::vector<float> embedding(size);
  std::memcpy(embedding.data(), weights->embedding.data, size * sizeof(float));
  embedding[static_cast<size_t>(weights->embedding.cols) * 9] = kNan;
  weights->embedding.data = embedding.data();
  TransformerCudaOptions options = Exact();
  options.kv_bytes = 1 << 20;
  const Result<std::unique_ptr<Model>> model = TransformerCuda::Make(*config, *weights, options);
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  const Canvas good(**model, 80), bad(**model, 80);
  const std::vector<TokenId> tokens(70, 3), with_nine(20, 9);
  std::vector<Row> rows = good.Rows(tokens, All);
  const size_t first = rows.size() / 2;
  for (Row row : bad.Rows(with_nine, All)) {
    row.output = row.position == 0 ? 70 : -1;
    rows.insert(rows.begin() + static_cast<ptrdiff_t>(first + static_cast<size_t>(row.position)),
                row);
  }
  std::vector<float> logits(71 * static_cast<size_t>((*model)->info().vocabulary_size));
  ASSERT_FALSE((*model)->Forward(rows, logits).ok());
  ASSERT_EQ((*model)->bad_rows().size(), 1u);
  EXPECT_EQ((*model)->bad_rows()[0], static_cast<int32_t>(first));
}

}  // namespace
}  // namespace pawl::PAWL_GPU
