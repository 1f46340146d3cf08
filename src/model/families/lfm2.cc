// LFM2 and LFM2.5 (Liquid AI, 2025): short convolutions, and attention in some layers; in
// LFM2-8B-A1B, experts in all but the first layers.
#include "src/model/families/family.h"

namespace pawl {
namespace {

// What is made of a width that is stated for an MLP without a gate.
int AdjustedWidth(const JsonReader& in, int width) {
  const int64_t multiple = in["block_multiple_of"].Whole(1, kMaxWidth, 256);
  const double factor = in["block_ffn_dim_multiplier"].Positive(1.0);
  if (!in["block_auto_adjust_ff_dim"].Bool(true)) return width;
  const auto scaled = static_cast<int64_t>(factor * static_cast<double>(int64_t{2} * width / 3));
  return static_cast<int>((scaled + multiple - 1) / multiple * multiple);
}

void ReadLfm2(const JsonReader& in, TransformerConfig& config) {
  const int stated = config.layers[0].mlp().width;
  const int width =
      AdjustedWidth(in, static_cast<int>(in["block_ff_dim"].Whole(1, kMaxWidth, stated)));
  EachMlp(config, [&](Mlp& mlp) { mlp.width = width; });
  ReadShortConvolutions(in, config);
  // The model's own width, and how it was trained.
  in.Ignore({"block_dim", "block_norm_eps", "block_use_swiglu", "block_mlp_init_scale",
             "block_out_init_scale", "block_use_xavier_init", "conv_dim", "conv_dim_out",
             "conv_use_xavier_init", "use_pos_enc", "num_heads", "theta"});
}

void ReadLfm2Moe(const JsonReader& in, TransformerConfig& config) {
  ReadShortConvolutions(in, config);
  Experts experts = ReadExperts(in, in["moe_intermediate_size"]);
  experts.weights = Experts::Weights::kSigmoid;
  experts.normalized = in["norm_topk_prob"].Bool(true);
  experts.scale = static_cast<float>(in["routed_scaling_factor"].Positive(1.0));
  experts.choice_bias = in["use_expert_bias"].Bool(true);
  const int64_t dense = in["num_dense_layers"].Whole(0, kMaxLayers, 2);
  for (size_t i = static_cast<size_t>(dense); i < config.layers.size(); ++i) {
    config.layers[i].feed_forward = experts;
  }
  in.Ignore({"output_router_logits"});
}

}  // namespace

extern const Family kLfm2Family = {
    .architectures = {"Lfm2ForCausalLM"},
    .wrappers = {"Lfm2VlForConditionalGeneration"},
    .model_type = "lfm2",
    .gguf = {"lfm2"},
    .defaults = {.kv_heads = 8,
                 .context = 128000,
                 .tied_embeddings = true,
                 .epsilon = 1e-5,
                 .epsilon_key = "norm_eps",
                 .intermediate = 12288},
    .read = ReadLfm2,
    .read_gguf = ReadShortConvolutions,
    .gguf_theta = 1000000.0,
    .rename = RenameShortConvolutions,
    .rename_gguf = RenameGgufShortConvolutions,
};

extern const Family kLfm2MoeFamily = {
    .architectures = {"Lfm2MoeForCausalLM"},
    .wrappers = {"Lfm2VlForConditionalGeneration"},
    .model_type = "lfm2_moe",
    .gguf = {"lfm2moe"},
    .defaults = {.kv_heads = 8,
                 .context = 128000,
                 .tied_embeddings = true,
                 .epsilon = 1e-5,
                 .epsilon_key = "norm_eps",
                 .intermediate = 7168},
    .read = ReadLfm2Moe,
    .read_gguf =
        [](GgufKeys& keys, TransformerConfig& config) {
          ReadShortConvolutions(keys, config);
          ReadGgufExperts(keys, config,
                          {.weights = Experts::Weights::kSigmoid, .normalized = true});
        },
    .gguf_theta = 1000000.0,
    .rename =
        [](TensorNames& names) {
          RenameShortConvolutions(names);
          names.router = "feed_forward.gate";
          names.choice_bias = "feed_forward.expert_bias";
          names.experts = "feed_forward.experts.";
          names.expert_gate = "w1";
          names.expert_up = "w3";
          names.expert_down = "w2";
        },
    .rename_gguf = RenameGgufShortConvolutions,
};

}  // namespace pawl
