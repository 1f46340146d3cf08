// Qwen 3 (technical report, 2025).
#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeQwen3(TransformerConfig& config) {
  EachAttention(config, [](Attention& attention, int) { attention.qk_norm = QkNorm::kHead; });
}

void ReadQwen3(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  DescribeQwen3(config);
  ReadQwenWindow(in, config);
  config.ropes = {ReadRope(in, config, 10000.0)};
}

}  // namespace

extern const Family kQwen3Family = {
    .architectures = {"Qwen3ForCausalLM"},
    .gguf = {"qwen3"},
    .defaults = {.head_dim = 128, .context = 32768},
    .read = ReadQwen3,
    .read_gguf = [](GgufKeys&, TransformerConfig& config) { DescribeQwen3(config); },
};

}  // namespace pawl
