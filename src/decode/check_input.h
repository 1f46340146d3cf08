// What is checked of the tokens and options that a work of the batch begins with.
#ifndef PAWL_SRC_DECODE_CHECK_INPUT_H_
#define PAWL_SRC_DECODE_CHECK_INPUT_H_

#include <span>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/model/model.h"

namespace pawl {

// Errors: kInvalid with `place` for a token that is not below `width`.
Status CheckTokens(std::span<const TokenId> tokens, int width, const char* place);
// Of a causal model: errors (kUnsupported) name the first option that is set.
Status RefuseDiffusion(const DiffusionOptions& given);
// Positions that one sequence of the model can have.
int PositionsOf(const ModelInfo& info, const KvMemory& memory);
// Errors: kLimit where no output of the constraint is known to fit `budget` tokens, with
// "constraint" or "max_tokens" as place. nullptr: every budget fits.
Status CheckCompletion(const LoopConstraint* root, int budget);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_CHECK_INPUT_H_
