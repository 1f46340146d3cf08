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

void ExpectNumber(const JsonReader& in, double supported) {
  if (in.Positive(supported) == supported) return;
  in.Unsupported("is " + json::Shown(*in.value()) + ", which is not supported here");
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

std::vector<std::string_view> ReadLayerTypes(const JsonReader& in, int layers,
                                             std::span<const std::string_view> known,
                                             const std::function<std::string_view(int)>& otherwise,
                                             const char* key) {
  std::vector<std::string_view> names(static_cast<size_t>(layers));
  const JsonReader types = in[key];
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

// ---- Experts ----

Experts ReadExperts(const JsonReader& in, const JsonReader& width, const char* count) {
  const JsonReader local = in["num_local_experts"], all = in["num_experts"];
  Experts experts;
  const JsonReader stated = in[count];
  const JsonReader& number = stated.present() ? stated : local.present() ? local : all;
  experts.count = static_cast<int>((number.present() ? number : stated).Whole(1, kMaxExperts));
  if (local.present() && all.present() && local.Whole() != all.Whole()) {
    local.Fail("is " + json::Shown(*local.value()) + ", but num_experts is " +
               json::Shown(*all.value()));
  }
  experts.chosen = static_cast<int>(in["num_experts_per_tok"].Whole(1, std::max(experts.count, 1)));
  experts.width = static_cast<int>(width.Whole(1, kMaxWidth));
  return experts;
}

void ReadGgufExperts(GgufKeys& keys, TransformerConfig& config, Experts experts) {
  experts.count = static_cast<int>(keys.Int("expert_count", kMaxExperts, std::nullopt));
  experts.chosen = static_cast<int>(keys.Int("expert_used_count", experts.count, std::nullopt));
  const std::optional<int64_t> width =
      experts.width > 0 ? std::optional<int64_t>(experts.width) : std::nullopt;
  experts.width = static_cast<int>(keys.Int("expert_feed_forward_length", kMaxWidth, width));
  const int64_t shared = keys.Int("expert_shared_count", 64, 0, 0) * experts.width;
  experts.shared_width =
      static_cast<int>(keys.Int("expert_shared_feed_forward_length", kMaxWidth, shared, 0));
  experts.normalized = keys.Bool("expert_weights_norm", experts.normalized);
  experts.scale = static_cast<float>(keys.Positive("expert_weights_scale", experts.scale));
  if (keys.Int("expert_group_count", kMaxExperts, 1) != 1) {
    keys.Fail(ErrorCode::kUnsupported, "expert_group_count",
              "is not 1; experts that are chosen by groups are not supported");
  }
  keys.Find("expert_group_used_count");
  keys.Find("leading_dense_block_count");  // the tensors tell
  const auto has = [&](size_t layer, const char* name) {
    return keys.file().Find("blk." + std::to_string(layer) + "." + name) != nullptr;
  };
  for (size_t i = 0; i < config.layers.size(); ++i) {
    experts.choice_bias = experts.choice_bias || has(i, "exp_probs_b.bias");
  }
  // 1: softmax, 2: sigmoid, 3: softmax of the chosen. Files of models with sigmoids may lack it.
  int64_t weights = static_cast<int64_t>(experts.weights) + 1;
  if (weights == 1 && experts.choice_bias) weights = 2;
  weights = keys.Int("expert_gating_func", 3, weights);
  experts.weights = static_cast<Experts::Weights>(weights - 1);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (has(i, "ffn_gate_inp.weight")) config.layers[i].feed_forward = experts;
  }
}

// ---- RoPE ----

namespace {

void ReadDivisors(const JsonReader& in, std::vector<float>& divisors) {
  if (!in.Array().present()) return;
  for (const JsonReader item : in.items()) divisors.push_back(static_cast<float>(item.Positive()));
}

}  // namespace

RopeConfig ReadRopeObject(const JsonReader& object, int context, double theta, bool type_required,
                          double original) {
  RopeConfig rope;
  const JsonReader in = object.Object();
  rope.theta = in["rope_theta"].Positive(theta);
  const char* type_key = in["rope_type"].present() ? "rope_type" : "type";
  const std::string type = in[type_key].String(type_required ? "" : "default");
  in.Ignore({"type"});  // files for old and new readers have both
  const auto original_context = [&] {
    return in["original_max_position_embeddings"].Positive(original > 0 ? original : context);
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
    const double scale = in["mscale"].Positive(0.0), all = in["mscale_all_dim"].Positive(0.0);
    if (scale > 0 && all > 0 && !in["attention_factor"].present()) {
      rope.attention_factor =
          YarnAttentionFactor(rope.factor, scale) / YarnAttentionFactor(rope.factor, all);
    }
  } else if (type == "longrope" || type == "su") {
    rope.type = RopeType::kLong;
    rope.original_context = original_context();
    const double factor = in["factor"].Positive(context / rope.original_context);
    ReadDivisors(in["short_factor"], rope.divisors);
    ReadDivisors(in["long_factor"], rope.long_divisors);
    const double stretched = 1 + std::log(factor) / std::log(rope.original_context);
    // GGUF files have it in single precision.
    rope.attention_factor = static_cast<float>(
        in["attention_factor"].Positive(factor <= 1.0 ? 1.0 : std::sqrt(stretched)));
  } else if (type != "default") {
    in[type_key].Unsupported(
        "RoPE scaling " + json::Quote(type.substr(0, 50)) +
        " is not supported; default, linear, dynamic, llama3, yarn and longrope are");
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
  const double original = in["original_max_position_embeddings"].Positive(0.0);
  const JsonReader scaling = in["rope_scaling"], parameters = in["rope_parameters"];
  // The reference implementation prefers the old key when both are there.
  if (scaling.present()) {
    rope = ReadRopeObject(scaling, config.context_length, rope.theta, true, original);
  } else if (parameters.present()) {
    rope = ReadRopeObject(parameters, config.context_length, rope.theta, false, original);
  }
  const JsonReader inside = parameters["partial_rotary_factor"];
  const JsonReader factor = inside.present() ? inside : in["partial_rotary_factor"];
  const double turned = factor.Positive(part > 0 ? part : 1.0);
  if (part == 0 && turned != 1.0) factor.Unsupported("is not 1; expected 1 or nothing");
  const int head_dim = config.layers[0].attention().head_dim;
  const auto width = static_cast<int>(head_dim * std::min(turned, 1.0));
  if (turned > 1.0 || width % 2 != 0 || width < 2) {
    factor.Unsupported("must be at most 1 and leave an even part of heads of " +
                       std::to_string(head_dim) + " elements");
  }
  if (width != head_dim) rope.width = width;
  const JsonReader& object = scaling.present() ? scaling : parameters;
  for (const auto& [divisors, key] :
       {std::pair{&rope.divisors, "short_factor"}, std::pair{&rope.long_divisors, "long_factor"}}) {
    if (rope.type != RopeType::kLong || static_cast<int>(divisors->size()) == width / 2) continue;
    object[key].Fail("must have " + std::to_string(width / 2) + " numbers");
  }
  return rope;
}

void ReadTwoRopes(const JsonReader& in, TransformerConfig& config, double theta,
                  double sliding_theta) {
  RopeConfig full, sliding;
  full.theta = theta;
  sliding.theta = sliding_theta;
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

std::vector<bool> ReadGgufSliding(GgufKeys& keys, int layers, int64_t pattern) {
  constexpr const char* kKey = "attention.sliding_window_pattern";
  std::vector<bool> sliding;
  const GgufValue* const value = keys.Find(kKey);
  if (value != nullptr && value->kind == GgufValue::Kind::kArray) {
    for (const int64_t one : keys.Ints(kKey, layers, 1, std::nullopt, 0))
      sliding.push_back(one != 0);
    return sliding;
  }
  pattern = keys.Int(kKey, kMaxLayers, pattern);
  for (int i = 0; i < layers; ++i) sliding.push_back((i + 1) % pattern != 0);
  return sliding;
}

}  // namespace pawl
