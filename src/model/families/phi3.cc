// Phi-3 (technical report, 2024), Phi-3.5, Phi-4 and Phi-4-mini: q, k and v are one tensor, and so
// are gate and up.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadPhi3(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectNothing(in["attention_bias"]);
  const int window = in["sliding_window"].present() ? ReadWindow(in["sliding_window"]) : 0;
  EachAttention(config, [&](Attention& attention, int) { attention.window = window; });
  in.Ignore({"full_attn_mod", "interpolate_factor"});  // which the reference does not read
  config.ropes = {ReadRope(in, config, 10000.0, 1.0)};
}

void ReadPhi3Gguf(GgufKeys& keys, TransformerConfig& config) {
  const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 0, 0));
  EachAttention(config, [&](Attention& attention, int) { attention.window = window; });
}

}  // namespace

extern const Family kPhi3Family = {
    .architectures = {"Phi3ForCausalLM"},
    .gguf = {"phi3"},
    .defaults = {.context = 4096, .epsilon = 1e-5},
    .read = ReadPhi3,
    .read_gguf = ReadPhi3Gguf,
    .rename =
        [](TensorNames& names) {
          names.qkv = "self_attn.qkv_proj";
          names.gate_up = "mlp.gate_up_proj";
        },
    .rename_gguf =
        [](TensorNames& names) {
          names.qkv = "attn_qkv";
          names.gate_up = "ffn_up";
        },
};

}  // namespace pawl
