// Granite 3 and 4 without experts and Mamba (IBM, 2024): Llama with four factors.
#include <cmath>

#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeGranite(TransformerConfig& config, double attention_scale, double residual_scale) {
  for (Layer& layer : config.layers) layer.scale = static_cast<float>(residual_scale);
  EachAttention(config, [&](Attention& attention, int) {
    attention.scale = static_cast<float>(attention_scale);
  });
}

}  // namespace

void ReadGraniteFactors(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectString(in["normalization_function"], "rmsnorm");
  in.Ignore({"init_method"});
  ReadAttentionBias(in, config);
  EachMlp(config, [bias = in["mlp_bias"].Bool(false)](Mlp& mlp) { mlp.bias = bias; });
  config.embedding_scale = static_cast<float>(in["embedding_multiplier"].Positive(1.0));
  config.logit_scale = static_cast<float>(1.0 / in["logits_scaling"].Positive(1.0));
  DescribeGranite(config, in["attention_multiplier"].Positive(1.0),
                  in["residual_multiplier"].Positive(1.0));
}

void ReadGraniteFactors(GgufKeys& keys, TransformerConfig& config) {
  config.embedding_scale = static_cast<float>(keys.Positive("embedding_scale", 1.0));
  config.logit_scale = static_cast<float>(1.0 / keys.Positive("logit_scale", 1.0));
  const Attention& attention = config.layers[0].attention();
  DescribeGranite(
      config,
      keys.Positive("attention.scale", 1.0 / std::sqrt(static_cast<double>(attention.head_dim))),
      keys.Positive("residual_scale", 1.0));
}

namespace {

void ReadGranite(const JsonReader& in, TransformerConfig& config) {
  ReadGraniteFactors(in, config);
  config.ropes = {ReadRope(in, config, 10000.0)};
}

void ReadGraniteGguf(GgufKeys& keys, TransformerConfig& config) {
  ReadGraniteFactors(keys, config);
  if (keys.Bool("rope.scaling.finetuned", true)) return;
  EachAttention(config, [](Attention& one, int) { one.rope = kNoRope; });
}

}  // namespace

extern const Family kGraniteFamily = {
    .architectures = {"GraniteForCausalLM"},
    .gguf = {"granite"},
    .read = ReadGranite,
    .read_gguf = ReadGraniteGguf,
    .rename_gguf = [](TensorNames& names) { names.paired_rotation = true; },
};

}  // namespace pawl
