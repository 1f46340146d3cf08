// From a folder to a running model: the description, the weights it asks for, the backend.
#include <new>
#include <utility>

#include "kernels/cpu/kernels.h"
#include "src/model/model.h"
#include "src/model/safetensors.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_cpu.h"
#include "src/model/transformer_weights.h"

namespace pawl {

Result<std::unique_ptr<Model>> LoadModel(const std::string& folder, const ModelOptions& options) {
  const KernelSet* kernels = FindKernels(options.kernels);
  if (kernels == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "this processor lacks the instructions of the kernels asked for", ""};
  }
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  if (!config.ok()) return config.error();
  try {
    Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
    if (!checkpoint.ok()) return checkpoint.error();
    Result<TransformerWeights> weights =
        LoadTransformerWeights(std::make_unique<Checkpoint>(*std::move(checkpoint)), *config,
                               HuggingFaceNames(*config), options.progress);
    if (!weights.ok()) return weights.error();
    return std::unique_ptr<Model>(std::make_unique<TransformerCpu>(
        *std::move(config), *std::move(weights), *kernels, options.threads));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kLimit, "not enough memory to load the model", folder};
  }
}

}  // namespace pawl
