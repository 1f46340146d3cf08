// GLM-4 of 2025 (Z.ai): neighbours of half of each head are rotated, and norms stand on both sides.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeGlm4(TransformerConfig& config) {
  for (Layer& layer : config.layers) layer.post_norms = true;
}

void ReadGlm4(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  const bool bias = in["attention_bias"].Bool(true);
  EachAttention(config, [&](Attention& attention, int) { attention.qkv_bias = bias; });
  DescribeGlm4(config);
  config.ropes = {ReadRope(in, config, 10000.0, 0.5)};
}

}  // namespace

extern const Family kGlm4Family = {
    .architectures = {"Glm4ForCausalLM"},
    .gguf = {"glm4"},
    .defaults = {.kv_heads = 2, .head_dim = 128, .context = 131072, .epsilon = 1.5625e-07},
    .read = ReadGlm4,
    .read_gguf = [](GgufKeys&, TransformerConfig& config) { DescribeGlm4(config); },
    .rename =
        [](TensorNames& names) {
          names.attention_post_norm = "post_self_attn_layernorm";
          names.mlp_norm = "post_attention_layernorm";
          names.mlp_post_norm = "post_mlp_layernorm";
          names.gate_up = "mlp.gate_up_proj";
          names.paired_rotation = true;
        },
    .rename_gguf =
        [](TensorNames& names) {
          names.gate_up = "ffn_up";
          names.paired_rotation = true;
        },
};

}  // namespace pawl
