// What the settings of all families share.
#include <algorithm>
#include <cmath>
#include <utility>

#include "src/model/families/family.h"

namespace pawl {
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

void ReadAttentionBias(const JsonReader& in, TransformerConfig& config, bool absent) {
  const bool bias = in["attention_bias"].Bool(absent);
  EachAttention(config,
                [&](Attention& attention, int) { attention.qkv_bias = attention.o_bias = bias; });
}

std::vector<std::string_view> ReadLayerTypes(
    const JsonReader& in, int layers, std::span<const std::string_view> known,
    const std::function<std::string_view(int)>& otherwise) {
  std::vector<std::string_view> names(static_cast<size_t>(layers));
  const JsonReader types = in["layer_types"];
  if (types.present() && (!types.IsArray() || types.size() != names.size())) {
    types.Fail("must be a list of num_hidden_layers = " + std::to_string(layers) + " names" +
               (types.IsArray() ? ", has " + std::to_string(types.size()) : ""));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = types.present() && in.ok() ? std::string_view(types.value()->items[i].text)
                                          : otherwise(static_cast<int>(i));
    if (!types.present() || !in.ok() || std::ranges::find(known, names[i]) != known.end()) continue;
    std::string expected;
    for (const std::string_view one : known) {
      expected += (expected.empty() ? "" : one == known.back() ? " or " : ", ") + json::Quote(one);
    }
    types.Unsupported("entry " + std::to_string(i) + " is " +
                      json::Dump(types.value()->items[i]).substr(0, 50) + "; expected " + expected);
  }
  return names;
}

std::vector<bool> ReadSlidingLayers(const JsonReader& in, int layers,
                                    const std::function<bool(int)>& otherwise) {
  constexpr std::string_view kKnown[] = {"full_attention", "sliding_attention"};
  std::vector<bool> sliding;
  for (const std::string_view name : ReadLayerTypes(
           in, layers, kKnown, [&](int layer) { return kKnown[otherwise(layer) ? 1 : 0]; })) {
    sliding.push_back(name == kKnown[1]);
  }
  return sliding;
}

int ReadWindow(const JsonReader& in, int64_t otherwise) {
  return in.Is(json::Type::kNull) ? 0 : static_cast<int>(in.Whole(1, kMaxContext, otherwise));
}

float ReadCap(const JsonReader& in, double absent) {
  if (in.Is(json::Type::kNull) || (in.value() == nullptr && absent == 0)) return 0;
  return static_cast<float>(in.Positive(absent));
}

void RenameGgufDelta(TensorNames& names) {
  names.mixed = "attn_qkv";
  names.z = "attn_gate";
  names.decay = "ssm_alpha";
  names.beta = "ssm_beta";
  names.convolution = "ssm_conv1d";
  names.rates = "ssm_a";
  names.rate_biases = "ssm_dt.bias";
  names.state_norm = "ssm_norm";
  names.mixer_out = "ssm_out";
  names.log_rates = false;
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
  (void)in["partial_rotary_factor"];  // ReadRope
  // Of images: a text has the same number in all three sections.
  in.Ignore({"mrope_section", "mrope_interleaved"});
  RefuseTheRest(in, "the RoPE type " + json::Quote(type));
  return rope;
}

RopeConfig ReadRope(const JsonReader& in, const TransformerConfig& config, double default_theta,
                    double part) {
  RopeConfig rope;
  rope.theta = in["rope_theta"].Positive(default_theta);
  const JsonReader scaling = in["rope_scaling"], parameters = in["rope_parameters"];
  // The reference implementation prefers the old key when both are there.
  if (scaling.present()) {
    rope = ReadRopeObject(scaling, config.context_length, rope.theta, true);
  } else if (parameters.present()) {
    rope = ReadRopeObject(parameters, config.context_length, rope.theta, false);
  }
  const JsonReader inside = parameters["partial_rotary_factor"];
  const JsonReader factor = inside.present() ? inside : in["partial_rotary_factor"];
  const double turned = factor.Positive(part > 0 ? part : 1.0);
  if (part == 0 && turned != 1.0) factor.Unsupported("is not 1; expected 1 or nothing");
  const int head_dim = config.layers[0].attention().head_dim;
  const auto width = static_cast<int>(head_dim * turned);
  if (turned > 1.0 || width % 2 != 0 || width < 2) {
    factor.Unsupported("must be at most 1 and leave an even part of heads of " +
                       std::to_string(head_dim) + " elements");
  }
  if (width != head_dim) rope.width = width;
  return rope;
}

}  // namespace pawl
