// Gemma 1 (technical report, 2024), and what it shares with the later ones.
#include <cmath>

#include "src/model/families/family.h"

namespace pawl {

// The embedding scale is exact here; the reference implementation rounds it to the dtype it runs
// in.
void DescribeGemma(TransformerConfig& config) {
  EachMlp(config, [](Mlp& mlp) { mlp.activation = Activation::kGeluTanh; });
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
}

void DescribeGemma2(TransformerConfig& config) {
  DescribeGemma(config);
  for (Layer& layer : config.layers) layer.post_norms = true;
}

void ReadGemma2And3(const JsonReader& in, TransformerConfig& config) {
  DescribeGemma2(config);
  ExpectString(in["hidden_activation"], "gelu_pytorch_tanh");
  in.Ignore({"hidden_act"});  // stale in published files; the reference reads the other one
  ReadAttentionBias(in, config);
  const double scalar = in["query_pre_attn_scalar"].Positive(256.0);
  EachAttention(config, [&](Attention& attention, int) {
    attention.scale = static_cast<float>(1.0 / std::sqrt(scalar));
  });
  ExpectNothing(in["use_bidirectional_attention"]);
}

void RenameGemma2And3(TensorNames& names) {
  names.norm_offset = 1.0f;
  names.mlp_norm = "pre_feedforward_layernorm";
}

void ScaleLargestGemma(TransformerConfig& config, int largest) {
  if (config.layer_count() != largest) return;
  EachAttention(config, [&](Attention& attention, int) {
    attention.scale =
        1.0f / std::sqrt(static_cast<float>(config.hidden) / static_cast<float>(attention.heads));
  });
}

namespace {

void ReadGemma1(const JsonReader& in, TransformerConfig& config) {
  DescribeGemma(config);
  // The first files say "gelu" and mean the approximation.
  const JsonReader activation = in["hidden_act"];
  if (activation.String("gelu") != "gelu") ExpectString(activation, "gelu_pytorch_tanh");
  if (in["hidden_activation"].present()) ExpectString(in["hidden_activation"], "gelu_pytorch_tanh");
  ReadAttentionBias(in, config);
  ExpectNothing(in["use_bidirectional_attention"]);
  config.ropes = {ReadRope(in, config, 10000.0)};
}

}  // namespace

extern const Family kGemmaFamily = {
    .architectures = {"GemmaForCausalLM"},
    .gguf = {"gemma"},
    .defaults = {.kv_heads = 16, .head_dim = 256, .context = 8192, .tied_embeddings = true},
    .read = ReadGemma1,
    .read_gguf = [](GgufKeys&, TransformerConfig& config) { DescribeGemma(config); },
    .rename = [](TensorNames& names) { names.norm_offset = 1.0f; },
};

}  // namespace pawl
