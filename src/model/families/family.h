// The model families. A file of this folder states one family: its names in config.json and in
// GGUF files, its settings, and where its tensors' names differ. It turns the settings of either
// file into the same description (transformer_config.h) and computes nothing.
//
// A setting that is not understood may be harmless or may change every number, and its name does
// not tell which. So a member with a value is read, known to be harmless, or an error.
#ifndef PAWL_SRC_MODEL_FAMILIES_FAMILY_H_
#define PAWL_SRC_MODEL_FAMILIES_FAMILY_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_reader.h"
#include "src/model/gguf_keys.h"
#include "src/model/tensor_names.h"
#include "src/model/transformer_config.h"

namespace pawl {

// The keys of config.json that say how large a model is.
struct SizeKeys {
  const char* hidden = "hidden_size";
  const char* intermediate = "intermediate_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* kv_heads = "num_key_value_heads";
  const char* context = "max_position_embeddings";
  const char* tied = "tie_word_embeddings";
};

// What a family's config.json leaves out.
struct FamilyDefaults {
  int kv_heads = 0;  // 0: as many as heads
  int head_dim = 0;  // 0: hidden / heads
  int context = 2048;
  bool tied_embeddings = false;
  int heads = 0, vocabulary = 0;  // 0: the file has to say
  double epsilon = 1e-6;
  const char* epsilon_key = "rms_norm_eps";
  int intermediate = 0;                // 0: the file has to say
  const char* layers = "layer_types";  // the list of layers, where their number is not stated
};

struct Family {
  // Entries of `architectures`. The first one stands for the family where a file has none.
  const char* architectures[3] = {};
  // Entries of models of text and images whose text_config is of this family, and its model_type.
  const char* wrappers[2] = {};
  const char* model_type = nullptr;
  // general.architecture of GGUF files.
  const char* gguf[2] = {};
  FamilyDefaults defaults = {};
  SizeKeys keys = {};
  // Called once the sizes are filled in, with layers of attention and an MLP with a gate, and
  // norms before both; reads the rest. RoPE is the family's too: it calls ReadRope.
  void (*read)(const JsonReader& in, TransformerConfig& config) = nullptr;
  // The same of a GGUF file, where ropes[0] is read too.
  void (*read_gguf)(GgufKeys& keys, TransformerConfig& config) = nullptr;
  bool gguf_by_layer = false;  // it reads MLPs' widths and heads of keys by layer
  const char* gguf_epsilon_key = "attention.layer_norm_rms_epsilon";
  // rope.freq_base of GGUF files without one.
  double gguf_theta = 10000.0;
  // Where names of tensors differ from those of tensor_names.h.
  void (*rename)(TensorNames& names) = nullptr;
  void (*rename_gguf)(TensorNames& names) = nullptr;
};

std::span<const Family* const> AllFamilies();
// nullptr when there is none.
const Family* FindFamily(std::string_view architecture);
// "Qwen2MoeForCausalLM" and "qwen2_moe" as "qwen2moe".
std::string PlainName(std::string_view name);
// Of a model of text and images; without a `model_type` the first that has such a wrapper.
const Family* FindWrapped(std::string_view architecture, std::string_view model_type);
const Family* FindGgufFamily(std::string_view architecture);
// "; it needs ..." of an architecture without a family, where what is missing is known.
std::string WhyRefused(std::string_view architecture);
// Its entry of `architectures`, or of models of text and images.
const char* NameOf(const Family& family);
// All of them: "GemmaForCausalLM, LlamaForCausalLM, ..."; of GGUF files "llama, qwen2, ...".
std::string FamilyNames(bool gguf = false);

// ---- For families ----

// f(mlp) for each layer that has one.
template <typename F>
void EachMlp(TransformerConfig& config, const F& f) {
  for (Layer& layer : config.layers) {
    if (auto* mlp = std::get_if<Mlp>(&layer.feed_forward)) f(*mlp);
  }
}

// The RoPE settings at the top level of config.json in either spelling: rope_theta and
// rope_scaling, or rope_parameters. `part` of a head is rotated unless the file says otherwise; 0:
// all of it, and a file cannot.
RopeConfig ReadRope(const JsonReader& in, const TransformerConfig& config, double default_theta,
                    double part = 0);
// One object of RoPE settings.
// `original`: the context before it was stretched, where the object does not say; 0: `context`.
RopeConfig ReadRopeObject(const JsonReader& object, int context, double theta, bool type_required,
                          double original = 0);
// rope_parameters of layers that see everything, which become rope 0, and of those with a window,
// rope 1; rope_scaling is of the first ones.
void ReadTwoRopes(const JsonReader& in, TransformerConfig& config, double theta,
                  double sliding_theta);

// The names in a list of one for each layer, each one of `known`, or those that `otherwise(layer)`
// gives.
std::vector<std::string_view> ReadLayerTypes(
    const JsonReader& in, int layers, std::span<const std::string_view> known,
    const std::function<std::string_view(int layer)>& otherwise, const char* key = "layer_types");
// Which layers see a window only: "sliding_attention" in `layer_types`, or `otherwise(layer)`.
std::vector<bool> ReadSlidingLayers(const JsonReader& in, int layers,
                                    const std::function<bool(int layer)>& otherwise);
// The same of a GGUF file: a list, or a number of which each multiple sees everything.
std::vector<bool> ReadGgufSliding(GgufKeys& keys, int layers, int64_t pattern);
// Null says that there is no window.
int ReadWindow(const JsonReader& in, int64_t otherwise = 4096);
// Of models that fill masks: rows see both sides.
void ReadDiffusion(const JsonReader& in, TransformerConfig& config);
// The upper layers of Qwen, from max_window_layers on, may have a window.
void ReadQwenWindow(const JsonReader& in, TransformerConfig& config);
// What all Gemmas have, those from 2 on, and the settings of 2 and 3.
void DescribeGemma(TransformerConfig& config);
void DescribeGemma2(TransformerConfig& config);
void ReadGemma2And3(const JsonReader& in, TransformerConfig& config);
void RenameGemma2And3(TensorNames& names);
// GGUF files leave the scale of the largest one out.
void ScaleLargestGemma(TransformerConfig& config, int largest);
// Numbers of experts and of those chosen, and their width. `count` is the key of the first, which
// has two spellings.
Experts ReadExperts(const JsonReader& in, const JsonReader& width,
                    const char* count = "num_experts");
// The same of a GGUF file, for each layer that has a router; `experts`: what is said if the file
// does not say it.
void ReadGgufExperts(GgufKeys& keys, TransformerConfig& config, Experts experts);
// A soft cap: 0, which is none, where it is null.
float ReadCap(const JsonReader& in, double absent);
// attention_bias: of queries, keys, values and the output.
void ReadAttentionBias(const JsonReader& in, TransformerConfig& config, bool absent = false);

// The factors of Granite, in both kinds of files.
void ReadGraniteFactors(const JsonReader& in, TransformerConfig& config);
void ReadGraniteFactors(GgufKeys& keys, TransformerConfig& config);
// Of Mamba-2: the width of a head, or what is wrong with the number of heads; the layers of a GGUF
// file that have it; names.
void CheckMamba(int inner, Mamba2& mamba, const std::function<void(const char*)>& fail);
// kUnsupported where time steps have bounds: in the reference implementation they depend on how a
// text is cut into calls.
void ExpectNoTimeLimit(const JsonReader& in);
Mamba2 ReadGgufMamba(GgufKeys& keys, TransformerConfig& config);
void RenameMamba(TensorNames& names);
void RenameGgufMamba(TensorNames& names);
// Of models with compressed keys and values: all mixers; experts, of which some are shared, by what
// a file leaves out; names.
void ReadLatent(const JsonReader& in, TransformerConfig& config, int query_rank);
Experts ReadRouted(const JsonReader& in, int count, int chosen, int width, double scale,
                   int shared = 1);
void RenameSharedExperts(TensorNames& names);
void RenameGgufLatent(TensorNames& names);
// The same of a GGUF file.
void ReadGgufLatent(GgufKeys& keys, TransformerConfig& config);
// Short convolutions in layers without attention, in both kinds of files; names.
void ReadShortConvolutions(const JsonReader& in, TransformerConfig& config);
void ReadShortConvolutions(GgufKeys& keys, TransformerConfig& config);
void RenameShortConvolutions(TensorNames& names);
void RenameGgufShortConvolutions(TensorNames& names);
// Of gated delta nets in GGUF files.
void RenameGgufDelta(TensorNames& names);

// kUnsupported unless the setting is `supported` or absent.
void ExpectString(const JsonReader& in, std::string_view supported);
void ExpectNumber(const JsonReader& in, double supported);
// kUnsupported where it says something: anything but null, false or empty.
void ExpectNothing(const JsonReader& in);
// kUnsupported for the first member that nothing has read and that says something; names that begin
// with '_' are comments. `owner`: "LlamaForCausalLM", for the message.
void RefuseTheRest(const JsonReader& in, std::string_view owner);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_FAMILIES_FAMILY_H_
