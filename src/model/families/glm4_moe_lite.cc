// GLM-4.7-Flash (Z.ai, 2026): as DeepSeek-V2, with compressed queries and experts by sigmoids.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadGlm4MoeLite(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadLatent(in, config, 768);
  if (!in["rope_interleave"].Bool(true)) in["rope_interleave"].Unsupported("is false");
  Experts experts = ReadRouted(in, 64, 4, 1536, 1.8);
  experts.weights = Experts::Weights::kSigmoid;
  experts.choice_bias = true;
  experts.normalized = in["norm_topk_prob"].Bool(true);
  const int64_t dense = in["first_k_dense_replace"].Whole(0, kMaxLayers, 1);
  const JsonReader types = in["mlp_layer_types"];
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool sparse = types.IsArray() && i < types.size() ? types.Item(i).String() == "sparse"
                                                            : static_cast<int64_t>(i) >= dense;
    if (sparse) config.layers[i].feed_forward = experts;
  }
}

}  // namespace

extern const Family kGlm4MoeLiteFamily = {
    .architectures = {"Glm4MoeLiteForCausalLM"},
    .defaults = {.kv_heads = 20, .context = 202752, .heads = 20, .epsilon = 1e-5},
    .read = ReadGlm4MoeLite,
    .rename = RenameSharedExperts,
};

}  // namespace pawl
