// The description of a decoder-only transformer that the one implementation (transformer_cpu.h)
// runs: every model family is a choice of these values, whichever file states them.
#ifndef PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_
#define PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_

#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/model/rope.h"

namespace pawl {

enum class Activation { kSilu, kGeluTanh };

struct LayerConfig {
  int window = 0;  // a row sees this many positions, its own the last of them; 0: all
  int rope = 0;    // index into TransformerConfig::ropes
};

struct TransformerConfig {
  std::string architecture;
  int hidden = 0, intermediate = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int vocabulary = 0, context_length = 0;
  std::vector<LayerConfig> layers;
  std::vector<RopeConfig> ropes;

  Activation activation = Activation::kSilu;
  float norm_epsilon = 1e-6f;
  float norm_offset = 0.0f;  // added to the weights of all norms
  bool qk_norm = false;      // each head's query and key are normed before they are rotated
  bool post_norms = false;   // what attention and MLP answer is normed before it is added
  // Rows of q and k stand in the order of a rotation of neighbours; the loader puts them in that of
  // halves.
  bool paired_rotation = false;
  bool tied_embeddings = false, qkv_bias = false, o_bias = false, mlp_bias = false;
  float embedding_scale = 1.0f;
  float attention_scale = 0.0f;     // of q k^T; 0: 1 / sqrt(head_dim)
  float attention_soft_cap = 0.0f;  // c: scores s become c tanh(s / c); 0: none
  float logit_soft_cap = 0.0f;

  std::vector<TokenId> end_tokens;
  TokenId bos = kNoToken;

  int layer_count() const { return static_cast<int>(layers.size()); }
};

// What no file may exceed.
constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxContext = int64_t{1} << 26;

// Reads folder/config.json and, when there is one, folder/generation_config.json. Errors: kIo;
// kInvalid, kLimit and kUnsupported with the file and the JSON Pointer of the key.
Result<TransformerConfig> ReadTransformerConfig(const std::string& folder);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_
