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

int PositionsOf(const ModelInfo& info, const KvMemory& memory) {
  return static_cast<int>(memory.positions(info.context_length));
}

}  // namespace pawl
