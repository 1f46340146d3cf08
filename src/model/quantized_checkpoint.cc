// Where the integers lie (the sources are the tools that write these files):
//   pack-quantized   weight_packed [rows, cols / 8]: eight neighbours of a row in a word, the first
//                    one lowest, 8 added; weight_scale [rows, groups]; weight_zero_point
//                    [rows / 8, groups], eight rows in a word; weight_shape (compressed-tensors)
//   AWQ              qweight [cols, rows / 8]: eight rows in a word, in the order 0 2 4 6 1 3 5 7;
//                    qzeros [groups, rows / 8] likewise; scales [groups, rows] (AutoAWQ)
//   GPTQ             qweight [cols / 8, rows]: eight neighbours of a row in a word; qzeros [groups,
//                    rows / 8], eight rows in a word; scales [groups, rows]; g_idx [cols]
//                    (AutoGPTQ)
//   fp8              weight [rows, cols] of E4M3; weight_scale or weight_scale_inv: one number, one
//                    for each row, or one for each block (compressed-tensors, DeepSeek-V3)
//   mxfp4            blocks of 32 weights, 16 bytes each, the even weight of two in the lower bits,
//                    and exponents apart (gpt-oss)
// Of eight bits a word has four instead of eight.
//
// Integers keep their values and become the matrices that those of GGUF files become. A zero point
// other than the middle becomes a minimum, -zero x scale. Integers of eight bits with zero points
// and floats of eight bits become halves.
#include "src/model/quantized_checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "src/base/half.h"
#include "src/base/json.h"
#include "src/model/quantize.h"

namespace pawl {
namespace {

using StorageKind = CheckpointFormat::Kind;

constexpr std::string_view kWeightEnd = ".weight";

uint32_t WordAt(const TensorView& view, int64_t index) {
  uint32_t word;
  std::memcpy(&word, view.data + index * 4, sizeof word);
  return word;
}

bool IsScale(const std::string& dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F8_E8M0";
}

// REQUIRES: IsScale(view.dtype).
float ScaleAt(const TensorView& view, int64_t index) {
  if (view.dtype == "F8_E8M0") {
    const auto exponent = static_cast<uint8_t>(view.data[index]);
    return exponent == 255 ? NAN : std::ldexp(1.0f, exponent - 127);
  }
  if (view.dtype == "F32") {
    const uint32_t bits = WordAt(view, index);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, view.data + index * 2, sizeof half);
  if (view.dtype == "F16") return HalfToFloat(half);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// E4M3: four bits of exponent, three of fraction, no infinity.
const std::array<float, 256>& Float8Values() {
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values{};
    for (int i = 0; i < 256; ++i) {
      const int exponent = i >> 3 & 15, fraction = i & 7;
      float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                 : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
      if ((i & 127) == 127) size = NAN;
      values[static_cast<size_t>(i)] = i < 128 ? size : -size;
    }
    return values;
  }();
  return kValues;
}

int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Integers of one matrix, wherever they lie.
struct IntegerLayout {
  int bits = 4;
  int64_t rows = 0, cols = 0, group = 0;  // group: weights that share a scale
  TensorView weights, scales;
  std::optional<TensorView> zeros;
  bool by_columns = false;     // scales and zero points: [groups, rows]
  int zero_offset = 0;         // is added to a stored zero point
  bool rows_in_word = false;   // a word has several rows, of one input
  const int* order = nullptr;  // AWQ: the place of row i in a word

  int per_word() const { return 32 / bits; }
  int64_t groups() const { return cols / group; }
  uint32_t Part(uint32_t word, int place) const {
    return word >> place * bits & ((1u << bits) - 1);
  }
  int PlaceOf(int64_t row) const {
    const int place = static_cast<int>(row % per_word());
    return order == nullptr ? place : order[place];
  }
  float Scale(int64_t row, int64_t g) const {
    return ScaleAt(scales, by_columns ? g * rows + row : row * groups() + g);
  }
  int Zero(int64_t row, int64_t g) const {
    if (!zeros) return 1 << (bits - 1);
    const int64_t words = rows / per_word(), word = row / per_word();
    const int64_t at = by_columns ? g * words + word : word * groups() + g;
    return static_cast<int>(Part(WordAt(*zeros, at), PlaceOf(row))) + zero_offset;
  }
  void Integers(int64_t row, uint8_t* out) const {
    if (rows_in_word) {
      const int64_t stride = rows / per_word();
      const int place = PlaceOf(row);
      for (int64_t k = 0; k < cols; ++k) {
        out[k] = static_cast<uint8_t>(Part(WordAt(weights, k * stride + row / per_word()), place));
      }
      return;
    }
    // [rows, words] or [words, rows].
    const int64_t words = cols / per_word();
    const int64_t first = by_columns ? row : row * words, stride = by_columns ? rows : 1;
    for (int64_t w = 0; w < words; ++w) {
      const uint32_t word = WordAt(weights, first + w * stride);
      for (int i = 0; i < per_word(); ++i) {
        out[w * per_word() + i] = static_cast<uint8_t>(Part(word, i));
      }
    }
  }
  bool ZerosAreInTheMiddle() const {
    for (int64_t r = 0; zeros && r < rows; ++r) {
      for (int64_t g = 0; g < groups(); ++g) {
        if (Zero(r, g) != 1 << (bits - 1)) return false;
      }
    }
    return true;
  }
};

void PackIntegers(const IntegerLayout& layout, const PackedFormat& format, int64_t row,
                  PackedRow& out) {
  const int64_t padded = QuantBlocks(layout.cols) * kQuantBlock;
  const int64_t groups = padded >> format.group_shift;
  const auto middle = static_cast<uint8_t>(1 << (layout.bits - 1));
  out.values.assign(static_cast<size_t>(padded), middle);
  layout.Integers(row, out.values.data());
  out.scales.resize(static_cast<size_t>(groups));
  out.minimums.resize(format.minimums ? out.scales.size() : 0);
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t of = std::min((g << format.group_shift) / layout.group, layout.groups() - 1);
    const float scale = layout.Scale(row, of);
    out.scales[static_cast<size_t>(g)] = FloatToHalf(scale);
    if (!format.minimums) continue;
    const auto zero = static_cast<float>(layout.Zero(row, of));
    out.minimums[static_cast<size_t>(g)] = FloatToHalf(-zero * scale);
  }
}

void ReadIntegers(const IntegerLayout& layout, int64_t row, float* out) {
  std::vector<uint8_t> integers(static_cast<size_t>(layout.cols));
  layout.Integers(row, integers.data());
  for (int64_t k = 0; k < layout.cols; ++k) {
    const int64_t g = k / layout.group;
    const int steps = integers[static_cast<size_t>(k)] - layout.Zero(row, g);
    out[k] = static_cast<float>(steps) * layout.Scale(row, g);
  }
}

// Finds the tensors of one matrix, each checked. The first error is kept.
class Parts {
 public:
  Parts(const Checkpoint& files, std::string stem, std::set<std::string, std::less<>>& names)
      : files_(files), stem_(std::move(stem)), names_(names) {}

  const std::optional<Error>& error() const { return error_; }
  std::vector<TensorView>& found() { return found_; }

  void Fail(const std::string& part, std::string message, ErrorCode code = ErrorCode::kInvalid) {
    if (error_) return;
    const std::string name = stem_ + part;
    error_ = Error{code, std::move(message),
                   files_.PathOf(name) + ": tensor " + json::Quote(name.substr(0, 200))};
  }
  bool Has(const std::string& part) const { return files_.Find(stem_ + part) != nullptr; }
  // An empty view where there is none or an error.
  TensorView Take(const std::string& part) {
    const TensorView* view = files_.Find(stem_ + part);
    if (view == nullptr) {
      Fail(part, "is missing");
      return {};
    }
    names_.insert(stem_ + part);
    found_.push_back(*view);
    return *view;
  }
  TensorView Take(const std::string& part, const char* dtype, const std::vector<int64_t>& shape) {
    TensorView view = Take(part);
    if (error_) return view;
    const bool scale = dtype == nullptr;
    if (scale ? !IsScale(view.dtype) : view.dtype != dtype) {
      Fail(part, "has dtype " + view.dtype + "; expected " + (scale ? "F32, F16 or BF16" : dtype),
           ErrorCode::kUnsupported);
    } else if (view.shape != shape) {
      Fail(part, "has shape " + ShapeToString(view.shape) + "; expected " + ShapeToString(shape));
    }
    return view;
  }
  // The tensor with the weights: words, or bytes.
  TensorView TakeMatrix(const std::string& part, const char* dtype) {
    TensorView view = Take(part);
    if (error_) return view;
    if (view.dtype != dtype) {
      Fail(part, "has dtype " + view.dtype + "; expected " + dtype, ErrorCode::kUnsupported);
    } else if (view.shape.size() != 2 || view.bytes == 0) {
      Fail(part, "has shape " + ShapeToString(view.shape) + "; expected two dimensions");
    }
    return view;
  }

 private:
  const Checkpoint& files_;
  std::string stem_;
  std::set<std::string, std::less<>>& names_;
  std::vector<TensorView> found_;
  std::optional<Error> error_;
};

// The weights that share a scale, or 0 with an error.
int64_t GroupOf(const CheckpointFormat& format, int64_t cols, const std::string& part,
                Parts& parts) {
  const int64_t group = format.group == 0 ? cols : format.group;
  if (cols % group != 0) {
    parts.Fail(part, "has " + std::to_string(cols) + " inputs, which groups of " +
                         std::to_string(group) + " do not divide");
  } else if (group % kQuantBlock != 0 && group != cols) {
    parts.Fail(part, "has groups of " + std::to_string(group) + "; expected a multiple of 32",
               ErrorCode::kUnsupported);
  }
  return parts.error() ? 0 : group;
}

IntegerLayout ReadPackedLayout(const CheckpointFormat& format, Parts& parts) {
  constexpr const char* kWeights = ".weight_packed";
  IntegerLayout layout;
  layout.bits = format.bits;
  const int64_t per = layout.per_word();
  layout.weights = parts.TakeMatrix(kWeights, "I32");
  const TensorView shape = parts.Take(".weight_shape");
  if (parts.error()) return layout;
  if ((shape.dtype != "I64" && shape.dtype != "I32") || shape.shape != std::vector<int64_t>{2}) {
    parts.Fail(".weight_shape",
               "is " + shape.dtype + " " + ShapeToString(shape.shape) + "; expected I64 [2]");
    return layout;
  }
  int64_t stated[2];
  for (int i = 0; i < 2; ++i) {
    const int size = shape.dtype == "I64" ? 8 : 4;
    int64_t value = 0;
    std::memcpy(&value, shape.data + i * size, static_cast<size_t>(size));
    stated[i] = value;
  }
  layout.rows = layout.weights.shape[0];
  layout.cols = layout.weights.shape[1] * per;
  if (stated[0] != layout.rows || stated[1] != layout.cols) {
    parts.Fail(kWeights, "has shape " + ShapeToString(layout.weights.shape) +
                             ", which is not that of " + ShapeToString({stated[0], stated[1]}) +
                             " weights of " + std::to_string(layout.bits) + " bits");
    return layout;
  }
  if (parts.Has(".weight_g_idx")) {
    parts.Fail(".weight_g_idx", "is act-order, which is not supported", ErrorCode::kUnsupported);
  }
  layout.group = GroupOf(format, layout.cols, kWeights, parts);
  if (parts.error()) return layout;
  const int64_t groups = layout.groups();
  layout.scales = parts.Take(".weight_scale", nullptr, {layout.rows, groups});
  if (format.zero_points) {
    if (layout.rows % per != 0) {
      parts.Fail(kWeights, "has a number of rows that words of zero points do not divide",
                 ErrorCode::kUnsupported);
      return layout;
    }
    layout.zeros = parts.Take(".weight_zero_point", "I32", {layout.rows / per, groups});
  }
  return layout;
}

// AWQ and GPTQ: everything is stored by columns.
IntegerLayout ReadColumnLayout(const CheckpointFormat& format, Parts& parts) {
  static constexpr int kAwqOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  constexpr const char* kWeights = ".qweight";
  const bool awq = format.kind == StorageKind::kAwq;
  IntegerLayout layout;
  layout.bits = format.bits;
  layout.by_columns = true;
  layout.rows_in_word = awq;
  layout.order = awq ? kAwqOrder : nullptr;
  layout.zero_offset = format.zeros_are_less_one ? 1 : 0;
  const int64_t per = layout.per_word();
  layout.weights = parts.TakeMatrix(kWeights, "I32");
  if (parts.error()) return layout;
  layout.rows = layout.weights.shape[1] * (awq ? per : 1);
  layout.cols = layout.weights.shape[0] * (awq ? 1 : per);
  layout.group = GroupOf(format, layout.cols, kWeights, parts);
  if (!parts.error() && layout.rows % per != 0) {
    parts.Fail(kWeights, "has a number of outputs that words of zero points do not divide",
               ErrorCode::kUnsupported);
  }
  if (parts.error()) return layout;
  const int64_t groups = layout.groups();
  layout.scales = parts.Take(".scales", nullptr, {groups, layout.rows});
  if (format.zero_points || parts.Has(".qzeros")) {
    layout.zeros = parts.Take(".qzeros", "I32", {groups, layout.rows / per});
  }
  if (!parts.Has(".g_idx")) return layout;
  const TensorView order = parts.Take(".g_idx", "I32", {layout.cols});
  for (int64_t k = 0; !parts.error() && k < layout.cols; ++k) {
    if (static_cast<int64_t>(WordAt(order, k)) != k / layout.group) {
      parts.Fail(".g_idx", "is act-order, which is not supported", ErrorCode::kUnsupported);
    }
  }
  return layout;
}

StoredMatrix MatrixOf(const IntegerLayout& layout) {
  StoredMatrix matrix;
  const bool plain = layout.ZerosAreInTheMiddle();
  matrix.read = [layout](int64_t row, float* out) { ReadIntegers(layout, row, out); };
  if (layout.bits == 8 && !plain) return matrix;
  PackedFormat format;
  format.type = layout.bits == 4 ? WeightType::kI4 : WeightType::kI8;
  format.minimums = !plain;
  format.group_shift = layout.group % 64 == 0 ? 6 : 5;
  matrix.integers = format;
  matrix.pack = [layout, format](int64_t row, PackedRow& out) {
    PackIntegers(layout, format, row, out);
  };
  return matrix;
}

// Of floats of eight bits: how many scales along the rows and the columns, for so many weights.
struct ScaleGrid {
  int64_t rows = 0, cols = 0, block_rows = 1, block_cols = 1;
  float At(const TensorView& scales, int64_t row, int64_t col) const {
    return ScaleAt(scales, row / block_rows * cols + col / block_cols);
  }
};

std::optional<ScaleGrid> GridOf(const CheckpointFormat& format, const TensorView& scales,
                                int64_t rows, int64_t cols) {
  int64_t count = 1;
  for (const int64_t size : scales.shape) count *= size;
  const std::vector<int64_t>& shape = scales.shape;
  if (format.block_rows > 0) {
    const ScaleGrid grid = {Ceil(rows, format.block_rows), Ceil(cols, format.block_cols),
                            format.block_rows, format.block_cols};
    if (shape == std::vector<int64_t>{grid.rows, grid.cols}) return grid;
    return std::nullopt;
  }
  if (count == 1 && shape.size() <= 2) return ScaleGrid{1, 1, rows, cols};
  const bool each = shape == std::vector<int64_t>{rows} || shape == std::vector<int64_t>{rows, 1};
  if (each) return ScaleGrid{rows, 1, 1, cols};
  return std::nullopt;
}

StoredMatrix ReadFloat8(const CheckpointFormat& format, Parts& parts, int64_t& rows,
                        int64_t& cols) {
  StoredMatrix matrix;
  const TensorView weights = parts.TakeMatrix(".weight", "F8_E4M3");
  const std::string part = std::string(".") + format.scale;
  const TensorView scales = parts.Take(part);
  if (parts.error()) return matrix;
  rows = weights.shape[0];
  cols = weights.shape[1];
  if (!IsScale(scales.dtype)) {
    parts.Fail(part, "has dtype " + scales.dtype + "; expected F32, F16 or BF16",
               ErrorCode::kUnsupported);
    return matrix;
  }
  const std::optional<ScaleGrid> grid = GridOf(format, scales, rows, cols);
  if (!grid) {
    const bool blocks = format.block_rows > 0;
    parts.Fail(
        part,
        "has shape " + ShapeToString(scales.shape) + "; expected " +
            (blocks ? ShapeToString({Ceil(rows, format.block_rows), Ceil(cols, format.block_cols)})
                    : "one number or " + ShapeToString({rows, 1})));
    return matrix;
  }
  // Halves end at 65504, and below 2^-14 they lose bits: where the largest weight is below 2^-6,
  // too many of them would.
  float most = 0.0f;
  for (int64_t i = 0; i < grid->rows * grid->cols; ++i) {
    most = std::max(most, std::fabs(ScaleAt(scales, i)) * 448.0f);
  }
  matrix.floats = most <= 65504.0f && most >= 0.015625f ? WeightType::kF16 : WeightType::kBf16;
  matrix.read = [weights, scales, grid = *grid, cols = cols](int64_t row, float* out) {
    const std::array<float, 256>& values = Float8Values();
    const std::byte* bytes = weights.data + row * cols;
    for (int64_t begin = 0; begin < cols; begin += grid.block_cols) {
      const float scale = grid.At(scales, row, begin);
      const int64_t end = std::min(cols, begin + grid.block_cols);
      for (int64_t k = begin; k < end; ++k) out[k] = values[static_cast<size_t>(bytes[k])] * scale;
    }
  };
  return matrix;
}

// The matrix whose tensors begin with `stem`, of which `main` has the weights.
Result<StoredMatrix> ReadMatrix(const Checkpoint& files, const CheckpointFormat& format,
                                const std::string& stem, const std::string& main,
                                std::set<std::string, std::less<>>& names) {
  Parts parts(files, stem, names);
  StoredMatrix matrix;
  int64_t rows = 0, cols = 0;
  if (format.kind == StorageKind::kFloat8) {
    matrix = ReadFloat8(format, parts, rows, cols);
  } else {
    const IntegerLayout layout = format.kind == StorageKind::kPacked
                                     ? ReadPackedLayout(format, parts)
                                     : ReadColumnLayout(format, parts);
    rows = layout.rows;
    cols = layout.cols;
    if (!parts.error()) matrix = MatrixOf(layout);
  }
  if (parts.error()) return *parts.error();
  matrix.stored = stem + main;
  matrix.parts = parts.found();
  matrix.view = matrix.parts[0];
  matrix.view.dtype = format.name;
  matrix.view.shape = {rows, cols};
  matrix.view.bytes = 0;
  for (const TensorView& part : matrix.parts) matrix.view.bytes += part.bytes;
  return matrix;
}

// What the name of a tensor with a matrix's weights ends in.
std::string MainOf(StorageKind kind) {
  if (kind == StorageKind::kPacked) return ".weight_packed";
  return kind == StorageKind::kFloat8 ? std::string(kWeightEnd) : ".qweight";
}

// Of activations and of keys and values, which are not rounded.
bool IsOfActivations(std::string_view name) {
  for (const std::string_view end :
       {".input_scale", ".activation_scale", ".output_scale", ".k_scale", ".v_scale", ".q_scale",
        ".input_zero_point", ".input_global_scale"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

}  // namespace

QuantizedCheckpoint::QuantizedCheckpoint(Checkpoint files, const CheckpointFormat& format)
    : files_(std::move(files)) {
  if (format.kind == StorageKind::kFloats || format.kind == StorageKind::kMxfp4) return;
  const std::string main = MainOf(format.kind);
  for (const std::string& name : files_.Names()) {
    if (IsOfActivations(name)) parts_.insert(name);
    if (!name.ends_with(main)) continue;
    if (format.kind == StorageKind::kFloat8 && files_.Find(name)->dtype != "F8_E4M3") continue;
    const std::string stem = name.substr(0, name.size() - main.size());
    packed_.emplace(stem + std::string(kWeightEnd), ReadMatrix(files_, format, stem, main, parts_));
  }
}

const TensorView* QuantizedCheckpoint::Find(std::string_view name) const {
  const auto found = packed_.find(name);
  if (found != packed_.end() && found->second.ok()) return &found->second->view;
  return files_.Find(name);
}

const std::string& QuantizedCheckpoint::PathOf(std::string_view name) const {
  const auto found = packed_.find(name);
  if (found != packed_.end() && found->second.ok()) return files_.PathOf(found->second->stored);
  return files_.PathOf(name);
}

std::vector<std::string> QuantizedCheckpoint::Names() const {
  std::vector<std::string> names;
  for (std::string& name : files_.Names()) {
    if (!parts_.contains(name)) names.push_back(std::move(name));
  }
  for (const auto& [name, matrix] : packed_) names.push_back(name);
  return names;
}

const Result<StoredMatrix>* QuantizedCheckpoint::FindPacked(std::string_view name) const {
  const auto found = packed_.find(name);
  return found == packed_.end() ? nullptr : &found->second;
}

Result<StoredMatrix> Mxfp4Expert(const TensorSource& source, const std::string& name,
                                 int64_t expert) {
  constexpr int64_t kBytes = 16;  // of 32 weights
  const std::string blocks_name = name + "_blocks", scales_name = name + "_scales";
  const auto fail = [&](const std::string& at, std::string message) {
    return Error{ErrorCode::kInvalid, std::move(message),
                 source.PathOf(at) + ": tensor " + json::Quote(at.substr(0, 200))};
  };
  const TensorView* blocks = source.Find(blocks_name);
  const TensorView* scales = source.Find(scales_name);
  if (blocks == nullptr) return fail(blocks_name, "is missing");
  if (scales == nullptr) return fail(scales_name, "is missing");
  if (blocks->dtype != "U8" || blocks->shape.size() != 4 || blocks->shape[3] != kBytes) {
    return fail(blocks_name, "is " + blocks->dtype + " " + ShapeToString(blocks->shape) +
                                 "; expected U8 [experts, rows, groups, 16]");
  }
  const std::vector<int64_t> shape(blocks->shape.begin(), blocks->shape.end() - 1);
  if ((scales->dtype != "U8" && scales->dtype != "F8_E8M0") || scales->shape != shape) {
    return fail(scales_name, "is " + scales->dtype + " " + ShapeToString(scales->shape) +
                                 "; expected U8 " + ShapeToString(shape));
  }
  if (expert < 0 || expert >= shape[0]) {
    return fail(blocks_name, "has no expert " + std::to_string(expert));
  }
  const int64_t rows = shape[1], groups = shape[2];
  StoredMatrix matrix;
  matrix.stored = blocks_name;
  matrix.integers = FormatOfBlocks("MXFP4");
  matrix.parts = {*blocks, *scales};
  matrix.view = *blocks;
  matrix.view.dtype = "mxfp4";
  matrix.view.shape = {rows, groups * kQuantBlock};
  matrix.view.data = blocks->data + expert * rows * groups * kBytes;
  matrix.view.bytes = rows * groups * (kBytes + 1);
  const std::byte* exponents = scales->data + expert * rows * groups;
  const std::byte* nibbles = matrix.view.data;
  matrix.pack = [=](int64_t row, PackedRow& out) {
    // As blocks of GGUF, which have the exponent first and the lower half of 32 weights in the
    // lower bits.
    std::vector<std::byte> as_gguf(static_cast<size_t>(groups * (kBytes + 1)));
    for (int64_t g = 0; g < groups; ++g) {
      const std::byte* from = nibbles + (row * groups + g) * kBytes;
      std::byte* to = as_gguf.data() + g * (kBytes + 1);
      to[0] = exponents[row * groups + g];
      const auto weight = [from](int i) { return from[i / 2] >> i % 2 * 4 & std::byte{15}; };
      for (int i = 0; i < kBytes; ++i) {
        to[1 + i] = weight(i) | weight(i + static_cast<int>(kBytes)) << 4;
      }
    }
    PackBlocks("MXFP4", as_gguf.data(), groups * kQuantBlock, out);
  };
  matrix.read = [pack = matrix.pack, format = *matrix.integers, groups](int64_t row, float* out) {
    PackedRow packed;
    pack(row, packed);
    ReadPackedRow(format, packed, groups * kQuantBlock, out);
  };
  return matrix;
}

Result<StoredMatrix> TransposedExpert(const TensorSource& source, const std::string& name,
                                      int64_t experts, int64_t expert, int64_t rows, int64_t cols) {
  const std::vector<int64_t> shape = {experts, cols, rows};
  const std::string place = source.PathOf(name) + ": tensor " + json::Quote(name.substr(0, 200));
  const TensorView* view = source.FindOfShape(name, shape);
  if (view == nullptr) return Error{ErrorCode::kInvalid, "is missing", place};
  const bool whole = view->dtype == "F32";
  if (view->shape != shape || (!whole && view->dtype != "BF16" && view->dtype != "F16")) {
    return Error{ErrorCode::kInvalid,
                 "is " + view->dtype + " " + ShapeToString(view->shape) +
                     "; expected F32, F16 or BF16 " + ShapeToString(shape),
                 place};
  }
  StoredMatrix matrix;
  matrix.stored = name;
  matrix.floats = whole                   ? WeightType::kF32
                  : view->dtype == "BF16" ? WeightType::kBf16
                                          : WeightType::kF16;
  matrix.view = *view;
  matrix.view.shape = {rows, cols};
  matrix.view.bytes = view->bytes / experts;
  matrix.view.data = view->data + expert * matrix.view.bytes;
  matrix.parts = {matrix.view};
  const std::byte* const data = matrix.view.data;
  matrix.read = [=, type = matrix.floats](int64_t row, float* out) {
    const KernelSet& kernels = *FindKernels(KernelVariant::kPortable);
    const int64_t size = WeightBytes(type);
    for (int64_t c = 0; c < cols; ++c) {
      alignas(4) std::byte element[4];
      std::memcpy(element, data + (c * rows + row) * size, static_cast<size_t>(size));
      kernels.to_float(element, type, 1, out + c);
    }
  };
  return matrix;
}

}  // namespace pawl
