// Dream (Ye et al., arXiv 2508.15487): Qwen 2 whose rows see both sides. The logits of a position
// come from the row in front of it, as in the causal model that its training began with.
#include "src/model/families/family.h"

namespace pawl {

void ReadDiffusion(const JsonReader& in, TransformerConfig& config) {
  config.both_sides = true;
  config.mask_token = static_cast<TokenId>(in["mask_token_id"].Whole(0, config.vocabulary - 1));
  config.mask_block = static_cast<int>(in["block_size"].Whole(1, kMaxContext, 0));
  EachAttention(config, [&](const Attention& attention, int) {
    if (attention.window > 0) in.Unsupported("has layers with windows, whose rows see one side");
  });
}

namespace {

void ReadDream(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  EachAttention(config, [](Attention& attention, int) { attention.qkv_bias = true; });
  ReadQwenWindow(in, config);
  ExpectNothing(in["use_mrope"]);
  config.ropes = {ReadRope(in, config, 10000.0)};
  config.shifted_logits = true;
  ReadDiffusion(in, config);
}

}  // namespace

extern const Family kDreamFamily = {
    .architectures = {"DreamModel"},
    .defaults = {.context = 32768},
    .read = ReadDream,
};

}  // namespace pawl
