// Defaults are those of the reference implementation's configuration classes (Hugging Face
// transformers 5), which config.json files rely on. Sources: Llama (Touvron et al., 2023), Mistral
// 7B (Jiang et al., 2023), Qwen 2 and 3 (technical reports, 2024 and 2025), Gemma 2 and 3
// (technical reports, 2024 and 2025).
#include <cmath>
#include <utility>
#include <vector>

#include "src/model/transformer_config.h"

namespace pawl {
namespace {

// Which layers see a window only: `layer_types` where given, else `otherwise(layer)`.
template <typename Otherwise>
std::vector<bool> ReadSlidingLayers(const JsonReader& in, int layers, const Otherwise& otherwise) {
  std::vector<bool> sliding(static_cast<size_t>(layers));
  const JsonReader types = in["layer_types"];
  if (types.present() && (!types.IsArray() || types.size() != sliding.size())) {
    types.Fail("must be a list of num_hidden_layers = " + std::to_string(layers) + " names" +
               (types.IsArray() ? ", has " + std::to_string(types.size()) : ""));
  }
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (!types.present() || !in.ok()) {
      sliding[i] = otherwise(static_cast<int>(i));
      continue;
    }
    const json::Value& type = types.value()->items[i];
    sliding[i] = type.text == "sliding_attention";
    if (type.type != json::Type::kString || (!sliding[i] && type.text != "full_attention")) {
      types.Unsupported("entry " + std::to_string(i) + " is " + json::Dump(type).substr(0, 50) +
                        "; expected \"full_attention\" or \"sliding_attention\"");
    }
  }
  return sliding;
}

void ReadLlama(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  config.qkv_bias = config.o_bias = in["attention_bias"].Bool(false);
  config.mlp_bias = in["mlp_bias"].Bool(false);
  ExpectNothing(in["sliding_window"]);
  ExpectNothing(in["rope_interleaved"]);
  in.Ignore({"is_llama_config"});
  config.ropes = {ReadRope(in, config.context_length, 10000.0)};
}

// Null says that there is no window.
int ReadWindow(const JsonReader& in) {
  return in.Is(json::Type::kNull) ? 0 : static_cast<int>(in.Whole(1, kMaxContext, 4096));
}

void ReadMistral(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ExpectNothing(in["attention_bias"]);
  const int window = ReadWindow(in["sliding_window"]);
  for (LayerConfig& layer : config.layers) layer.window = window;
  config.ropes = {ReadRope(in, config.context_length, 10000.0)};
}

// The upper layers, from max_window_layers on, may have a window.
void ReadQwenWindow(const JsonReader& in, TransformerConfig& config) {
  const bool use = in["use_sliding_window"].Bool(false);
  const auto window = static_cast<int>(in["sliding_window"].Whole(1, kMaxContext, 4096));
  // 0 is allowed here: a window in every layer.
  const int64_t from = in["max_window_layers"].Whole(0, kMaxLayers, 28);
  const std::vector<bool> sliding =
      ReadSlidingLayers(in, config.layer_count(), [&](int i) { return use && i >= from; });
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (use && sliding[i]) config.layers[i].window = window;
  }
}

void ReadQwen2(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  config.qkv_bias = true;
  ReadQwenWindow(in, config);
  ExpectNothing(in["use_mrope"]);
  config.ropes = {ReadRope(in, config.context_length, 10000.0)};
}

void ReadQwen3(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  config.qkv_bias = config.o_bias = in["attention_bias"].Bool(false);
  config.qk_norm = true;
  ReadQwenWindow(in, config);
  config.ropes = {ReadRope(in, config.context_length, 10000.0)};
}

// What Gemma 2 and 3 share. The embedding scale is exact here; the reference implementation rounds
// it to the dtype it runs in.
void ReadGemma(const JsonReader& in, TransformerConfig& config) {
  config.activation = Activation::kGeluTanh;
  ExpectString(in["hidden_activation"], "gelu_pytorch_tanh");
  in.Ignore({"hidden_act"});  // stale in published files; the reference reads the other one
  config.norm_offset = 1.0f;
  config.post_norms = true;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  config.qkv_bias = config.o_bias = in["attention_bias"].Bool(false);
  config.attention_scale =
      static_cast<float>(1.0 / std::sqrt(in["query_pre_attn_scalar"].Positive(256.0)));
  ExpectNothing(in["use_bidirectional_attention"]);
}

// 0, which is none, where it is null.
float ReadCap(const JsonReader& in, double absent) {
  if (in.Is(json::Type::kNull) || (in.value() == nullptr && absent == 0)) return 0;
  return static_cast<float>(in.Positive(absent));
}

void ReadGemma2(const JsonReader& in, TransformerConfig& config) {
  ReadGemma(in, config);
  config.attention_soft_cap = ReadCap(in["attn_logit_softcapping"], 50);
  config.logit_soft_cap = ReadCap(in["final_logit_softcapping"], 30);
  const int window = ReadWindow(in["sliding_window"]);
  const std::vector<bool> sliding =
      ReadSlidingLayers(in, config.layer_count(), [](int i) { return i % 2 == 0; });
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (sliding[i]) config.layers[i].window = window;
  }
  config.ropes = {ReadRope(in, config.context_length, 10000.0)};
}

// Two bases: rope 0 for the layers that see everything, rope 1 for those with a window.
void ReadGemma3Rope(const JsonReader& in, TransformerConfig& config) {
  const double global = in["rope_theta"].Positive(1000000.0);
  const double local = in["rope_local_base_freq"].Positive(10000.0);
  RopeConfig full, sliding;
  full.theta = global;
  sliding.theta = local;
  const JsonReader both = in["rope_parameters"].OptionalObject();
  const auto read = [&](const JsonReader& object, bool type_required, RopeConfig& rope) {
    if (object.present()) {
      rope = ReadRopeObject(object, config.context_length, rope.theta, type_required);
    }
  };
  if (both.present()) {
    read(both["full_attention"], false, full);
    read(both["sliding_attention"], false, sliding);
    for (const json::Member* other : both.Unread(1)) {
      both[other->first].Unsupported("is not known; expected full_attention and sliding_attention");
    }
  } else {
    read(in["rope_scaling"], true, full);
  }
  config.ropes = {full, sliding};
}

void ReadGemma3(const JsonReader& in, TransformerConfig& config) {
  ReadGemma(in, config);
  config.qk_norm = true;
  // The reference implementation reads this one and does not apply it.
  ExpectNothing(in["attn_logit_softcapping"]);
  config.logit_soft_cap = ReadCap(in["final_logit_softcapping"], 0);
  const int window = ReadWindow(in["sliding_window"]);
  const int64_t pattern = in["sliding_window_pattern"].Whole(1, kMaxLayers, 6);
  const std::vector<bool> sliding = ReadSlidingLayers(
      in, config.layer_count(), [pattern](int i) { return (i + 1) % pattern != 0; });
  ReadGemma3Rope(in, config);
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

// ---- What the settings of all families share ----

namespace {

bool SaysNothing(const json::Value& value) {
  return value.type == json::Type::kNull || value.type == json::Type::kFalse ||
         (value.type != json::Type::kNumber && value.type != json::Type::kTrue &&
          value.text.empty() && value.size() == 0);
}

}  // namespace

void ExpectString(const JsonReader& in, std::string_view supported) {
  const std::string value = in.String(supported);
  if (value == supported) return;
  in.Unsupported("is " + json::Quote(value.substr(0, 50)) + "; expected " + json::Quote(supported) +
                 ", the only one supported for this architecture");
}

void ExpectNothing(const JsonReader& in) {
  if (!in.present() || SaysNothing(*in.value())) return;
  in.Unsupported("is " + json::Shown(*in.value()) +
                 "; expected null or false, this is not supported here");
}

void RefuseTheRest(const JsonReader& in, std::string_view owner) {
  for (const json::Member* member : in.Unread()) {
    const auto& [key, value] = *member;
    if (key.starts_with("_") || SaysNothing(value)) continue;
    return in[key].Unsupported("is " + json::Shown(value) +
                               "; expected nothing, this setting is not known for " +
                               std::string(owner));
  }
}

// ---- RoPE ----

RopeConfig ReadRopeObject(const JsonReader& object, int context, double theta, bool type_required) {
  RopeConfig rope;
  const JsonReader in = object.Object();
  rope.theta = in["rope_theta"].Positive(theta);
  const char* type_key = in["rope_type"].present() ? "rope_type" : "type";
  const std::string type = in[type_key].String(type_required ? "" : "default");
  in.Ignore({"type"});  // files for old and new readers have both
  const auto original_context = [&] {
    return in["original_max_position_embeddings"].Positive(context);
  };
  if (type.empty()) {
    in["rope_type"].Fail("is missing");
  } else if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = in["factor"].Positive();
  } else if (type == "dynamic") {
    rope.type = RopeType::kDynamic;
    rope.factor = in["factor"].Positive();
    rope.original_context = context;
    in.Ignore({"original_max_position_embeddings"});  // the reference takes the model's context
  } else if (type == "llama3") {
    rope.type = RopeType::kLlama3;
    rope.factor = in["factor"].Positive();
    rope.low_freq_factor = in["low_freq_factor"].Positive();
    rope.high_freq_factor = in["high_freq_factor"].Positive();
    rope.original_context = original_context();
    if (!(rope.high_freq_factor > rope.low_freq_factor)) {
      in["high_freq_factor"].Fail("must be above low_freq_factor");
    }
  } else if (type == "yarn") {
    rope.type = RopeType::kYarn;
    rope.factor = in["factor"].Positive();
    rope.original_context = original_context();
    rope.beta_fast = in["beta_fast"].Positive(32.0);
    rope.beta_slow = in["beta_slow"].Positive(1.0);
    rope.truncate = in["truncate"].Bool(true);
    rope.attention_factor = in["attention_factor"].Positive(YarnAttentionFactor(rope.factor));
    ExpectNothing(in["mscale"]);
    ExpectNothing(in["mscale_all_dim"]);
  } else if (type != "default") {
    in[type_key].Unsupported("RoPE scaling " + json::Quote(type.substr(0, 50)) +
                             " is not supported; default, linear, dynamic, llama3 and yarn are");
  }
  if (in["partial_rotary_factor"].Positive(1.0) != 1.0) {
    in["partial_rotary_factor"].Unsupported("is not 1; expected 1 or nothing");
  }
  RefuseTheRest(in, "the RoPE type " + json::Quote(type));
  return rope;
}

RopeConfig ReadRope(const JsonReader& in, int context, double default_theta) {
  RopeConfig rope;
  rope.theta = in["rope_theta"].Positive(default_theta);
  const JsonReader scaling = in["rope_scaling"], parameters = in["rope_parameters"];
  // The reference implementation prefers the old key when both are there.
  if (scaling.present()) return ReadRopeObject(scaling, context, rope.theta, true);
  if (parameters.present()) return ReadRopeObject(parameters, context, rope.theta, false);
  return rope;
}

}  // namespace pawl
