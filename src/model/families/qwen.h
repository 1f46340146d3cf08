// What the families of Qwen share.
#ifndef PAWL_SRC_MODEL_FAMILIES_QWEN_H_
#define PAWL_SRC_MODEL_FAMILIES_QWEN_H_

#include "src/model/families/family.h"

namespace pawl {

// Gated delta nets and gated attention by turns, in both kinds of files.
void ReadGatedDelta(const JsonReader& in, TransformerConfig& config);
void ReadGatedDelta(GgufKeys& keys, TransformerConfig& config);
// Experts in the layers that the settings leave; `normalized` where a file does not say it.
void ReadQwenExperts(const JsonReader& in, TransformerConfig& config, bool shared,
                     bool normalized = false);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_FAMILIES_QWEN_H_
