// Where weights come from: tensors by name in mapped files, whatever the files' format.
#ifndef PAWL_SRC_MODEL_TENSOR_SOURCE_H_
#define PAWL_SRC_MODEL_TENSOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// Immutable; safe to read from any thread.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // nullptr when there is none.
  virtual const TensorView* Find(std::string_view name) const = 0;
  // The file that holds a tensor, or for a missing one the file that should: for messages.
  virtual const std::string& PathOf(std::string_view name) const = 0;
  // Of all tensors, in no order.
  virtual std::vector<std::string> Names() const { return {}; }
  // The size of all files together.
  virtual int64_t bytes() const = 0;
  // These bytes of a tensor have been read and copied: where they are of a mapped file, they need
  // no memory any more.
  virtual void Release(const std::byte* /*data*/, int64_t /*bytes*/) const {}
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TENSOR_SOURCE_H_
