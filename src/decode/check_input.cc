// Messages of these checks name the token, the limit and the place.
#include "src/decode/check_input.h"

#include <string>

namespace pawl {

Status CheckTokens(std::span<const TokenId> tokens, int width, const char* place) {
  for (const TokenId token : tokens) {
    if (token < 0 || token >= width) {
      return Error{ErrorCode::kInvalid,
                   "has token " + std::to_string(token) + ", but the model's vocabulary ends at " +
                       std::to_string(width - 1),
                   place};
    }
  }
  return {};
}

Status RefuseDiffusion(const DiffusionOptions& given) {
  const char* const place = given.threshold            ? "diffusion.threshold"
                            : given.steps              ? "diffusion.steps"
                            : given.block_length       ? "diffusion.block_length"
                            : !given.remasking.empty() ? "diffusion.remasking"
                            : !given.alg.empty()       ? "diffusion.alg"
                                                       : nullptr;
  if (place == nullptr) return {};
  return Error{ErrorCode::kUnsupported, "means nothing for a causal model", place};
}

int PositionsOf(const ModelInfo& info, const KvMemory& memory) {
  return static_cast<int>(memory.positions(info.context_length));
}

}  // namespace pawl
