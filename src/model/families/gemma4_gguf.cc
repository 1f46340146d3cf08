// The keys of GGUF files of Gemma 4.
#include "src/model/families/gemma4.h"

namespace pawl {

void ReadGemma4Gguf(GgufKeys& keys, TransformerConfig& config) {
  const int count = config.layer_count();
  Gemma4Facts facts;
  facts.window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, std::nullopt));
  facts.sliding = ReadGgufSliding(keys, count, 6);
  facts.shared = static_cast<int>(keys.Int("attention.shared_kv_layers", count, 0, 0));
  facts.head_dim = config.layers[0].attention().head_dim;
  const auto width =
      static_cast<int>(keys.Int("attention.key_length_swa", kMaxHeadDim, std::nullopt));
  keys.Find("attention.value_length_swa");
  keys.Find("rope.dimension_count_swa");
  const std::vector<int64_t> kv_heads =
      keys.Ints("attention.head_count_kv", count, kMaxWidth, std::nullopt);
  const std::vector<int64_t> widths =
      keys.Ints("feed_forward_length", count, kMaxWidth, std::nullopt);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    Attention& attention = config.layers[at].attention();
    config.layers[at].mlp().width = static_cast<int>(widths[at]);
    attention.kv_heads = static_cast<int>(kv_heads[at]);
    attention.head_dim = width;
    if (width % 2 != 0 || attention.heads % attention.kv_heads != 0) {
      keys.Fail(ErrorCode::kInvalid, "attention.head_count_kv", "must divide attention.head_count");
      return;
    }
    if (facts.sliding[at]) continue;
    facts.kv_heads = attention.kv_heads;
    const std::string value = "blk." + std::to_string(i) + ".attn_v.weight";
    if (i < count - facts.shared && keys.file().Find(value) == nullptr) facts.value_is_key = true;
  }
  config.layer_input_width =
      static_cast<int>(keys.Int("embedding_length_per_layer_input", kMaxWidth, 0, 0));
  if (keys.Has("final_logit_softcapping")) {
    config.logit_soft_cap = static_cast<float>(keys.Positive("final_logit_softcapping", 1));
  }
  config.ropes.emplace_back().theta = keys.Positive("rope.freq_base_swa", 10000.0);
  if (keys.Has("expert_count")) {
    TransformerConfig experts = config;
    ReadGgufExperts(keys, experts, Gemma4Experts());
    if (const auto* one = std::get_if<Experts>(&experts.layers[0].feed_forward)) {
      facts.experts = *one;
    }
  }
  if (!keys.error() && !DescribeGemma4(config, facts)) {
    keys.Fail(ErrorCode::kInvalid, "attention.shared_kv_layers", "leaves no layer to read from");
  }
}

}  // namespace pawl
