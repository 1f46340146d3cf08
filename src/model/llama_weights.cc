// Fetching a tensor states what is expected of it; the answer is the tensor or an error with both
// sides.
#include "src/model/llama_weights.h"

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
  explicit Binder(LlamaWeights& weights)
      : weights_(weights), kernels_(*FindKernels(KernelVariant::kAuto)) {}

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
                       weights_.checkpoint.PathOf("") + ": tensors " + names};
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
    const std::string place = weights_.checkpoint.PathOf(name) + ": tensor " + json::Quote(name);
    const TensorView* view = weights_.checkpoint.Find(name);
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
    const bool small = weights_.checkpoint.bytes() <= kCopyBelow;
    const size_t alignment = small ? kLine : static_cast<size_t>(WeightBytes(type));
    if (reinterpret_cast<uintptr_t>(view.data) % alignment == 0) return view.data;
    const auto size = static_cast<size_t>(view.bytes);
    auto* copy = static_cast<std::byte*>(std::aligned_alloc(kLine, (size + kLine) / kLine * kLine));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, view.data, size);
    return weights_.copies.emplace_back(copy).get();
  }

  LlamaWeights& weights_;
  const KernelSet& kernels_;
  std::optional<Error> error_;
};

}  // namespace

Result<LlamaWeights> LoadLlamaWeights(const std::string& folder, const LlamaConfig& config,
                                      const std::function<void(double)>& progress) {
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  if (!checkpoint.ok()) return checkpoint.error();
  LlamaWeights weights;
  weights.checkpoint = *std::move(checkpoint);
  Binder binder(weights);
  const int64_t hidden = config.hidden;
  const int64_t q_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  weights.embedding = binder.FetchMatrix("model.embed_tokens.weight", config.vocabulary, hidden);
  weights.head = config.tied_embeddings
                     ? weights.embedding
                     : binder.FetchMatrix("lm_head.weight", config.vocabulary, hidden);
  weights.final_norm = binder.FetchVector("model.norm.weight", hidden);
  for (int i = 0; i < config.layers && !binder.error(); ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    const std::string attention = prefix + "self_attn.";
    const std::string mlp = prefix + "mlp.";
    LlamaLayer layer;
    layer.attention_norm = binder.FetchVector(prefix + "input_layernorm.weight", hidden);
    layer.mlp_norm = binder.FetchVector(prefix + "post_attention_layernorm.weight", hidden);
    const bool bias = config.attention_bias;
    layer.q = binder.FetchLinear(attention + "q_proj", q_width, hidden, bias);
    layer.k = binder.FetchLinear(attention + "k_proj", kv_width, hidden, bias);
    layer.v = binder.FetchLinear(attention + "v_proj", kv_width, hidden, bias);
    layer.o = binder.FetchLinear(attention + "o_proj", hidden, q_width, bias);
    layer.gate =
        binder.FetchLinear(mlp + "gate_proj", config.intermediate, hidden, config.mlp_bias);
    layer.up = binder.FetchLinear(mlp + "up_proj", config.intermediate, hidden, config.mlp_bias);
    layer.down =
        binder.FetchLinear(mlp + "down_proj", hidden, config.intermediate, config.mlp_bias);
    binder.RequireSameType({&layer.q, &layer.k, &layer.v}, attention + "q_proj, k_proj, v_proj");
    binder.RequireSameType({&layer.gate, &layer.up}, mlp + "gate_proj, up_proj");
    weights.layers.push_back(std::move(layer));
    if (progress) progress(static_cast<double>(i + 1) / config.layers);
  }
  if (binder.error()) return *binder.error();
  return weights;
}

}  // namespace pawl
