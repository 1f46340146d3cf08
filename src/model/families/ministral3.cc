// Ministral 3 (Mistral, 2025): Mistral whose queries grow with the position.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeMinistral3(TransformerConfig& config, double growth, double period) {
  EachAttention(config, [&](Attention& attention, int) {
    attention.growth = static_cast<float>(growth);
    attention.growth_period = static_cast<int>(period);
  });
}

void ReadMinistral3(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectNothing(in["attention_bias"]);
  const int window = in["sliding_window"].present() ? ReadWindow(in["sliding_window"]) : 0;
  EachAttention(config, [&](Attention& attention, int) { attention.window = window; });
  const JsonReader rope = in["rope_parameters"].Object();
  const double growth = rope["llama_4_scaling_beta"].Positive();
  const double period = rope["original_max_position_embeddings"].Whole(1, kMaxContext);
  rope.Ignore({"max_position_embeddings"});
  DescribeMinistral3(config, growth, period);
  config.ropes = {ReadRope(in, config, 10000.0)};
}

void ReadMistral3Gguf(GgufKeys& keys, TransformerConfig& config) {
  if (!keys.Has("attention.temperature_scale")) return;  // Mistral Small 3
  DescribeMinistral3(config, keys.Positive("attention.temperature_scale", std::nullopt),
                     config.ropes[0].original_context);
}

}  // namespace

extern const Family kMinistral3Family = {
    .architectures = {"Ministral3ForCausalLM"},
    .wrappers = {"Mistral3ForConditionalGeneration"},
    .model_type = "ministral3",
    .gguf = {"mistral3"},
    .defaults = {.kv_heads = 8, .head_dim = 128, .context = 262144, .epsilon = 1e-5},
    .read = ReadMinistral3,
    .read_gguf = ReadMistral3Gguf,
    .rename_gguf = [](TensorNames& names) { names.paired_rotation = true; },
};

}  // namespace pawl
