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
#include <variant>

#include "src/base/half.h"
#include "src/base/json.h"
#include "src/base/thread_pool.h"
#include "src/model/families/family.h"
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

// The first `width` rows of each head of `head` rows are in the order of a rotation of neighbours:
// rows 2i and 2i + 1 go to i and i + width / 2.
struct Pairs {
  int64_t head = 0, width = 0;  // 0: in the order of halves

  int64_t From(int64_t row) const {
    if (width == 0 || row % head >= width) return row;
    const int64_t within = row % head, half = width / 2;
    return row - within + 2 * (within % half) + within / half;
  }
};

// Rows of a tensor that become those of a matrix: as floats, integers or bytes.
struct RowSource {
  const TensorView& view;
  int64_t rows, cols;
  Pairs pairs;
  std::optional<PackedFormat> blocks;  // of integers
  WeightType type;                     // where there are none
  float factor;                        // of all scales
  const StoredMatrix* packed;          // where several tensors are the matrix

  int64_t bytes() const { return view.bytes / rows; }
  const std::byte* At(int64_t row) const { return view.data + pairs.From(row) * bytes(); }
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

  Matrix FetchMatrix(const std::string& name, int64_t rows, int64_t cols, bool outer = false,
                     const Pairs& pairs = {}) {
    const std::optional<Tensor> tensor = Fetch(name, {rows, cols}, true);
    if (!tensor) return {};
    const RowSource from = {*tensor->view,
                            rows,
                            cols,
                            pairs,
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
    const bool stays = !from.blocks && from.packed == nullptr && pairs.width == 0 && !Wanted(outer);
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
    return FetchVector(name, std::vector<int64_t>{size});
  }
  std::vector<float> FetchVector(const std::string& name, const std::vector<int64_t>& shape) {
    const std::optional<Tensor> tensor = Fetch(name, shape, false);
    if (!tensor) return {};
    int64_t size = 1;
    for (const int64_t dimension : shape) size *= dimension;
    weights_.parameters += size;
    weights_.bytes += tensor->view->bytes;
    std::vector<float> values(static_cast<size_t>(size));
    const void* data = Aligned(*tensor->view, tensor->type);
    kernels_.to_float(data, tensor->type, size, values.data());
    return values;
  }

  // One of more dimensions, as a vector: those of size 1 may be left out.
  std::vector<float> FetchFlat(const std::string& name, const std::vector<int64_t>& shape) {
    int64_t size = 1;
    for (const int64_t dimension : shape) size *= dimension;
    const auto without_ones = [](std::vector<int64_t> all) {
      std::erase(all, 1);
      return all;
    };
    const TensorView* view = source_.FindOfShape(name, {size});
    const bool fits = view != nullptr && (without_ones(view->shape) == without_ones(shape) ||
                                          view->shape == std::vector<int64_t>{size});
    return FetchVector(name, fits ? view->shape : shape);
  }

  std::vector<float> FetchNorm(const std::string& name, int64_t size) {
    std::vector<float> values = FetchVector(name + ".weight", size);
    for (float& value : values) value += norm_offset_;
    return values;
  }

  Linear FetchLinear(const std::string& name, int64_t outputs, int64_t inputs, bool bias,
                     const Pairs& pairs = {}) {
    Linear linear;
    linear.w = FetchMatrix(name + ".weight", outputs, inputs, false, pairs);
    if (bias) linear.bias = FetchVector(name + ".bias", outputs);
    if (bias && pairs.width > 0 && !error_) {
      const std::vector<float> from = linear.bias;
      for (int64_t r = 0; r < outputs; ++r) {
        linear.bias[static_cast<size_t>(r)] = from[static_cast<size_t>(pairs.From(r))];
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
    const TensorView* view = source_.FindOfShape(name, shape);
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
    constexpr const char* kSilent[] = {"vision_tower.", "multi_modal_projector.", "model.visual.",
                                       "audio_tower.",  "embed_vision.",          "embed_audio."};
    return name.ends_with("rotary_emb.inv_freq") || name == "rope_freqs.weight" ||
           std::ranges::any_of(
               kSilent, [&](const char* part) { return name.find(part) != std::string::npos; });
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
      if (from.pairs.width == 0 && from.packed == nullptr) {
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
      Norm(names_.attention_norm, layer.attention_norm);
      Norm(names_.mlp_norm, layer.mlp_norm);
    }
    if (spec.post_norms) {
      Norm(names_.attention_post_norm, layer.attention_post_norm);
      Norm(names_.mlp_post_norm, layer.mlp_post_norm);
    }
    if (const auto* attention = std::get_if<Attention>(&spec.mixer)) Bind(*attention, layer);
    if (const auto* delta = std::get_if<GatedDeltaNet>(&spec.mixer)) Bind(*delta, layer);
    if (const auto* short_one = std::get_if<ShortConvolution>(&spec.mixer)) Bind(*short_one, layer);
    if (const auto* mlp = std::get_if<Mlp>(&spec.feed_forward)) Bind(*mlp, layer);
    return layer;
  }

 private:
  void Norm(const char* name, std::vector<float>& to) {
    to = binder_.FetchNorm(prefix_ + name, config_.hidden);
  }

  void Bind(const Attention& attention, TransformerLayer& layer) {
    const int64_t hidden = config_.hidden, width = attention.head_dim;
    const int64_t q_rows = attention.heads * width, kv_rows = attention.kv_heads * width;
    if (attention.qk_norm == QkNorm::kHead) {
      layer.q_norm = binder_.FetchNorm(prefix_ + names_.q_norm, width);
      layer.k_norm = binder_.FetchNorm(prefix_ + names_.k_norm, width);
    }
    Pairs pairs;
    if (names_.paired_rotation && attention.rope != kNoRope) {
      const RopeConfig& rope = config_.ropes[static_cast<size_t>(attention.rope)];
      pairs = {width, rope.WidthIn(attention.head_dim)};
    }
    const auto fetch = [&](const char* name, int64_t rows, bool rotated) {
      return binder_.FetchLinear(prefix_ + name, rows, hidden, attention.qkv_bias,
                                 rotated ? pairs : Pairs());
    };
    layer.q = fetch(names_.q, attention.output_gate ? 2 * q_rows : q_rows, true);
    layer.k = fetch(names_.k, kv_rows, true);
    layer.v = fetch(names_.v, kv_rows, false);
    layer.o = binder_.FetchLinear(prefix_ + names_.o, hidden, q_rows, attention.o_bias);
  }

  void Bind(const GatedDeltaNet& delta, TransformerLayer& layer) {
    const int64_t heads = delta.value_heads, values = heads * delta.value_dim;
    const int64_t channels = int64_t{2} * delta.key_heads * delta.key_dim + values;
    const auto fetch = [&](const char* name, int64_t outputs) {
      return binder_.FetchLinear(prefix_ + name, outputs, config_.hidden, false);
    };
    layer.mixed = fetch(names_.mixed, channels);
    layer.z = fetch(names_.z, values);
    layer.decay = fetch(names_.decay, heads);
    layer.beta = fetch(names_.beta, heads);
    layer.o = binder_.FetchLinear(prefix_ + names_.mixer_out, config_.hidden, values, false);
    BindState(channels, delta.taps, false, heads, layer.recurrent);
    layer.recurrent.tiled = names_.tiled_values;
    layer.state_norm =
        binder_.FetchVector(prefix_ + names_.state_norm + ".weight", delta.value_dim);
  }

  void Bind(const ShortConvolution& convolution, TransformerLayer& layer) {
    const int64_t hidden = config_.hidden;
    const bool bias = convolution.bias;
    layer.mixed = binder_.FetchLinear(prefix_ + names_.mixed, 3 * hidden, hidden, bias);
    layer.o = binder_.FetchLinear(prefix_ + names_.mixer_out, hidden, hidden, bias);
    BindState(hidden, convolution.taps, bias, 0, layer.recurrent);
  }

  // The convolution, transposed, and what decays come from.
  void BindState(int64_t channels, int64_t taps, bool bias, int64_t heads,
                 RecurrentWeights& weights) {
    const std::string convolution = prefix_ + names_.convolution;
    const std::vector<float> by_channel =
        binder_.FetchFlat(convolution + ".weight", {channels, 1, taps});
    if (bias) weights.convolution_bias = binder_.FetchVector(convolution + ".bias", channels);
    weights.convolution.resize(by_channel.size());
    for (size_t i = 0; i < by_channel.size(); ++i) {
      const auto channel = static_cast<int64_t>(i) / taps, tap = static_cast<int64_t>(i) % taps;
      weights.convolution[static_cast<size_t>(tap * channels + channel)] = by_channel[i];
    }
    if (heads == 0) return;
    weights.rates = binder_.FetchFlat(prefix_ + names_.rates, {heads});
    weights.biases = binder_.FetchFlat(prefix_ + names_.rate_biases, {heads});
    if (names_.skips != nullptr) weights.skips = binder_.FetchFlat(prefix_ + names_.skips, {heads});
    for (float& rate : weights.rates) rate = names_.log_rates ? -std::exp(rate) : rate;
  }

  void Bind(const Mlp& mlp, TransformerLayer& layer) {
    const auto fetch = [&](const char* name, int64_t outputs, int64_t inputs) {
      return binder_.FetchLinear(prefix_ + name, outputs, inputs, mlp.bias);
    };
    layer.gate = fetch(names_.gate, mlp.width, config_.hidden);
    layer.up = fetch(names_.up, mlp.width, config_.hidden);
    layer.down = fetch(names_.down, config_.hidden, mlp.width);
  }

  Binder& binder_;
  const TransformerConfig& config_;
  const TensorNames& names_;
  const std::string prefix_;
};

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
  const bool tied = config.tied_embeddings && source.Find(head) == nullptr;
  weights.head =
      tied ? weights.embedding : binder.FetchMatrix(head, config.vocabulary, hidden, true);
  weights.final_norm = binder.FetchNorm(names.body + names.final_norm, hidden);
  for (int i = 0; i < config.layer_count() && !binder.error(); ++i) {
    LayerBinder layer(binder, config, names, names.body + names.layer + std::to_string(i) + ".");
    weights.layers.push_back(layer.Bind(config.layers[static_cast<size_t>(i)]));
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
