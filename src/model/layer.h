// A layer of a transformer as a description: what mixes positions, what transforms each of them
// alone, and where norms stand. No arithmetic and no names of files. Every model family is a list
// of these (transformer_config.h); families/ has one file for each.
//
//   for (const Layer& layer : config.layers) {
//     if (const auto* attention = std::get_if<Attention>(&layer.mixer)) Count(attention->window);
//   }
#ifndef PAWL_SRC_MODEL_LAYER_H_
#define PAWL_SRC_MODEL_LAYER_H_

#include <variant>

namespace pawl {

enum class Activation { kSilu, kGeluTanh, kSquaredRelu };

// Queries and keys are normed: not at all, each head by itself, or all heads together.
enum class QkNorm { kNone, kHead, kWidth };

constexpr int kNoRope = -1;

struct Attention {
  int heads = 0, kv_heads = 0, head_dim = 0;
  int window = 0;         // a row sees this many positions, its own the last of them; 0: all
  int rope = 0;           // index into TransformerConfig::ropes; kNoRope: heads are not rotated
  float scale = 0.0f;     // of q k^T; 0: 1 / sqrt(head_dim)
  float soft_cap = 0.0f;  // c: scores s become c tanh(s / c); 0: none
  QkNorm qk_norm = QkNorm::kNone;
  bool norm_behind_rope = false;  // of queries and keys, which otherwise are normed first
  bool qkv_bias = false, o_bias = false;
  // Queries come with as many gates; what is answered is multiplied by their sigmoids.
  bool output_gate = false;
  bool value_norm = false;    // values are normed like keys, without weights
  bool value_is_key = false;  // values are the products of keys, before these are normed
  int keys_of = -1;           // the earlier layer whose keys and values it reads; -1: its own
  bool sinks = false;         // each head has a score without a value in the sum of its softmax
  // Queries at position p are multiplied by 1 + growth * log(1 + p div growth_period).
  float growth = 0.0f;
  int growth_period = 0;

  bool operator==(const Attention&) const = default;
};

// Taps of a short convolution, at most.
constexpr int kMostTaps = 8;

// Mixers with a state instead of keys and values, and one with compressed ones.

// A matrix a value head, moved by the gated delta rule; a key head serves neighbouring value heads.
// A short convolution and SiLU are in front of queries, keys and values, a gated norm behind.
struct GatedDeltaNet {
  int key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  int taps = 0;  // of the convolution
  bool operator==(const GatedDeltaNet&) const = default;
};
// out(c . convolution(b . x)), with b, c and x of the model's width.
struct ShortConvolution {
  int taps = 0;
  bool bias = false;  // of all of it
  bool operator==(const ShortConvolution&) const = default;
};
// The state space of Mamba-2: as a delta net without the delta rule, with groups of heads in place
// of key heads and a gate in front of the norm.
struct Mamba2 {
  int heads = 0, head_dim = 0, groups = 0, state = 0;
  int taps = 0;
  float least_time = 0;  // a token's time step is at least this
  bool bias = false, convolution_bias = false;
  bool operator==(const Mamba2&) const = default;
};
// Attention whose keys and values are made from one compressed vector a position, which is what is
// kept of it, and from a part of the key that is rotated and that all heads share.
struct LatentAttention {
  int heads = 0;
  int query_rank = 0;  // of compressed queries; 0: they are not compressed
  int rank = 0;        // of keys and values
  int key_dim = 0, rope_dim = 0, value_dim = 0;  // of a head: key without and with rotation, value
  int rope = 0;                                  // index into TransformerConfig::ropes
  float scale = 0.0f;                            // 0: 1 / sqrt(key_dim + rope_dim)
  bool bias = false;                             // of what compresses, and of the output
  bool operator==(const LatentAttention&) const = default;
};

// std::monostate: the layer has none.
using Mixer = std::variant<Attention, GatedDeltaNet, ShortConvolution, Mamba2, LatentAttention,
                           std::monostate>;

// down(activation(gate x) . (up x)), or down(activation(up x)) without a gate.
struct Mlp {
  int width = 0;
  Activation activation = Activation::kSilu;
  bool gated = true;
  bool bias = false;

  bool operator==(const Mlp&) const = default;
};

// The sum of the answers of a few of many MLPs, each with a weight. A router scores them for each
// row.
struct Experts {
  int count = 0, chosen = 0, width = 0;
  Activation activation = Activation::kSilu;
  bool gated = true;
  // How scores become weights; the chosen ones have the highest scores.
  enum class Weights { kSoftmax, kSigmoid, kSoftmaxOfChosen };
  Weights weights = Weights::kSoftmax;
  bool normalized = false;   // weights of the chosen are divided by their sum
  float scale = 1.0f;        // and multiplied by this
  bool choice_bias = false;  // a number for each, added to what is compared and not to the weights
  int groups = 1, chosen_groups = 1;  // the chosen ones are of so many of so many groups
  bool router_bias = false, bias = false;
  bool factors = false;  // each expert's answer is multiplied by a number of its own
  // c: gate g = min(g, c) and up u = clamp(u, -c, c) become (u + 1) g sigmoid(1.702 g); 0: no.
  float clamp = 0.0f;
  int shared_width = 0;      // of an MLP that every row takes; 0: there is none
  bool shared_gate = false;  // its answer is multiplied by the sigmoid of a product with the row

  bool operator==(const Experts&) const = default;
};

// The sum of both, which read and answer through norms of their own. The router reads the residual
// stream through another norm.
struct MlpAndExperts {
  Mlp mlp;
  Experts experts;

  bool operator==(const MlpAndExperts&) const = default;
};

// std::monostate: the layer has none.
using FeedForward = std::variant<Mlp, Experts, MlpAndExperts, std::monostate>;

struct Layer {
  Mixer mixer;
  FeedForward feed_forward;
  // x += scale * post_norm(f(pre_norm(x))), of the mixer and of the feed-forward part.
  bool pre_norms = true, post_norms = false;
  float scale = 1.0f;
  bool factor = false;  // what leaves the layer is multiplied by a number

  // REQUIRES: these are what the layer has.
  Attention& attention() { return std::get<Attention>(mixer); }
  const Attention& attention() const { return std::get<Attention>(mixer); }
  Mlp& mlp() { return std::get<Mlp>(feed_forward); }
  const Mlp& mlp() const { return std::get<Mlp>(feed_forward); }

  bool operator==(const Layer&) const = default;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_LAYER_H_
