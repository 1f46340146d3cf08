// gpt-oss (model card, 2025): experts with biases and a clamped gate, and attention sinks.
#include "src/model/families/family.h"

namespace pawl {
namespace {

// `experts`: their sizes.
void DescribeGptOss(TransformerConfig& config, Experts experts, int window,
                    const std::vector<bool>& sliding) {
  experts.weights = Experts::Weights::kSoftmaxOfChosen;
  experts.router_bias = experts.bias = true;
  experts.clamp = 7.0f;
  for (Layer& layer : config.layers) layer.feed_forward = experts;
  EachAttention(config, [&](Attention& attention, int i) {
    attention.sinks = true;
    if (sliding[static_cast<size_t>(i)]) attention.window = window;
  });
}

void ReadGptOss(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config, true);
  ExpectNumber(in["swiglu_alpha"], 1.702);
  ExpectNumber(in["swiglu_limit"], 7.0);
  DescribeGptOss(config, ReadExperts(in, in["intermediate_size"], "num_local_experts"),
                 ReadWindow(in["sliding_window"], 128),
                 ReadSlidingLayers(in, config.layer_count(), [](int i) { return i % 2 == 0; }));
  in.Ignore({"router_aux_loss_coef", "output_router_logits", "experts_per_token",
             "initial_context_length"});
  RopeConfig rope = ReadRope(in, config, 150000.0);
  if (!in["rope_scaling"].present() && !in["rope_parameters"].present()) {
    rope.type = RopeType::kYarn;
    rope.factor = 32;
    rope.original_context = 4096;
    rope.truncate = false;
    rope.attention_factor = YarnAttentionFactor(rope.factor);
  }
  config.ropes = {rope};
}

void ReadGptOssGguf(GgufKeys& keys, TransformerConfig& config) {
  const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 128));
  const std::vector<bool> sliding = ReadGgufSliding(keys, config.layer_count(), 2);
  ReadGgufExperts(keys, config, {});
  if (const auto* experts = std::get_if<Experts>(&config.layers[0].feed_forward)) {
    DescribeGptOss(config, *experts, window, sliding);
  }
  config.ropes[0].truncate = false;  // no key says it
}

}  // namespace

extern const Family kGptOssFamily = {
    .architectures = {"GptOssForCausalLM"},
    .gguf = {"gpt-oss"},
    .defaults = {.kv_heads = 8, .head_dim = 64, .context = 131072, .epsilon = 1e-5},
    .read = ReadGptOss,
    .read_gguf = ReadGptOssGguf,
    .rename =
        [](TensorNames& names) {
          names.router = "mlp.router";
          names.expert_gate = names.expert_up = "mlp.experts.gate_up_proj";
          names.expert_down = "mlp.experts.down_proj";
          names.experts_form = TensorNames::Experts::kInTurn;
        },
    .rename_gguf = [](TensorNames& names) { names.mlp_norm = "post_attention_norm"; },
};

}  // namespace pawl
