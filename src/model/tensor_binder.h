// Fetching a tensor states what is expected of it; the answer is the tensor or an error with both
// sides. Matrices that are used as the file has them stay mapped. Others are made row by row on all
// threads: a thread reads a piece of about a megabyte, writes it, and gives the file's pages back,
// so that memory never holds both forms of more than a few pieces.
#ifndef PAWL_SRC_MODEL_TENSOR_BINDER_H_
#define PAWL_SRC_MODEL_TENSOR_BINDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "src/base/thread_pool.h"
#include "src/model/quantize.h"
#include "src/model/quantized_checkpoint.h"
#include "src/model/transformer_weights.h"

namespace pawl {

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

// Which rows of a stored tensor a matrix or vector takes.
struct Part {
  std::vector<int64_t> shape = {};  // of the tensor; empty: that of the matrix
  int64_t first = 0, step = 1;      // rows first, first + step, ... of all but its last dimension
  Pairs pairs = {};
  std::vector<int64_t> rows = {};  // which they are, where the others do not tell
  // Which columns a matrix takes; empty: all as they stand. REQUIRES: a tensor of floats.
  std::vector<int64_t> columns = {};

  int64_t From(int64_t row) const {
    return rows.empty() ? first + step * pairs.From(row) : rows[static_cast<size_t>(row)];
  }
  bool contiguous() const {
    return step == 1 && pairs.width == 0 && rows.empty() && columns.empty();
  }
};

class Binder {
 public:
  // `plan`: sizes are found, and nothing is read but the vectors.
  Binder(TransformerWeights& weights, const TensorSource& source, float norm_offset,
         WeightDtype dtype, int threads, bool plan);
  // Frees pages at the edges of what was freed piece by piece.
  ~Binder();
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  // The first error; later fetches then do nothing.
  const std::optional<Error>& error() const { return error_; }
  void Fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const TensorSource& source() const { return source_; }
  bool Has(const std::string& name) const { return source_.Find(name) != nullptr; }

  // `outer`: embedding, head and others that are never rounded to four bits.
  Matrix FetchMatrix(const std::string& name, int64_t rows, int64_t cols, bool outer = false,
                     const Part& part = {});
  // A matrix that the caller has found in the tensor of that name.
  Matrix FetchStored(const std::string& name, const Result<StoredMatrix>& stored, int64_t rows,
                     int64_t cols, const Part& part);
  std::vector<float> FetchVector(const std::string& name, int64_t size, const Part& part = {});
  std::vector<float> FetchNorm(const std::string& name, int64_t size);
  Linear FetchLinear(const std::string& name, int64_t outputs, int64_t inputs, bool bias,
                     const Part& part = {});
  // [cols, rows] of rows of a tensor, as floats where it has integers.
  Matrix FetchTransposed(const std::string& name, int64_t rows, int64_t cols, const Part& part);
  // These count as used.
  void Use(const std::string& name) { fetched_.insert(name); }

  // What the source has beyond what was fetched.
  std::vector<std::string> Unused() const;

 private:
  struct Tensor {
    const TensorView* view;
    WeightType type;  // where there are no blocks
    std::optional<PackedFormat> blocks;
    const StoredMatrix* packed;
  };
  struct RowSource;

  std::optional<Tensor> Fetch(const std::string& name, const std::vector<int64_t>& shape,
                              bool blocks);
  std::optional<Tensor> FetchPacked(const Result<StoredMatrix>& packed,
                                    const std::vector<int64_t>& shape);
  Matrix Make(const std::string& name, const Tensor& tensor, int64_t rows, int64_t cols, bool outer,
              const Part& part);
  const void* Aligned(const std::byte* data, int64_t bytes, WeightType type);
  std::byte* NewCopy(int64_t bytes) { return weights_.copies.Allocate(bytes); }
  std::optional<WeightType> Wanted(bool outer) const;
  float ScaleOf(const std::string& name);
  void FillRows(const RowSource& from, WeightType stored, const Matrix& matrix);
  void FillRow(const RowSource& from, WeightType stored, const Matrix& matrix, int64_t r,
               PackedRow& packed, std::vector<float>& floats) const;

  TransformerWeights& weights_;
  const TensorSource& source_;
  const WeightDtype dtype_;
  const float norm_offset_;
  const bool plan_;
  const KernelSet& kernels_;
  ThreadPool pool_;
  std::vector<std::pair<const std::byte*, int64_t>> copied_;
  std::unordered_set<std::string> fetched_;
  std::optional<Error> error_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TENSOR_BINDER_H_
