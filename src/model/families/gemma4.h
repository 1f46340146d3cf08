// What the two readers of Gemma 4's files share.
#ifndef PAWL_SRC_MODEL_FAMILIES_GEMMA4_H_
#define PAWL_SRC_MODEL_FAMILIES_GEMMA4_H_

#include <optional>
#include <vector>

#include "src/model/families/family.h"

namespace pawl {

struct Gemma4Facts {
  int window = 0, head_dim = 0, kv_heads = 0;  // the last two of layers that see everything
  std::vector<bool> sliding;
  bool value_is_key = false;
  int shared = 0;
  std::optional<Experts> experts;
};

// false where a layer has no earlier one of its kind to read.
bool DescribeGemma4(TransformerConfig& config, const Gemma4Facts& facts);
// All but the sizes.
Experts Gemma4Experts();
// What differs where a file does not say it: the width of inputs of layers, and the window.
void ReadGemma4(const JsonReader& in, TransformerConfig& config, int inputs, int window);
void ReadGemma4Gguf(GgufKeys& keys, TransformerConfig& config);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_FAMILIES_GEMMA4_H_
