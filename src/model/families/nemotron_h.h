// What the two readers of Nemotron-H's files share.
#ifndef PAWL_SRC_MODEL_FAMILIES_NEMOTRON_H_H_
#define PAWL_SRC_MODEL_FAMILIES_NEMOTRON_H_H_

#include "src/model/families/family.h"

namespace pawl {

// Time steps are at least this where a file does not say it, as GGUF files never do.
constexpr double kNemotronLeastTime = 0.001;

// All but the sizes.
Experts NemotronExperts();
// Of the attention and the MLP that each layer has at first.
void KeepOnePart(Layer& layer, bool mixer);
void ReadNemotronH(const JsonReader& in, TransformerConfig& config);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_FAMILIES_NEMOTRON_H_H_
