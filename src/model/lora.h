// LoRA adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021): for some
// matrices W of a model two small ones, so that y = W x + s B (A x). The weights stay as they are,
// whatever their type; a row's adapter is that of its sequence (Model::NewAdapted).
//
//   Status status = LoadAdapters({{"legal", "adapters/legal"}}, bytes, config, names, weights);
//   // weights.layers[i].q.lora->of[0]: what the first adapter adds there
#ifndef PAWL_SRC_MODEL_LORA_H_
#define PAWL_SRC_MODEL_LORA_H_

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "pawl/engine.h"
#include "pawl/result.h"
#include "src/model/model.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_weights.h"

namespace pawl {

// What one adapter adds to one matrix. Floats; without data: nothing.
struct LoraPart {
  Matrix a;  // [rank, inputs]
  Matrix b;  // [outputs, rank], times s
};

struct LoraLinear {
  std::vector<LoraPart> of;  // by adapter
};

struct LoraSet {
  std::vector<ModelInfo::Adapter> adapters;
  std::deque<LoraLinear> linears;
  std::deque<std::vector<float>> memory;  // that the matrices point into
  int64_t bytes = 0;
  int64_t most_rank = 0, most_inputs = 0;
};

inline constexpr int kMostAdapters = 256;
inline constexpr int64_t kMostRank = 4096;

// Reads the adapters for a model of this description, and hangs them onto its matrices. `loaded`:
// the names of the file that the weights come from. Errors name
// the file and the key or tensor: kIo; kInvalid for names that are not unique, settings and tensors
// that do not fit each other or the model, and numbers that are not finite; kUnsupported for what
// is no plain LoRA of linear layers; kLimit for more than `most_bytes` of memory.
Status LoadAdapters(std::span<const LoraAdapter> adapters, int64_t most_bytes,
                    const TransformerConfig& config, const TensorNames& loaded,
                    TransformerWeights& weights);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_LORA_H_
