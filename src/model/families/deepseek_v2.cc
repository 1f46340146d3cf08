// DeepSeek-V2 and -Coder-V2-Lite (2024): attention over compressed keys and values, the first
// layers with an MLP and the others with experts.
#include <cmath>

#include "src/model/families/family.h"

namespace pawl {

void ReadLatent(const JsonReader& in, TransformerConfig& config, int query_rank) {
  const auto whole = [&](const char* key, int64_t otherwise) {
    return static_cast<int>(in[key].Whole(1, kMaxHeadDim, otherwise));
  };
  LatentAttention latent;
  latent.heads = config.layers[0].attention().heads;
  latent.rank = whole("kv_lora_rank", 512);
  latent.key_dim = whole("qk_nope_head_dim", 128);
  latent.rope_dim = whole("qk_rope_head_dim", 64);
  latent.value_dim = whole("v_head_dim", 128);
  const JsonReader compressed = in["q_lora_rank"];
  if (!compressed.Is(json::Type::kNull)) {
    latent.query_rank = static_cast<int>(compressed.Whole(1, kMaxWidth, query_rank));
  }
  if (latent.rope_dim % 2 != 0 || latent.rank + latent.rope_dim > kMaxHeadDim) {
    in["qk_rope_head_dim"].Unsupported("must be even, and with kv_lora_rank at most " +
                                       std::to_string(kMaxHeadDim));
  }
  latent.bias = in["attention_bias"].Bool(false);
  EachAttention(config, [&](Attention& one, int) { one.head_dim = latent.rope_dim; });
  config.ropes = {ReadRope(in, config, 10000.0)};
  // Long contexts sharpen the weights too.
  const JsonReader old = in["rope_scaling"];
  const JsonReader scaling = old.present() ? old : in["rope_parameters"];
  const double all = scaling["mscale_all_dim"].present() ? scaling["mscale_all_dim"].Positive() : 0;
  if (config.ropes[0].type == RopeType::kYarn && all > 0) {
    const double sharper = 0.1 * all * std::log(config.ropes[0].factor) + 1.0;
    latent.scale =
        static_cast<float>(sharper * sharper / std::sqrt(latent.key_dim + latent.rope_dim));
  }
  in.Ignore({"head_dim", "qk_head_dim", "num_key_value_heads", "num_nextn_predict_layers",
             "pretraining_tp", "router_aux_loss_coef", "output_router_logits", "aux_loss_alpha",
             "seq_aux", "ep_size", "moe_layer_freq", "scoring_func"});
  for (Layer& layer : config.layers) layer.mixer = latent;
}

Experts ReadRouted(const JsonReader& in, int count, int chosen, int width, double scale) {
  Experts experts;
  experts.count = static_cast<int>(in["n_routed_experts"].Whole(1, kMaxExperts, count));
  experts.chosen = static_cast<int>(in["num_experts_per_tok"].Whole(1, experts.count, chosen));
  experts.width = static_cast<int>(in["moe_intermediate_size"].Whole(1, kMaxWidth, width));
  experts.scale = static_cast<float>(in["routed_scaling_factor"].Positive(scale));
  experts.shared_width = static_cast<int>(in["n_shared_experts"].Whole(0, 64, 1)) * experts.width;
  const JsonReader groups = in["n_group"];
  if (groups.present() && groups.Whole(1, kMaxExperts, 1) != 1) {
    groups.Unsupported("is not 1; experts that are chosen by groups are not supported");
  }
  in.Ignore({"topk_group"});
  return experts;
}

void RenameSharedExperts(TensorNames& names) {
  names.shared_gate = "mlp.shared_experts.gate_proj";
  names.shared_up = "mlp.shared_experts.up_proj";
  names.shared_down = "mlp.shared_experts.down_proj";
}

namespace {

void ReadDeepSeekV2(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectString(in["topk_method"], "greedy");
  ReadLatent(in, config, 1536);
  EachMlp(config, [bias = in["mlp_bias"].Bool(false)](Mlp& mlp) { mlp.bias = bias; });
  const Experts experts = ReadRouted(in, 64, 6, 1407, 1.0);
  in.Ignore({"norm_topk_prob"});  // the reference does not apply it
  const int64_t dense = in["first_k_dense_replace"].Whole(0, kMaxLayers, 0);
  for (size_t i = static_cast<size_t>(dense); i < config.layers.size(); ++i) {
    config.layers[i].feed_forward = experts;
  }
}

}  // namespace

extern const Family kDeepSeekV2Family = {
    .architectures = {"DeepseekV2ForCausalLM"},
    .read = ReadDeepSeekV2,
    .rename = RenameSharedExperts,
};

}  // namespace pawl
