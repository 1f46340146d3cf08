// Fetching a tensor states what is expected of it; the answer is the tensor or an error with both
// sides.
#include "src/model/transformer_weights.h"

#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>
#include <utility>

#include "src/base/json.h"

namespace pawl {
namespace {

constexpr size_t kLine = 64;
// Weights that stay in the processor's caches are read 1.5 times as fast when no vector load
// crosses a cache line (AVX-512, bf16: 41 against 28 multiply-adds per nanosecond), and copying
// that much takes milliseconds. Larger ones come from memory, where it makes no difference, and
// stay mapped.
constexpr int64_t kCopyBelow = int64_t{32} << 20;

std::optional<WeightType> TypeOf(const std::string& dtype) {
  if (dtype == "F32") return WeightType::kF32;
  if (dtype == "BF16") return WeightType::kBf16;
  if (dtype == "F16") return WeightType::kF16;
  return std::nullopt;
}

class Binder {
 public:
  Binder(TransformerWeights& weights, float norm_offset)
      : weights_(weights),
        norm_offset_(norm_offset),
        kernels_(*FindKernels(KernelVariant::kAuto)) {}

  // The first error; later fetches then do nothing.
  const std::optional<Error>& error() const { return error_; }

  Matrix FetchMatrix(const std::string& name, int64_t rows, int64_t cols) {
    const std::optional<Tensor> tensor = Fetch(name, {rows, cols});
    if (!tensor) return {};
    return {Aligned(*tensor->view, tensor->type), tensor->type, rows, cols};
  }

  std::vector<float> FetchVector(const std::string& name, int64_t size) {
    const std::optional<Tensor> tensor = Fetch(name, {size});
    if (!tensor) return {};
    std::vector<float> values(static_cast<size_t>(size));
    const void* data = Aligned(*tensor->view, tensor->type);
    kernels_.to_float(data, tensor->type, size, values.data());
    return values;
  }

  std::vector<float> FetchNorm(const std::string& name, int64_t size) {
    std::vector<float> values = FetchVector(name + ".weight", size);
    for (float& value : values) value += norm_offset_;
    return values;
  }

  // Rows 2i and 2i + 1 of each head go to i and i + head_dim / 2.
  void Unpair(Linear& linear, int64_t head_dim) {
    if (error_) return;
    const int64_t row_bytes = linear.w.cols * WeightBytes(linear.w.type);
    std::byte* rows = NewCopy(linear.w.rows * row_bytes);
    const auto* from = static_cast<const std::byte*>(linear.w.data);
    std::vector<float> bias(linear.bias.size());
    for (int64_t r = 0; r < linear.w.rows; ++r) {
      const int64_t source = PairedRow(r, head_dim);
      std::memcpy(rows + r * row_bytes, from + source * row_bytes, static_cast<size_t>(row_bytes));
      if (!bias.empty()) {
        bias[static_cast<size_t>(r)] = linear.bias[static_cast<size_t>(source)];
      }
    }
    linear.w.data = rows;
    linear.bias = std::move(bias);
  }

  Linear FetchLinear(const std::string& name, int64_t outputs, int64_t inputs, bool bias) {
    Linear linear;
    linear.w = FetchMatrix(name + ".weight", outputs, inputs);
    if (bias) linear.bias = FetchVector(name + ".bias", outputs);
    return linear;
  }

  // Matrices that read the same prepared input.
  void RequireSameType(std::initializer_list<const Linear*> linears, const std::string& names) {
    for (const Linear* linear : linears) {
      if (!error_ && linear->w.type != (*linears.begin())->w.type) {
        error_ = Error{ErrorCode::kUnsupported, "have different dtypes",
                       weights_.source->PathOf("") + ": tensors " + names};
      }
    }
  }

 private:
  struct Tensor {
    const TensorView* view;
    WeightType type;
  };

  std::optional<Tensor> Fetch(const std::string& name, const std::vector<int64_t>& shape) {
    if (error_) return std::nullopt;
    const std::string place = weights_.source->PathOf(name) + ": tensor " + json::Quote(name);
    const TensorView* view = weights_.source->Find(name);
    if (view == nullptr) {
      error_ = Error{ErrorCode::kInvalid,
                     "is missing; expected F32, F16 or BF16 " + ShapeToString(shape), place};
      return std::nullopt;
    }
    if (view->shape != shape) {
      error_ = Error{
          ErrorCode::kInvalid,
          "has shape " + ShapeToString(view->shape) + "; expected " + ShapeToString(shape), place};
      return std::nullopt;
    }
    const std::optional<WeightType> type = TypeOf(view->dtype);
    if (!type) {
      error_ = Error{ErrorCode::kUnsupported,
                     "has dtype " + view->dtype + "; expected F32, F16 or BF16", place};
      return std::nullopt;
    }
    weights_.bytes += view->bytes;
    weights_.parameters += view->bytes / WeightBytes(*type);
    return Tensor{view, *type};
  }

  // The tensor's bytes at an address fit for its elements; in a small checkpoint, at the start of a
  // cache line. Files place their data anywhere: writers pad the header to eight bytes, older ones
  // not at all.
  const void* Aligned(const TensorView& view, WeightType type) {
    const bool small = weights_.source->bytes() <= kCopyBelow;
    const size_t alignment = small ? kLine : static_cast<size_t>(WeightBytes(type));
    if (reinterpret_cast<uintptr_t>(view.data) % alignment == 0) return view.data;
    const auto size = static_cast<size_t>(view.bytes);
    std::byte* copy = NewCopy(view.bytes);
    std::memcpy(copy, view.data, size);
    return copy;
  }

  std::byte* NewCopy(int64_t bytes) {
    const auto size = static_cast<size_t>(bytes);
    auto* copy = static_cast<std::byte*>(std::aligned_alloc(kLine, (size + kLine) / kLine * kLine));
    if (copy == nullptr) throw std::bad_alloc();
    return weights_.copies.emplace_back(copy).get();
  }

  static int64_t PairedRow(int64_t row, int64_t head_dim) {
    const int64_t within = row % head_dim, half = head_dim / 2;
    return row - within + 2 * (within % half) + within / half;
  }

  TransformerWeights& weights_;
  const float norm_offset_;
  const KernelSet& kernels_;
  std::optional<Error> error_;
};

}  // namespace

const TensorNames& HuggingFaceNames(const TransformerConfig& config) {
  static constexpr TensorNames kPreNorms = {
      .embedding = "model.embed_tokens",
      .head = "lm_head",
      .final_norm = "model.norm",
      .layer = "model.layers.",
      .attention_norm = "input_layernorm",
      .attention_post_norm = "",
      .mlp_norm = "post_attention_layernorm",
      .mlp_post_norm = "",
      .q = "self_attn.q_proj",
      .k = "self_attn.k_proj",
      .v = "self_attn.v_proj",
      .o = "self_attn.o_proj",
      .q_norm = "self_attn.q_norm",
      .k_norm = "self_attn.k_norm",
      .gate = "mlp.gate_proj",
      .up = "mlp.up_proj",
      .down = "mlp.down_proj",
  };
  // The norm after attention is a name for two different things.
  static constexpr TensorNames kPostNorms = [] {
    TensorNames names = kPreNorms;
    names.attention_post_norm = "post_attention_layernorm";
    names.mlp_norm = "pre_feedforward_layernorm";
    names.mlp_post_norm = "post_feedforward_layernorm";
    return names;
  }();
  return config.post_norms ? kPostNorms : kPreNorms;
}

Result<TransformerWeights> LoadTransformerWeights(std::unique_ptr<TensorSource> source,
                                                  const TransformerConfig& config,
                                                  const TensorNames& names,
                                                  const std::function<void(double)>& progress) {
  TransformerWeights weights;
  weights.source = std::move(source);
  Binder binder(weights, config.norm_offset);
  const int64_t hidden = config.hidden, inner = config.intermediate;
  const int64_t q_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  const std::string kWeight = ".weight";
  weights.embedding = binder.FetchMatrix(names.embedding + kWeight, config.vocabulary, hidden);
  weights.head = config.tied_embeddings
                     ? weights.embedding
                     : binder.FetchMatrix(names.head + kWeight, config.vocabulary, hidden);
  weights.final_norm = binder.FetchNorm(names.final_norm, hidden);
  for (int i = 0; i < config.layer_count() && !binder.error(); ++i) {
    const std::string prefix = names.layer + std::to_string(i) + ".";
    TransformerLayer layer;
    layer.attention_norm = binder.FetchNorm(prefix + names.attention_norm, hidden);
    layer.mlp_norm = binder.FetchNorm(prefix + names.mlp_norm, hidden);
    if (config.post_norms) {
      layer.attention_post_norm = binder.FetchNorm(prefix + names.attention_post_norm, hidden);
      layer.mlp_post_norm = binder.FetchNorm(prefix + names.mlp_post_norm, hidden);
    }
    if (config.qk_norm) {
      layer.q_norm = binder.FetchNorm(prefix + names.q_norm, config.head_dim);
      layer.k_norm = binder.FetchNorm(prefix + names.k_norm, config.head_dim);
    }
    layer.q = binder.FetchLinear(prefix + names.q, q_width, hidden, config.qkv_bias);
    layer.k = binder.FetchLinear(prefix + names.k, kv_width, hidden, config.qkv_bias);
    layer.v = binder.FetchLinear(prefix + names.v, kv_width, hidden, config.qkv_bias);
    if (config.paired_rotation) {
      binder.Unpair(layer.q, config.head_dim);
      binder.Unpair(layer.k, config.head_dim);
    }
    layer.o = binder.FetchLinear(prefix + names.o, hidden, q_width, config.o_bias);
    layer.gate = binder.FetchLinear(prefix + names.gate, inner, hidden, config.mlp_bias);
    layer.up = binder.FetchLinear(prefix + names.up, inner, hidden, config.mlp_bias);
    layer.down = binder.FetchLinear(prefix + names.down, hidden, inner, config.mlp_bias);
    const auto joined = [&](std::initializer_list<const char*> roles) {
      std::string text;
      for (const char* role : roles) text += (text.empty() ? prefix : ", ") + role;
      return text;
    };
    binder.RequireSameType({&layer.q, &layer.k, &layer.v}, joined({names.q, names.k, names.v}));
    binder.RequireSameType({&layer.gate, &layer.up}, joined({names.gate, names.up}));
    weights.layers.push_back(std::move(layer));
    if (progress) progress(static_cast<double>(i + 1) / config.layer_count());
  }
  if (binder.error()) return *binder.error();
  return weights;
}

}  // namespace pawl
