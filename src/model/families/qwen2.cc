// Qwen 2 and 2.5 (technical reports, 2024).
#include "src/model/families/family.h"

namespace pawl {

void ReadQwenWindow(const JsonReader& in, TransformerConfig& config) {
  const bool use = in["use_sliding_window"].Bool(false);
  const auto window = static_cast<int>(in["sliding_window"].Whole(1, kMaxContext, 4096));
  // 0 is allowed here: a window in every layer.
  const int64_t from = in["max_window_layers"].Whole(0, kMaxLayers, 28);
  const std::vector<bool> sliding =
      ReadSlidingLayers(in, config.layer_count(), [&](int i) { return use && i >= from; });
  EachAttention(config, [&](Attention& attention, int i) {
    if (use && sliding[static_cast<size_t>(i)]) attention.window = window;
  });
}

namespace {

void ReadQwen2(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  EachAttention(config, [](Attention& attention, int) { attention.qkv_bias = true; });
  ReadQwenWindow(in, config);
  ExpectNothing(in["use_mrope"]);
  config.ropes = {ReadRope(in, config, 10000.0)};
}

}  // namespace

extern const Family kQwen2Family = {
    .architectures = {"Qwen2ForCausalLM"},
    .gguf = {"qwen2"},
    .defaults = {.context = 32768},
    .read = ReadQwen2,
};

}  // namespace pawl
