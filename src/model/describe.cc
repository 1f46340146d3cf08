// A line for each run of equal layers, so that a model of any depth is told in a few lines.
#include <cstddef>
#include <cstdio>
#include <string>
#include <variant>

#include "src/model/transformer_config.h"

namespace pawl {
namespace {

// As few digits as tell the number in single precision from its neighbours.
std::string Number(double exact) {
  const double value = static_cast<float>(exact);
  char text[32];
  for (int digits = 1; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (static_cast<float>(std::stod(text)) == static_cast<float>(value)) break;
  }
  return text;
}

std::string Of(Activation activation) {
  const char* const names[] = {"silu", "gelu", "squared relu"};
  return names[static_cast<int>(activation)];
}

std::string Of(const Attention& a) {
  std::string text = "attention " + std::to_string(a.heads) + " heads of " +
                     std::to_string(a.head_dim) + ", " + std::to_string(a.kv_heads) + " of keys";
  if (a.window > 0) text += ", window " + std::to_string(a.window);
  text += a.rope == kNoRope ? ", no rope" : ", rope " + std::to_string(a.rope);
  if (a.scale != 0.0f) text += ", scale " + Number(a.scale);
  if (a.soft_cap != 0.0f) text += ", cap " + Number(a.soft_cap);
  if (a.qk_norm == QkNorm::kHead) text += ", heads normed";
  if (a.qk_norm == QkNorm::kWidth) text += ", queries and keys normed";
  if (a.norm_behind_rope) text += " behind rope";
  if (a.qkv_bias) text += ", biases of q, k, v";
  if (a.o_bias) text += ", bias of o";
  if (a.output_gate) text += ", gated";
  if (a.value_is_key) text += ", values are keys";
  if (a.value_norm) text += ", values normed";
  if (a.keys_of >= 0) text += ", keys of layer " + std::to_string(a.keys_of);
  if (a.sinks) text += ", sinks";
  if (a.growth != 0.0f) {
    text += ", queries grow by " + Number(a.growth) + " each " + std::to_string(a.growth_period);
  }
  return text;
}

std::string Of(const GatedDeltaNet& d) {
  return "gated delta net " + std::to_string(d.value_heads) + " heads of " +
         std::to_string(d.value_dim) + ", " + std::to_string(d.key_heads) + " of keys of " +
         std::to_string(d.key_dim) + ", convolution of " + std::to_string(d.taps);
}

std::string Of(const ShortConvolution& c) {
  return "convolution of " + std::to_string(c.taps) + (c.bias ? ", biases" : "");
}

std::string Of(const Mamba2& m) {
  std::string text = "mamba-2 " + std::to_string(m.heads) + " heads of " +
                     std::to_string(m.head_dim) + ", " + std::to_string(m.groups) +
                     " groups with states of " + std::to_string(m.state) + ", convolution of " +
                     std::to_string(m.taps);
  if (m.least_time > 0) text += ", steps of at least " + Number(m.least_time);
  if (m.bias) text += ", biases";
  if (m.convolution_bias) text += ", bias of the convolution";
  return text;
}

std::string Of(const LatentAttention& a) {
  std::string text = "attention " + std::to_string(a.heads) + " heads of " +
                     std::to_string(a.key_dim) + " and " + std::to_string(a.rope_dim) +
                     " rotated, values of " + std::to_string(a.value_dim) + " from " +
                     std::to_string(a.rank) + ", rope " + std::to_string(a.rope);
  if (a.query_rank > 0) text += ", queries from " + std::to_string(a.query_rank);
  if (a.scale != 0.0f) text += ", scale " + Number(a.scale);
  if (a.bias) text += ", biases";
  return text;
}

std::string Of(const std::monostate&) { return "nothing"; }

std::string Of(const Mlp& mlp) {
  return std::string(mlp.gated ? "gated mlp " : "mlp ") + std::to_string(mlp.width) + " " +
         Of(mlp.activation) + (mlp.bias ? ", biases" : "");
}

std::string Of(const Experts& e) {
  std::string text = std::to_string(e.chosen) + " of " + std::to_string(e.count) + " experts " +
                     std::to_string(e.width) + " " + Of(e.activation);
  const char* const weights[] = {", softmax", ", sigmoid", ", softmax of the chosen"};
  if (!e.gated) text += ", no gates";
  text += weights[static_cast<int>(e.weights)];
  if (e.normalized) text += ", normalized";
  if (e.scale != 1.0f) text += ", scale " + Number(e.scale);
  if (e.choice_bias) text += ", bias of the choice";
  if (e.groups > 1) {
    text += ", " + std::to_string(e.chosen_groups) + " of " + std::to_string(e.groups) + " groups";
  }
  if (e.router_bias) text += ", bias of the router";
  if (e.bias) text += ", biases";
  if (e.factors) text += ", factors";
  if (e.clamp != 0.0f) text += ", clamp " + Number(e.clamp);
  if (e.shared_width > 0) {
    text += ", shared " + std::to_string(e.shared_width) + (e.shared_gate ? " with a gate" : "");
  }
  return text;
}

std::string Of(const MlpAndExperts& both) { return Of(both.mlp) + " and " + Of(both.experts); }

std::string Of(const Layer& layer) {
  const auto of = [](const auto& part) { return Of(part); };
  std::string text = std::visit(of, layer.mixer) + "; " + std::visit(of, layer.feed_forward);
  const char* const norms[] = {"no norms", "norms behind", "norms in front", "norms on both sides"};
  text += std::string("; ") + norms[(layer.pre_norms ? 2 : 0) + (layer.post_norms ? 1 : 0)];
  if (layer.scale != 1.0f) text += "; added times " + Number(layer.scale);
  if (layer.factor) text += "; times a number";
  return text;
}

std::string Of(const RopeConfig& rope) {
  const char* const types[] = {"default", "linear", "dynamic", "llama3", "yarn", "long"};
  std::string text =
      std::string(types[static_cast<int>(rope.type)]) + ", theta " + Number(rope.theta);
  if (!rope.divisors.empty()) text += ", divisors";
  if (rope.factor != 1.0) text += ", factor " + Number(rope.factor);
  if (rope.type == RopeType::kYarn || rope.type == RopeType::kLong) {
    text += ", context " + Number(rope.original_context);
  }
  if (rope.type == RopeType::kYarn) {
    text += ", turns " + Number(rope.beta_slow) + " to " + Number(rope.beta_fast);
    if (!rope.truncate) text += " not whole";
  }
  if (rope.attention_factor != 1.0) text += ", attention " + Number(rope.attention_factor);
  if (rope.width > 0) text += ", of " + std::to_string(rope.width) + " elements";
  return text;
}

}  // namespace

std::string Describe(const TransformerConfig& config) {
  std::string text = "width " + std::to_string(config.hidden) + ", " +
                     std::to_string(config.vocabulary) + " tokens, " +
                     (config.layer_norms ? "layer" : "rms") + " norms of " +
                     Number(config.norm_epsilon);
  if (config.tied_embeddings) text += ", tied";
  if (config.both_sides) text += ", rows see both sides";
  if (config.shifted_logits) text += ", logits of the next position";
  if (config.mask_token != kNoToken) text += ", mask " + std::to_string(config.mask_token);
  if (config.embedding_scale != 1.0f)
    text += ", embeddings times " + Number(config.embedding_scale);
  if (config.logit_scale != 1.0f) text += ", logits times " + Number(config.logit_scale);
  if (config.layer_input_width > 0) {
    text += ", layers read " + std::to_string(config.layer_input_width) + " numbers of a token";
  }
  if (config.logit_soft_cap != 0.0f) text += ", logits capped at " + Number(config.logit_soft_cap);
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    text += "\nrope " + std::to_string(i) + ": " + Of(config.ropes[i]);
  }
  const std::vector<Layer>& layers = config.layers;
  for (size_t first = 0, end = 0; first < layers.size(); first = end) {
    for (end = first + 1; end < layers.size() && layers[end] == layers[first];) ++end;
    text += "\nlayer " + std::to_string(first);
    if (end > first + 1) text += " to " + std::to_string(end - 1);
    text += ": " + Of(layers[first]);
  }
  return text;
}

}  // namespace pawl
