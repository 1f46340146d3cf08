// Where weights come from: tensors by name in mapped files, whatever the files' format; and what
// the weights of a model will take (PlanWeights).
#ifndef PAWL_SRC_MODEL_TENSOR_SOURCE_H_
#define PAWL_SRC_MODEL_TENSOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"

namespace pawl {

// One tensor where it lies in the mapped file. Its bytes need not be aligned: files written by
// others may place them anywhere.
struct TensorView {
  std::string dtype;           // as in the file: "F32", "BF16", "F16", "I64", "Q4_K", ...
  std::vector<int64_t> shape;  // the last dimension is the one that lies together in memory
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

// "[64, 320]"
std::string ShapeToString(const std::vector<int64_t>& shape);

struct StoredMatrix;

// Immutable; safe to read from any thread.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // nullptr when there is none.
  virtual const TensorView* Find(std::string_view name) const = 0;
  // The same where the reader knows the shape; other shapes may be returned.
  virtual const TensorView* FindOfShape(std::string_view name,
                                        const std::vector<int64_t>& /*shape*/) const {
    return Find(name);
  }
  // The file that holds a tensor, or for a missing one the file that should: for messages.
  virtual const std::string& PathOf(std::string_view name) const = 0;
  // Of all tensors, in no order.
  virtual std::vector<std::string> Names() const { return {}; }
  // A matrix that is made of several tensors (quantized_checkpoint.h), or what is wrong with them;
  // nullptr for others.
  virtual const Result<StoredMatrix>* FindPacked(std::string_view /*name*/) const {
    return nullptr;
  }
  // The size of all files together.
  virtual int64_t bytes() const = 0;
  // These bytes of a tensor have been read and copied: where they are of a mapped file, they need
  // no memory any more.
  virtual void Release(const std::byte* /*data*/, int64_t /*bytes*/) const {}
};

// Found in the headers of the files, before the weights are read.
//
//   const Result<WeightPlan> plan = PlanWeights("model.gguf", WeightDtype::kAsStored);
//   if (plan.ok()) Reserve(plan->memory_bytes);
struct WeightPlan {
  int64_t memory_bytes = 0;  // those included that stay in the mapped file
  int64_t file_bytes = 0;
  // Bytes of the matrices of each dtype of the files ("Q4_K", "BF16"), the most first.
  std::vector<std::pair<std::string, int64_t>> types;
  std::string description;  // of the model: Describe in transformer_config.h
  // Of keys and values on the CPU: bytes of a page, pages of a sequence as long as the context.
  int64_t page_bytes = 0, context_pages = 0;
  int vocabulary_size = 0;
};

// Of a model folder or a GGUF file. Errors: those of LoadModel.
Result<WeightPlan> PlanWeights(const std::string& path, WeightDtype dtype);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TENSOR_SOURCE_H_
