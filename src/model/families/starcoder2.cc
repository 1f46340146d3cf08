// StarCoder 2 (Lozhkov et al., 2024): LayerNorms, and an MLP without a gate.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeStarCoder2(TransformerConfig& config) {
  config.layer_norms = true;
  EachMlp(config, [](Mlp& mlp) {
    mlp.gated = false;
    mlp.activation = Activation::kGeluTanh;
  });
}

void ReadStarCoder2(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "gelu_pytorch_tanh");
  DescribeStarCoder2(config);
  const bool bias = in["use_bias"].Bool(true);
  const int window = in["sliding_window"].present() ? ReadWindow(in["sliding_window"]) : 0;
  EachAttention(config, [&](Attention& attention, int) {
    attention.qkv_bias = attention.o_bias = bias;
    attention.window = window;
  });
  EachMlp(config, [&](Mlp& mlp) { mlp.bias = bias; });
  ExpectString(in["activation_function"], "gelu_pytorch_tanh");
  in.Ignore({"residual_dropout", "embedding_dropout", "attention_softmax_in_fp32",
             "scale_attention_softmax_in_fp32", "scale_attn_weights"});
  ExpectString(in["norm_type"], "layer_norm");
  ExpectString(in["mlp_type"], "default");
  config.ropes = {ReadRope(in, config, 10000.0)};
}

}  // namespace

extern const Family kStarCoder2Family = {
    .architectures = {"Starcoder2ForCausalLM"},
    .gguf = {"starcoder2"},
    .defaults = {.kv_heads = 2,
                 .context = 4096,
                 .tied_embeddings = true,
                 .epsilon = 1e-5,
                 .epsilon_key = "norm_epsilon"},
    .read = ReadStarCoder2,
    .read_gguf = [](GgufKeys&, TransformerConfig& config) { DescribeStarCoder2(config); },
    .gguf_epsilon_key = "attention.layer_norm_epsilon",
    .rename =
        [](TensorNames& names) {
          names.up = "mlp.c_fc";
          names.down = "mlp.c_proj";
        },
};

}  // namespace pawl
