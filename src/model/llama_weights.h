// The tensors of a Llama-shaped model under their roles, each checked for name, shape and dtype.
// Matrices stay where the file is mapped; vectors (norms, biases) are converted to float.
#ifndef PAWL_SRC_MODEL_LLAMA_WEIGHTS_H_
#define PAWL_SRC_MODEL_LLAMA_WEIGHTS_H_

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "pawl/result.h"
#include "src/model/llama_config.h"
#include "src/model/safetensors.h"

namespace pawl {

struct Linear {
  Matrix w;                 // [outputs, inputs]
  std::vector<float> bias;  // [outputs], or empty
};

struct LlamaLayer {
  std::vector<float> attention_norm, mlp_norm;
  Linear q, k, v, o;
  Linear gate, up, down;
};

struct LlamaWeights {
  Matrix embedding;  // [vocabulary, hidden]
  Matrix head;       // the same memory when tied
  std::vector<float> final_norm;
  std::vector<LlamaLayer> layers;
  int64_t parameters = 0;
  int64_t bytes = 0;

  // What the matrices point into: the mapped files, and tensors copied to a better address.
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::vector<std::unique_ptr<std::byte[], Free>> copies;
  Checkpoint checkpoint;
};

// Errors: those of Checkpoint::Open; kInvalid for a missing tensor or a wrong shape, kUnsupported
// for a dtype other than F32, F16 and BF16, with expected and actual, place "FILE: tensor NAME".
Result<LlamaWeights> LoadLlamaWeights(const std::string& folder, const LlamaConfig& config,
                                      const std::function<void(double)>& progress);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_LLAMA_WEIGHTS_H_
