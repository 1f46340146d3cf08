// Fetching a tensor states what is expected of it; the answer is the tensor or an error with both
// sides.
#include "src/model/transformer_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>
#include <unordered_set>
#include <utility>

#include "src/base/half.h"
#include "src/base/json.h"
#include "src/model/quantize.h"

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

// To the nearest bf16 or fp16, ties to even.
void RoundRow(WeightType type, const std::vector<float>& row, std::byte* out) {
  if (type == WeightType::kF32) {
    std::memcpy(out, row.data(), row.size() * sizeof(float));
    return;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &row[i], sizeof bits);
    uint16_t half = 0;
    if (type == WeightType::kBf16) {
      const bool nan = std::isnan(row[i]);
      half =
          static_cast<uint16_t>(nan ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    } else {
      half = FloatToHalf(row[i]);
    }
    std::memcpy(out + i * 2, &half, sizeof half);
  }
}

class Binder {
 public:
  Binder(TransformerWeights& weights, float norm_offset, WeightDtype dtype)
      : weights_(weights),
        dtype_(dtype),
        norm_offset_(norm_offset),
        kernels_(*FindKernels(KernelVariant::kAuto)) {}

  // The first error; later fetches then do nothing.
  const std::optional<Error>& error() const { return error_; }

  // `paired_heads`: rows 2i and 2i + 1 of each head of that width go to i and i + width / 2.
  Matrix FetchMatrix(const std::string& name, int64_t rows, int64_t cols, bool outer = false,
                     int64_t paired_heads = 0) {
    const std::optional<Tensor> tensor = Fetch(name, {rows, cols}, true);
    if (!tensor) return {};
    const TensorView& view = *tensor->view;
    const std::optional<PackedFormat> blocks = FormatOfBlocks(view.dtype);
    const std::optional<WeightType> wanted = Wanted(outer);
    Matrix matrix = {nullptr, tensor->type, rows, cols};
    if (!blocks && paired_heads == 0) {
      matrix.data = Aligned(view, tensor->type);
    } else {
      std::byte* copy = nullptr;
      if (blocks) {
        matrix = NewPacked(*blocks, rows, cols);
      } else {
        matrix.data = copy = NewCopy(view.bytes);
      }
      const int64_t row_bytes = view.bytes / rows;
      for (int64_t r = 0; r < rows; ++r) {
        const std::byte* row =
            view.data + (paired_heads > 0 ? PairedRow(r, paired_heads) : r) * row_bytes;
        if (blocks) {
          PackBlocks(view.dtype, row, cols, packed_row_);
          StoreRow(packed_row_, r, matrix);
        } else {
          std::memcpy(copy + r * row_bytes, row, static_cast<size_t>(row_bytes));
        }
      }
    }
    if (wanted && *wanted != matrix.type) {
      matrix = Converted(matrix, *wanted);
    } else if (wanted && matrix.data == view.data) {
      // Asked for by name: memory of its own, in large pages.
      std::byte* copy = NewCopy(view.bytes);
      std::memcpy(copy, view.data, static_cast<size_t>(view.bytes));
      matrix.data = copy;
    }
    weights_.parameters += rows * cols;
    weights_.bytes += MatrixBytes(matrix);
    return matrix;
  }

  std::vector<float> FetchVector(const std::string& name, int64_t size) {
    const std::optional<Tensor> tensor = Fetch(name, {size}, false);
    if (!tensor) return {};
    weights_.parameters += size;
    weights_.bytes += tensor->view->bytes;
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

  Linear FetchLinear(const std::string& name, int64_t outputs, int64_t inputs, bool bias,
                     int64_t paired_heads = 0) {
    Linear linear;
    linear.w = FetchMatrix(name + ".weight", outputs, inputs, false, paired_heads);
    if (bias) linear.bias = FetchVector(name + ".bias", outputs);
    if (bias && paired_heads > 0 && !error_) {
      const std::vector<float> from = linear.bias;
      for (int64_t r = 0; r < outputs; ++r) {
        linear.bias[static_cast<size_t>(r)] = from[static_cast<size_t>(PairedRow(r, paired_heads))];
      }
    }
    return linear;
  }

  // What the source has beyond what was fetched.
  std::vector<std::string> Unused() const {
    std::vector<std::string> unused;
    for (std::string& name : weights_.source->Names()) {
      if (!fetched_.contains(name) && !IsSilent(name)) unused.push_back(std::move(name));
    }
    std::sort(unused.begin(), unused.end());
    return unused;
  }

  // Matrices that read the same input.
  void RequireSameType(std::initializer_list<const Linear*> linears, const std::string& names) {
    for (const Linear* linear : linears) {
      const bool brain = linear->w.type == WeightType::kBf16;
      if (!error_ && brain != ((*linears.begin())->w.type == WeightType::kBf16)) {
        std::string dtypes;
        for (const Linear* each : linears) {
          dtypes += (dtypes.empty() ? "" : ", ") + std::string(DtypeName(each->w.type));
        }
        error_ = Error{ErrorCode::kUnsupported,
                       "have different dtypes (" + dtypes +
                           "); load them as one, with the dtype bf16, fp16, fp32, int8 or int4 "
                           "(--dtype)",
                       weights_.source->PathOf("") + ": tensors " + names};
      }
    }
  }

 private:
  struct Tensor {
    const TensorView* view;
    WeightType type;
  };

  std::optional<Tensor> Fetch(const std::string& name, const std::vector<int64_t>& shape,
                              bool blocks) {
    if (error_) return std::nullopt;
    fetched_.insert(name);
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
    if (!type && !(blocks && FormatOfBlocks(view->dtype))) {
      error_ = Error{ErrorCode::kUnsupported,
                     "has dtype " + view->dtype + "; expected F32, F16 or BF16" +
                         (blocks ? " (of GGUF also Q8_0, Q4_0, Q4_K, Q6_K)" : ""),
                     place};
      return std::nullopt;
    }
    return Tensor{view, type.value_or(WeightType::kF32)};
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

  std::byte* NewCopy(int64_t bytes) { return weights_.copies.Allocate(bytes); }

  // Frequencies that older checkpoints keep (a GGUF file's are read with its keys), and what the
  // text model of one of text and images never asks for.
  static bool IsSilent(const std::string& name) {
    return name.ends_with("rotary_emb.inv_freq") || name == "rope_freqs.weight" ||
           name.find("vision_tower.") != std::string::npos ||
           name.find("multi_modal_projector.") != std::string::npos;
  }

  static int64_t PairedRow(int64_t row, int64_t head_dim) {
    const int64_t within = row % head_dim, half = head_dim / 2;
    return row - within + 2 * (within % half) + within / half;
  }

  // `outer`: embedding and head.
  std::optional<WeightType> Wanted(bool outer) const {
    switch (dtype_) {
      case WeightDtype::kAsStored:
      case WeightDtype::kFp8:  // made from these by the backend
        return std::nullopt;
      case WeightDtype::kFp32:
        return WeightType::kF32;
      case WeightDtype::kBf16:
        return WeightType::kBf16;
      case WeightDtype::kFp16:
        return WeightType::kF16;
      case WeightDtype::kInt8:
        return WeightType::kI8;
      case WeightDtype::kInt4:
        return outer ? WeightType::kI8 : WeightType::kI4;
    }
    return std::nullopt;
  }

  Matrix NewPacked(const PackedFormat& format, int64_t rows, int64_t cols) {
    Matrix m;
    m.type = format.type;
    m.rows = rows;
    m.cols = cols;
    m.group_shift = format.group_shift;
    m.groups = QuantBlocks(cols) * kQuantBlock >> format.group_shift;
    PlacePacked(NewCopy(PackedBytes(m, format.minimums)), format.minimums, m);
    return m;
  }

  Matrix Converted(const Matrix& from, WeightType type) {
    Matrix to = {nullptr, type, from.rows, from.cols};
    std::byte* data = nullptr;
    if (IsQuantized(type)) {
      to = NewPacked({type, kQuantGroupShift, false, 0, 0}, from.rows, from.cols);
    } else {
      data = NewCopy(from.rows * from.cols * WeightBytes(type));
      to.data = data;
    }
    std::vector<float> row(static_cast<size_t>(from.cols));
    for (int64_t r = 0; r < from.rows; ++r) {
      kernels_.read_row(from, r, row.data());
      if (IsQuantized(type)) {
        QuantizeRow(type, row.data(), from.cols, packed_row_);
        StoreRow(packed_row_, r, to);
      } else {
        RoundRow(type, row, data + r * from.cols * WeightBytes(type));
      }
    }
    return to;
  }

  TransformerWeights& weights_;
  const WeightDtype dtype_;
  const float norm_offset_;
  const KernelSet& kernels_;
  PackedRow packed_row_;
  std::unordered_set<std::string> fetched_;
  std::optional<Error> error_;
};

}  // namespace

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

const TensorNames& HuggingFaceNames(const TransformerConfig& config, const TensorSource* source) {
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
  static constexpr TensorNames kInside = [] {
    TensorNames names = kPostNorms;
    names.embedding = "language_model.model.embed_tokens";
    names.head = "language_model.lm_head";
    names.final_norm = "language_model.model.norm";
    names.layer = "language_model.model.layers.";
    return names;
  }();
  static constexpr TensorNames kBelow = [] {
    TensorNames names = kPostNorms;
    names.embedding = "model.language_model.embed_tokens";
    names.final_norm = "model.language_model.norm";
    names.layer = "model.language_model.layers.";
    return names;
  }();
  if (source != nullptr && config.architecture == "Gemma3ForConditionalGeneration") {
    return source->Find(std::string(kBelow.embedding) + ".weight") != nullptr ? kBelow : kInside;
  }
  return config.post_norms ? kPostNorms : kPreNorms;
}

Result<TransformerWeights> LoadTransformerWeights(std::unique_ptr<TensorSource> source,
                                                  const TransformerConfig& config,
                                                  const TensorNames& names,
                                                  const std::function<void(double)>& progress,
                                                  WeightDtype dtype) {
  TransformerWeights weights;
  weights.source = std::move(source);
  Binder binder(weights, config.norm_offset, dtype);
  const int64_t hidden = config.hidden, inner = config.intermediate;
  const int64_t q_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  const std::string kWeight = ".weight";
  weights.embedding =
      binder.FetchMatrix(names.embedding + kWeight, config.vocabulary, hidden, true);
  // A head in the file counts, as in the reference implementation: the embedding takes its place
  // only where there is none.
  const bool tied = config.tied_embeddings && weights.source->Find(names.head + kWeight) == nullptr;
  weights.head = tied ? weights.embedding
                      : binder.FetchMatrix(names.head + kWeight, config.vocabulary, hidden, true);
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
    const int64_t paired = config.paired_rotation ? config.head_dim : 0;
    layer.q = binder.FetchLinear(prefix + names.q, q_width, hidden, config.qkv_bias, paired);
    layer.k = binder.FetchLinear(prefix + names.k, kv_width, hidden, config.qkv_bias, paired);
    layer.v = binder.FetchLinear(prefix + names.v, kv_width, hidden, config.qkv_bias);
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
  weights.unused = binder.Unused();
  return weights;
}

}  // namespace pawl
