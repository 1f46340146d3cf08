// The whole forward pass against the CPU's, for every family; and the promises of model.h about
// bits.
#include <algorithm>
#include <random>

#include "src/decode/sampler.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_cpu.h"
#include "src/model/transformer_cuda.h"
#include "src/model/transformer_weights.h"
#include "tests/cuda/model_util.h"
#include "tests/model/model_test_util.h"
#include "tests/source_dir.h"

namespace pawl::PAWL_GPU {
namespace {

class TransformerTest : public GpuTest {};

class FamilyTest : public GpuTest, public testing::WithParamInterface<std::string> {};

// Keys and values as floats leave the splitting of activations into two bf16 terms and the order of
// sums.
TEST_P(FamilyTest, LogitsAreTheCpus) {
  Random random(1);
  TransformerCudaOptions options;
  options.cache = CacheType::kF32;
  options.library = false;
  Loaded models = LoadBoth(GetParam(), options);
  ASSERT_TRUE(models.cuda != nullptr && models.cpu != nullptr);
  const double error = WorstError(models, random, 75);
  EXPECT_LT(error, 2e-4);
  RecordProperty("relative_error", std::to_string(error));
}

// One row at a time, in chunks, in another order of rows: the same bits.
TEST_P(FamilyTest, RowsHaveTheSameBitsInAnyCompany) {
  Random random(2);
  TransformerCudaOptions options;
  options.library = false;
  Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder(GetParam()), options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  Model& model = **loaded;
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  const int length = 70;
  const std::vector<TokenId> tokens = RandomTokens(random, length, static_cast<int>(width));
  const SequenceId whole = MakeSequence(model, length), other = MakeSequence(model, length);
  const SequenceId third = MakeSequence(model, length);
  int third_length = 0;
  const std::vector<float> all = RunChunk(model, whole, 0, tokens);
  ASSERT_EQ(all.size(), width * length);
  for (int at = 0; at < length;) {
    const int count = std::min<int>(length - at, 1 + static_cast<int>(random() % 20));
    std::vector<Row> rows;
    std::vector<float> logits(width * static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      rows.push_back({tokens[static_cast<size_t>(at + i)], at + i, other, 0, i});
      // A third sequence's between.
      if (random() % 3 == 0 && third_length < length)
        rows.push_back({5, third_length++, third, 0, -1});
    }
    const Status status = model.Forward(rows, logits);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_TRUE(
        SameBits(logits, std::span(all).subspan(static_cast<size_t>(at) * width, logits.size())))
        << count << " at " << at;
    at += count;
  }
}

// Many rows: activations are bf16 there.
TEST_P(FamilyTest, PromptsThroughTheLibraryAreNear) {
  Random random(6);
  Loaded models = LoadBoth(GetParam(), {});
  ASSERT_TRUE(models.cuda != nullptr && models.cpu != nullptr);
  const double error = WorstError(models, random, 110);
  EXPECT_LT(error, 8e-2);
  RecordProperty("relative_error", std::to_string(error));
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, testing::ValuesIn(GoldenNames()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_F(TransformerTest, TreesAreTheirPaths) {
  Random random(3);
  for (const char* name : {"llama-bf16-llama3", "mistral-fp16-window", "gemma3-bf16"}) {
    Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder(name), {});
    ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    Model& model = **loaded;
    const int vocabulary = model.info().vocabulary_size, base = 20;
    const std::vector<TokenId> tokens = RandomTokens(random, base + 4, vocabulary);
    const SequenceId tree = MakeSequence(model, 60), plain = MakeSequence(model, 60);
    (void)RunChunk(model, tree, 0, std::span(tokens).first(base));
    (void)RunChunk(model, plain, 0, std::span(tokens).first(base));
    //   t0 -> t1 -> t3, t0 -> 7 (a sibling), t3 -> 9
    const TokenId t0 = tokens[base], t1 = tokens[base + 1], t3 = tokens[base + 2];
    const std::vector<Row> rows = {{t0, base, tree, 0, 0},
                                   {7, base + 1, tree, 0b0001, 1},
                                   {t1, base + 1, tree, 0b0001, 2},
                                   {t3, base + 2, tree, 0b0101, 3},
                                   {9, base + 3, tree, 0b1101, 4}};
    const std::vector<float> got = RunRows(model, rows);
    const std::vector<float> expected =
        RunChunk(model, plain, base, std::span(tokens).subspan(base, 3));
    const auto width = static_cast<size_t>(vocabulary);
    const auto row = [&](const std::vector<float>& logits, size_t i) {
      return std::span(logits).subspan(i * width, width);
    };
    EXPECT_TRUE(SameBits(row(got, 0), row(expected, 0)));
    EXPECT_TRUE(SameBits(row(got, 2), row(expected, 1)));
    EXPECT_TRUE(SameBits(row(got, 3), row(expected, 2)));
    EXPECT_FALSE(SameBits(row(got, 1), row(got, 2)));
    // Committed, the path is what the plain run is.
    ASSERT_TRUE(model.CommitTree(tree, 3).ok());
    const TokenId next[] = {3};
    EXPECT_TRUE(
        SameBits(RunChunk(model, tree, base + 3, next), RunChunk(model, plain, base + 3, next)));
  }
}

TEST_F(TransformerTest, GraphsChangeNothing) {
  Random random(4);
  TransformerCudaOptions options;
  options.graphs = false;
  Result<std::unique_ptr<Model>> without = LoadCuda(GoldenFolder("qwen3-bf16"), options);
  Result<std::unique_ptr<Model>> with = LoadCuda(GoldenFolder("qwen3-bf16"), {});
  ASSERT_TRUE(without.ok() && with.ok());
  const std::vector<TokenId> tokens = RandomTokens(random, 30, (*with)->info().vocabulary_size);
  const SequenceId a = MakeSequence(**with, 40), b = MakeSequence(**without, 40);
  for (size_t at = 0; at < tokens.size();) {
    const size_t count = std::min<size_t>(tokens.size() - at, at % 3 + 1);
    const auto part = std::span(tokens).subspan(at, count);
    EXPECT_TRUE(SameBits(RunChunk(**with, a, static_cast<int>(at), part),
                         RunChunk(**without, b, static_cast<int>(at), part)));
    at += count;
  }
  EXPECT_GT(static_cast<TransformerCuda&>(**with).graphs_made(), 0);
  EXPECT_EQ(static_cast<TransformerCuda&>(**without).graphs_made(), 0);
}

// What roundings of the cache cost, next to the CPU with the same weights. The models are random
// and tiny, which is the worst case: nothing averages out.
TEST_F(TransformerTest, BoundsOfTypes) {
  Random random(5);
  struct Case {
    const char* name;
    WeightDtype dtype;
    CacheType cache;
    double bound;
    int length = 40;  // 110: through the library
  };
  const Case cases[] = {
      {"qwen2-fp32-untied", WeightDtype::kBf16, CacheType::kF32, 2e-4},
      {"qwen2-fp32-untied", WeightDtype::kFp16, CacheType::kF32, 2e-4},
      {"qwen2-fp32-untied", WeightDtype::kInt8, CacheType::kF32, 2e-4},
      {"qwen2-fp32-untied", WeightDtype::kInt4, CacheType::kF32, 2e-4},
      {"llama-bf16-llama3", WeightDtype::kInt4, CacheType::kBf16, 4e-2},
      {"qwen3-bf16", WeightDtype::kAsStored, CacheType::kBf16, 4e-2},
      {"qwen3-bf16", WeightDtype::kAsStored, CacheType::kFp8, 2.5e-1},
      {"gemma2-bf16", WeightDtype::kAsStored, CacheType::kBf16, 4e-2},
      {"qwen2-fp32-untied", WeightDtype::kFp16, CacheType::kFp8, 2.5e-1},
      {"llama-bf16-llama3", WeightDtype::kInt4, CacheType::kFp8, 2.5e-1},
      {"qwen2-fp32-untied", WeightDtype::kInt8, CacheType::kBf16, 8e-2, 110},
      {"qwen2-fp32-untied", WeightDtype::kInt4, CacheType::kBf16, 8e-2, 110},
      {"qwen3-bf16", WeightDtype::kFp16, CacheType::kBf16, 8e-2, 110},
  };
  for (const Case& c : cases) {
    TransformerCudaOptions options;
    options.cache = c.cache;
    Loaded models = LoadBoth(c.name, options, c.dtype);
    ASSERT_TRUE(models.cuda != nullptr && models.cpu != nullptr);
    const double error = WorstError(models, random, c.length);
    EXPECT_LT(error, c.bound) << c.name << " " << static_cast<int>(c.dtype) << " "
                              << static_cast<int>(c.cache);
    RecordProperty(std::string(c.name) + "." + std::to_string(static_cast<int>(c.dtype)) + "." +
                       std::to_string(static_cast<int>(c.cache)) + "." + std::to_string(c.length),
                   std::to_string(error));
  }
}

// fp8 weights next to the CPU with what they are worth as floats.
TEST_F(TransformerTest, Fp8WeightsAreWorthWhatTheySay) {
  Random random(8);
  const std::string folder = GoldenFolder("qwen2-fp32-untied");
  auto [config, weights] = StoredModelOf(folder);
  ASSERT_TRUE(config.ok() && weights.ok());
  const KernelSet& kernels = *FindKernels(KernelVariant::kAuto);
  std::vector<std::vector<float>> rounded;
  const auto round = [&](Matrix& matrix) {
    const PackedMatrix packed = PackMatrixFp8(matrix, kernels);
    std::vector<float> values;
    const auto* bytes = reinterpret_cast<const uint8_t*>(packed.data.data());
    for (int32_t r = 0; r < packed.shape.rows; ++r) {
      for (int32_t k = 0; k < packed.shape.columns; ++k) {
        const int within = k % 32, quarter = within % 16 / 4, e = within / 16 * 4 + within % 4;
        const uint8_t code =
            bytes[PackedOffset(DeviceWeight::kFp8, packed.shape.columns, r, k / 32, quarter) + e];
        const int exponent = code >> 3 & 15;
        const double size =
            exponent == 0 ? std::ldexp(code & 7, -9) : std::ldexp(8 + (code & 7), exponent - 10);
        values.push_back(static_cast<float>(((code & 0x80) != 0 ? -size : size) *
                                            packed.row_scales[static_cast<size_t>(r)]));
      }
    }
    rounded.push_back(std::move(values));
    matrix.data = rounded.back().data();
  };
  round(weights->embedding);
  round(weights->head);
  for (TransformerLayer& layer : weights->layers) {
    for (Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      round(linear->w);
    }
  }
  TransformerCudaOptions options;
  options.cache = CacheType::kF32;
  options.fp8_weights = true;
  options.kv_bytes = 1 << 20;
  Result<std::unique_ptr<Model>> cuda = TransformerCuda::Make(*config, *weights, options);
  ASSERT_TRUE(cuda.ok()) << cuda.error().ToString();
  EXPECT_EQ((*cuda)->info().dtype, "fp8");
  options.cache = CacheType::kBf16;
  Result<std::unique_ptr<Model>> by_library = TransformerCuda::Make(*config, *weights, options);
  ASSERT_TRUE(by_library.ok()) << by_library.error().ToString();
  Loaded models;
  models.cuda = *std::move(cuda);
  models.cpu = std::make_unique<TransformerCpu>(*config, *std::move(weights), kernels, 1);
  double error = WorstError(models, random, 40);
  EXPECT_LT(error, 2e-4);
  RecordProperty("relative_error", std::to_string(error));
  // Through the library, where they are unpacked.
  models.cuda = *std::move(by_library);
  error = WorstError(models, random, 110);
  EXPECT_LT(error, 8e-2);
  RecordProperty("relative_error_through_library", std::to_string(error));
}

// A batch of more sequences than the kernels for few rows take: products by the library, attention
// row by row.
TEST_F(TransformerTest, LargeBatchesAreNearTheirRowsAlone) {
  Random random(10);
  TransformerCudaOptions alone_options;
  alone_options.library = false;
  Result<std::unique_ptr<Model>> together = LoadCuda(GoldenFolder("gemma3-bf16"), {});
  Result<std::unique_ptr<Model>> alone = LoadCuda(GoldenFolder("gemma3-bf16"), alone_options);
  ASSERT_TRUE(together.ok() && alone.ok());
  const auto width = static_cast<size_t>((*alone)->info().vocabulary_size);
  std::vector<Row> rows;
  const int sequences = 70;
  for (int s = 0; s < sequences; ++s) {
    const SequenceId a = MakeSequence(**together, 8), b = MakeSequence(**alone, 8);
    ASSERT_EQ(a, b);
    const std::vector<TokenId> tokens = RandomTokens(random, 1 + s % 4, static_cast<int>(width));
    (void)RunChunk(**together, a, 0, tokens);
    (void)RunChunk(**alone, b, 0, tokens);
    rows.push_back({static_cast<TokenId>(s), 1 + s % 4, a, 0, s});
  }
  const std::vector<float> got = RunRows(**together, rows), expected = RunRows(**alone, rows);
  double worst = 0;
  for (size_t s = 0; s < sequences; ++s) {
    worst = std::max(worst, RelativeError(std::span(got).subspan(s * width, width),
                                          std::span(expected).subspan(s * width, width)));
  }
  EXPECT_GT(worst, 0);  // it did go the other way
  EXPECT_LT(worst, 8e-2);
}

TEST_F(TransformerTest, GreedyTokensAreTheReferences) {
  for (const char* name : {"llama-fp32-tied", "smollm2-bf16"}) {
    Result<std::unique_ptr<Model>> model = LoadCuda(GoldenFolder(name), {});
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    const auto width = static_cast<size_t>((*model)->info().vocabulary_size);
    const Golden golden = ReadGoldens(name)[0];
    const SequenceId sequence = MakeSequence(**model, 160);
    std::vector<float> logits = RunChunk(**model, sequence, 0, golden.prompt);
    std::vector<TokenId> text;
    while (text.size() < 24) {
      text.push_back(Argmax(std::span(logits).last(width)));
      logits = RunChunk(**model, sequence, static_cast<int>(golden.prompt.size() + text.size()) - 1,
                        std::span(text).last(1));
    }
    EXPECT_TRUE(std::equal(text.begin(), text.end(), golden.greedy.begin())) << name;
  }
}

TEST_F(TransformerTest, GreedyTokensOfTheShippedModelAreTheCpus) {
  const std::string folder = SourceDir() + "/models/tiny-extract";
  Result<std::unique_ptr<Model>> cuda = LoadCuda(folder, {});
  ASSERT_TRUE(cuda.ok()) << cuda.error().ToString();
  ModelOptions options;
  options.threads = 1;
  Result<std::unique_ptr<Model>> cpu = LoadModel(folder, options);
  ASSERT_TRUE(cpu.ok());
  Random random(9);
  const std::vector<TokenId> prompt = RandomTokens(random, 12, (*cpu)->info().vocabulary_size);
  std::vector<TokenId> texts[2];
  for (const int which : {0, 1}) {
    Model& model = which == 0 ? **cuda : **cpu;
    const SequenceId sequence = MakeSequence(model, 64);
    const auto width = static_cast<size_t>(model.info().vocabulary_size);
    std::vector<float> logits = RunChunk(model, sequence, 0, prompt);
    std::vector<TokenId>& text = texts[which];
    while (text.size() < 20) {
      text.push_back(Argmax(std::span(logits).last(width)));
      logits = RunChunk(model, sequence, static_cast<int>(prompt.size() + text.size()) - 1,
                        std::span(text).last(1));
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// Tokens drawn on the device are those that the sampler draws from the logits, with all of the head
// and with the part of it that masks allow, in batches and next to rows of prompts.
TEST_F(TransformerTest, SampledTokensAreTheSamplers) {
  Random random(7);
  for (const char* name : {"llama-bf16-llama3", "gemma2-bf16"}) {
    Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder(name), {});
    ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    Model& model = **loaded;
    const int vocabulary = model.info().vocabulary_size;
    const auto width = static_cast<size_t>(vocabulary);
    std::vector<std::shared_ptr<const Mask>> masks;
    for (const double share : {0.02, 0.5, 1.0}) {
      std::bernoulli_distribution bit(share);
      std::vector<uint32_t> words((width + 31) / 32);
      for (size_t t = 0; t < width; ++t) words[t / 32] |= uint32_t{bit(random)} << t % 32;
      words[0] |= 4;
      masks.push_back(std::make_shared<Mask>(static_cast<MaskId>(masks.size()), std::move(words)));
    }
    for (int round = 0; round < 8; ++round) {
      const int sequences = 1 + round % 5;
      std::vector<SequenceId> ids;
      std::vector<Row> rows;
      std::vector<SampleRequest> requests;
      for (int s = 0; s < sequences; ++s) {
        ids.push_back(MakeSequence(model, 100));
        const int length = s == 0 && round == 7 ? 80 : 1 + static_cast<int>(random() % 4);
        for (int i = 0; i < length; ++i) {
          rows.push_back(
              {static_cast<TokenId>(random() % width), i, ids.back(), 0, i + 1 == length ? s : -1});
        }
        SampleRequest request;
        const size_t which = round < 3 ? 0 : random() % 4;
        if (which < 3) request.mask = masks[which];
        request.temperature = random() % 3 == 0 ? 0.0f : 1.3f;
        request.seed = random();
        request.position = random();
        requests.push_back(request);
      }
      std::vector<TokenId> tokens(static_cast<size_t>(sequences), -7);
      const Status status = model.ForwardAndSample(rows, requests, tokens);
      ASSERT_TRUE(status.ok()) << status.error().ToString() << " " << name << " round " << round;
      for (const SequenceId id : ids) model.Truncate(id, 0);
      const std::vector<float> logits = RunRows(model, rows);
      for (size_t s = 0; s < requests.size(); ++s) {
        Sampler sampler({.temperature = requests[s].temperature, .seed = requests[s].seed});
        const Result<TokenId> expected =
            sampler.Sample(std::span(logits).subspan(s * width, width), requests[s].mask.get(),
                           requests[s].position, {});
        ASSERT_TRUE(expected.ok());
        EXPECT_EQ(tokens[s], *expected) << name << " round " << round << " row " << s;
      }
      for (const SequenceId id : ids) model.FreeSequence(id);
    }
  }
}

// Everything else that can be asked of a sampler, requests that come late, rows that are not wanted
// any longer, and the most probable tokens.
TEST_F(TransformerTest, FilteredTokensAreTheSamplers) {
  Random random(12);
  Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder("llama-bf16-llama3"), {});
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  Model& model = **loaded;
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  for (int round = 0; round < 4; ++round) {
    const size_t sequences = 3;
    std::vector<Row> rows;
    std::vector<SampleRequest> requests(sequences);
    std::vector<SamplingParams> params(sequences);
    std::vector<std::vector<TokenId>> outputs(sequences);
    std::vector<std::vector<SeenToken>> seen(sequences);
    std::vector<std::vector<TokenLogprob>> tops(sequences, std::vector<TokenLogprob>(4));
    for (size_t s = 0; s < sequences; ++s) {
      rows.push_back({static_cast<TokenId>(random() % width), 0, MakeSequence(model, 4), 0,
                      static_cast<int32_t>(s)});
    }
    int asked = 0;
    const auto late = [&] {
      ++asked;
      for (size_t s = 0; s < sequences; ++s) {
        SamplingParams& p = params[s];
        p.temperature = s == 2 ? 0.0f : 1.5f;
        p.top_k = round % 2 == 0 ? 20 : 0;
        p.top_p = 0.7f;
        p.min_p = 0.01f;
        p.repetition_penalty = 1.5f;
        p.frequency_penalty = 0.5f;
        p.seed = random();
        for (int i = 0; i < 20; ++i) outputs[s].push_back(static_cast<TokenId>(random() % width));
        std::map<TokenId, int32_t> counts;
        for (const TokenId t : outputs[s]) ++counts[t];
        for (const auto& [token, count] : counts) seen[s].push_back({token, count});
        std::vector<uint32_t> words((width + 31) / 32);
        for (uint32_t& word : words) word = static_cast<uint32_t>(random());
        requests[s].mask = std::make_shared<Mask>(static_cast<MaskId>(s), std::move(words));
        requests[s].temperature = p.temperature;
        requests[s].seed = p.seed;
        requests[s].position = outputs[s].size();
        requests[s].top_k = p.top_k;
        requests[s].top_p = p.top_p;
        requests[s].min_p = p.min_p;
        requests[s].penalties = {p.repetition_penalty, p.presence_penalty, p.frequency_penalty};
        requests[s].seen = seen[s];
        requests[s].vocabulary = static_cast<int>(width) - 30;
        if (round == 2) requests[s].top = tops[s];
        requests[s].unwanted = round == 3 && s == 1;
      }
    };
    std::vector<TokenId> tokens(sequences, -7);
    const Status status = model.ForwardAndSample(rows, requests, tokens, late);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_EQ(asked, 1);
    for (const Row& row : rows) model.Truncate(row.sequence, 0);
    const std::vector<float> logits = RunRows(model, rows);
    for (size_t s = 0; s < sequences; ++s) {
      if (requests[s].unwanted) {
        EXPECT_EQ(tokens[s], kNoToken);
        continue;
      }
      const auto known = std::span(logits).subspan(s * width, width - 30);
      Sampler sampler(params[s]);
      const Result<TokenId> expected =
          sampler.Sample(known, requests[s].mask.get(), requests[s].position, {{}, outputs[s]});
      ASSERT_TRUE(expected.ok());
      EXPECT_EQ(tokens[s], *expected) << "round " << round << " row " << s;
      if (round != 2) continue;
      std::vector<TokenId> allowed;
      double sum = 0;
      for (size_t t = 0; t < known.size(); ++t) {
        if (!requests[s].mask->Allows(static_cast<TokenId>(t))) continue;
        allowed.push_back(static_cast<TokenId>(t));
        sum += std::exp(double{known[t]});
      }
      std::stable_sort(allowed.begin(), allowed.end(), [&](TokenId a, TokenId b) {
        return known[static_cast<size_t>(a)] > known[static_cast<size_t>(b)];
      });
      for (size_t k = 0; k < tops[s].size(); ++k) {
        EXPECT_EQ(tops[s][k].token, allowed[k]);
        EXPECT_NEAR(tops[s][k].logprob, known[static_cast<size_t>(allowed[k])] - std::log(sum),
                    1e-5);
      }
    }
    for (const Row& row : rows) model.FreeSequence(row.sequence);
  }
}

// Rows that say which logits they want get these with the bits of full calls.
TEST_F(TransformerTest, AllowedLogitsHaveTheBitsOfAFullCall) {
  Random random(13);
  Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder("gemma2-bf16"), {});
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  Model& model = **loaded;
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  for (int round = 0; round < 6; ++round) {
    const size_t count = 1 + static_cast<size_t>(round) % 3;
    std::vector<Row> rows;
    std::vector<std::vector<uint32_t>> masks;
    for (size_t s = 0; s < count; ++s) {
      rows.push_back({static_cast<TokenId>(random() % width), 0, MakeSequence(model, 4), 0,
                      static_cast<int32_t>(s)});
      std::vector<uint32_t> words(round == 4 ? 2 : (width + 31) / 32);
      for (int i = 0; i < (round == 3 ? 1000 : 5); ++i) {
        words[random() % words.size()] |= 1u << random() % 32;
      }
      masks.push_back(std::move(words));
    }
    const std::vector<float> expected = RunRows(model, rows);
    for (const Row& row : rows) model.Truncate(row.sequence, 0);
    for (size_t s = 0; s < count; ++s) {
      if (round != 5 || s != 1) rows[s].allowed = masks[s];
    }
    std::vector<float> got(count * width, kNan);
    PAWL_EXPECT_OK(model.Forward(rows, got));
    size_t given = 0;
    for (size_t s = 0; s < count; ++s) {
      for (size_t t = 0; t < width; ++t) {
        const bool wanted = rows[s].allowed.empty() ||
                            (t / 32 < masks[s].size() && (masks[s][t / 32] >> t % 32 & 1) != 0);
        given += !std::isnan(got[s * width + t]);
        if (!wanted) continue;
        ASSERT_EQ(std::memcmp(&got[s * width + t], &expected[s * width + t], 4), 0)
            << "round " << round << " row " << s << " token " << t;
      }
    }
    EXPECT_LE(given, round < 3 ? count * 5 : count * width);
    for (const Row& row : rows) model.FreeSequence(row.sequence);
  }
}

TEST_F(TransformerTest, AMaskWithoutTokensIsAnError) {
  Result<std::unique_ptr<Model>> model = LoadCuda(GoldenFolder("llama-bf16-llama3"), {});
  ASSERT_TRUE(model.ok());
  const auto width = static_cast<size_t>((*model)->info().vocabulary_size);
  SampleRequest request;
  request.mask = std::make_shared<Mask>(0, std::vector<uint32_t>((width + 31) / 32));
  const Row rows[] = {{1, 0, MakeSequence(**model, 4), 0, 0}};
  TokenId token = 0;
  const Status status = (*model)->ForwardAndSample(rows, {&request, 1}, {&token, 1});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(status.error().place, "output 0");
}

TEST_F(TransformerTest, TheMaskPoolKeepsTheLastOnesUsed) {
  Result<std::unique_ptr<DeviceMasks>> pool = DeviceMasks::Make(100, 2);
  ASSERT_TRUE(pool.ok());
  std::vector<std::shared_ptr<const Mask>> masks;
  for (uint32_t i = 0; i < 3; ++i) {
    masks.push_back(std::make_shared<Mask>(i, std::vector<uint32_t>{i + 1, i, i, i}));
  }
  const auto row = [&](size_t i) { return *(*pool)->RowOf(masks[i], nullptr); };
  EXPECT_EQ(row(0), 0);
  EXPECT_EQ(row(1), 1);
  EXPECT_EQ(row(0), 0);
  EXPECT_EQ((*pool)->uploads(), 2);
  EXPECT_FALSE((*pool)->RowOf(masks[2], nullptr).ok());  // both are of this step
  (*pool)->NextStep();
  EXPECT_EQ(row(0), 0);
  EXPECT_EQ(row(2), 1);
  (*pool)->NextStep();
  EXPECT_EQ(row(1), 0);
  EXPECT_EQ((*pool)->uploads(), 4);
  std::vector<uint32_t> words(8);
  PAWL_EXPECT_OK(CopyOut(words.data(), (*pool)->words(), 32, nullptr));
  PAWL_EXPECT_OK(Synchronize(nullptr));
  EXPECT_EQ(words, (std::vector<uint32_t>{2, 1, 1, 1, 3, 2, 2, 2}));
}

TEST_F(TransformerTest, OtherFamiliesRunOrTheMissingPartIsNamed) {
  int run = 0, refused = 0;
  for (const std::string& name : FamilyGoldenNames()) {
    TransformerCudaOptions options;
    options.cache = CacheType::kF32;
    const Result<std::unique_ptr<Model>> model = LoadCuda(GoldenFolder(name), options);
    if (!model.ok()) {
      EXPECT_EQ(model.error().code, ErrorCode::kUnsupported) << name;
      EXPECT_NE(model.error().message.find("kernels lack "), std::string::npos)
          << name << ": " << model.error().ToString();
      ++refused;
      continue;
    }
    const Golden golden = ReadGoldens(name).back();
    const std::vector<float> logits =
        RunChunk(**model, MakeSequence(**model, 64), 0, golden.prompt);
    EXPECT_LT(RelativeError(logits, golden.logits), 1e-4) << name;
    ++run;
  }
  EXPECT_GT(run, 4);
  EXPECT_GT(refused, 10);
}

TEST_F(TransformerTest, DamagedWeightsAreAnErrorOfTheirRows) {
  // A position whose key is infinite spoils its own sequence alone. Here: a token whose embedding
  // is.
  const std::string folder = GoldenFolder("qwen2-fp32-untied");
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  ASSERT_TRUE(config.ok());
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  ASSERT_TRUE(checkpoint.ok());
  Result<TransformerWeights> weights =
      LoadTransformerWeights(std::make_unique<Checkpoint>(*std::move(checkpoint)), *config,
                             HuggingFaceNames(*config), nullptr);
  ASSERT_TRUE(weights.ok());
  const auto size = static_cast<size_t>(weights->embedding.rows * weights->embedding.cols);
  std::vector<float> embedding(size);
  std::memcpy(embedding.data(), weights->embedding.data, size * sizeof(float));
  embedding[static_cast<size_t>(weights->embedding.cols) * 9] = kNan;
  weights->embedding.data = embedding.data();
  TransformerCudaOptions options;
  options.kv_bytes = 1 << 20;
  Result<std::unique_ptr<Model>> model = TransformerCuda::Make(*config, *weights, options);
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  const SequenceId good = MakeSequence(**model, 8), bad = MakeSequence(**model, 8);
  const auto width = static_cast<size_t>((*model)->info().vocabulary_size);
  std::vector<float> logits(2 * width);
  const Row rows[] = {{3, 0, good, 0, 0}, {9, 0, bad, 0, 1}};
  const Status status = (*model)->Forward(rows, logits);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  ASSERT_EQ((*model)->bad_rows().size(), 1u);
  EXPECT_EQ((*model)->bad_rows()[0], 1);
  // The good sequence goes on, the bad one is empty.
  const Row next[] = {{4, 1, good, 0, 0}, {4, 0, bad, 0, 1}};
  EXPECT_TRUE((*model)->Forward(next, logits).ok());
}

#if defined(PAWL_CUDA_EMULATED)
// A driver that cannot put launches into graphs, or a library without an algorithm for a product,
// costs speed alone.
TEST_F(TransformerTest, WhatDoesNotWorkIsDoneAnotherWay) {
  Random random(14);
  const std::string folder = GoldenFolder("qwen3-bf16");
  const auto logits = [&](const TransformerCudaOptions& options, int length,
                          std::string* given_up) {
    Result<std::unique_ptr<Model>> model = LoadCuda(folder, options);
    EXPECT_TRUE(model.ok()) << model.error().ToString();
    Random same(15);
    const std::vector<TokenId> tokens = RandomTokens(same, length, 100);
    const SequenceId sequence = MakeSequence(**model, length + 1);
    // Twice: graphs are made the second time.
    (void)RunChunk(**model, sequence, 0, tokens);
    (*model)->Truncate(sequence, 0);
    std::vector<float> all = RunChunk(**model, sequence, 0, tokens);
    const TokenId next[] = {7};
    const std::vector<float> more = RunChunk(**model, sequence, length, next);
    all.insert(all.end(), more.begin(), more.end());
    *given_up = static_cast<TransformerCuda&>(**model).given_up();
    return all;
  };
  std::string given_up;
  const std::vector<float> expected = logits({}, 5, &given_up);
  EXPECT_EQ(given_up, "");
  FailGraphs(1);
  EXPECT_TRUE(SameBits(logits({}, 5, &given_up), expected));
  EXPECT_EQ(given_up, "dependent launches: no graph");
  FailGraphs(2);
  EXPECT_TRUE(SameBits(logits({}, 5, &given_up), expected));
  EXPECT_EQ(given_up, "dependent launches: no graph; graphs: no graph");
  FailGraphs(0);

  const Result<TransformerConfig> config = ReadTransformerConfig(folder);
  ASSERT_TRUE(config.ok());
  TransformerCudaOptions own;
  own.library = false;
  const std::vector<float> by_own = logits(own, 80, &given_up);
  EXPECT_FALSE(SameBits(logits({}, 80, &given_up), by_own));
  RefuseProducts(config->layers[0].mlp().width);
  EXPECT_TRUE(SameBits(logits({}, 80, &given_up), by_own));
  EXPECT_EQ(given_up, "cuBLASLt: refused");
  RefuseProducts(0);
}

TEST_F(TransformerTest, MemoryThatIsShortIsAnErrorWithNumbers) {
  for (const int64_t limit : {int64_t{10000}, int64_t{400000}}) {
    LimitMemory(limit);
    const Result<std::unique_ptr<Model>> model = LoadCuda(GoldenFolder("qwen3-bf16"), {});
    LimitMemory(-1);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, ErrorCode::kLimit);
    EXPECT_NE(model.error().message.find("MiB asked for"), std::string::npos)
        << model.error().message;
  }
}
#endif

}  // namespace
}  // namespace pawl::PAWL_GPU
