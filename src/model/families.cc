// Defaults are those of the reference implementation's configuration classes (Hugging Face
// transformers 5), which config.json files rely on. Sources: Llama (Touvron et al., 2023), Mistral
// 7B (Jiang et al., 2023), Qwen 2 and 3 (technical reports, 2024 and 2025), Gemma 2 and 3
// (technical reports, 2024 and 2025).
#include "src/model/families.h"

#include <cmath>
#include <utility>
#include <vector>

namespace pawl {
namespace {

// Which layers see a window only: `layer_types` where given, else `otherwise(layer)`.
template <typename Otherwise>
std::vector<bool> ReadSlidingLayers(ConfigReader& reader, int layers, const Otherwise& otherwise) {
  std::vector<bool> sliding(static_cast<size_t>(layers));
  const json::Value* types = reader.Find("layer_types");
  if (types != nullptr &&
      (types->type != json::Type::kArray || types->items.size() != sliding.size())) {
    reader.Fail(
        ErrorCode::kInvalid, "layer_types",
        "must be a list of num_hidden_layers = " + std::to_string(layers) + " names" +
            (types->type == json::Type::kArray ? ", has " + std::to_string(types->items.size())
                                               : ""));
    types = nullptr;
  }
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (types == nullptr) {
      sliding[i] = otherwise(static_cast<int>(i));
      continue;
    }
    const json::Value& type = types->items[i];
    sliding[i] = type.text == "sliding_attention";
    if (type.type != json::Type::kString || (!sliding[i] && type.text != "full_attention")) {
      reader.Fail(ErrorCode::kUnsupported, "layer_types",
                  "entry " + std::to_string(i) + " is " + json::Dump(type).substr(0, 50) +
                      "; expected \"full_attention\" or \"sliding_attention\"");
    }
  }
  return sliding;
}

void ReadLlama(ConfigReader& reader, TransformerConfig& config) {
  reader.ExpectString("hidden_act", "silu", "silu");
  config.qkv_bias = config.o_bias = reader.Bool("attention_bias", false);
  config.mlp_bias = reader.Bool("mlp_bias", false);
  reader.ExpectNothing("sliding_window");
  reader.ExpectNothing("rope_interleaved");
  reader.Ignore("is_llama_config");
  config.ropes = {ReadRope(reader, config.context_length, 10000.0)};
}

void ReadMistral(ConfigReader& reader, TransformerConfig& config) {
  reader.ExpectString("hidden_act", "silu", "silu");
  reader.ExpectNothing("attention_bias");
  const int window = reader.Has("sliding_window") && reader.Find("sliding_window") == nullptr
                         ? 0
                         : reader.Int("sliding_window", kMaxContext, 4096);
  for (LayerConfig& layer : config.layers) layer.window = window;
  config.ropes = {ReadRope(reader, config.context_length, 10000.0)};
}

// The upper layers, from max_window_layers on, may have a window.
void ReadQwenWindow(ConfigReader& reader, TransformerConfig& config) {
  const bool use = reader.Bool("use_sliding_window", false);
  const int window = reader.Int("sliding_window", kMaxContext, 4096);
  // 0 is allowed here: a window in every layer.
  Result<std::optional<int64_t>> from = reader.fields().Int("max_window_layers", 0, kMaxLayers);
  reader.Ignore("max_window_layers");
  if (!from.ok()) return reader.Fail(from.error());
  const std::vector<bool> sliding = ReadSlidingLayers(
      reader, config.layer_count(), [&](int i) { return use && i >= from->value_or(28); });
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (use && sliding[i]) config.layers[i].window = window;
  }
}

void ReadQwen2(ConfigReader& reader, TransformerConfig& config) {
  reader.ExpectString("hidden_act", "silu", "silu");
  config.qkv_bias = true;
  ReadQwenWindow(reader, config);
  reader.ExpectNothing("use_mrope");
  config.ropes = {ReadRope(reader, config.context_length, 10000.0)};
}

void ReadQwen3(ConfigReader& reader, TransformerConfig& config) {
  reader.ExpectString("hidden_act", "silu", "silu");
  config.qkv_bias = config.o_bias = reader.Bool("attention_bias", false);
  config.qk_norm = true;
  ReadQwenWindow(reader, config);
  config.ropes = {ReadRope(reader, config.context_length, 10000.0)};
}

// What Gemma 2 and 3 share. The embedding scale is exact here; the reference implementation rounds
// it to the dtype it runs in.
void ReadGemma(ConfigReader& reader, TransformerConfig& config) {
  config.activation = Activation::kGeluTanh;
  reader.ExpectString("hidden_activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh");
  reader.Ignore("hidden_act");  // stale in published files; the reference reads the other one
  config.norm_offset = 1.0f;
  config.post_norms = true;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  config.qkv_bias = config.o_bias = reader.Bool("attention_bias", false);
  config.attention_scale =
      static_cast<float>(1.0 / std::sqrt(reader.Positive("query_pre_attn_scalar", 256.0)));
  reader.ExpectNothing("use_bidirectional_attention");
}

int ReadGemmaWindow(ConfigReader& reader) {
  return reader.Has("sliding_window") && reader.Find("sliding_window") == nullptr
             ? 0
             : reader.Int("sliding_window", kMaxContext, 4096);
}

void ReadGemma2(ConfigReader& reader, TransformerConfig& config) {
  ReadGemma(reader, config);
  config.attention_soft_cap =
      static_cast<float>(reader.PositiveOrNull("attn_logit_softcapping", 50.0).value_or(0.0));
  config.logit_soft_cap =
      static_cast<float>(reader.PositiveOrNull("final_logit_softcapping", 30.0).value_or(0.0));
  const int window = ReadGemmaWindow(reader);
  const std::vector<bool> sliding =
      ReadSlidingLayers(reader, config.layer_count(), [](int i) { return i % 2 == 0; });
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (sliding[i]) config.layers[i].window = window;
  }
  config.ropes = {ReadRope(reader, config.context_length, 10000.0)};
}

// Two bases: rope 0 for the layers that see everything, rope 1 for those with a window.
void ReadGemma3Rope(ConfigReader& reader, TransformerConfig& config) {
  const double global = reader.Positive("rope_theta", 1000000.0);
  const double local = reader.Positive("rope_local_base_freq", 10000.0);
  RopeConfig full, sliding;
  full.theta = global;
  sliding.theta = local;
  if (const json::Value* both = reader.Find("rope_parameters")) {
    for (const auto& [kind, value] : both->members) {
      if (value.type == json::Type::kNull) continue;
      const std::string key = "rope_parameters/" + kind;
      if (kind == "full_attention") {
        full = ReadRopeObject(reader, value, key, config.context_length, global, false);
      } else if (kind == "sliding_attention") {
        sliding = ReadRopeObject(reader, value, key, config.context_length, local, false);
      } else {
        reader.Fail(ErrorCode::kUnsupported, "rope_parameters",
                    "has the key " + json::Quote(kind.substr(0, 50)) +
                        "; expected full_attention and sliding_attention");
      }
    }
    if (both->type != json::Type::kObject) {
      reader.Fail(ErrorCode::kInvalid, "rope_parameters", "must be an object");
    }
  } else if (const json::Value* scaling = reader.Find("rope_scaling")) {
    full = ReadRopeObject(reader, *scaling, "rope_scaling", config.context_length, global, true);
  }
  config.ropes = {full, sliding};
}

void ReadGemma3(ConfigReader& reader, TransformerConfig& config) {
  ReadGemma(reader, config);
  config.qk_norm = true;
  // The reference implementation reads this one and does not apply it.
  reader.ExpectNothing("attn_logit_softcapping");
  config.logit_soft_cap = static_cast<float>(
      reader.PositiveOrNull("final_logit_softcapping", std::nullopt).value_or(0));
  const int window = ReadGemmaWindow(reader);
  const int pattern = reader.Int("sliding_window_pattern", kMaxLayers, 6);
  const std::vector<bool> sliding = ReadSlidingLayers(
      reader, config.layer_count(), [pattern](int i) { return (i + 1) % pattern != 0; });
  ReadGemma3Rope(reader, config);
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (!sliding[i]) continue;
    config.layers[i].window = window;
    config.layers[i].rope = 1;
  }
}

constexpr Family kFamilies[] = {
    {"LlamaForCausalLM", {}, ReadLlama},
    {"MistralForCausalLM", {.kv_heads = 8, .context = 131072}, ReadMistral},
    {"Qwen2ForCausalLM", {.context = 32768}, ReadQwen2},
    {"Qwen3ForCausalLM", {.head_dim = 128, .context = 32768}, ReadQwen3},
    {"Gemma2ForCausalLM",
     {.kv_heads = 4, .head_dim = 256, .context = 8192, .tied_embeddings = true},
     ReadGemma2},
    {"Gemma3ForCausalLM",
     {.kv_heads = 4, .head_dim = 256, .context = 131072, .tied_embeddings = true},
     ReadGemma3},
    // Its text part alone; the tensors that see images are never asked for.
    {"Gemma3ForConditionalGeneration",
     {.kv_heads = 4,
      .head_dim = 256,
      .context = 131072,
      .tied_embeddings = true,
      .heads = 8,
      .vocabulary = 262208,
      .text_config = "text_config"},
     ReadGemma3},
};

}  // namespace

const Family* FindFamily(std::string_view architecture) {
  for (const Family& family : kFamilies) {
    if (architecture == family.architecture) return &family;
  }
  return nullptr;
}

std::string FamilyNames() {
  std::string names;
  for (size_t i = 0; i < std::size(kFamilies); ++i) {
    if (i > 0) names += i + 1 == std::size(kFamilies) ? " and " : ", ";
    names += kFamilies[i].architecture;
  }
  return names;
}

// ---- RoPE ----

RopeConfig ReadRopeObject(ConfigReader& outer, const json::Value& object, std::string_view key,
                          int context, double theta, bool type_required) {
  RopeConfig rope;
  rope.theta = theta;
  std::string pointer;
  for (std::string_view rest = key; !rest.empty();) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    pointer = json::PointerJoin(pointer, rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  if (object.type != json::Type::kObject) {
    outer.Fail(
        Error{ErrorCode::kInvalid, "must be an object", outer.fields().path() + "#" + pointer});
    return rope;
  }
  const JsonFields fields(object, outer.fields().path(), pointer);
  ConfigReader reader(fields, object);
  rope.theta = reader.Positive("rope_theta", theta);
  const char* type_key = reader.Find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = reader.String(type_key, type_required ? "" : "default");
  reader.Ignore("type");  // files for old and new readers have both
  const auto original_context = [&] {
    return reader.Positive("original_max_position_embeddings", context);
  };
  if (type.empty()) {
    reader.Fail(ErrorCode::kInvalid, "rope_type", "is missing");
  } else if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = reader.Positive("factor", std::nullopt);
  } else if (type == "dynamic") {
    rope.type = RopeType::kDynamic;
    rope.factor = reader.Positive("factor", std::nullopt);
    rope.original_context = context;
    reader.Ignore("original_max_position_embeddings");  // the reference takes the model's context
  } else if (type == "llama3") {
    rope.type = RopeType::kLlama3;
    rope.factor = reader.Positive("factor", std::nullopt);
    rope.low_freq_factor = reader.Positive("low_freq_factor", std::nullopt);
    rope.high_freq_factor = reader.Positive("high_freq_factor", std::nullopt);
    rope.original_context = original_context();
    if (!(rope.high_freq_factor > rope.low_freq_factor)) {
      reader.Fail(ErrorCode::kInvalid, "high_freq_factor", "must be above low_freq_factor");
    }
  } else if (type == "yarn") {
    rope.type = RopeType::kYarn;
    rope.factor = reader.Positive("factor", std::nullopt);
    rope.original_context = original_context();
    rope.beta_fast = reader.Positive("beta_fast", 32.0);
    rope.beta_slow = reader.Positive("beta_slow", 1.0);
    rope.truncate = reader.Bool("truncate", true);
    rope.attention_factor = reader.PositiveOrNull("attention_factor", std::nullopt)
                                .value_or(YarnAttentionFactor(rope.factor));
    reader.ExpectNothing("mscale");
    reader.ExpectNothing("mscale_all_dim");
  } else if (type != "default") {
    reader.Fail(ErrorCode::kUnsupported, type_key,
                "RoPE scaling " + json::Quote(type.substr(0, 50)) +
                    " is not supported; default, linear, dynamic, llama3 and yarn are");
  }
  if (reader.Positive("partial_rotary_factor", 1.0) != 1.0) {
    reader.Fail(ErrorCode::kUnsupported, "partial_rotary_factor",
                "is not 1; expected 1 or nothing");
  }
  reader.RefuseTheRest("the RoPE type " + json::Quote(type));
  if (reader.error()) outer.Fail(*reader.error());
  return rope;
}

RopeConfig ReadRope(ConfigReader& reader, int context, double default_theta) {
  RopeConfig rope;
  rope.theta = reader.Positive("rope_theta", default_theta);
  const json::Value* parameters = reader.Find("rope_parameters");
  // The reference implementation prefers the old key when both are there.
  if (const json::Value* scaling = reader.Find("rope_scaling")) {
    return ReadRopeObject(reader, *scaling, "rope_scaling", context, rope.theta, true);
  }
  if (parameters == nullptr) return rope;
  return ReadRopeObject(reader, *parameters, "rope_parameters", context, rope.theta, false);
}

}  // namespace pawl
