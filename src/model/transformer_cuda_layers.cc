// Which models run on devices. What a layer may have (layer.h) is more than the kernels have: each
// part that they lack is an error with its name, so that no model runs as another one.
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {
namespace {

// What the kernels lack of such a part; null if nothing.

const char* LackOfMixer(const Mixer& mixer, const TransformerConfig& config) {
  if (std::holds_alternative<LatentAttention>(mixer)) return "compressed keys and values";
  if (std::holds_alternative<GatedDeltaNet>(mixer) || std::holds_alternative<Mamba2>(mixer) ||
      std::holds_alternative<ShortConvolution>(mixer)) {
    return "recurrent layers";
  }
  const auto* const attention = std::get_if<pawl::Attention>(&mixer);
  if (attention == nullptr) return "layers without attention";
  if (attention->rope == kNoRope) return "layers without RoPE";
  const RopeConfig& rope = config.ropes[static_cast<size_t>(attention->rope)];
  if (rope.WidthIn(attention->head_dim) != attention->head_dim) {
    return "rotations of a part of a head";
  }
  if (attention->qk_norm == QkNorm::kWidth) return "norms of all queries together";
  if (attention->norm_behind_rope) return "norms behind RoPE";
  if (attention->output_gate) return "gates of what attention answers";
  if (attention->keys_of >= 0) return "keys of earlier layers";
  if (attention->value_norm || attention->value_is_key) return "norms of values";
  if (attention->growth != 0.0f) return "a scale of queries by position";
  if (config.both_sides && attention->window > 0) return "windows of rows that see both sides";
  return nullptr;
}

const char* LackOfExperts(const Experts& experts) {
  if (!experts.gated) return "experts without a gate";
  if (experts.count > kMostExperts) return "more than 1024 experts in a layer";
  if (experts.chosen > kMostChosen) return "more than 32 experts of a row";
  return nullptr;
}

const char* LackOfFeedForward(const FeedForward& part) {
  if (const auto* const mlp = std::get_if<Mlp>(&part)) {
    if (!mlp->gated) return "MLPs without a gate";
    return mlp->activation == Activation::kSquaredRelu ? "squared ReLUs" : nullptr;
  }
  if (const auto* const experts = std::get_if<Experts>(&part)) {
    if (const char* const lack = LackOfExperts(*experts); lack != nullptr) return lack;
    return experts->activation == Activation::kSquaredRelu ? "squared ReLUs" : nullptr;
  }
  return std::holds_alternative<MlpAndExperts>(part) ? "experts with an MLP next to them"
                                                     : "layers without an MLP";
}

// What a family is made of comes first.
const char* LackOfModel(const TransformerConfig& config) {
  for (const Layer& layer : config.layers) {
    if (const char* const lack = LackOfMixer(layer.mixer, config); lack != nullptr) return lack;
  }
  for (const Layer& layer : config.layers) {
    const char* const lack = LackOfFeedForward(layer.feed_forward);
    if (lack != nullptr) return lack;
    if (!layer.pre_norms) return "layers without a norm in front";
    if (layer.factor) return "layers with a factor";
    if (layer.scale != 1.0f) return "a scale of what layers add";
  }
  if (config.layer_norms) return "LayerNorms";
  if (config.layer_input_width > 0) return "inputs of layers";
  return config.logit_scale != 1.0f ? "a scale of the logits" : nullptr;
}

}  // namespace

Result<LayerFacts> LayersOnCuda(const TransformerConfig& config) {
  const auto unsupported = [](std::string message) {
    return Error{ErrorCode::kUnsupported, std::move(message), "cuda"};
  };
  const auto lacks = [&](const char* part) {
    return unsupported(std::string("the CUDA kernels lack ") + part + "; the CPU has them");
  };
  if (const char* const lack = LackOfModel(config); lack != nullptr) return lacks(lack);
  LayerFacts facts;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const Layer& layer = config.layers[i];
    const pawl::Attention& attention = layer.attention();
    const float scale = attention.scale != 0.0f
                            ? attention.scale
                            : 1.0f / std::sqrt(static_cast<float>(attention.head_dim));
    const SameLayer own = {attention.heads, attention.kv_heads, attention.head_dim,
                           scale,           attention.soft_cap, layer.post_norms};
    if (i > 0 && own != facts.same) return lacks("layers of different shapes");
    facts.same = own;
    if (const auto* const experts = std::get_if<Experts>(&layer.feed_forward)) {
      facts.inner = std::max(facts.inner, experts->shared_width);
      facts.expert_inner = std::max(facts.expert_inner, experts->width);
      facts.chosen = std::max(facts.chosen, experts->chosen);
      facts.experts = std::max(facts.experts, experts->count);
      facts.shared = facts.shared || experts->shared_width > 0;
    } else {
      facts.inner = std::max(facts.inner, layer.mlp().width);
      facts.mlp_bias = facts.mlp_bias || layer.mlp().bias;
    }
  }
  if (facts.same.head_dim > kMostHeadDim || facts.same.head_dim % 2 != 0) {
    return unsupported("heads of " + std::to_string(facts.same.head_dim) +
                       " elements; the CUDA kernels take even numbers up to " +
                       std::to_string(kMostHeadDim));
  }
  return facts;
}

}  // namespace pawl::PAWL_GPU
