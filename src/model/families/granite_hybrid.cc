// Granite 4 h (IBM, 2025): Mamba-2, and attention without positions in some layers; the four
// factors of Granite; an MLP, and in larger ones experts too.
#include <string_view>

#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadGraniteHybrid(const JsonReader& in, TransformerConfig& config) {
  const auto whole = [&](const char* key, int64_t most, int64_t otherwise) {
    return static_cast<int>(in[key].Whole(1, most, otherwise));
  };
  const int width = whole("shared_intermediate_size", kMaxWidth, 1024);
  ReadGraniteFactors(in, config);
  Experts experts;
  experts.count = static_cast<int>(in["num_local_experts"].Whole(0, kMaxExperts, 8));
  if (experts.count > 0) experts.chosen = whole("num_experts_per_tok", experts.count, 2);
  experts.width = config.layers[0].mlp().width;
  experts.shared_width = width;
  experts.weights = Experts::Weights::kSoftmaxOfChosen;
  for (Layer& layer : config.layers) {
    layer.mlp().width = width;
    if (experts.count > 0) layer.feed_forward = experts;
  }
  config.ropes = {ReadRope(in, config, 10000.0)};
  Mamba2 mamba;
  mamba.heads = whole("mamba_n_heads", kMaxWidth, 128);
  mamba.groups = whole("mamba_n_groups", kMaxWidth, 1);
  mamba.state = whole("mamba_d_state", kMaxHeadDim, 256);
  mamba.taps = whole("mamba_d_conv", kMostTaps, 4);
  const int inner = whole("mamba_expand", 64, 2) * config.hidden;
  CheckMamba(inner, mamba, [&](const char* message) { in["mamba_n_heads"].Fail(message); });
  const JsonReader width_of_heads = in["mamba_d_head"];
  if (!width_of_heads.IsString() &&
      width_of_heads.Whole(1, kMaxHeadDim, mamba.head_dim) != mamba.head_dim) {
    width_of_heads.Fail("times mamba_n_heads must be mamba_expand times hidden_size");
  }
  mamba.convolution_bias = in["mamba_conv_bias"].Bool(true);
  mamba.bias = in["mamba_proj_bias"].Bool(false);
  ExpectNoTimeLimit(in["time_step_limit"]);
  const std::string positions = in["position_embedding_type"].String("nope");
  if (positions != "rope") ExpectString(in["position_embedding_type"], "nope");
  constexpr std::string_view kKnown[] = {"mamba", "linear_attention", "attention",
                                         "full_attention"};
  size_t at = 0;
  for (const std::string_view type :
       ReadLayerTypes(in, config.layer_count(), kKnown, [&](int) { return kKnown[0]; })) {
    Layer& layer = config.layers[at++];
    if (type == kKnown[0] || type == kKnown[1]) layer.mixer = mamba;
  }
  EachAttention(config, [&](Attention& attention, int) {
    attention.rope = positions == "rope" ? 0 : kNoRope;
  });
  in.Ignore({"mamba_chunk_size", "router_aux_loss_coef", "output_router_logits",
             "num_experts_per_tok", "layers_block_type"});
}

void ReadGraniteHybridGguf(GgufKeys& keys, TransformerConfig& config) {
  ReadGraniteFactors(keys, config);
  ReadGgufMamba(keys, config);
  const int width = config.layers[0].mlp().width;
  const int64_t shared = keys.Int("expert_shared_feed_forward_length", kMaxWidth, width);
  EachMlp(config, [&](Mlp& mlp) { mlp.width = static_cast<int>(shared); });
  if (keys.Int("expert_count", kMaxExperts, 0, 0) > 0) {
    ReadGgufExperts(keys, config, {.width = width, .weights = Experts::Weights::kSoftmaxOfChosen});
  }
  for (const char* key : {"expert_used_count", "expert_feed_forward_length"}) keys.Find(key);
  const bool rope = keys.Bool("rope.scaling.finetuned", false);
  EachAttention(config, [&](Attention& attention, int) { attention.rope = rope ? 0 : kNoRope; });
}

}  // namespace

extern const Family kGraniteHybridFamily = {
    .architectures = {"GraniteMoeHybridForCausalLM"},
    .gguf = {"granitehybrid"},
    .read = ReadGraniteHybrid,
    .read_gguf = ReadGraniteHybridGguf,
    .rename =
        [](TensorNames& names) {
          names.gate_up = names.shared_gate_up = "shared_mlp.input_linear";
          names.down = names.shared_down = "shared_mlp.output_linear";
          names.router = "block_sparse_moe.router.layer";
          names.experts_form = TensorNames::Experts::kStacked;
          names.expert_gate_up = "block_sparse_moe.input_linear.weight";
          names.expert_down = "block_sparse_moe.output_linear.weight";
          RenameMamba(names);
        },
    .rename_gguf =
        [](TensorNames& names) {
          names.paired_rotation = true;
          RenameGgufMamba(names);
        },
};

}  // namespace pawl
