// The description of a decoder-only transformer that the one implementation (transformer_cpu.h)
// runs: every model family is a choice of these values, whichever file states them.
#ifndef PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_
#define PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_

#include <string>
#include <variant>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/model/checkpoint_format.h"
#include "src/model/layer.h"

namespace pawl {

// Rotary position embeddings: how fast each pair of a head's elements turns with the position.

enum class RopeType { kDefault, kLinear, kDynamic, kLlama3, kYarn, kLong };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                                   // all but kDefault and kLong
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // kLlama3
  double original_context = 8192;                        // kDynamic, kLlama3, kYarn, kLong
  double beta_fast = 32.0, beta_slow = 1.0;              // kYarn
  bool truncate = true;                                  // kYarn: whole dimensions as bounds
  double attention_factor = 1.0;                         // cosines and sines are multiplied by it
  // When not empty: frequency i is divided by divisors[i], as GGUF files state kLlama3. Of
  // kLong for positions below original_context; beyond it by long_divisors[i].
  std::vector<float> divisors, long_divisors;
  int width = 0;  // so many elements of a head are rotated, the first ones; 0: all

  int WidthIn(int head_dim) const { return width > 0 ? width : head_dim; }
  bool operator==(const RopeConfig&) const = default;
};

// The factor that YaRN multiplies cosines and sines with unless a file says otherwise.
double YarnAttentionFactor(double factor, double scale = 1.0);

// The angular frequencies, half as many as elements are rotated, in radians per position, rounded
// to float as the reference implementation has them. They depend on the position for kDynamic
// and kLong alone, beyond original_context. Written to `frequencies`, whose memory is used again.
void RopeFrequencies(const RopeConfig& rope, int head_dim, int position,
                     std::vector<float>& frequencies);

// The rotations of one position after the other, as backends keep them in tables.
class RopeRows {
 public:
  RopeRows(const RopeConfig& rope, int head_dim);
  // Cosines, half as many as elements are rotated, then as many sines, of the next position, from 0
  // on. The angle is rounded to float before the cosine is taken, as in the reference
  // implementation, whose trained models have never seen the exact one.
  void Next(float* row);

 private:
  RopeConfig rope_;
  int head_dim_;
  int position_ = 0;
  std::vector<float> frequencies_;
};

struct Family;

struct TransformerConfig {
  std::string architecture;
  const Family* family = nullptr;  // families/family.h
  int hidden = 0, vocabulary = 0, context_length = 0;
  std::vector<Layer> layers;
  std::vector<RopeConfig> ropes;

  float norm_epsilon = 1e-6f;
  bool layer_norms = false;  // all norms are LayerNorms with biases; otherwise RMS norms
  bool tied_embeddings = false;
  float embedding_scale = 1.0f;
  float logit_scale = 1.0f;
  float logit_soft_cap = 0.0f;  // as of attention

  // Each layer adds a function of the residual stream and of so many numbers, which an embedding of
  // the layer has for the token; 0: none.
  int layer_input_width = 0;

  // Of diffusion models: a row sees all rows of its call, those behind it too; masks stand as a
  // token; and the logits of a position come from the row in front of it, or from its own.
  bool both_sides = false, shifted_logits = false;
  TokenId mask_token = kNoToken;
  int mask_block = 0;  // its canvases end with blocks of so many positions; 0: of any length

  CheckpointFormat quantization;  // of the matrices of a folder
  // It has a head for labels and none for tokens (engine/rerank_head.h).
  bool classifies = false;

  std::vector<TokenId> end_tokens;
  TokenId bos = kNoToken;

  // Of trained heads that draft (draft_head.h): their layers, behind those of the model, and floats
  // of a position that they read.
  int head_layers = 0, head_state = 0;

  int layer_count() const { return static_cast<int>(layers.size()) - head_layers; }
};

// f(attention, i) for each layer that has attention.
template <typename Config, typename F>
void EachAttention(Config& config, const F& f) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (auto* attention = std::get_if<Attention>(&config.layers[i].mixer)) {
      f(*attention, static_cast<int>(i));
    }
  }
}

// The description as text: a line for what the model has once, then one for each run of equal
// layers. What two files of the same model differ in is left out: names, tokens and formats.
std::string Describe(const TransformerConfig& config);

// What no file may exceed.
constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxExperts = 4096;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxContext = int64_t{1} << 26;

// What both readers do last: windows that hold the context, and scales that are the default, are
// left out.
void Finish(TransformerConfig& config);

// Reads folder/config.json and, when there is one, folder/generation_config.json. Errors: kIo;
// kInvalid, kLimit and kUnsupported with the file and the JSON Pointer of the key.
Result<TransformerConfig> ReadTransformerConfig(const std::string& folder);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_
