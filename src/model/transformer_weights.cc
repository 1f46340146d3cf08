// Fetching a tensor states what is expected of it; the answer is the tensor or an error with both
// sides. Matrices that are used as the file has them stay mapped. Others are made row by row on all
// threads: a thread reads a piece of about a megabyte, writes it, and gives the file's pages back,
// so that memory never holds both forms of more than a few pieces.
#include "src/model/transformer_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <unordered_set>
#include <utility>

#include "src/base/half.h"
#include "src/base/json.h"
#include "src/base/thread_pool.h"
#include "src/model/quantize.h"
#include "src/model/quantized_checkpoint.h"

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

int64_t PairedRow(int64_t row, int64_t head_dim) {
  const int64_t within = row % head_dim, half = head_dim / 2;
  return row - within + 2 * (within % half) + within / half;
}

// Rows of a tensor that become those of a matrix: as floats, integers or bytes.
struct RowSource {
  const TensorView& view;
  int64_t rows, cols;
  int64_t paired_heads;
  std::optional<PackedFormat> blocks;  // of integers
  WeightType type;                     // where there are none
  float factor;                        // of all scales
  const StoredMatrix* packed;          // where several tensors are the matrix

  int64_t bytes() const { return view.bytes / rows; }
  const std::byte* At(int64_t row) const {
    return view.data + (paired_heads > 0 ? PairedRow(row, paired_heads) : row) * bytes();
  }
  // REQUIRES: blocks.
  void Pack(int64_t row, PackedRow& out) const {
    if (packed != nullptr) return packed->pack(row, out);
    PackBlocks(view.dtype, At(row), cols, out);
    if (factor != 1.0f) ScalePacked(factor, out);
  }
};

class Binder {
 public:
  // `plan`: sizes are found, and nothing is read but the vectors.
  Binder(TransformerWeights& weights, const TensorSource& source, float norm_offset,
         WeightDtype dtype, int threads, bool plan)
      : weights_(weights),
        source_(source),
        dtype_(dtype),
        norm_offset_(norm_offset),
        plan_(plan),
        kernels_(*FindKernels(KernelVariant::kAuto)),
        pool_(plan ? 1 : threads) {}
  // Pages at the edges of what was given back piece by piece.
  ~Binder() {
    for (const TensorView* view : copied_) source_.Release(view->data, view->bytes);
  }
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  // The first error; later fetches then do nothing.
  const std::optional<Error>& error() const { return error_; }

  // `paired_heads`: rows 2i and 2i + 1 of each head of that width go to i and i + width / 2.
  Matrix FetchMatrix(const std::string& name, int64_t rows, int64_t cols, bool outer = false,
                     int64_t paired_heads = 0) {
    const std::optional<Tensor> tensor = Fetch(name, {rows, cols}, true);
    if (!tensor) return {};
    const RowSource from = {*tensor->view,
                            rows,
                            cols,
                            paired_heads,
                            tensor->blocks,
                            tensor->type,
                            tensor->view->dtype == "NVFP4" ? ScaleOf(name) : 1.0f,
                            tensor->packed};
    const WeightType stored = from.blocks ? from.blocks->type : tensor->type;
    const WeightType type = Wanted(outer).value_or(stored);
    Matrix matrix = {nullptr, type, rows, cols};
    if (from.blocks && type == stored) {
      matrix = ShapeOf(*from.blocks, rows, cols);
    } else if (IsQuantized(type)) {
      matrix = ShapeOf({type, kQuantGroupShift}, rows, cols);
    }
    const bool minimums = from.blocks && type == stored && from.blocks->minimums;
    // Memory of its own, in large pages, where it is asked for by name.
    const bool stays =
        !from.blocks && from.packed == nullptr && paired_heads == 0 && !Wanted(outer);
    if (!plan_) {
      if (stays) {
        matrix.data = Aligned(from.view, type);
      } else if (IsQuantized(type)) {
        PlacePacked(NewCopy(PackedBytes(matrix, minimums)), minimums, matrix);
        FillRows(from, stored, matrix);
      } else {
        matrix.data = NewCopy(rows * cols * WeightBytes(type));
        FillRows(from, stored, matrix);
      }
    }
    weights_.parameters += rows * cols;
    weights_.bytes += MatrixBytesWith(matrix, minimums);
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
    for (std::string& name : source_.Names()) {
      if (!fetched_.contains(name) && !IsSilent(name)) unused.push_back(std::move(name));
    }
    std::sort(unused.begin(), unused.end());
    return unused;
  }

 private:
  struct Tensor {
    const TensorView* view;
    WeightType type;  // where there are no blocks
    std::optional<PackedFormat> blocks;
    const StoredMatrix* packed;
  };

  std::optional<Tensor> Fetch(const std::string& name, const std::vector<int64_t>& shape,
                              bool blocks) {
    if (error_) return std::nullopt;
    fetched_.insert(name);
    const std::string place = source_.PathOf(name) + ": tensor " + json::Quote(name);
    if (const Result<StoredMatrix>* packed = blocks ? source_.FindPacked(name) : nullptr) {
      return FetchPacked(*packed, shape);
    }
    const TensorView* view = source_.Find(name);
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
    const std::optional<PackedFormat> format = blocks ? FormatOfBlocks(view->dtype) : std::nullopt;
    if (!type && !format) {
      error_ = Error{ErrorCode::kUnsupported,
                     "has dtype " + view->dtype + "; expected F32, F16 or BF16" +
                         (blocks ? " (of GGUF also " + std::string(NamesOfBlocks()) + ")" : ""),
                     place};
      return std::nullopt;
    }
    return Tensor{view, type.value_or(WeightType::kF32), format, nullptr};
  }

  std::optional<Tensor> FetchPacked(const Result<StoredMatrix>& packed,
                                    const std::vector<int64_t>& shape) {
    if (!packed.ok()) {
      error_ = packed.error();
      return std::nullopt;
    }
    const TensorView& view = packed->view;
    if (view.shape != shape) {
      error_ = Error{ErrorCode::kInvalid,
                     "has weights of shape " + ShapeToString(view.shape) + "; expected " +
                         ShapeToString(shape),
                     source_.PathOf(packed->stored) + ": tensor " + json::Quote(packed->stored)};
      return std::nullopt;
    }
    return Tensor{&view, packed->floats, packed->integers, &*packed};
  }

  // The tensor's bytes at an address fit for its elements; in a small checkpoint, at the start of a
  // cache line. Files place their data anywhere: writers pad the header to eight bytes, older ones
  // not at all.
  const void* Aligned(const TensorView& view, WeightType type) {
    const bool small = source_.bytes() <= kCopyBelow;
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

  // Of a tensor of NVFP4, whose groups' scales have few bits: one number for all of it beside it.
  float ScaleOf(const std::string& name) {
    const std::string stem = name.substr(0, name.rfind('.'));
    fetched_.insert(stem + ".input_scale");  // of activations, which are not rounded to four bits
    if (source_.Find(stem + ".scale") == nullptr) return 1.0f;
    const std::vector<float> scale = FetchVector(stem + ".scale", 1);
    return scale.empty() ? 1.0f : scale[0];
  }

  // A matrix that needs no minimums yet to be told that it has some.
  static int64_t MatrixBytesWith(const Matrix& matrix, bool minimums) {
    return IsQuantized(matrix.type) ? PackedBytes(matrix, minimums) : MatrixBytes(matrix);
  }

  // All rows of the matrix, by all threads. What has been read of a file is given back.
  void FillRows(const RowSource& from, WeightType stored, const Matrix& matrix) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    const int64_t grain =
        std::max<int64_t>(kPiece / std::max<int64_t>(from.bytes(), 1) / kQuantTile, 1) * kQuantTile;
    pool_.ParallelFor(from.rows, grain, [&](int64_t begin, int64_t end, int) {
      PackedRow packed;
      std::vector<float> floats(static_cast<size_t>(from.cols));
      for (int64_t r = begin; r < end; ++r) FillRow(from, stored, matrix, r, packed, floats);
      if (from.paired_heads == 0 && from.packed == nullptr) {
        source_.Release(from.At(begin), (end - begin) * from.bytes());
      }
    });
    if (from.packed == nullptr) {
      source_.Release(from.view.data, from.view.bytes);
      copied_.push_back(&from.view);
      return;
    }
    for (const TensorView& part : from.packed->parts) {
      source_.Release(part.data, part.bytes);
      copied_.push_back(&part);
    }
  }

  void FillRow(const RowSource& from, WeightType stored, const Matrix& matrix, int64_t r,
               PackedRow& packed, std::vector<float>& floats) const {
    std::byte* to = IsQuantized(matrix.type)
                        ? nullptr
                        : static_cast<std::byte*>(const_cast<void*>(matrix.data)) +
                              r * from.cols * WeightBytes(matrix.type);
    if (from.blocks && matrix.type == stored) {
      from.Pack(r, packed);
      return StoreRow(packed, r, matrix);
    }
    if (from.packed != nullptr) {
      from.packed->read(r, floats.data());
    } else if (from.blocks) {
      from.Pack(r, packed);
      ReadPackedRow(*from.blocks, packed, from.cols, floats.data());
    } else if (matrix.type == stored) {
      std::memcpy(to, from.At(r), static_cast<size_t>(from.bytes()));
      return;
    } else {
      // At an address fit for its elements.
      std::vector<std::byte> aligned(from.At(r), from.At(r) + from.bytes());
      kernels_.to_float(aligned.data(), from.type, from.cols, floats.data());
    }
    if (IsQuantized(matrix.type)) {
      QuantizeRow(matrix.type, floats.data(), from.cols, packed);
      StoreRow(packed, r, matrix);
    } else {
      RoundRow(matrix.type, floats, to);
    }
  }

  TransformerWeights& weights_;
  const TensorSource& source_;
  const WeightDtype dtype_;
  const float norm_offset_;
  const bool plan_;
  const KernelSet& kernels_;
  ThreadPool pool_;
  std::vector<const TensorView*> copied_;
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

namespace {

// Everything that the description asks for.
Status Bind(Binder& binder, const TensorSource& source, const TransformerConfig& config,
            const TensorNames& names, const std::function<void(double)>& progress,
            TransformerWeights& weights) {
  const int64_t hidden = config.hidden, inner = config.intermediate;
  const int64_t q_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  const std::string kWeight = ".weight";
  weights.embedding =
      binder.FetchMatrix(names.embedding + kWeight, config.vocabulary, hidden, true);
  // A head in the file counts, as in the reference implementation: the embedding takes its place
  // only where there is none.
  const bool tied = config.tied_embeddings && source.Find(names.head + kWeight) == nullptr;
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
    weights.layers.push_back(std::move(layer));
    if (progress) progress(static_cast<double>(i + 1) / config.layer_count());
  }
  if (binder.error()) return *binder.error();
  weights.unused = binder.Unused();
  return {};
}

}  // namespace

Result<TransformerWeights> LoadTransformerWeights(std::unique_ptr<TensorSource> source,
                                                  const TransformerConfig& config,
                                                  const TensorNames& names,
                                                  const std::function<void(double)>& progress,
                                                  WeightDtype dtype, int threads) {
  TransformerWeights weights;
  weights.source = std::move(source);
  {
    const TensorSource& tensors = *weights.source;
    Binder binder(weights, tensors, config.norm_offset, dtype, threads, false);
    const Status status = Bind(binder, tensors, config, names, progress, weights);
    if (!status.ok()) return status.error();
  }
  return weights;
}

Result<WeightPlan> PlanTransformerWeights(const TensorSource& source,
                                          const TransformerConfig& config, const TensorNames& names,
                                          WeightDtype dtype) {
  TransformerWeights weights;
  Binder binder(weights, source, config.norm_offset, dtype, 1, true);
  const Status status = Bind(binder, source, config, names, nullptr, weights);
  if (!status.ok()) return status.error();
  WeightPlan plan;
  plan.memory_bytes = weights.bytes;
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
