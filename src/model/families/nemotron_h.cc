// The config.json of Nemotron-H and Nemotron 3 Nano (NVIDIA, 2025).
#include "src/model/families/nemotron_h.h"

#include <string>
#include <string_view>

namespace pawl {
namespace {

Mamba2 ReadNemotronMamba(const JsonReader& in) {
  const auto whole = [&](const char* key, int64_t most, int64_t otherwise) {
    return static_cast<int>(in[key].Whole(1, most, otherwise));
  };
  Mamba2 mamba;
  mamba.heads = whole("mamba_num_heads", kMaxWidth, 128);
  mamba.groups = whole("n_groups", kMaxWidth, 8);
  mamba.state = whole("ssm_state_size", kMaxHeadDim, 128);
  mamba.taps = whole("conv_kernel", kMostTaps, 4);
  mamba.convolution_bias = in["use_conv_bias"].Bool(true);
  mamba.bias = in["use_bias"].Bool(false);
  mamba.least_time = static_cast<float>(in["time_step_min"].Positive(kNemotronLeastTime));
  const int64_t inner = int64_t{mamba.heads} * whole("mamba_head_dim", kMaxHeadDim, 64);
  if (inner > kMaxWidth) in["mamba_num_heads"].Fail("times mamba_head_dim is too large");
  CheckMamba(static_cast<int>(inner), mamba,
             [&](const char* message) { in["mamba_num_heads"].Fail(message); });
  return mamba;
}

Experts ReadNemotronExperts(const JsonReader& in) {
  const Experts sizes = ReadRouted(in, 8, 2, 7688, 1.0);
  Experts experts = NemotronExperts();
  experts.count = sizes.count;
  experts.chosen = sizes.chosen;
  experts.width = sizes.width;
  experts.scale = sizes.scale;
  experts.shared_width =
      static_cast<int>(in["moe_shared_expert_intermediate_size"].Whole(1, kMaxWidth, 7688));
  experts.normalized = in["norm_topk_prob"].Bool(true);
  return experts;
}

// A layer's letter in hybrid_override_pattern; its name in layers_block_type, old or new.
char KindOf(std::string_view name) {
  if (name == "mamba" || name == "linear_attention") return 'M';
  if (name == "attention" || name == "full_attention") return '*';
  return name == "moe" ? 'E' : name == "mlp" ? '-' : ' ';
}

}  // namespace

void ReadNemotronH(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["mlp_hidden_act"], "relu2");
  ExpectString(in["mamba_hidden_act"], "silu");
  ReadAttentionBias(in, config);
  const JsonReader names = in["layers_block_type"], letters = in["hybrid_override_pattern"];
  std::string kinds = letters.String("");
  if (names.IsArray()) kinds.clear();
  for (size_t i = 0; names.IsArray() && i < names.size(); ++i) {
    kinds += KindOf(names.Item(i).String());
  }
  if (kinds.size() != config.layers.size() ||
      kinds.find_first_not_of("M*E-") != std::string::npos) {
    (names.present() ? names : letters)
        .Unsupported("must have mamba, attention, moe or mlp, or M, *, E or -, for each layer");
  }
  if (!in.ok()) return;
  const Mamba2 mamba = ReadNemotronMamba(in);
  if (kinds.find('E') == std::string::npos) {
    in.Ignore({"n_routed_experts", "n_shared_experts", "num_experts_per_tok", "topk_group",
               "moe_intermediate_size", "moe_shared_expert_intermediate_size", "norm_topk_prob",
               "routed_scaling_factor", "n_group"});
  } else {
    const Experts experts = ReadNemotronExperts(in);
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] == 'E') config.layers[i].feed_forward = experts;
    }
  }
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == 'M') config.layers[i].mixer = mamba;
    KeepOnePart(config.layers[i], kinds[i] == 'M' || kinds[i] == '*');
  }
  EachMlp(config, [bias = in["mlp_bias"].Bool(false)](Mlp& mlp) { mlp.bias = bias; });
  config.ropes.clear();
  // Sizes of chunks, how it was trained, and blocks that guess several tokens.
  in.Ignore({"expand", "chunk_size", "num_logits_to_keep", "mamba_ssm_cache_dtype", "norm_eps",
             "rescale_prenorm_residual", "residual_in_fp32", "time_step_floor", "time_step_max",
             "time_step_limit", "use_mamba_kernels", "moe_shared_expert_overlap", "rope_theta",
             "num_nextn_predict_layers", "mtp_layers_block_type", "mtp_hybrid_override_pattern",
             "output_router_logits", "partial_rotary_factor"});
}

}  // namespace pawl
