// Gemma 4 (2026): layers that see everything have wider heads, the last layers read the keys and
// values of earlier ones, layers have inputs of their own, and the largest ones have experts.
#include "src/model/families/gemma4.h"

namespace pawl {

bool DescribeGemma4(TransformerConfig& config, const Gemma4Facts& facts) {
  DescribeGemma2(config);
  const int first_shared = config.layer_count() - facts.shared;
  int last[2] = {-1, -1};  // of either kind with keys of its own
  bool found = true;
  EachAttention(config, [&](Attention& attention, int i) {
    const bool sliding = facts.sliding[static_cast<size_t>(i)];
    attention.scale = 1.0f;
    attention.qk_norm = QkNorm::kHead;
    attention.value_norm = true;
    if (sliding) {
      attention.window = facts.window;
      attention.rope = 1;
    } else {
      attention.head_dim = facts.head_dim;
      attention.kv_heads = facts.kv_heads;
      attention.value_is_key = facts.value_is_key;
    }
    if (i < first_shared) {
      last[sliding ? 1 : 0] = i;
    } else {
      attention.keys_of = last[sliding ? 1 : 0];
      attention.value_is_key = false;
      found = found && attention.keys_of >= 0;
    }
  });
  for (Layer& layer : config.layers) {
    layer.factor = true;
    if (facts.experts) layer.feed_forward = MlpAndExperts{layer.mlp(), *facts.experts};
  }
  return found;
}

Experts Gemma4Experts() {
  Experts experts;
  experts.activation = Activation::kGeluTanh;
  experts.normalized = experts.factors = true;
  return experts;
}

namespace {

void RenameGemma4(TensorNames& names) {
  names.mlp_norm = "pre_feedforward_layernorm";
  names.router = "router.proj";
  names.experts_form = TensorNames::Experts::kStacked;
  names.expert_gate_up = "experts.gate_up_proj";
  names.expert_down = "experts.down_proj";
}

}  // namespace

extern const Family kGemma4Family = {
    .architectures = {"Gemma4ForCausalLM"},
    .wrappers = {"Gemma4ForConditionalGeneration"},
    .model_type = "gemma4_text",
    .gguf = {"gemma4"},
    .defaults = {.kv_heads = 4,
                 .head_dim = 256,
                 .context = 131072,
                 .tied_embeddings = true,
                 .heads = 8,
                 .vocabulary = 262144},
    .read = [](const JsonReader& in,
               TransformerConfig& config) { ReadGemma4(in, config, 256, 512); },
    .read_gguf = ReadGemma4Gguf,
    .gguf_by_layer = true,
    .gguf_theta = 1000000.0,
    .rename = RenameGemma4,
    .rename_gguf =
        [](TensorNames& names) {
          names.expert_gate_up = "ffn_gate_up_exps.weight";
          names.expert_down = "ffn_down_exps.weight";
        },
};

// The 12B model; its GGUF files are those of Gemma 4.
extern const Family kGemma4UnifiedFamily = {
    .architectures = {"Gemma4UnifiedForCausalLM"},
    .wrappers = {"Gemma4UnifiedForConditionalGeneration"},
    .model_type = "gemma4_unified_text",
    .defaults = {.kv_heads = 4,
                 .head_dim = 256,
                 .context = 262144,
                 .tied_embeddings = true,
                 .heads = 8,
                 .vocabulary = 262144,
                 .intermediate = 9216},
    .read = [](const JsonReader& in,
               TransformerConfig& config) { ReadGemma4(in, config, 0, 1024); },
    .rename = RenameGemma4,
};

}  // namespace pawl
