// Rows of a stored tensor become those of a matrix through floats, integers or bytes, whichever
// keeps what the file says.
#include "src/model/tensor_binder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/half.h"
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

// Frequencies that older checkpoints keep (a GGUF file's are read with its keys), and what the text
// model of one of text and images never asks for.
bool IsSilent(const std::string& name) {
  constexpr const char* kSilent[] = {"vision_tower.", "multi_modal_projector.", "model.visual.",
                                     "audio_tower.",  "embed_vision.",          "embed_audio."};
  return name.find("rotary_emb.") != std::string::npos || name == "rope_freqs.weight" ||
         name.starts_with("rope_factors_") || std::ranges::any_of(kSilent, [&](const char* part) {
           return name.find(part) != std::string::npos;
         });
}

}  // namespace

// Rows of a tensor that become those of a matrix: as floats, integers or bytes.
struct Binder::RowSource {
  const TensorView& view;
  int64_t rows, cols;
  const Part& part;
  std::optional<PackedFormat> blocks;  // of integers
  WeightType type;                     // where there are none
  float factor;                        // of all scales
  const StoredMatrix* packed;          // where several tensors are the matrix

  int64_t stored_rows() const {
    int64_t all = 1;
    for (size_t i = 0; i + 1 < view.shape.size(); ++i) all *= view.shape[i];
    return all;
  }
  int64_t bytes() const { return view.bytes / stored_rows(); }
  const std::byte* At(int64_t row) const { return view.data + part.From(row) * bytes(); }
  // REQUIRES: blocks.
  void Pack(int64_t row, PackedRow& out) const {
    if (packed != nullptr) return packed->pack(part.From(row), out);
    PackBlocks(view.dtype, At(row), cols, out);
    if (factor != 1.0f) ScalePacked(factor, out);
  }
};

Binder::Binder(TransformerWeights& weights, const TensorSource& source, float norm_offset,
               WeightDtype dtype, int threads, bool plan)
    : weights_(weights),
      source_(source),
      dtype_(dtype),
      norm_offset_(norm_offset),
      plan_(plan),
      kernels_(*FindKernels(KernelVariant::kAuto)),
      pool_(plan ? 1 : threads) {}

Binder::~Binder() {
  for (const auto& [data, bytes] : copied_) source_.Release(data, bytes);
}

Matrix Binder::FetchMatrix(const std::string& name, int64_t rows, int64_t cols, bool outer,
                           const Part& part) {
  const std::vector<int64_t> own = {rows, cols};
  const std::optional<Tensor> tensor = Fetch(name, part.shape.empty() ? own : part.shape, true);
  return tensor ? Make(name, *tensor, rows, cols, outer, part) : Matrix();
}

Matrix Binder::FetchStored(const std::string& name, const Result<StoredMatrix>& stored,
                           int64_t rows, int64_t cols, const Part& part) {
  if (error_) return {};
  fetched_.insert(name);
  const std::optional<Tensor> tensor = FetchPacked(stored, part.shape);
  return tensor ? Make(name, *tensor, rows, cols, false, part) : Matrix();
}

Matrix Binder::Make(const std::string& name, const Tensor& tensor, int64_t rows, int64_t cols,
                    bool outer, const Part& part) {
  const RowSource from = {*tensor.view,
                          rows,
                          cols,
                          part,
                          tensor.blocks,
                          tensor.type,
                          tensor.view->dtype == "NVFP4" ? ScaleOf(name) : 1.0f,
                          tensor.packed};
  const WeightType stored = from.blocks ? from.blocks->type : tensor.type;
  const WeightType type = Wanted(outer).value_or(stored);
  Matrix matrix = {nullptr, type, rows, cols};
  if (from.blocks && type == stored) {
    matrix = ShapeOf(*from.blocks, rows, cols);
  } else if (IsQuantized(type)) {
    matrix = ShapeOf({type, kQuantGroupShift}, rows, cols);
  }
  // Memory of its own, in large pages, where it is asked for by name.
  const bool stays = !from.blocks && from.packed == nullptr && part.contiguous() && !Wanted(outer);
  if (!plan_) {
    if (stays) {
      matrix.data = Aligned(from.At(0), rows * from.bytes(), type);
    } else if (IsQuantized(type)) {
      PlacePacked(NewCopy(MatrixBytes(matrix)), matrix);
      FillRows(from, stored, matrix);
    } else {
      matrix.data = NewCopy(rows * cols * WeightBytes(type));
      FillRows(from, stored, matrix);
    }
  }
  weights_.parameters += rows * cols;
  weights_.bytes += MatrixBytes(matrix);
  return matrix;
}

std::vector<float> Binder::FetchVector(const std::string& name, int64_t size, const Part& part) {
  const std::vector<int64_t> own = {size};
  const std::optional<Tensor> tensor = Fetch(name, part.shape.empty() ? own : part.shape, false);
  if (!tensor) return {};
  const TensorView& view = *tensor->view;
  int64_t all = 1;
  for (const int64_t extent : view.shape) all *= extent;
  weights_.parameters += size;
  weights_.bytes += view.bytes / all * size;
  std::vector<float> stored(static_cast<size_t>(all)), values(static_cast<size_t>(size));
  kernels_.to_float(Aligned(view.data, view.bytes, tensor->type), tensor->type, all, stored.data());
  for (int64_t i = 0; i < size; ++i) {
    values[static_cast<size_t>(i)] = stored[static_cast<size_t>(part.From(i))];
  }
  return values;
}

Matrix Binder::FetchTransposed(const std::string& name, int64_t rows, int64_t cols,
                               const Part& part) {
  const Matrix stored = FetchMatrix(name, rows, cols, false, part);
  if (error_) return {};
  const WeightType type = IsQuantized(stored.type) ? WeightType::kF32 : stored.type;
  Matrix matrix = {nullptr, type, cols, rows};
  weights_.bytes += MatrixBytes(matrix) - MatrixBytes(stored);
  if (plan_) return matrix;
  std::byte* const to = NewCopy(MatrixBytes(matrix));
  matrix.data = to;
  std::vector<float> row(static_cast<size_t>(cols));
  const int64_t size = WeightBytes(type);
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* from = static_cast<const std::byte*>(stored.data) + r * cols * size;
    if (IsQuantized(stored.type)) {
      kernels_.read_row(stored, r, row.data());
      from = reinterpret_cast<const std::byte*>(row.data());
    }
    for (int64_t c = 0; c < cols; ++c) {
      std::memcpy(to + (c * rows + r) * size, from + c * size, static_cast<size_t>(size));
    }
  }
  return matrix;
}

std::vector<float> Binder::FetchNorm(const std::string& name, int64_t size) {
  std::vector<float> values = FetchVector(name + ".weight", size);
  for (float& value : values) value += norm_offset_;
  return values;
}

Linear Binder::FetchLinear(const std::string& name, int64_t outputs, int64_t inputs, bool bias,
                           const Part& part) {
  Linear linear;
  Part of_vector = part;
  if (!part.shape.empty()) of_vector.shape.pop_back();
  linear.w = FetchMatrix(name + ".weight", outputs, inputs, false, part);
  if (bias) linear.bias = FetchVector(name + ".bias", outputs, of_vector);
  return linear;
}

std::vector<std::string> Binder::Unused() const {
  std::vector<std::string> unused;
  for (std::string& name : source_.Names()) {
    if (!fetched_.contains(name) && !IsSilent(name)) unused.push_back(std::move(name));
  }
  std::sort(unused.begin(), unused.end());
  return unused;
}

std::optional<Binder::Tensor> Binder::Fetch(const std::string& name,
                                            const std::vector<int64_t>& shape, bool blocks) {
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
    error_ = Error{ErrorCode::kInvalid,
                   "has shape " + ShapeToString(view->shape) + "; expected " + ShapeToString(shape),
                   place};
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

std::optional<Binder::Tensor> Binder::FetchPacked(const Result<StoredMatrix>& packed,
                                                  const std::vector<int64_t>& shape) {
  if (!packed.ok()) {
    error_ = packed.error();
    return std::nullopt;
  }
  const TensorView& view = packed->view;
  if (view.shape != shape) {
    error_ = Error{
        ErrorCode::kInvalid,
        "has weights of shape " + ShapeToString(view.shape) + "; expected " + ShapeToString(shape),
        source_.PathOf(packed->stored) + ": tensor " + json::Quote(packed->stored)};
    return std::nullopt;
  }
  return Tensor{&view, packed->floats, packed->integers, &*packed};
}

// The bytes at an address fit for the tensor's elements; in a small checkpoint, at the start of a
// cache line. Files place their data anywhere: writers pad the header to eight bytes, older ones
// not at all.
const void* Binder::Aligned(const std::byte* data, int64_t bytes, WeightType type) {
  const bool small = source_.bytes() <= kCopyBelow;
  const size_t alignment = small ? kLine : static_cast<size_t>(WeightBytes(type));
  if (reinterpret_cast<uintptr_t>(data) % alignment == 0) return data;
  std::byte* copy = NewCopy(bytes);
  std::memcpy(copy, data, static_cast<size_t>(bytes));
  return copy;
}

std::optional<WeightType> Binder::Wanted(bool outer) const {
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

// Of a tensor of NVFP4, whose groups' scales have few bits: one number for all of it next to it.
float Binder::ScaleOf(const std::string& name) {
  const std::string stem = name.substr(0, name.rfind('.'));
  fetched_.insert(stem + ".input_scale");  // of activations, which are not rounded to four bits
  if (source_.Find(stem + ".scale") == nullptr) return 1.0f;
  const std::vector<float> scale = FetchVector(stem + ".scale", 1);
  return scale.empty() ? 1.0f : scale[0];
}

// All rows of the matrix, by all threads. What has been read of a file is freed.
void Binder::FillRows(const RowSource& from, WeightType stored, const Matrix& matrix) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const int64_t grain =
      std::max<int64_t>(kPiece / std::max<int64_t>(from.bytes(), 1) / kQuantTile, 1) * kQuantTile;
  pool_.ParallelFor(from.rows, grain, [&](int64_t begin, int64_t end, int) {
    PackedRow packed;
    std::vector<float> floats(static_cast<size_t>(from.cols));
    for (int64_t r = begin; r < end; ++r) FillRow(from, stored, matrix, r, packed, floats);
    if (from.part.contiguous() && from.packed == nullptr) {
      source_.Release(from.At(begin), (end - begin) * from.bytes());
    }
  });
  const auto release = [&](const std::byte* data, int64_t bytes) {
    source_.Release(data, bytes);
    copied_.emplace_back(data, bytes);
  };
  if (from.packed != nullptr) {
    for (const TensorView& part : from.packed->parts) release(part.data, part.bytes);
  } else if (from.part.contiguous()) {
    release(from.At(0), from.rows * from.bytes());
  } else {
    release(from.view.data, from.view.bytes);
  }
}

void Binder::FillRow(const RowSource& from, WeightType stored, const Matrix& matrix, int64_t r,
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
    from.packed->read(from.part.From(r), floats.data());
  } else if (from.blocks) {
    from.Pack(r, packed);
    ReadPackedRow(*from.blocks, packed, from.cols, floats.data());
  } else if (matrix.type == stored) {
    const auto size = static_cast<size_t>(WeightBytes(stored));
    const std::vector<int64_t>& columns = from.part.columns;
    if (columns.empty()) std::memcpy(to, from.At(r), static_cast<size_t>(from.bytes()));
    for (size_t c = 0; c < columns.size(); ++c) {
      std::memcpy(to + c * size, from.At(r) + static_cast<size_t>(columns[c]) * size, size);
    }
    return;
  } else {
    // At an address fit for its elements.
    std::vector<std::byte> aligned(from.At(r), from.At(r) + from.bytes());
    kernels_.to_float(aligned.data(), from.type, from.cols, floats.data());
    if (const std::vector<int64_t>& columns = from.part.columns; !columns.empty()) {
      const std::vector<float> as_stored = floats;
      for (size_t c = 0; c < columns.size(); ++c) {
        floats[c] = as_stored[static_cast<size_t>(columns[c])];
      }
    }
  }
  if (IsQuantized(matrix.type)) {
    QuantizeRow(matrix.type, floats.data(), from.cols, packed);
    StoreRow(packed, r, matrix);
  } else {
    RoundRow(matrix.type, floats, to);
  }
}

}  // namespace pawl
