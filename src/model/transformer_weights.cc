// Which tensors a description asks for, and under which names.
#include "src/model/transformer_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "src/base/json.h"
#include "src/model/families/family.h"
#include "src/model/tensor_binder.h"

namespace pawl {
const char* DtypeName(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return "fp32";
    case WeightType::kBf16:
      return "bf16";
    case WeightType::kF16:
      return "fp16";
    case WeightType::kI8:
      return "int8";
    case WeightType::kI6:
      return "int6";
    case WeightType::kI5:
      return "int5";
    case WeightType::kI4:
      return "int4";
    case WeightType::kI3:
      return "int3";
    case WeightType::kI2:
      return "int2";
  }
  return "";
}

std::vector<RecurrentShape> RecurrentShapes(const TransformerConfig& config) {
  std::vector<RecurrentShape> shapes(config.layers.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Mixer& mixer = config.layers[i].mixer;
    RecurrentShape& shape = shapes[i];
    if (const auto* delta = std::get_if<GatedDeltaNet>(&mixer)) {
      const int keys = delta->key_heads * delta->key_dim;
      shape = {.channels = 2 * keys + delta->value_heads * delta->value_dim,
               .taps = delta->taps,
               .heads = delta->value_heads,
               .keys = delta->key_dim,
               .values = delta->value_dim,
               .groups = delta->key_heads,
               .delta = true,
               .k_at = keys,
               .v_at = 2 * keys};
    } else if (const auto* mamba = std::get_if<Mamba2>(&mixer)) {
      const int inner = mamba->heads * mamba->head_dim, shared = mamba->groups * mamba->state;
      shape = {.channels = inner + 2 * shared,
               .taps = mamba->taps,
               .heads = mamba->heads,
               .keys = mamba->state,
               .values = mamba->head_dim,
               .groups = mamba->groups,
               .q_at = inner + shared,
               .k_at = inner,
               .least_time = mamba->least_time};
    } else if (const auto* one = std::get_if<ShortConvolution>(&mixer)) {
      shape = {.channels = config.hidden, .taps = one->taps, .silu = false};
    }
  }
  return shapes;
}

TensorNames HuggingFaceNames(const TransformerConfig& config, const TensorSource* source) {
  TensorNames names;
  if (config.family->rename != nullptr) config.family->rename(names);
  // The text part of a model of text and images is below one of two names.
  const auto embedding = [&] { return names.body + names.embedding + ".weight"; };
  if (source == nullptr || source->Find(embedding()) != nullptr) return names;
  const TensorNames plain = names;
  names.body = "model.language_model.";
  if (source->Find(embedding()) != nullptr) return names;
  names.body = "language_model.model.";
  names.head = "language_model.lm_head";
  if (source->Find(embedding()) != nullptr) return names;
  // Files of models for embeddings have no head and leave the body's name out.
  names = plain;
  names.body = "";
  return source->Find(embedding()) != nullptr ? names : plain;
}

TensorNames GgufNames(const TransformerConfig& config) {
  TensorNames names;
  names.body = "";
  names.head = "output";
  names.embedding = "token_embd";
  names.final_norm = "output_norm";
  names.layer = "blk.";
  names.attention_norm = "attn_norm";
  names.attention_post_norm = "post_attention_norm";
  names.mlp_norm = "ffn_norm";
  names.mlp_post_norm = "post_ffw_norm";
  names.q = "attn_q";
  names.k = "attn_k";
  names.v = "attn_v";
  names.o = "attn_output";
  names.q_norm = "attn_q_norm";
  names.k_norm = "attn_k_norm";
  names.gate = "ffn_gate";
  names.up = "ffn_up";
  names.down = "ffn_down";
  names.router = "ffn_gate_inp";
  names.choice_bias = "exp_probs_b.bias";
  names.experts_form = TensorNames::Experts::kStacked;
  names.expert_gate = "ffn_gate_exps";
  names.expert_up = "ffn_up_exps";
  names.expert_down = "ffn_down_exps";
  names.shared_gate = "ffn_gate_shexp";
  names.shared_up = "ffn_up_shexp";
  names.shared_down = "ffn_down_shexp";
  names.shared_weight = "ffn_gate_inp_shexp";
  names.sinks = "attn_sinks.weight";
  names.expert_factors = "ffn_down_exps.scale";
  names.router_norm = "ffn_gate_inp.scale";
  names.experts_norm = "pre_ffw_norm_2";
  names.mlp_own_norm = "post_ffw_norm_1";
  names.experts_own_norm = "post_ffw_norm_2";
  names.layer_embedding = "per_layer_token_embd";
  names.layer_projection = "per_layer_model_proj";
  names.layer_projection_norm = "per_layer_proj_norm";
  names.input_gate = "inp_gate";
  names.input_projection = "proj";
  names.input_norm = "post_norm";
  names.factor = "layer_output_scale.weight";
  if (config.family->rename_gguf != nullptr) config.family->rename_gguf(names);
  return names;
}

namespace {

// The tensors of one layer; `prefix` stands before their names.
class LayerBinder {
 public:
  LayerBinder(Binder& binder, const TransformerConfig& config, const TensorNames& names,
              std::string prefix)
      : binder_(binder), config_(config), names_(names), prefix_(std::move(prefix)) {}

  TransformerLayer Bind(const Layer& spec) {
    TransformerLayer layer;
    if (spec.pre_norms) {
      if (!std::holds_alternative<std::monostate>(spec.mixer)) {
        Norm(names_.attention_norm, layer.attention_norm, layer.attention_norm_bias);
      }
      if (!std::holds_alternative<std::monostate>(spec.feed_forward)) {
        Norm(names_.mlp_norm, layer.mlp_norm, layer.mlp_norm_bias);
      }
    }
    if (spec.post_norms) {
      layer.attention_post_norm = Norm(names_.attention_post_norm, config_.hidden);
      layer.mlp_post_norm = Norm(names_.mlp_post_norm, config_.hidden);
    }
    if (const auto* attention = std::get_if<Attention>(&spec.mixer)) Bind(*attention, layer);
    if (const auto* delta = std::get_if<GatedDeltaNet>(&spec.mixer)) Bind(*delta, layer);
    if (const auto* mamba = std::get_if<Mamba2>(&spec.mixer)) Bind(*mamba, layer);
    if (const auto* latent = std::get_if<LatentAttention>(&spec.mixer)) Bind(*latent, layer);
    if (const auto* short_one = std::get_if<ShortConvolution>(&spec.mixer)) Bind(*short_one, layer);
    if (const auto* mlp = std::get_if<Mlp>(&spec.feed_forward)) Bind(*mlp, layer);
    if (const auto* experts = std::get_if<Experts>(&spec.feed_forward)) {
      Bind(*experts, layer.experts);
    }
    if (const auto* both = std::get_if<MlpAndExperts>(&spec.feed_forward)) {
      Bind(both->mlp, layer);
      Bind(both->experts, layer.experts);
      ExpertWeights& to = layer.experts;
      to.router_norm = binder_.FetchVector(prefix_ + names_.router_norm, config_.hidden);
      const float root = 1.0f / std::sqrt(static_cast<float>(config_.hidden));
      for (float& weight : to.router_norm) weight *= root;
      to.norm = Norm(names_.experts_norm, config_.hidden);
      to.mlp_own_norm = Norm(names_.mlp_own_norm, config_.hidden);
      to.own_norm = Norm(names_.experts_own_norm, config_.hidden);
    }
    if (const int64_t width = config_.layer_input_width; width > 0) {
      const auto fetch = [&](const char* name, int64_t outputs, int64_t inputs) {
        return binder_.FetchLinear(prefix_ + name, outputs, inputs, false);
      };
      layer.input_gate = fetch(names_.input_gate, width, config_.hidden);
      layer.input_projection = fetch(names_.input_projection, config_.hidden, width);
      layer.input_norm = Norm(names_.input_norm, config_.hidden);
    }
    if (spec.factor) {
      const std::vector<float> factor = binder_.FetchVector(prefix_ + names_.factor, 1);
      if (!factor.empty()) layer.factor = factor[0];
    }
    return layer;
  }

 private:
  std::vector<float> Norm(const char* name, int64_t size) {
    return binder_.FetchNorm(prefix_ + name, size);
  }
  void Norm(const char* name, std::vector<float>& weight, std::vector<float>& bias) {
    weight = Norm(name, config_.hidden);
    if (config_.layer_norms) bias = binder_.FetchVector(prefix_ + name + ".bias", config_.hidden);
  }

  void Bind(const Attention& attention, TransformerLayer& layer) {
    const int64_t hidden = config_.hidden, width = attention.head_dim;
    const int64_t q_rows = attention.heads * width, kv_rows = attention.kv_heads * width;
    const bool own_keys = attention.keys_of < 0;
    if (attention.qk_norm != QkNorm::kNone) {
      const bool each = attention.qk_norm == QkNorm::kHead;
      layer.q_norm = Norm(names_.q_norm, each ? width : q_rows);
      if (own_keys) layer.k_norm = Norm(names_.k_norm, each ? width : kv_rows);
    }
    Pairs pairs;
    if (names_.paired_rotation && attention.rope != kNoRope) {
      const RopeConfig& rope = config_.ropes[static_cast<size_t>(attention.rope)];
      pairs = {width, rope.WidthIn(attention.head_dim)};
    }
    int64_t first = 0;
    const auto fetch = [&](const char* name, int64_t rows, bool rotated) {
      Part part = {.pairs = rotated ? pairs : Pairs()};
      if (names_.qkv != nullptr) {
        part.shape = {q_rows + 2 * kv_rows, hidden};
        part.first = std::exchange(first, first + rows);
        name = names_.qkv;
      }
      return binder_.FetchLinear(prefix_ + name, rows, hidden, attention.qkv_bias, part);
    };
    layer.q = fetch(names_.q, attention.output_gate ? 2 * q_rows : q_rows, true);
    if (own_keys) layer.k = fetch(names_.k, kv_rows, true);
    if (own_keys && !attention.value_is_key) layer.v = fetch(names_.v, kv_rows, false);
    layer.o = binder_.FetchLinear(prefix_ + names_.o, hidden, q_rows, attention.o_bias);
    if (attention.sinks) layer.sinks = binder_.FetchVector(prefix_ + names_.sinks, attention.heads);
  }

  void Bind(const GatedDeltaNet& delta, TransformerLayer& layer) {
    const int64_t heads = delta.value_heads, values = heads * delta.value_dim;
    const int64_t channels = int64_t{2} * delta.key_heads * delta.key_dim + values;
    const int64_t group = heads / delta.key_heads, wide = group * delta.value_dim;
    // Where the file has the values' heads in turn and the last matrix is of floats, they are put
    // back behind each other, so that sums have the order of the folder's. The scales of blocks may
    // be of two heads.
    const std::string out = prefix_ + names_.mixer_out;
    const TensorView* const view = binder_.source().Find(out + ".weight");
    const bool tiled = names_.tiled_values && (view == nullptr || FormatOfBlocks(view->dtype));
    const bool put_back = names_.tiled_values && !tiled;
    // The rows of all heads, `size` of each, behind `first` others.
    const auto order = [&](int64_t size, int64_t first = 0) {
      std::vector<int64_t> rows;
      for (int64_t i = 0; put_back && i < first; ++i) rows.push_back(i);
      for (int64_t i = 0; put_back && i < heads * size; ++i) {
        const int64_t head = i / size;
        rows.push_back(first + (head % group * delta.key_heads + head / group) * size + i % size);
      }
      return rows;
    };
    // `fused`, where it has a name, has the rows of all key heads one behind the other, so many of
    // each; of those of a key head `parts` are taken in turn.
    struct Rows {
      int64_t first, count;
    };
    const auto fetch = [&](const char* name, const char* fused, int64_t of_head,
                           const std::vector<Rows>& parts, std::vector<int64_t> own) {
      Part part = {.rows = std::move(own)};
      int64_t outputs = 0;
      for (const Rows& rows : parts) {
        outputs += delta.key_heads * rows.count;
        for (int64_t i = 0; fused != nullptr && i < delta.key_heads * rows.count; ++i) {
          part.rows.push_back(i / rows.count * of_head + rows.first + i % rows.count);
        }
      }
      if (fused != nullptr) part.shape = {delta.key_heads * of_head, config_.hidden};
      return binder_.FetchLinear(prefix_ + (fused != nullptr ? fused : name), outputs,
                                 config_.hidden, false, part);
    };
    const int64_t key = delta.key_dim, both = 2 * (key + wide);
    const char* const fused_z = names_.z == nullptr ? names_.mixed : nullptr;
    const char* const fused_decay = names_.decay == nullptr ? names_.beta : nullptr;
    const std::vector<int64_t> by_channel =
        order(delta.value_dim, int64_t{2} * delta.key_heads * key);
    layer.mixed =
        fetch(names_.mixed, fused_z, both, {{0, key}, {key, key}, {2 * key, wide}}, by_channel);
    layer.z = fetch(names_.z, fused_z, both, {{2 * key + wide, wide}}, order(delta.value_dim));
    layer.beta = fetch(names_.beta, fused_decay, 2 * group, {{0, group}}, order(1));
    layer.decay = fetch(names_.decay, fused_decay, 2 * group, {{group, group}}, order(1));
    layer.o = binder_.FetchLinear(out, config_.hidden, values, false,
                                  {.columns = order(delta.value_dim)});
    BindState(channels, delta.taps, false, heads, layer.recurrent, by_channel, order(1));
    layer.recurrent.tiled = tiled;
    layer.state_norm =
        binder_.FetchVector(prefix_ + names_.state_norm + ".weight", delta.value_dim);
  }

  // One tensor has the rows of the gate, of what is convolved, and of time steps.
  void Bind(const Mamba2& mamba, TransformerLayer& layer) {
    const int64_t hidden = config_.hidden, inner = int64_t{mamba.heads} * mamba.head_dim;
    const int64_t channels = inner + int64_t{2} * mamba.groups * mamba.state;
    int64_t first = 0;
    const auto fetch = [&](int64_t rows) {
      return binder_.FetchLinear(prefix_ + names_.mixed, rows, hidden, mamba.bias,
                                 {.shape = {inner + channels + mamba.heads, hidden},
                                  .first = std::exchange(first, first + rows)});
    };
    layer.z = fetch(inner);
    layer.mixed = fetch(channels);
    layer.decay = fetch(mamba.heads);
    layer.o = binder_.FetchLinear(prefix_ + names_.mixer_out, hidden, inner, mamba.bias);
    BindState(channels, mamba.taps, mamba.convolution_bias, mamba.heads, layer.recurrent);
    layer.state_norm =
        FetchFlat(prefix_ + names_.state_norm + ".weight", {mamba.groups, inner / mamba.groups});
  }

  void Bind(const LatentAttention& latent, TransformerLayer& layer) {
    const int64_t hidden = config_.hidden, head = latent.key_dim + latent.rope_dim;
    const int64_t q_rows = latent.heads * head;
    if (latent.query_rank > 0) {
      layer.q_a = binder_.FetchLinear(prefix_ + names_.q_a, latent.query_rank, hidden, latent.bias);
      layer.q_norm = Norm(names_.q_a_norm, latent.query_rank);
      layer.q = binder_.FetchLinear(prefix_ + names_.q_b, q_rows, latent.query_rank, false);
    } else {
      layer.q = binder_.FetchLinear(prefix_ + names_.q, q_rows, hidden, false);
    }
    layer.kv_a = binder_.FetchLinear(prefix_ + names_.kv_a, latent.rank + latent.rope_dim, hidden,
                                     latent.bias);
    layer.kv_norm = Norm(names_.kv_norm, latent.rank);
    layer.o = binder_.FetchLinear(prefix_ + names_.o, hidden,
                                  int64_t{latent.heads} * latent.value_dim, latent.bias);
    const int64_t both = latent.key_dim + latent.value_dim;
    for (int64_t h = 0; h < latent.heads && !binder_.error(); ++h) {
      if (names_.k_b != nullptr) {  // transposed already
        const std::vector<int64_t> k = {latent.heads, latent.rank, latent.key_dim};
        const std::vector<int64_t> v = {latent.heads, latent.value_dim, latent.rank};
        layer.k_up.push_back(binder_.FetchMatrix(prefix_ + names_.k_b + ".weight", latent.rank,
                                                 latent.key_dim, false,
                                                 {.shape = k, .first = h * latent.rank}));
        layer.v_up.push_back(binder_.FetchMatrix(prefix_ + names_.v_b + ".weight", latent.value_dim,
                                                 latent.rank, false,
                                                 {.shape = v, .first = h * latent.value_dim}));
        continue;
      }
      const std::string name = prefix_ + names_.kv_b + ".weight";
      const std::vector<int64_t> shape = {latent.heads * both, latent.rank};
      layer.k_up.push_back(binder_.FetchTransposed(name, latent.key_dim, latent.rank,
                                                   {.shape = shape, .first = h * both}));
      layer.v_up.push_back(
          binder_.FetchMatrix(name, latent.value_dim, latent.rank, false,
                              {.shape = shape, .first = h * both + latent.key_dim}));
    }
  }

  void Bind(const ShortConvolution& convolution, TransformerLayer& layer) {
    const int64_t hidden = config_.hidden;
    const bool bias = convolution.bias;
    layer.mixed = binder_.FetchLinear(prefix_ + names_.mixed, 3 * hidden, hidden, bias);
    layer.o = binder_.FetchLinear(prefix_ + names_.mixer_out, hidden, hidden, bias);
    BindState(hidden, convolution.taps, bias, 0, layer.recurrent);
  }

  // A tensor of more dimensions, as a vector: those of size 1 may be left out.
  std::vector<float> FetchFlat(const std::string& name, const std::vector<int64_t>& shape,
                               std::vector<int64_t> order = {}) {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    const auto without_ones = [](std::vector<int64_t> all) {
      std::erase(all, 1);
      return all;
    };
    const TensorView* view = binder_.source().FindOfShape(name, {size});
    const bool fits = view != nullptr && (without_ones(view->shape) == without_ones(shape) ||
                                          view->shape == std::vector<int64_t>{size});
    return binder_.FetchVector(name, size,
                               {.shape = fits ? view->shape : shape, .rows = std::move(order)});
  }

  // The convolution, transposed, and what decays come from; `by_channel` and `by_head`, where not
  // empty: which of the file's.
  void BindState(int64_t channels, int64_t taps, bool bias, int64_t heads,
                 RecurrentWeights& weights, const std::vector<int64_t>& by_channel = {},
                 const std::vector<int64_t>& by_head = {}) {
    const std::string convolution = prefix_ + names_.convolution;
    std::vector<int64_t> order;
    for (const int64_t channel : by_channel) {
      for (int64_t tap = 0; tap < taps; ++tap) order.push_back(channel * taps + tap);
    }
    const std::vector<float> stored =
        FetchFlat(convolution + ".weight", {channels, 1, taps}, std::move(order));
    if (bias) weights.convolution_bias = binder_.FetchVector(convolution + ".bias", channels);
    weights.convolution.resize(stored.size());
    for (size_t i = 0; i < stored.size(); ++i) {
      const auto channel = static_cast<int64_t>(i) / taps, tap = static_cast<int64_t>(i) % taps;
      weights.convolution[static_cast<size_t>(tap * channels + channel)] = stored[i];
    }
    if (heads == 0) return;
    weights.rates = FetchFlat(prefix_ + names_.rates, {heads}, by_head);
    weights.biases = FetchFlat(prefix_ + names_.rate_biases, {heads}, by_head);
    if (names_.skips != nullptr) weights.skips = FetchFlat(prefix_ + names_.skips, {heads});
    for (float& rate : weights.rates) rate = names_.log_rates ? -std::exp(rate) : rate;
  }

  void Bind(const Mlp& mlp, TransformerLayer& layer) {
    ExpertWeights::Expert bound =
        FetchMlp(mlp, names_.gate, names_.up, names_.down, names_.gate_up);
    layer.gate = std::move(bound.gate);
    layer.up = std::move(bound.up);
    layer.down = std::move(bound.down);
  }

  // `gate_up`, where it has a name, has the rows of both.
  ExpertWeights::Expert FetchMlp(const Mlp& mlp, const char* gate, const char* up, const char* down,
                                 const char* gate_up) {
    const int64_t hidden = config_.hidden, width = mlp.width;
    const auto fetch = [&](const char* name, int64_t first) {
      Part part;
      if (gate_up != nullptr) part = {.shape = {2 * width, hidden}, .first = first};
      return binder_.FetchLinear(prefix_ + (gate_up != nullptr ? gate_up : name), width, hidden,
                                 mlp.bias, part);
    };
    ExpertWeights::Expert bound;
    if (mlp.gated) bound.gate = fetch(gate, 0);
    bound.up = fetch(up, width);
    bound.down = binder_.FetchLinear(prefix_ + down, hidden, width, mlp.bias);
    return bound;
  }

  void Bind(const Experts& experts, ExpertWeights& to) {
    const int64_t hidden = config_.hidden;
    // A few numbers decide which experts run: they are never rounded to four bits.
    to.router.w =
        binder_.FetchMatrix(prefix_ + names_.router + ".weight", experts.count, hidden, true);
    if (experts.router_bias) {
      to.router.bias = binder_.FetchVector(prefix_ + names_.router + ".bias", experts.count);
    }
    if (experts.choice_bias) {
      to.choice_bias = binder_.FetchVector(prefix_ + names_.choice_bias, experts.count);
    }
    if (experts.factors) {
      to.factors = binder_.FetchVector(prefix_ + names_.expert_factors, experts.count);
    }
    for (int64_t e = 0; e < experts.count && !binder_.error(); ++e) {
      to.experts.push_back(
          {experts.gated ? FetchExpert(experts, names_.expert_gate, e, 0) : Linear(),
           FetchExpert(experts, names_.expert_up, e, 1),
           FetchExpert(experts, names_.expert_down, e, 2)});
    }
    if (experts.shared_width == 0) return;
    to.shared =
        FetchMlp({.width = experts.shared_width, .gated = experts.gated}, names_.shared_gate,
                 names_.shared_up, names_.shared_down, names_.shared_gate_up);
    if (!experts.shared_gate) return;
    const std::string weight = prefix_ + names_.shared_weight + ".weight";
    // GGUF files have it as a vector.
    const TensorView* const view = binder_.source().Find(weight);
    Part part;
    if (view != nullptr && view->shape.size() == 1) part.shape = {hidden};
    to.shared_weight.w = binder_.FetchMatrix(weight, 1, hidden, true, part);
  }

  // `which`: 0 the gate, 1 up, 2 down.
  Linear FetchExpert(const Experts& experts, const char* name, int64_t expert, int which) {
    const bool down = which == 2;
    const int64_t rows = down ? config_.hidden : experts.width;
    const int64_t cols = down ? experts.width : config_.hidden;
    if (names_.experts_form == TensorNames::Experts::kSingle) {
      return binder_.FetchLinear(prefix_ + names_.experts + std::to_string(expert) + "." + name,
                                 rows, cols, experts.bias);
    }
    if (names_.experts_form == TensorNames::Experts::kStacked && names_.expert_gate_up != nullptr) {
      Linear linear;
      const int64_t all = down ? rows : 2 * rows;
      linear.w = binder_.FetchMatrix(
          prefix_ + (down ? name : names_.expert_gate_up), rows, cols, false,
          {.shape = {experts.count, all, cols}, .first = expert * all + (which == 1 ? rows : 0)});
      return linear;
    }
    if (names_.experts_form == TensorNames::Experts::kStacked) {
      return binder_.FetchLinear(prefix_ + name, rows, cols, experts.bias,
                                 {.shape = {experts.count, rows, cols}, .first = expert * rows});
    }
    return FetchInTurn(experts, prefix_ + name, expert, which);
  }

  // The form of gpt-oss.
  Linear FetchInTurn(const Experts& experts, const std::string& name, int64_t expert, int which) {
    const bool down = which == 2;
    const int64_t rows = down ? config_.hidden : experts.width;
    const int64_t cols = down ? experts.width : config_.hidden;
    const int64_t step = down ? 1 : 2, all = rows * step;
    const Part of_expert = {{all, cols}, down ? 0 : which, step};
    Linear linear;
    if (binder_.Has(name + "_blocks")) {
      binder_.Use(name + "_blocks");
      binder_.Use(name + "_scales");
      linear.w = binder_.FetchStored(name, Mxfp4Expert(binder_.source(), name, expert), rows, cols,
                                     of_expert);
    } else {
      linear.w = binder_.FetchStored(
          name, TransposedExpert(binder_.source(), name, experts.count, expert, all, cols), rows,
          cols, of_expert);
    }
    if (experts.bias) {
      linear.bias = binder_.FetchVector(
          name + "_bias", rows, {{experts.count, all}, expert * all + of_expert.first, step});
    }
    return linear;
  }

  Binder& binder_;
  const TransformerConfig& config_;
  const TensorNames& names_;
  const std::string prefix_;
};

// Older folders of GPTQ have a bias for each matrix, of zeros where the model has none.
bool IsBiasOfZeros(const TensorSource& source, const std::string& name) {
  const TensorView* const tensor = name.ends_with(".bias") ? source.Find(name) : nullptr;
  return tensor != nullptr && std::all_of(tensor->data, tensor->data + tensor->bytes,
                                          [](std::byte byte) { return byte == std::byte{0}; });
}

// A tensor of a layer that the description does not ask for would change what the layer answers.
// Layers behind the last one are not of the model: those of a longer one, or blocks that guess
// several tokens. Layers that read the keys and values of others may have some of their own.
Status CheckLayersUsed(const TransformerWeights& weights, const TensorSource& source,
                       const TransformerConfig& config, const TensorNames& names) {
  const std::string body = names.body + names.layer;
  for (const std::string& name : weights.unused) {
    if (!name.starts_with(body) || IsBiasOfZeros(source, name)) continue;
    int layer = 0;
    const char* const end = name.data() + name.size();
    const auto [behind, error] = std::from_chars(name.data() + body.size(), end, layer);
    if (error != std::errc() || layer < 0 || layer >= config.layer_count()) continue;
    const std::string_view role = std::string_view(behind, end).substr(1);
    const auto* attention =
        std::get_if<Attention>(&config.layers[static_cast<size_t>(layer)].mixer);
    const auto is = [&](const char* part) { return role.starts_with(std::string(part) + "."); };
    if (attention != nullptr && attention->keys_of >= 0 &&
        (is(names.k) || is(names.v) || is(names.k_norm))) {
      continue;
    }
    return Error{ErrorCode::kUnsupported,
                 "is not used: the settings are those of " + std::string(NameOf(*config.family)) +
                     ", whose layers are without it",
                 source.PathOf(name) + ": tensor " + json::Quote(name)};
  }
  return {};
}

// Everything that the description asks for.
Status Bind(Binder& binder, const TensorSource& source, const TransformerConfig& config,
            const TensorNames& names, const std::function<void(double)>& progress,
            TransformerWeights& weights) {
  const int64_t hidden = config.hidden;
  const std::string embedding = names.body + names.embedding + ".weight";
  const std::string head = names.head + ".weight";
  weights.embedding = binder.FetchMatrix(embedding, config.vocabulary, hidden, true);
  // A head in the file counts, as in the reference implementation: the embedding takes its place
  // only where there is none.
  const bool tied = (config.tied_embeddings || config.classifies) && source.Find(head) == nullptr;
  weights.head =
      tied ? weights.embedding : binder.FetchMatrix(head, config.vocabulary, hidden, true);
  weights.final_norm = binder.FetchNorm(names.body + names.final_norm, hidden);
  if (config.layer_input_width > 0) {
    const int64_t all = int64_t{config.layer_count()} * config.layer_input_width;
    weights.layer_embedding = binder.FetchMatrix(names.body + names.layer_embedding + ".weight",
                                                 config.vocabulary, all, true);
    weights.layer_projection =
        binder.FetchLinear(names.body + names.layer_projection, all, hidden, false);
    weights.layer_projection_norm =
        binder.FetchNorm(names.body + names.layer_projection_norm, config.layer_input_width);
  }
  if (config.layer_norms) {
    weights.final_norm_bias = binder.FetchVector(names.body + names.final_norm + ".bias", hidden);
  }
  for (int i = 0; i < config.layer_count() && !binder.error(); ++i) {
    LayerBinder layer(binder, config, names, names.body + names.layer + std::to_string(i) + ".");
    weights.layers.push_back(layer.Bind(config.layers[static_cast<size_t>(i)]));
    if (progress) progress(static_cast<double>(i + 1) / config.layer_count());
  }
  if (binder.error()) return *binder.error();
  weights.unused = binder.Unused();
  if (config.classifies) std::erase(weights.unused, "score.weight");
  return CheckLayersUsed(weights, source, config, names);
}

}  // namespace

TransformerLayer BindLayer(Binder& binder, const TransformerConfig& config,
                           const TensorNames& names, const std::string& prefix,
                           const Layer& layer) {
  return LayerBinder(binder, config, names, prefix).Bind(layer);
}

Result<TransformerWeights> LoadTransformerWeights(std::unique_ptr<TensorSource> source,
                                                  const TransformerConfig& config,
                                                  const TensorNames& names,
                                                  const std::function<void(double)>& progress,
                                                  WeightDtype dtype, int threads) {
  TransformerWeights weights;
  weights.source = std::move(source);
  weights.names = names;
  weights.dtype = dtype;
  {
    const TensorSource& tensors = *weights.source;
    Binder binder(weights, tensors, names.norm_offset, dtype, threads, false);
    const Status status = Bind(binder, tensors, config, names, progress, weights);
    if (!status.ok()) return status.error();
  }
  return weights;
}

Result<WeightPlan> PlanTransformerWeights(const TensorSource& source,
                                          const TransformerConfig& config, const TensorNames& names,
                                          WeightDtype dtype) {
  TransformerWeights weights;
  Binder binder(weights, source, names.norm_offset, dtype, 1, true);
  const Status status = Bind(binder, source, config, names, nullptr, weights);
  if (!status.ok()) return status.error();
  WeightPlan plan;
  plan.memory_bytes = weights.bytes;
  plan.description = Describe(config);
  plan.file_bytes = source.bytes();
  std::map<std::string, int64_t> types;
  for (const std::string& name : source.Names()) {
    const TensorView* tensor = source.Find(name);
    if (tensor != nullptr && tensor->shape.size() == 2) types[tensor->dtype] += tensor->bytes;
  }
  plan.types.assign(types.begin(), types.end());
  std::sort(plan.types.begin(), plan.types.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return plan;
}

}  // namespace pawl
