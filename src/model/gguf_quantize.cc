// All metadata is copied as it stands, with a new general.file_type. The tensors keep their order.
// A tensor is read, rounded and written piece by piece: the rows of a piece are rounded by all
// threads, then one thread writes them, and the pages of the input are freed. So memory does
// not depend on the size of the model.
#include "src/model/gguf_quantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "kernels/cpu/kernels.h"
#include "src/base/json.h"
#include "src/base/os/files.h"
#include "src/base/thread_pool.h"
#include "src/model/gguf.h"
#include "src/model/gguf_blocks.h"
#include "src/model/gguf_encode.h"
#include "src/model/gguf_folder.h"
#include "src/model/gguf_mixture.h"
#include "src/model/gguf_output.h"
#include "src/model/quantize.h"

namespace pawl {
namespace {

// Of the output, for each piece.
constexpr int64_t kPieceBytes = int64_t{16} << 20;

struct TensorPlan {
  std::string name;
  const TensorView* view;
  std::string type;
  int paired = 0;  // GgufFile::PairedRows
  // Of the source.
  int64_t RowAt(int64_t row) const {
    if (paired == 0) return row;
    const int64_t within = row % paired;
    return row - within + within / 2 + within % 2 * (paired / 2);
  }
  bool stays() const { return type == view->dtype && paired == 0; }
};

std::string PlaceOf(const GgufFile& file, const std::string& name) {
  return file.PathOf(name) + ": tensor " + json::Quote(name.substr(0, 200));
}

bool SameFile(const std::string& a, const std::string& b) {
  const std::optional<os::FileInfo> first = os::InfoOf(a), second = os::InfoOf(b);
  return first && second && first->IsSame(*second);
}

bool IsFloat(const std::string& dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

// In the order of the files.
Result<std::vector<TensorPlan>> PlanTensors(const GgufFile& file, const GgufFileType& type,
                                            bool from_folder) {
  const GgufMixture mixture(file, type);
  std::vector<TensorPlan> plan;
  for (const auto& [name, view] : file.tensors()) plan.push_back({name, &view, ""});
  std::sort(plan.begin(), plan.end(), [&](const TensorPlan& a, const TensorPlan& b) {
    const std::string &of_a = file.PathOf(a.name), &of_b = file.PathOf(b.name);
    if (of_a != of_b) return of_a < of_b;
    return a.view->data != b.view->data ? a.view->data < b.view->data : a.name < b.name;
  });
  for (TensorPlan& tensor : plan) {
    tensor.type = mixture.TypeOf(tensor.name);
    tensor.paired = file.PairedRows(tensor.name);
    const std::string& before = tensor.view->dtype;
    // Folders have norms and biases of any type; programs that read GGUF files expect F32.
    if (from_folder && tensor.view->shape.size() == 1) tensor.type = "F32";
    if (tensor.type == before && tensor.paired == 0) continue;
    if (!IsFloat(before) && !FormatOfBlocks(before)) {
      return Error{
          ErrorCode::kUnsupported,
          "has type " + before + "; expected F32, F16, BF16, " + std::string(NamesOfBlocks()),
          PlaceOf(file, tensor.name)};
    }
    const std::string scale = tensor.name.substr(0, tensor.name.rfind('.')) + ".scale";
    if (before == "NVFP4" && file.Find(scale) != nullptr) {
      return Error{ErrorCode::kUnsupported,
                   "is NVFP4 with a scale in a tensor of its own, which other types have not",
                   PlaceOf(file, tensor.name)};
    }
  }
  return plan;
}

GgufHeader HeaderOf(const GgufFile& file, const std::vector<TensorPlan>& plan,
                    const GgufFileType& type) {
  GgufHeader header;
  if (const GgufValue* alignment = file.FindValue("general.alignment")) {
    header.set_alignment(alignment->number);
  }
  std::vector<std::pair<std::string_view, std::string_view>> values;
  for (const auto& [key, value] : file.values()) {
    const bool replaced = key == "general.file_type" || key == "general.quantization_version";
    if (!replaced && !key.starts_with("split.")) values.emplace_back(key, value.raw);
  }
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.second.data() < b.second.data(); });
  for (const auto& [key, value] : values) header.Add(key, value);
  header.AddUnsigned("general.quantization_version", 2);
  header.AddUnsigned("general.file_type", type.id);
  for (const TensorPlan& tensor : plan) {
    header.AddTensor(tensor.name, tensor.type, tensor.view->shape);
  }
  return header;
}

// Rows of one type as floats.
class RowReader {
 public:
  RowReader(const TensorView& view, const KernelSet& kernels)
      : view_(view),
        kernels_(kernels),
        format_(FormatOfBlocks(view.dtype)),
        cols_(view.shape.back()),
        row_bytes_(cols_ / FindGgufType(view.dtype)->elements * FindGgufType(view.dtype)->bytes),
        floats_(static_cast<size_t>(cols_)),
        aligned_(static_cast<size_t>(row_bytes_)) {}

  const std::vector<float>& Read(int64_t row) {
    const std::byte* bytes = view_.data + row * row_bytes_;
    if (format_) {
      PackBlocks(view_.dtype, bytes, cols_, packed_);
      ReadPackedRow(*format_, packed_, cols_, floats_.data());
      return floats_;
    }
    std::memcpy(aligned_.data(), bytes, aligned_.size());
    const WeightType type = view_.dtype == "F32"   ? WeightType::kF32
                            : view_.dtype == "F16" ? WeightType::kF16
                                                   : WeightType::kBf16;
    kernels_.to_float(aligned_.data(), type, cols_, floats_.data());
    return floats_;
  }

 private:
  const TensorView& view_;
  const KernelSet& kernels_;
  std::optional<PackedFormat> format_;
  int64_t cols_, row_bytes_;
  PackedRow packed_;
  std::vector<float> floats_;
  std::vector<std::byte> aligned_;
};

// Infinities and NaN are no weights, and halves end at 65504.
bool CanBeRounded(const std::vector<float>& row, bool halves) {
  float most = 0.0f, nothing = 0.0f;
  for (const float x : row) {
    most = std::max(most, std::fabs(x));
    nothing += x * 0.0f;
  }
  return nothing == 0.0f && (!halves || most <= kMostEncoded);
}

class TensorWriter {
 public:
  TensorWriter(const GgufFile& file, GgufOutput& output, ThreadPool& pool)
      : file_(file), output_(output), pool_(pool) {}

  Status Copy(const TensorPlan& tensor) {
    Status status = {};
    for (int64_t at = 0; status.ok() && at < tensor.view->bytes; at += kPieceBytes) {
      const int64_t bytes = std::min(kPieceBytes, tensor.view->bytes - at);
      status = output_.Write({tensor.view->data + at, static_cast<size_t>(bytes)});
      file_.Release(tensor.view->data + at, bytes);
    }
    if (tensor.view->bytes == 0) status = output_.Write({});
    return status;
  }

  Status Round(const TensorPlan& tensor) {
    const GgufType& to = *FindGgufType(tensor.type);
    const int64_t cols = tensor.view->shape.back();
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < tensor.view->shape.size(); ++d) rows *= tensor.view->shape[d];
    const int64_t row_bytes = cols / to.elements * to.bytes;
    const int64_t piece =
        std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1, rows);
    const int64_t source_bytes = tensor.view->bytes / rows;
    const bool halves = tensor.type != "F32" && tensor.type != "BF16";
    std::vector<std::byte> bytes(static_cast<size_t>(piece * row_bytes));
    std::atomic<int64_t> bad{-1};
    for (int64_t first = 0; first < rows; first += piece) {
      const int64_t count = std::min(piece, rows - first);
      const int64_t grain = std::max<int64_t>(1, (int64_t{64} << 10) / std::max<int64_t>(cols, 1));
      pool_.ParallelFor(count, grain, [&](int64_t begin, int64_t end, int) {
        RowReader reader(*tensor.view, kernels_);
        for (int64_t r = begin; r < end; ++r) {
          const std::vector<float>& row = reader.Read(tensor.RowAt(first + r));
          if (!CanBeRounded(row, halves)) return bad.store(first + r);
          EncodeBlocks(tensor.type, row.data(), cols, bytes.data() + r * row_bytes);
        }
      });
      if (bad >= 0) {
        return Error{ErrorCode::kInvalid,
                     "row " + std::to_string(bad.load()) + " has a weight that " + tensor.type +
                         " cannot hold: an infinity, NaN, or more than 65504",
                     PlaceOf(file_, tensor.name)};
      }
      Status status = output_.Write({bytes.data(), static_cast<size_t>(count * row_bytes)});
      if (!status.ok()) return status;
      // Pieces of a matrix with other places need not be whole heads.
      if (tensor.paired == 0) {
        file_.Release(tensor.view->data + first * source_bytes, count * source_bytes);
      }
    }
    if (tensor.paired > 0) file_.Release(tensor.view->data, tensor.view->bytes);
    return {};
  }

 private:
  const GgufFile& file_;
  GgufOutput& output_;
  ThreadPool& pool_;
  const KernelSet& kernels_ = *FindKernels(KernelVariant::kAuto);
};

int64_t ElementsOf(const TensorView& view) {
  int64_t elements = 1;
  for (const int64_t size : view.shape) elements *= size;
  return elements;
}

}  // namespace

Result<QuantizeReport> QuantizeGguf(const std::string& in, const std::string& out,
                                    std::string_view type_name, const QuantizeOptions& options) {
  const GgufFileType* type = FindGgufFileType(type_name);
  if (type == nullptr) {
    return Error{ErrorCode::kInvalid,
                 "is " + json::Quote(std::string(type_name.substr(0, 50))) + "; expected one of " +
                     GgufFileTypeNames(),
                 "type"};
  }
  const bool from_folder = !LooksLikeGguf(in);
  Result<GgufFile> file = from_folder ? ReadFolderAsGguf(in) : GgufFile::Open(in);
  if (!file.ok()) return file.error();
  Result<std::vector<TensorPlan>> plan = PlanTensors(*file, *type, from_folder);
  if (!plan.ok()) return plan.error();
  for (const TensorPlan& tensor : *plan) {
    if (!SameFile(file->PathOf(tensor.name), out)) continue;
    return Error{ErrorCode::kInvalid, "is a file that is read", out};
  }
  const GgufHeader header = HeaderOf(*file, *plan, *type);
  Result<GgufOutput> output = GgufOutput::Create(out, header);
  if (!output.ok()) return output.error();

  QuantizeReport report;
  report.bytes_before = file->bytes();
  report.bytes_after = header.total_bytes();
  std::map<std::string, int64_t> types;
  for (size_t i = 0; i < plan->size(); ++i) {
    const TensorPlan& tensor = (*plan)[i];
    report.weights += ElementsOf(*tensor.view);
    types[tensor.type] += header.tensor_bytes(i);
    const bool changed = tensor.type != tensor.view->dtype;
    if (changed && !IsFloat(tensor.view->dtype) && !IsFloat(tensor.type)) {
      ++report.quantized_before;
    }
  }
  report.types.assign(types.begin(), types.end());
  std::sort(report.types.begin(), report.types.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });

  ThreadPool pool(options.threads);
  TensorWriter writer(*file, *output, pool);
  int64_t done = 0;
  for (const TensorPlan& tensor : *plan) {
    Status status = tensor.stays() ? writer.Copy(tensor) : writer.Round(tensor);
    if (!status.ok()) return status.error();
    done += ElementsOf(*tensor.view);
    if (options.progress && report.weights > 0) {
      options.progress(static_cast<double>(done) / static_cast<double>(report.weights));
    }
  }
  if (Status status = output->Finish(); !status.ok()) return status.error();
  return report;
}

}  // namespace pawl
