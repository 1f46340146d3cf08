// Gemma 2 (technical report, 2024).
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadGemma2(const JsonReader& in, TransformerConfig& config) {
  ReadGemma2And3(in, config);
  const float cap = ReadCap(in["attn_logit_softcapping"], 50);
  config.logit_soft_cap = ReadCap(in["final_logit_softcapping"], 30);
  const int window = ReadWindow(in["sliding_window"]);
  const std::vector<bool> sliding =
      ReadSlidingLayers(in, config.layer_count(), [](int i) { return i % 2 == 0; });
  EachAttention(config, [&](Attention& attention, int i) {
    attention.soft_cap = cap;
    if (sliding[static_cast<size_t>(i)]) attention.window = window;
  });
  config.ropes = {ReadRope(in, config, 10000.0)};
}

void ReadGemma2Gguf(GgufKeys& keys, TransformerConfig& config) {
  DescribeGemma2(config);
  ScaleLargestGemma(config, 46);
  const auto cap = static_cast<float>(keys.Positive("attn_logit_softcapping", 50.0));
  config.logit_soft_cap = static_cast<float>(keys.Positive("final_logit_softcapping", 30.0));
  const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 4096));
  const std::vector<bool> sliding = ReadGgufSliding(keys, config.layer_count(), 2);
  EachAttention(config, [&](Attention& attention, int i) {
    attention.soft_cap = cap;
    if (sliding[static_cast<size_t>(i)]) attention.window = window;
  });
}

}  // namespace

extern const Family kGemma2Family = {
    .architectures = {"Gemma2ForCausalLM"},
    .gguf = {"gemma2"},
    .defaults = {.kv_heads = 4, .head_dim = 256, .context = 8192, .tied_embeddings = true},
    .read = ReadGemma2,
    .read_gguf = ReadGemma2Gguf,
    .rename = RenameGemma2And3,
};

}  // namespace pawl
