// The tensors of a transformer under their roles, each checked for name, shape and dtype.
// Matrices of floats stay where the file is mapped, those of blocks are unpacked; vectors (norms,
// biases) are converted to float.
#ifndef PAWL_SRC_MODEL_TRANSFORMER_WEIGHTS_H_
#define PAWL_SRC_MODEL_TRANSFORMER_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "pawl/result.h"
#include "src/base/pages.h"
#include "src/model/model.h"
#include "src/model/recurrent/recurrent_mixer.h"
#include "src/model/tensor_names.h"
#include "src/model/tensor_source.h"
#include "src/model/transformer_config.h"

namespace pawl {

// "bf16", "int8", ...
const char* DtypeName(WeightType type);

struct LoraLinear;
struct LoraSet;

struct Linear {
  Matrix w;                          // [outputs, inputs]
  std::vector<float> bias;           // [outputs], or empty
  const LoraLinear* lora = nullptr;  // what adapters add (lora.h); nullptr: nothing
};

struct ExpertWeights {
  struct Expert {
    Linear gate, up, down;
  };
  Linear router;                   // [experts, hidden]
  std::vector<float> choice_bias;  // [experts], or empty
  std::vector<Expert> experts;
  std::vector<float> factors;  // [experts], or empty
  // Where an MLP stands next to them: of the router's and the experts' inputs, and of both answers.
  std::vector<float> router_norm, norm, mlp_own_norm, own_norm;
  Expert shared;         // or none
  Linear shared_weight;  // [1, hidden], or none
};

struct TransformerLayer {
  std::vector<float> attention_norm, mlp_norm;
  std::vector<float> attention_norm_bias, mlp_norm_bias;  // or empty
  std::vector<float> q_norm, k_norm;                      // [head_dim] or [heads], or empty
  std::vector<float> sinks;                               // [heads], or empty
  std::vector<float> attention_post_norm, mlp_post_norm;  // or empty
  Linear q, k, v, o;
  Linear gate, up, down;  // gate: or none
  ExpertWeights experts;
  Linear input_gate, input_projection;  // or none
  std::vector<float> input_norm;
  float factor = 1.0f;
  // Of recurrent layers; `o` is what is behind them.
  RecurrentWeights recurrent;
  Linear mixed, z, decay, beta;
  std::vector<float> state_norm;
  // Of compressed keys and values: what compresses them, and by head what makes queries fit
  // compressed keys [rank, key_dim] and values of compressed ones [value_dim, rank].
  Linear q_a, kv_a;
  std::vector<float> kv_norm;
  std::vector<Matrix> k_up, v_up;
};

// What recurrent layers do in their states; of all layers, those without states are empty.
std::vector<RecurrentShape> RecurrentShapes(const TransformerConfig& config);

struct TransformerWeights {
  Matrix embedding;  // [vocabulary, hidden]
  Matrix head;       // the same memory when tied
  // [vocabulary, layers * layer_input_width], [layers * layer_input_width, hidden], [...width]
  Matrix layer_embedding;
  Linear layer_projection;
  std::vector<float> layer_projection_norm;
  std::vector<float> final_norm, final_norm_bias;
  std::vector<TransformerLayer> layers;
  int64_t parameters = 0;
  int64_t bytes = 0;
  // Names of tensors that the files have in addition to these, in order; not those that are known
  // to say nothing here.
  std::vector<std::string> unused;

  // How they were read: what else the source has is read the same way.
  TensorNames names;
  WeightDtype dtype = WeightDtype::kAsStored;

  // What the matrices point into: the mapped files, and tensors that were copied or converted.
  HugeArena copies;
  std::unique_ptr<TensorSource> source;
  std::shared_ptr<const LoraSet> lora;  // nullptr: no adapters
};

// As the reference implementation saves them. `source`, where given: models of text and images have
// their text model's tensors under one of two prefixes, and the source tells which.
TensorNames HuggingFaceNames(const TransformerConfig& config, const TensorSource* source = nullptr);
TensorNames GgufNames(const TransformerConfig& config);

class Binder;
// The tensors of one layer, whose names begin with `prefix`.
TransformerLayer BindLayer(Binder& binder, const TransformerConfig& config,
                           const TensorNames& names, const std::string& prefix, const Layer& layer);
// On `threads` threads (0: all). Errors: kInvalid for a missing tensor or a wrong shape,
// kUnsupported for a dtype other than F32, F16, BF16 and (of matrices) the block types of
// gguf_blocks.h, with expected and actual, place "FILE: tensor NAME".
Result<TransformerWeights> LoadTransformerWeights(std::unique_ptr<TensorSource> source,
                                                  const TransformerConfig& config,
                                                  const TensorNames& names,
                                                  const std::function<void(double)>& progress,
                                                  WeightDtype dtype = WeightDtype::kAsStored,
                                                  int threads = 1);

// What weights will take, without reading them.
// Errors: as LoadTransformerWeights.
Result<WeightPlan> PlanTransformerWeights(const TensorSource& source,
                                          const TransformerConfig& config, const TensorNames& names,
                                          WeightDtype dtype);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TRANSFORMER_WEIGHTS_H_
