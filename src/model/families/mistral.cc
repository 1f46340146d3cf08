// Mistral 7B (Jiang et al., 2023), Nemo, Codestral, Small 3.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ReadMistral(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectNothing(in["attention_bias"]);
  const int window = ReadWindow(in["sliding_window"]);
  EachAttention(config, [&](Attention& attention, int) { attention.window = window; });
  config.ropes = {ReadRope(in, config, 10000.0)};
}

}  // namespace

// Its GGUF files are those of Llama.
extern const Family kMistralFamily = {
    .architectures = {"MistralForCausalLM"},
    .wrappers = {"Mistral3ForConditionalGeneration"},
    .model_type = "mistral",
    .defaults = {.kv_heads = 8, .context = 131072},
    .read = ReadMistral,
};

}  // namespace pawl
