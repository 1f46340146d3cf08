// SmolLM3 (Hugging Face, 2025): Llama without RoPE in each fourth layer.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadSmolLm3(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  EachMlp(config, [bias = in["mlp_bias"].Bool(false)](Mlp& mlp) { mlp.bias = bias; });
  const int64_t interval = in["no_rope_layer_interval"].Whole(1, kMaxLayers, 4);
  const JsonReader with_rope = in["no_rope_layers"].OptionalArray();
  if (with_rope.present() && with_rope.size() < config.layers.size()) {
    with_rope.Fail("must have a number for each of " + std::to_string(config.layer_count()) +
                   " layers");
  }
  in.Ignore({"max_window_layers"});  // which the reference does not read
  const bool use = in["use_sliding_window"].Bool(false);
  const int window = in["sliding_window"].present() ? ReadWindow(in["sliding_window"]) : 0;
  EachAttention(config, [&](Attention& attention, int i) {
    const bool has = with_rope.present() && in.ok()
                         ? with_rope.Item(static_cast<size_t>(i)).Whole(0, 1) == 1
                         : (i + 1) % interval != 0;
    if (!has) attention.rope = kNoRope;
  });
  const std::vector<bool> sliding = ReadSlidingLayers(in, config.layer_count(), [&](int i) {
    return use && window > 0 && config.layers[static_cast<size_t>(i)].attention().rope == kNoRope;
  });
  EachAttention(config, [&](Attention& attention, int i) {
    if (use && sliding[static_cast<size_t>(i)]) attention.window = window;
  });
  config.ropes = {ReadRope(in, config, 2000000.0)};
}

}  // namespace

extern const Family kSmolLm3Family = {
    .architectures = {"SmolLM3ForCausalLM"},
    .gguf = {"smollm3"},
    .defaults = {.kv_heads = 4, .context = 32768, .tied_embeddings = true},
    .read = ReadSmolLm3,
    .read_gguf =
        [](GgufKeys&, TransformerConfig& config) {
          EachAttention(config, [](Attention& attention, int i) {
            if ((i + 1) % 4 == 0) attention.rope = kNoRope;
          });
        },
    .rename_gguf = [](TensorNames& names) { names.paired_rotation = true; },
};

}  // namespace pawl
