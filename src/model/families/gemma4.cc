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
    .read = ReadGemma4,
    .read_gguf = ReadGemma4Gguf,
    .gguf_by_layer = true,
    .gguf_theta = 1000000.0,
    .rename =
        [](TensorNames& names) {
          names.mlp_norm = "pre_feedforward_layernorm";
          names.router = "router.proj";
          names.experts_form = TensorNames::Experts::kStacked;
          names.expert_gate_up = "experts.gate_up_proj";
          names.expert_down = "experts.down_proj";
        },
    .rename_gguf =
        [](TensorNames& names) {
          names.expert_gate_up = "ffn_gate_up_exps.weight";
          names.expert_down = "ffn_down_exps.weight";
        },
};

}  // namespace pawl
