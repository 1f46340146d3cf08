// Messages of these checks name the token, the limit and the place.
#include "src/decode/check_input.h"

#include <limits>
#include <string>
#include <utility>

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
  const std::pair<bool, const char*> options[] = {{given.threshold.has_value(), "threshold"},
                                                  {given.factor.has_value(), "factor"},
                                                  {given.steps.has_value(), "steps"},
                                                  {given.block_length.has_value(), "block_length"},
                                                  {!given.remasking.empty(), "remasking"},
                                                  {!given.alg.empty(), "alg"},
                                                  {given.alg_temp.has_value(), "alg_temp"},
                                                  {given.eps.has_value(), "eps"},
                                                  {given.cfg_scale.has_value(), "cfg_scale"},
                                                  {!given.cache.empty(), "cache"},
                                                  {given.kv_refresh.has_value(), "kv_refresh"},
                                                  {!given.schedule.empty(), "schedule"},
                                                  {!given.gaps.empty(), "gaps"},
                                                  {!given.prefix.empty(), "prefix"},
                                                  {given.gap_tokens.has_value(), "gap_tokens"},
                                                  {given.on_canvas != nullptr, "on_canvas"}};
  for (const auto& [is, name] : options) {
    if (!is) continue;
    return Error{ErrorCode::kUnsupported, "means nothing for a causal model",
                 std::string("diffusion.") + name};
  }
  return {};
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
