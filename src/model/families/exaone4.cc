// EXAONE 4 (LG, 2025): norms behind attention and MLP alone; where some layers have a window, only
// these have RoPE.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeExaone4(TransformerConfig& config, int window, const std::vector<bool>& sliding) {
  for (Layer& layer : config.layers) {
    layer.pre_norms = false;
    layer.post_norms = true;
  }
  EachAttention(config, [&](Attention& attention, int i) {
    attention.qk_norm = QkNorm::kHead;
    if (window == 0) return;
    if (sliding[static_cast<size_t>(i)]) {
      attention.window = window;
    } else {
      attention.rope = kNoRope;
    }
  });
}

// A number, or a letter for each of some layers, which repeat: L has a window. 0 where no layer
// has one.
std::function<bool(int)> Exaone4Pattern(const JsonReader& in, int window) {
  if (!in.IsString()) {
    const int64_t pattern = in.Whole(window > 0 ? 1 : 0, kMaxLayers, 4);
    if (pattern == 0) return [](int) { return false; };
    return [pattern](int i) { return (i + 1) % pattern != 0; };
  }
  std::string letters = in.String();
  if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
    in.Fail("must be a number or consist of the letters L and G");
    letters = "G";
  }
  return [letters](int i) { return letters[static_cast<size_t>(i) % letters.size()] == 'L'; };
}

void ReadExaone4(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  const int window = ReadWindow(in["sliding_window"]);
  const std::function<bool(int)> pattern = Exaone4Pattern(in["sliding_window_pattern"], window);
  DescribeExaone4(config, window, ReadSlidingLayers(in, config.layer_count(), [&](int i) {
                    return window > 0 && pattern(i);
                  }));
  config.ropes = {ReadRope(in, config, 10000.0)};
}

void ReadExaone4Gguf(GgufKeys& keys, TransformerConfig& config) {
  const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 0, 0));
  DescribeExaone4(config, window, ReadGgufSliding(keys, config.layer_count(), 4));
}

}  // namespace

extern const Family kExaone4Family = {
    .architectures = {"Exaone4ForCausalLM"},
    .gguf = {"exaone4"},
    .defaults = {.kv_heads = 32, .epsilon = 1e-5},
    .read = ReadExaone4,
    .read_gguf = ReadExaone4Gguf,
};

}  // namespace pawl
