// Qwen3-Next (2025) and Qwen 3.5 and 3.6 with experts (Qwen team, 2026).
#include "src/model/families/qwen.h"

namespace pawl {
namespace {

void ReadDeltaExperts(const JsonReader& in, TransformerConfig& config) {
  ReadGatedDelta(in, config);
  ReadQwenExperts(in, config, true, true);
}

void ReadDeltaExpertsGguf(GgufKeys& keys, TransformerConfig& config) {
  ReadGatedDelta(keys, config);
  ReadGgufExperts(keys, config, {.normalized = true, .shared_gate = true});
}

void RenameDeltaGguf(TensorNames& names) {
  names.mlp_norm = "post_attention_norm";
  RenameGgufDelta(names);
}

}  // namespace

extern const Family kQwen3_5MoeFamily = {
    .architectures = {"Qwen3_5MoeForCausalLM"},
    .wrappers = {"Qwen3_5MoeForConditionalGeneration"},
    .model_type = "qwen3_5_moe_text",
    .gguf = {"qwen35moe"},
    .defaults = {.kv_heads = 2, .head_dim = 256, .context = 32768, .intermediate = 5632},
    .read = ReadDeltaExperts,
    .read_gguf = ReadDeltaExpertsGguf,
    .rename = [](TensorNames& names) { names.norm_offset = 1.0f; },
    .rename_gguf =
        [](TensorNames& names) {
          RenameDeltaGguf(names);
          names.tiled_values = true;
        },
};

extern const Family kQwen3NextFamily = {
    .architectures = {"Qwen3NextForCausalLM"},
    .gguf = {"qwen3next"},
    .defaults = {.kv_heads = 2, .head_dim = 256, .context = 32768, .intermediate = 5632},
    .read = ReadDeltaExperts,
    .read_gguf = ReadDeltaExpertsGguf,
    .rename =
        [](TensorNames& names) {
          names.norm_offset = 1.0f;
          names.mixed = "linear_attn.in_proj_qkvz";
          names.beta = "linear_attn.in_proj_ba";
          names.z = names.decay = nullptr;
        },
    .rename_gguf =
        [](TensorNames& names) {
          RenameDeltaGguf(names);
          names.beta = "ssm_ba";
          names.decay = nullptr;
        },
};

}  // namespace pawl
