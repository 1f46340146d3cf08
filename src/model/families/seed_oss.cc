// Seed-OSS (ByteDance, 2025): Llama with biases of queries, keys and values.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadSeedOss(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  const bool qkv = in["attention_bias"].Bool(true), o = in["attention_out_bias"].Bool(false);
  EachAttention(config, [&](Attention& attention, int) {
    attention.qkv_bias = qkv;
    attention.o_bias = o;
  });
  EachMlp(config, [bias = in["mlp_bias"].Bool(false)](Mlp& mlp) { mlp.bias = bias; });
  in.Ignore({"residual_dropout"});
  config.ropes = {ReadRope(in, config, 10000.0)};
}

}  // namespace

extern const Family kSeedOssFamily = {
    .architectures = {"SeedOssForCausalLM"},
    .gguf = {"seed_oss"},
    .defaults = {.kv_heads = 8, .head_dim = 128, .context = 524288},
    .read = ReadSeedOss,
    .rename_gguf = [](TensorNames& names) { names.mlp_norm = "post_attention_norm"; },
};

}  // namespace pawl
