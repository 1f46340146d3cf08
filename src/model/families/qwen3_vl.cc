// The text part of Qwen3-VL (2025). Rows of text have one position in all three directions of its
// RoPE, which then is the plain one.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeQwen3Vl(TransformerConfig& config) {
  EachAttention(config, [](Attention& attention, int) { attention.qk_norm = QkNorm::kHead; });
}

void ReadQwen3Vl(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  DescribeQwen3Vl(config);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    in[key].Ignore({"mrope_section", "mrope_interleaved"});
  }
  config.ropes = {ReadRope(in, config, 500000.0)};
}

}  // namespace

extern const Family kQwen3VlFamily = {
    .wrappers = {"Qwen3VLForConditionalGeneration"},
    .model_type = "qwen3_vl_text",
    .gguf = {"qwen3vl"},
    .defaults = {.kv_heads = 32, .head_dim = 128, .context = 128000},
    .read = ReadQwen3Vl,
    .read_gguf =
        [](GgufKeys& keys, TransformerConfig& config) {
          DescribeQwen3Vl(config);
          keys.Find("rope.dimension_sections");
          keys.Find("n_deepstack_layers");
        },
};

}  // namespace pawl
