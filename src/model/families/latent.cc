// What families with compressed keys and values share.
#include <cmath>

#include "src/model/families/family.h"

namespace pawl {
namespace {

float SharperScale(const LatentAttention& latent, const RopeConfig& rope, double all) {
  const double sharper = 0.1 * static_cast<float>(all) * std::log(rope.factor) + 1.0;
  return static_cast<float>(sharper * sharper / std::sqrt(latent.key_dim + latent.rope_dim));
}

}  // namespace

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
    latent.scale = SharperScale(latent, config.ropes[0], all);
  }
  in.Ignore({"head_dim", "qk_head_dim", "num_key_value_heads", "num_nextn_predict_layers",
             "pretraining_tp", "router_aux_loss_coef", "output_router_logits", "aux_loss_alpha",
             "seq_aux", "ep_size"});
  ExpectNumber(in["moe_layer_freq"], 1);
  for (Layer& layer : config.layers) layer.mixer = latent;
}

Experts ReadRouted(const JsonReader& in, int count, int chosen, int width, double scale,
                   int shared) {
  Experts experts;
  experts.count = static_cast<int>(in["n_routed_experts"].Whole(1, kMaxExperts, count));
  experts.chosen = static_cast<int>(in["num_experts_per_tok"].Whole(1, experts.count, chosen));
  experts.width = static_cast<int>(in["moe_intermediate_size"].Whole(1, kMaxWidth, width));
  experts.scale = static_cast<float>(in["routed_scaling_factor"].Positive(scale));
  experts.shared_width =
      static_cast<int>(in["n_shared_experts"].Whole(0, 64, shared)) * experts.width;
  const JsonReader groups = in["n_group"];
  if (groups.present() && groups.Whole(1, kMaxExperts, 1) != 1) {
    groups.Unsupported("is not 1; experts that are chosen by groups are not supported");
  }
  in.Ignore({"topk_group"});
  return experts;
}

void ReadGgufLatent(GgufKeys& keys, TransformerConfig& config) {
  const auto whole = [&](const char* key) {
    return static_cast<int>(keys.Int(key, kMaxHeadDim, std::nullopt));
  };
  LatentAttention latent;
  latent.heads = config.layers[0].attention().heads;
  latent.rank = whole("attention.kv_lora_rank");
  latent.rope_dim = whole("rope.dimension_count");
  latent.key_dim = whole("attention.key_length_mla") - latent.rope_dim;
  latent.value_dim = whole("attention.value_length_mla");
  latent.query_rank = static_cast<int>(keys.Int("attention.q_lora_rank", kMaxWidth, 0, 0));
  if (latent.key_dim < 1 || latent.rank + latent.rope_dim > kMaxHeadDim) {
    keys.Fail(ErrorCode::kUnsupported, "attention.kv_lora_rank",
              "and rope.dimension_count must be at most 1024, and leave a part of a head");
  }
  // Blocks that guess several tokens are not used.
  const int64_t guessing = keys.Int("nextn_predict_layers", config.layer_count() - 1, 0, 0);
  config.layers.resize(config.layers.size() - static_cast<size_t>(guessing), {});
  RopeConfig& rope = config.ropes[0];
  rope.width = 0;
  if (rope.type == RopeType::kYarn && keys.Has("rope.scaling.yarn_log_multiplier")) {
    // A tenth of mscale_all_dim, and mscale is taken to be the same.
    const double all = 10 * keys.Positive("rope.scaling.yarn_log_multiplier", std::nullopt);
    rope.attention_factor = 1.0;
    latent.scale = SharperScale(latent, rope, all);
  }
  for (Layer& layer : config.layers) layer.mixer = latent;
}

void RenameSharedExperts(TensorNames& names) {
  names.shared_gate = "mlp.shared_experts.gate_proj";
  names.shared_up = "mlp.shared_experts.up_proj";
  names.shared_down = "mlp.shared_experts.down_proj";
}

void RenameGgufLatent(TensorNames& names) {
  names.q_a = "attn_q_a";
  names.q_a_norm = "attn_q_a_norm";
  names.q_b = "attn_q_b";
  names.kv_a = "attn_kv_a_mqa";
  names.kv_norm = "attn_kv_a_norm";
  names.k_b = "attn_k_b";
  names.v_b = "attn_v_b";
}

}  // namespace pawl
