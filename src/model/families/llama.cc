// Llama (Touvron et al., 2023), SmolLM2 and others of its form.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadLlama(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  EachMlp(config, [bias = in["mlp_bias"].Bool(false)](Mlp& mlp) { mlp.bias = bias; });
  ExpectNothing(in["sliding_window"]);
  ExpectNothing(in["rope_interleaved"]);
  in.Ignore({"is_llama_config"});
  config.ropes = {ReadRope(in, config, 10000.0)};
}

// Mistral too.
void ReadLlamaGguf(GgufKeys& keys, TransformerConfig& config) {
  if (!keys.Has("attention.sliding_window")) return;
  const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 1));
  EachAttention(config, [&](Attention& attention, int) { attention.window = window; });
}

}  // namespace

extern const Family kLlamaFamily = {
    .architectures = {"LlamaForCausalLM"},
    .gguf = {"llama"},
    .read = ReadLlama,
    .read_gguf = ReadLlamaGguf,
    .rename_gguf = [](TensorNames& names) { names.paired_rotation = true; },
};

}  // namespace pawl
