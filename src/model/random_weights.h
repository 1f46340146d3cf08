// Models of well-known shapes with random weights, made without a file: for measuring speed and for
// tests. What they answer means nothing.
//
//   auto model = RandomModel(*ShapeNamed("0.5b"), {.dtype = WeightDtype::kInt8}, /*seed=*/1);
#ifndef PAWL_SRC_MODEL_RANDOM_WEIGHTS_H_
#define PAWL_SRC_MODEL_RANDOM_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/model/model.h"
#include "src/model/transformer_config.h"

namespace pawl {

// "135m" (SmolLM2-135M), "0.5b" (Qwen2.5-0.5B), "1b" (Llama-3.2-1B), "8b" (Llama-3.1-8B): the sizes
// that those models' config.json state.
const std::vector<std::string>& ShapeNames();
// nullopt for other names.
std::optional<TransformerConfig> ShapeNamed(std::string_view name);

// A model whose matrices are uniform random numbers with a variance of 1 / inputs, so that
// activations keep their size through the layers; norms are 1 and biases small. kAsStored is bf16;
// integers are made from bf16. A weight depends on the seed, the configuration and its place alone.
// Errors: kUnsupported and kLimit as LoadModel.
Result<std::unique_ptr<Model>> RandomModel(const TransformerConfig& config,
                                           const ModelOptions& options, uint64_t seed);

// The memory that making such a model takes, without keys and values.
int64_t RandomModelBytes(const TransformerConfig& config, WeightDtype dtype);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_RANDOM_WEIGHTS_H_
