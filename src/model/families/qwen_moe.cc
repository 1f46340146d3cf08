// Qwen 2 and 3 with experts (2024 and 2025); Qwen3-Coder.
#include "src/model/families/qwen.h"

namespace pawl {
namespace {

void DescribeQwen3Moe(TransformerConfig& config) {
  EachAttention(config, [](Attention& attention, int) { attention.qk_norm = QkNorm::kHead; });
}

}  // namespace

// Experts in each layer that decoder_sparse_step and mlp_only_layers leave.
void ReadQwenExperts(const JsonReader& in, TransformerConfig& config, bool shared,
                     bool normalized) {
  ExpectString(in["hidden_act"], "silu");
  Experts experts = ReadExperts(in, in["moe_intermediate_size"]);
  experts.normalized = in["norm_topk_prob"].Bool(normalized);
  if (shared) {
    experts.shared_width =
        static_cast<int>(in["shared_expert_intermediate_size"].Whole(1, kMaxWidth));
    experts.shared_gate = true;
  }
  const int64_t step = in["decoder_sparse_step"].Whole(1, kMaxLayers, 1);
  std::vector<bool> dense(config.layers.size());
  for (const JsonReader layer : in["mlp_only_layers"].OptionalArray().items()) {
    dense[static_cast<size_t>(layer.Whole(0, config.layer_count() - 1))] = true;
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (!dense[i] && (static_cast<int64_t>(i) + 1) % step == 0) {
      config.layers[i].feed_forward = experts;
    }
  }
  in.Ignore({"router_aux_loss_coef", "output_router_logits"});
}

namespace {

void ReadQwen2Moe(const JsonReader& in, TransformerConfig& config) {
  const bool bias = in["qkv_bias"].Bool(true);
  EachAttention(config, [&](Attention& attention, int) { attention.qkv_bias = bias; });
  ReadQwenExperts(in, config, true);
  // Each second one of the lower layers may have a window.
  const bool use = in["use_sliding_window"].Bool(false);
  const int window = use ? ReadWindow(in["sliding_window"]) : 0;
  in.Ignore({"sliding_window"});
  const int64_t below = in["max_window_layers"].Whole(0, kMaxLayers, 28);
  const std::vector<bool> sliding = ReadSlidingLayers(
      in, config.layer_count(), [&](int i) { return use && i % 2 == 0 && i < below; });
  EachAttention(config, [&](Attention& attention, int i) {
    if (sliding[static_cast<size_t>(i)]) attention.window = window;
  });
  config.ropes = {ReadRope(in, config, 10000.0)};
}

void ReadQwen3Moe(const JsonReader& in, TransformerConfig& config) {
  ReadAttentionBias(in, config);
  DescribeQwen3Moe(config);
  ReadQwenExperts(in, config, false);
  const bool use = in["use_sliding_window"].Bool(false);
  const int window = use ? ReadWindow(in["sliding_window"]) : 0;
  in.Ignore({"sliding_window", "max_window_layers", "use_qk_norm"});
  (void)in["shared_expert_intermediate_size"].Whole(0, 0, 0);
  EachAttention(config, [&](Attention& attention, int) { attention.window = window; });
  config.ropes = {ReadRope(in, config, 10000.0)};
}

}  // namespace

extern const Family kQwen2MoeFamily = {
    .architectures = {"Qwen2MoeForCausalLM"},
    .gguf = {"qwen2moe"},
    .defaults = {.kv_heads = 16, .context = 32768},
    .read = ReadQwen2Moe,
    .read_gguf =
        [](GgufKeys& keys, TransformerConfig& config) {
          ReadGgufExperts(keys, config, {.shared_gate = true});
        },
};

// What llama.cpp takes for granted: the weights of the chosen experts are normalized.
extern const Family kQwen3MoeFamily = {
    .architectures = {"Qwen3MoeForCausalLM"},
    .gguf = {"qwen3moe"},
    .defaults = {.kv_heads = 4, .context = 32768},
    .read = ReadQwen3Moe,
    .read_gguf =
        [](GgufKeys& keys, TransformerConfig& config) {
          DescribeQwen3Moe(config);
          ReadGgufExperts(keys, config, {.normalized = true});
        },
};

}  // namespace pawl
