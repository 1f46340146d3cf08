// GLM-4.7-Flash (Z.ai, 2026): as DeepSeek-V2, with compressed queries and experts by sigmoids.
#include <string_view>

#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadGlm4MoeLite(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectString(in["topk_method"], "noaux_tc");
  ExpectString(in["scoring_func"], "sigmoid");
  ReadLatent(in, config, 768);
  if (!in["rope_interleave"].Bool(true)) in["rope_interleave"].Unsupported("is false");
  Experts experts = ReadRouted(in, 64, 4, 1536, 1.8);
  experts.weights = Experts::Weights::kSigmoid;
  experts.choice_bias = true;
  experts.normalized = in["norm_topk_prob"].Bool(true);
  const int64_t dense = in["first_k_dense_replace"].Whole(0, kMaxLayers, 1);
  constexpr std::string_view kKnown[] = {"dense", "sparse"};
  size_t at = 0;
  for (const std::string_view type : ReadLayerTypes(
           in, config.layer_count(), kKnown, [&](int i) { return kKnown[i >= dense ? 1 : 0]; },
           "mlp_layer_types")) {
    Layer& layer = config.layers[at++];
    if (type == kKnown[1]) layer.feed_forward = experts;
  }
}

}  // namespace

extern const Family kGlm4MoeLiteFamily = {
    .architectures = {"Glm4MoeLiteForCausalLM"},
    .defaults = {.kv_heads = 20, .head_dim = 64, .context = 202752, .heads = 20, .epsilon = 1e-5},
    .read = ReadGlm4MoeLite,
    .rename = RenameSharedExperts,
};

}  // namespace pawl
