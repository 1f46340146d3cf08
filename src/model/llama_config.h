// What config.json and generation_config.json say about a Llama-shaped model, checked and with the
// defaults of the reference implementation filled in.
#ifndef PAWL_SRC_MODEL_LLAMA_CONFIG_H_
#define PAWL_SRC_MODEL_LLAMA_CONFIG_H_

#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

enum class RopeType { kDefault, kLinear, kLlama3 };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                                   // kLinear, kLlama3
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // kLlama3
  double original_context = 8192;                        // kLlama3
};

struct LlamaConfig {
  std::string architecture;
  int hidden = 0, intermediate = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int vocabulary = 0, context_length = 0;
  float norm_epsilon = 1e-6f;
  bool tied_embeddings = false, attention_bias = false, mlp_bias = false;
  RopeConfig rope;
  std::vector<TokenId> end_tokens;
  TokenId bos = kNoToken;
};

// Reads folder/config.json and, when there is one, folder/generation_config.json. Errors: kIo;
// kInvalid, kLimit and kUnsupported with the file and the JSON Pointer of the key.
Result<LlamaConfig> ReadLlamaConfig(const std::string& folder);

// The head_dim / 2 angular frequencies, in radians per position, rounded to float as the reference
// implementation has them.
std::vector<float> RopeFrequencies(const RopeConfig& rope, int head_dim);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_LLAMA_CONFIG_H_
