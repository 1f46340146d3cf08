// What the loop of a diffusion model has to know of it: a model whose rows see both sides, so that
// it fills masks in a canvas.
#ifndef PAWL_SRC_MODEL_MASK_FILLING_H_
#define PAWL_SRC_MODEL_MASK_FILLING_H_

#include <optional>

#include "src/model/model.h"

namespace pawl {

struct MaskFilling {
  TokenId mask = kNoToken;
  bool shifted = false;  // the logits of a position come from the row in front of it
  int block = 0;  // it was trained on canvases that end with blocks of this size; 0: it wasn't
};

// nullopt: the model is causal.
std::optional<MaskFilling> MaskFillingOf(const Model& model);
// kUnsupported with "model" as place where the model fills masks.
Status CheckCausal(const Model& model);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_MASK_FILLING_H_
