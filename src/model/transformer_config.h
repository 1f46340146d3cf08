// The description of a decoder-only transformer that the one implementation (transformer_cpu.h)
// runs: every model family is a choice of these values, whichever file states them.
#ifndef PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_
#define PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_

#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/json_reader.h"
#include "src/model/checkpoint_format.h"

namespace pawl {

// Rotary position embeddings: how fast each pair of a head's elements turns with the position.

enum class RopeType { kDefault, kLinear, kDynamic, kLlama3, kYarn };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                                   // all but kDefault
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // kLlama3
  double original_context = 8192;                        // kDynamic, kLlama3, kYarn
  double beta_fast = 32.0, beta_slow = 1.0;              // kYarn
  bool truncate = true;                                  // kYarn: whole dimensions as bounds
  double attention_factor = 1.0;                         // cosines and sines are multiplied by it
  // When not empty: frequency i is divided by divisors[i], the way GGUF files state kLlama3.
  std::vector<float> divisors;

  bool operator==(const RopeConfig&) const = default;
};

// The factor that YaRN multiplies cosines and sines with unless a file says otherwise.
double YarnAttentionFactor(double factor);

// The head_dim / 2 angular frequencies, in radians per position, rounded to float as the reference
// implementation has them. They depend on the position for kDynamic alone, beyond original_context.
// Written to `frequencies`, whose memory is used again.
void RopeFrequencies(const RopeConfig& rope, int head_dim, int position,
                     std::vector<float>& frequencies);

// The rotations of one position after the other, as backends keep them in tables.
class RopeRows {
 public:
  RopeRows(const RopeConfig& rope, int head_dim);
  // head_dim / 2 cosines, then as many sines, of the next position, from 0 on. The angle is rounded
  // to float before the cosine is taken, as in the reference implementation, whose trained models
  // have never seen the exact one.
  void Next(float* row);

 private:
  RopeConfig rope_;
  int head_dim_;
  int position_ = 0;
  std::vector<float> frequencies_;
};

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

  CheckpointFormat quantization;  // of the matrices of a folder

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

// The model families, each a function that turns the settings of its config.json into a
// TransformerConfig. What all have in common is read in transformer_config.cc.

// What a family's files leave out.
struct FamilyDefaults {
  int kv_heads = 0;  // 0: as many as heads
  int head_dim = 0;  // 0: hidden / heads
  int context = 2048;
  bool tied_embeddings = false;
  int heads = 0, vocabulary = 0;  // 0: the file has to say
  // The object of config.json that describes the text model, of one that also sees images; nullptr:
  // all of it.
  const char* text_config = nullptr;
};

struct Family {
  const char* architecture;  // the entry of `architectures`
  FamilyDefaults defaults;
  // Called once widths, layers (a default each) and context are filled in; reads the rest. RoPE is
  // the family's too: it calls ReadRope.
  void (*read)(const JsonReader& in, TransformerConfig& config);
};

// nullptr when there is none.
const Family* FindFamily(std::string_view architecture);
// "GemmaForCausalLM, LlamaForCausalLM and ..."
std::string FamilyNames();

// The RoPE settings at the top level of config.json in either spelling: rope_theta and
// rope_scaling, or rope_parameters.
RopeConfig ReadRope(const JsonReader& in, int context, double default_theta);
// One object of RoPE settings.
RopeConfig ReadRopeObject(const JsonReader& object, int context, double theta, bool type_required);

// A setting that is not understood may be harmless or may change every number, and its name does
// not tell which. So a member with a value is read, known to be harmless, or an error.

// kUnsupported unless the setting is `supported` or absent.
void ExpectString(const JsonReader& in, std::string_view supported);
// kUnsupported where it says something: anything but null, false or empty.
void ExpectNothing(const JsonReader& in);
// kUnsupported for the first member that nothing has read and that says something; names that begin
// with '_' are comments. `owner`: "LlamaForCausalLM", for the message.
void RefuseTheRest(const JsonReader& in, std::string_view owner);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TRANSFORMER_CONFIG_H_
