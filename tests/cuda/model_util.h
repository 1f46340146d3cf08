// Models on the device for tests.
#ifndef PAWL_TESTS_CUDA_MODEL_UTIL_H_
#define PAWL_TESTS_CUDA_MODEL_UTIL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/model/transformer_config.h"
#include "src/model/transformer_cuda.h"
#include "src/model/transformer_weights.h"
#include "tests/cuda/cuda_test_util.h"
#include "tests/model/model_test_util.h"

namespace pawl::PAWL_GPU {

// With a megabyte for keys and values, unless the options say something else.
inline Result<std::unique_ptr<Model>> LoadCuda(const std::string& folder,
                                               TransformerCudaOptions options,
                                               WeightDtype dtype = WeightDtype::kAsStored) {
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  if (!config.ok()) return config.error();
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  if (!checkpoint.ok()) return checkpoint.error();
  const TensorNames names = HuggingFaceNames(*config, &*checkpoint);
  Result<TransformerWeights> weights = LoadTransformerWeights(
      std::make_unique<Checkpoint>(*std::move(checkpoint)), *config, names, nullptr, dtype);
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

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_TESTS_CUDA_MODEL_UTIL_H_
