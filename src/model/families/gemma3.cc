// Gemma 3 (technical report, 2025).
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadGemma3(const JsonReader& in, TransformerConfig& config) {
  ReadGemma2And3(in, config);
  // The reference implementation reads this one and does not apply it.
  ExpectNothing(in["attn_logit_softcapping"]);
  config.logit_soft_cap = ReadCap(in["final_logit_softcapping"], 0);
  const int window = ReadWindow(in["sliding_window"]);
  const int64_t pattern = in["sliding_window_pattern"].Whole(1, kMaxLayers, 6);
  const std::vector<bool> sliding = ReadSlidingLayers(
      in, config.layer_count(), [pattern](int i) { return (i + 1) % pattern != 0; });
  ReadTwoRopes(in, config, in["rope_theta"].Positive(1000000.0),
               in["rope_local_base_freq"].Positive(10000.0));
  EachAttention(config, [&](Attention& attention, int i) {
    attention.qk_norm = QkNorm::kHead;
    if (!sliding[static_cast<size_t>(i)]) return;
    attention.window = window;
    attention.rope = 1;
  });
}

void ReadGemma3Gguf(GgufKeys& keys, TransformerConfig& config) {
  DescribeGemma2(config);
  ScaleLargestGemma(config, 62);
  if (keys.Has("final_logit_softcapping")) {
    config.logit_soft_cap = static_cast<float>(keys.Positive("final_logit_softcapping", 1));
  }
  const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 1024));
  const std::vector<bool> sliding = ReadGgufSliding(keys, config.layer_count(), 6);
  config.ropes.emplace_back().theta = keys.Positive("rope.freq_base_swa", 10000.0);
  EachAttention(config, [&](Attention& attention, int i) {
    attention.qk_norm = QkNorm::kHead;
    if (!sliding[static_cast<size_t>(i)]) return;
    attention.window = window;
    attention.rope = 1;
  });
}

}  // namespace

extern const Family kGemma3Family = {
    .architectures = {"Gemma3ForCausalLM"},
    .wrappers = {"Gemma3ForConditionalGeneration"},
    .model_type = "gemma3_text",
    .gguf = {"gemma3"},
    .defaults = {.kv_heads = 4,
                 .head_dim = 256,
                 .context = 131072,
                 .tied_embeddings = true,
                 .heads = 8,
                 .vocabulary = 262208},
    .read = ReadGemma3,
    .read_gguf = ReadGemma3Gguf,
    .gguf_theta = 1000000.0,
    .rename = RenameGemma2And3,
};

}  // namespace pawl
