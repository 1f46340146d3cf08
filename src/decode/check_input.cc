// Messages of these checks name the token, the limit and the place.
#include "src/decode/check_input.h"

#include <limits>
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

Status CheckCompletion(const LoopConstraint* root, int budget) {
  if (root == nullptr || root->CompletionLength(budget) >= 0) return {};
  const int shortest = root->CompletionLength(std::numeric_limits<int>::max());
  if (shortest < 0) {
    return Error{ErrorCode::kLimit,
                 "no output that fits was found within the limits (which does not prove that "
                 "there is none)",
                 "constraint"};
  }
  return Error{ErrorCode::kLimit,
               "the shortest output that was found takes " + std::to_string(shortest) +
                   " tokens, but the budget is " + std::to_string(budget),
               "max_tokens"};
}

}  // namespace pawl
