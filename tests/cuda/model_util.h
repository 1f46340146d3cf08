// Models on the device for tests.
#ifndef PAWL_TESTS_CUDA_MODEL_UTIL_H_
#define PAWL_TESTS_CUDA_MODEL_UTIL_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/model/transformer_config.h"
#include "src/model/transformer_cuda.h"
#include "src/model/transformer_weights.h"
#include "tests/cuda/cuda_test_util.h"
#include "tests/model/float_weights.h"
#include "tests/model/model_test_util.h"

namespace pawl::PAWL_GPU {

// The description and the weights of a folder.
struct StoredModel {
  Result<TransformerConfig> config;
  Result<TransformerWeights> weights;
};
inline StoredModel StoredModelOf(const std::string& folder,
                                 WeightDtype dtype = WeightDtype::kAsStored) {
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  if (!config.ok()) return {config.error(), config.error()};
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  if (!checkpoint.ok()) return {std::move(config), checkpoint.error()};
  const TensorNames names = HuggingFaceNames(*config, &*checkpoint);
  Result<TransformerWeights> weights = LoadTransformerWeights(
      std::make_unique<Checkpoint>(*std::move(checkpoint)), *config, names, nullptr, dtype);
  return {std::move(config), std::move(weights)};
}

// With a megabyte for keys and values, unless the options say something else.
inline Result<std::unique_ptr<Model>> LoadCuda(const std::string& folder,
                                               TransformerCudaOptions options,
                                               WeightDtype dtype = WeightDtype::kAsStored) {
  auto [config, weights] = StoredModelOf(folder, dtype);
  if (!config.ok()) return config.error();
  if (!weights.ok()) return weights.error();
  if (options.kv_bytes == 0) options.kv_bytes = 1 << 20;
  return TransformerCuda::Make(*std::move(config), *weights, options);
}

inline std::vector<TokenId> RandomTokens(Random& random, int count, int vocabulary) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary)));
  }
  return tokens;
}

// A model on the device, and on the CPU in floats.
struct Loaded {
  FloatModel floats;  // what `cpu` points into, where weights are integers
  std::unique_ptr<Model> cuda, cpu;
};

inline Loaded LoadBoth(const std::string& name, const TransformerCudaOptions& options,
                       WeightDtype dtype = WeightDtype::kAsStored) {
  Loaded loaded;
  Result<std::unique_ptr<Model>> cuda = LoadCuda(GoldenFolder(name), options, dtype);
  EXPECT_TRUE(cuda.ok()) << cuda.error().ToString();
  if (cuda.ok()) loaded.cuda = *std::move(cuda);
  if (dtype == WeightDtype::kInt8 || dtype == WeightDtype::kInt4) {
    // Devices take inputs as they are; the CPU would round them.
    loaded.floats = LoadInFloat(name, dtype);
    loaded.cpu = std::move(loaded.floats.model);
    return loaded;
  }
  ModelOptions cpu_options;
  cpu_options.threads = 1;
  cpu_options.dtype = dtype == WeightDtype::kAsStored ? GoldenDtype(name) : dtype;
  cpu_options.kv_bytes = 1 << 24;
  Result<std::unique_ptr<Model>> cpu = LoadModel(GoldenFolder(name), cpu_options);
  EXPECT_TRUE(cpu.ok());
  if (cpu.ok()) loaded.cpu = *std::move(cpu);
  return loaded;
}

// The largest relative error of a row's logits over a prompt and a few steps.
inline double WorstError(Loaded& models, Random& random, int length) {
  const int vocabulary = models.cpu->info().vocabulary_size;
  const std::vector<TokenId> tokens = RandomTokens(random, length, vocabulary);
  double worst = 0;
  const SequenceId a = MakeSequence(*models.cuda, length), b = MakeSequence(*models.cpu, length);
  const int steps = 3;
  for (int at = 0; at < length;) {
    const int count = at == 0 ? length - steps : 1;
    const auto part =
        std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(count));
    const std::vector<float> got = RunChunk(*models.cuda, a, at, part);
    const std::vector<float> expected = RunChunk(*models.cpu, b, at, part);
    const auto width = static_cast<size_t>(vocabulary);
    for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
      const double error = RelativeError(std::span(got).subspan(r * width, width),
                                         std::span(expected).subspan(r * width, width));
      worst = std::isnan(error) ? 1e9 : std::max(worst, error);
    }
    at += count;
  }
  models.cuda->FreeSequence(a);
  models.cpu->FreeSequence(b);
  return worst;
}

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_TESTS_CUDA_MODEL_UTIL_H_
