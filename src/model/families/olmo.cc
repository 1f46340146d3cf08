// OLMo 2 and 3 (Ai2, 2024 and 2025): norms behind attention and MLP alone, and of all queries and
// all keys together.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeOlmo(TransformerConfig& config) {
  for (Layer& layer : config.layers) {
    layer.pre_norms = false;
    layer.post_norms = true;
  }
  EachAttention(config, [](Attention& attention, int) { attention.qk_norm = QkNorm::kWidth; });
}

void ReadOlmo2(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  DescribeOlmo(config);
  config.ropes = {ReadRope(in, config, 10000.0)};
}

void UseWindow(const std::vector<bool>& sliding, int window, TransformerConfig& config) {
  EachAttention(config, [&](Attention& attention, int i) {
    if (!sliding[static_cast<size_t>(i)]) return;
    attention.window = window;
    attention.rope = 1;
  });
}

void ReadOlmo3(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  DescribeOlmo(config);
  const int window = ReadWindow(in["sliding_window"]);
  UseWindow(ReadSlidingLayers(in, config.layer_count(), [](int i) { return (i + 1) % 4 != 0; }),
            window, config);
  const double theta = in["rope_theta"].Positive(500000.0);
  ReadTwoRopes(in, config, theta, theta);
}

void ReadOlmoGguf(GgufKeys& keys, TransformerConfig& config) {
  DescribeOlmo(config);
  const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 0, 0));
  if (window == 0) return;
  RopeConfig sliding;
  sliding.theta = keys.Positive("rope.freq_base_swa", config.ropes[0].theta);
  config.ropes.push_back(sliding);
  UseWindow(ReadGgufSliding(keys, config.layer_count(), 4), window, config);
}

void RenameOlmo(TensorNames& names) {
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
}

}  // namespace

extern const Family kOlmo2Family = {
    .architectures = {"Olmo2ForCausalLM"},
    .gguf = {"olmo2"},
    .defaults = {.epsilon = 1e-5},
    .read = ReadOlmo2,
    .read_gguf = ReadOlmoGguf,
    .rename = RenameOlmo,
};

extern const Family kOlmo3Family = {
    .architectures = {"Olmo3ForCausalLM"},
    .defaults = {.epsilon = 1e-5},
    .read = ReadOlmo3,
    .rename = RenameOlmo,
};

}  // namespace pawl
