// Qwen 3.5 and 3.6 (Qwen team, 2026), and what is trained from them: three layers of gated delta
// nets to one of attention with gates.
#include <string_view>

#include "src/model/families/qwen.h"

namespace pawl {
namespace {

void DescribeGated(const GatedDeltaNet& delta, const std::vector<bool>& linear,
                   TransformerConfig& config) {
  EachAttention(config, [](Attention& attention, int) {
    attention.qk_norm = QkNorm::kHead;
    attention.output_gate = true;
  });
  for (size_t i = 0; i < linear.size(); ++i) {
    if (linear[i]) config.layers[i].mixer = delta;
  }
}

}  // namespace

void ReadGatedDelta(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  config.ropes = {ReadRope(in, config, 10000.0, 0.25)};
  constexpr std::string_view kKnown[] = {"full_attention", "linear_attention"};
  const int64_t interval = in["full_attention_interval"].Whole(1, kMaxLayers, 4);
  std::vector<bool> linear;
  for (const std::string_view type : ReadLayerTypes(in, config.layer_count(), kKnown, [&](int i) {
         return kKnown[(i + 1) % interval == 0 ? 0 : 1];
       })) {
    linear.push_back(type == kKnown[1]);
  }
  const auto whole = [&](const char* key, int64_t most, int64_t otherwise) {
    return static_cast<int>(in[key].Whole(1, most, otherwise));
  };
  const GatedDeltaNet delta = {whole("linear_num_key_heads", 4096, 16),
                               whole("linear_num_value_heads", 4096, 32),
                               whole("linear_key_head_dim", kMaxHeadDim, 128),
                               whole("linear_value_head_dim", kMaxHeadDim, 128),
                               whole("linear_conv_kernel_dim", kMostTaps, 4)};
  if (delta.value_heads % delta.key_heads != 0) {
    in["linear_num_key_heads"].Fail("must divide linear_num_value_heads");
  }
  DescribeGated(delta, linear, config);
  if (!in["attn_output_gate"].Bool(true)) in["attn_output_gate"].Unsupported("is false");
  // Blocks that guess several tokens are not used.
  in.Ignore({"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype"});
}

void ReadGatedDelta(GgufKeys& keys, TransformerConfig& config) {
  const auto whole = [&](const char* key, int64_t most) {
    return static_cast<int>(keys.Int(key, most, std::nullopt));
  };
  GatedDeltaNet delta;
  delta.key_heads = whole("ssm.group_count", 4096);
  delta.value_heads = whole("ssm.time_step_rank", 4096);
  delta.key_dim = whole("ssm.state_size", kMaxHeadDim);
  const int width = whole("ssm.inner_size", kMaxWidth);
  delta.taps = whole("ssm.conv_kernel", kMostTaps);
  if (keys.error()) return;
  delta.value_dim = width / delta.value_heads;
  if (width % delta.value_heads != 0 || delta.value_dim > kMaxHeadDim ||
      delta.value_heads % delta.key_heads != 0) {
    keys.Fail(ErrorCode::kInvalid, "ssm.time_step_rank",
              "must divide ssm.inner_size and be a multiple of ssm.group_count");
    return;
  }
  const int64_t guessing = keys.Int("nextn_predict_layers", config.layer_count() - 1, 0, 0);
  config.layers.resize(config.layers.size() - static_cast<size_t>(guessing), {});
  for (const char* key :
       {"full_attention_interval", "attention.recurrent_layers", "rope.dimension_sections"}) {
    keys.Find(key);  // the tensors tell
  }
  std::vector<bool> linear;
  for (int i = 0; i < config.layer_count(); ++i) {
    linear.push_back(keys.file().Find("blk." + std::to_string(i) + ".ssm_a") != nullptr);
  }
  DescribeGated(delta, linear, config);
}

extern const Family kQwen3_5Family = {
    .architectures = {"Qwen3_5ForCausalLM"},
    .wrappers = {"Qwen3_5ForConditionalGeneration"},
    .model_type = "qwen3_5_text",
    .gguf = {"qwen35"},
    .defaults = {.head_dim = 256, .context = 32768},
    .read = ReadGatedDelta,
    .read_gguf = ReadGatedDelta,
    .rename = [](TensorNames& names) { names.norm_offset = 1.0f; },
    .rename_gguf =
        [](TensorNames& names) {
          names.mlp_norm = "post_attention_norm";
          RenameGgufDelta(names);
          names.tiled_values = true;
        },
};

}  // namespace pawl
