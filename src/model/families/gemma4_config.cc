// The config.json of Gemma 4.
#include <algorithm>

#include "src/model/families/gemma4.h"

namespace pawl {
namespace {

// Pairs behind a part of the head are not rotated: their frequencies are divided by so much that
// nothing is left.
void ReadGemma4Ropes(const JsonReader& in, TransformerConfig& config, int head_dim) {
  RopeConfig full, sliding;
  full.theta = 1000000.0;
  const JsonReader both = in["rope_parameters"].OptionalObject();
  const JsonReader of_full = both["full_attention"].OptionalObject();
  const JsonReader of_sliding = both["sliding_attention"];
  RefuseTheRest(both, "Gemma 4, whose layers have full_attention or sliding_attention");
  double part = 0.25;
  if (of_full.present()) {
    ExpectString(of_full["rope_type"], "proportional");
    full.theta = of_full["rope_theta"].Positive(full.theta);
    part = of_full["partial_rotary_factor"].Positive(1.0);
    if (part > 1.0) of_full["partial_rotary_factor"].Fail("must be at most 1");
    ExpectNumber(of_full["factor"], 1.0);
    RefuseTheRest(of_full, "the RoPE type \"proportional\"");
  }
  if (of_sliding.present()) {
    sliding = ReadRopeObject(of_sliding, config.context_length, sliding.theta, false);
  }
  const int rotated = static_cast<int>(std::min(part, 1.0) * head_dim) / 2;
  for (int i = 0; i < head_dim / 2; ++i) full.divisors.push_back(i < rotated ? 1.0f : 1e30f);
  config.ropes = {full, sliding};
}

void ReadGlobalShape(const JsonReader& in, const TransformerConfig& config, Gemma4Facts& facts) {
  facts.head_dim = static_cast<int>(in["global_head_dim"].Whole(2, kMaxHeadDim, 512));
  const int own = config.layers[0].attention().kv_heads;
  const auto other = static_cast<int>(in["num_global_key_value_heads"].Whole(1, kMaxWidth, own));
  facts.kv_heads = facts.value_is_key ? other : own;
  const JsonReader layers = in["per_layer_config"].OptionalObject();
  const auto common = facts;
  bool first = true;
  for (size_t i = 0; i < facts.sliding.size(); ++i) {
    // As transformers writes them, all names are as long as the longest one: "05".
    std::string name = std::to_string(i);
    while (!layers[name].present() && name.size() < 4) name.insert(0, "0");
    const JsonReader layer = layers[name].OptionalObject();
    if (facts.sliding[i]) {
      if (layer.present()) return layer.Unsupported("is of a layer with a window");
      continue;
    }
    const auto head_dim =
        static_cast<int>(layer["head_dim"].Whole(2, kMaxHeadDim, common.head_dim));
    const auto kv_heads =
        static_cast<int>(layer["num_key_value_heads"].Whole(1, kMaxWidth, common.kv_heads));
    if (!first && (head_dim != facts.head_dim || kv_heads != facts.kv_heads)) {
      return layers.Unsupported("gives layers without a window different heads");
    }
    facts.head_dim = head_dim;
    facts.kv_heads = kv_heads;
    first = false;
    RefuseTheRest(layer, "a layer of Gemma4ForCausalLM");
  }
  RefuseTheRest(layers, "the layers of Gemma4ForCausalLM");
  const int heads = config.layers[0].attention().heads;
  if (heads % facts.kv_heads != 0 || facts.head_dim % 2 != 0 ||
      int64_t{heads} * facts.head_dim > kMaxWidth) {
    in["num_global_key_value_heads"].Fail("must divide num_attention_heads, of even widths");
  }
}

}  // namespace

void ReadGemma4(const JsonReader& in, TransformerConfig& config, int inputs, int window) {
  ExpectString(in["hidden_activation"], "gelu_pytorch_tanh");
  ReadAttentionBias(in, config);
  Gemma4Facts facts;
  facts.window = static_cast<int>(in["sliding_window"].Whole(1, kMaxContext, window));
  facts.sliding =
      ReadSlidingLayers(in, config.layer_count(), [](int i) { return (i + 1) % 6 != 0; });
  facts.sliding.back() = false;  // the reference implementation insists
  facts.value_is_key = in["attention_k_eq_v"].Bool(false);
  ReadGlobalShape(in, config, facts);
  facts.shared = static_cast<int>(in["num_kv_shared_layers"].Whole(0, config.layer_count() - 1, 0));
  const bool wide = in["use_double_wide_mlp"].Bool(false);
  const JsonReader width = in["hidden_size_per_layer_input"];
  config.layer_input_width =
      width.Is(json::Type::kNull) ? 0 : static_cast<int>(width.Whole(0, kMaxWidth, inputs));
  if (config.layer_input_width > 0) {
    ExpectNumber(in["vocab_size_per_layer_input"], config.vocabulary);
  }
  in.Ignore(
      {"vocab_size_per_layer_input", "num_experts", "top_k_experts", "moe_intermediate_size"});
  config.logit_soft_cap = ReadCap(in["final_logit_softcapping"], 0);
  // "vision": rows of images see each other, and there are none here.
  if (in["use_bidirectional_attention"].present()) {
    ExpectString(in["use_bidirectional_attention"], "vision");
  }
  if (in["enable_moe_block"].Bool(false)) {
    facts.experts = Gemma4Experts();
    facts.experts->count = static_cast<int>(in["num_experts"].Whole(1, kMaxExperts));
    facts.experts->chosen =
        static_cast<int>(in["top_k_experts"].Whole(1, std::max(facts.experts->count, 1)));
    facts.experts->width = static_cast<int>(in["moe_intermediate_size"].Whole(1, kMaxWidth));
  }
  ReadGemma4Ropes(in, config, facts.head_dim);
  if (!in.ok()) return;
  for (int i = config.layer_count() - facts.shared; wide && i < config.layer_count(); ++i) {
    config.layers[static_cast<size_t>(i)].mlp().width *= 2;
  }
  if (!DescribeGemma4(config, facts)) {
    in["num_kv_shared_layers"].Fail("leaves no layer of each kind to read from");
  }
}

}  // namespace pawl
