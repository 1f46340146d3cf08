// DeepSeek-V2 and -Coder-V2-Lite (2024): attention over compressed keys and values, the first
// layers with an MLP and the others with experts.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadDeepSeekV2(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectString(in["topk_method"], "greedy");
  ExpectString(in["scoring_func"], "softmax");
  ReadLatent(in, config, 1536);
  EachMlp(config, [bias = in["mlp_bias"].Bool(false)](Mlp& mlp) { mlp.bias = bias; });
  const Experts experts = ReadRouted(in, 64, 6, 1407, 1.0, 2);
  in.Ignore({"norm_topk_prob"});  // the reference does not apply it
  const int64_t dense = in["first_k_dense_replace"].Whole(0, kMaxLayers, 0);
  for (size_t i = static_cast<size_t>(dense); i < config.layers.size(); ++i) {
    config.layers[i].feed_forward = experts;
  }
}

}  // namespace

extern const Family kDeepSeekV2Family = {
    .architectures = {"DeepseekV2ForCausalLM"},
    .gguf = {"deepseek2"},
    .defaults = {.head_dim = 64},  // its rotated part
    .read = ReadDeepSeekV2,
    // Files of GLM-4.7-Flash too.
    .read_gguf =
        [](GgufKeys& keys, TransformerConfig& config) {
          ReadGgufLatent(keys, config);
          ReadGgufExperts(keys, config, {});
        },
    .rename = RenameSharedExperts,
    .rename_gguf = RenameGgufLatent,
};

}  // namespace pawl
