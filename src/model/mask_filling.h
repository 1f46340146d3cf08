// Models whose rows see both sides, so that they fill masks in a canvas.
#ifndef PAWL_SRC_MODEL_MASK_FILLING_H_
#define PAWL_SRC_MODEL_MASK_FILLING_H_

#include <optional>

#include "src/model/model.h"

namespace pawl {

struct TransformerConfig;

// nullopt: the model is causal.
std::optional<MaskFilling> FillingOf(const TransformerConfig& config);
// kUnsupported where the model fills masks; `place`: what was asked of it.
Status CheckCausal(const Model& model, const char* place);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_MASK_FILLING_H_
