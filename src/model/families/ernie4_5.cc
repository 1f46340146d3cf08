// ERNIE 4.5 without experts (Baidu, 2025): Llama that rotates neighbours.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadErnie(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  const bool bias = in["use_bias"].Bool(false);
  EachAttention(config,
                [&](Attention& attention, int) { attention.qkv_bias = attention.o_bias = bias; });
  EachMlp(config, [&](Mlp& mlp) { mlp.bias = bias; });
  config.ropes = {ReadRope(in, config, 500000.0)};
}

void RotateNeighbours(TensorNames& names) { names.paired_rotation = true; }

}  // namespace

extern const Family kErnieFamily = {
    .architectures = {"Ernie4_5ForCausalLM"},
    .gguf = {"ernie4_5"},
    .defaults = {.kv_heads = 2,
                 .head_dim = 128,
                 .context = 131072,
                 .tied_embeddings = true,
                 .epsilon = 1e-5},
    .read = ReadErnie,
    .rename = RotateNeighbours,
    .rename_gguf = RotateNeighbours,
};

}  // namespace pawl
