// Model folders whose matrices are quantized: several tensors of the files are one matrix.
//
//   QuantizedCheckpoint source(std::move(checkpoint), config.quantization);
//   const StoredMatrix* q = source.FindPacked("model.layers.0.self_attn.q_proj.weight");
//   if (q != nullptr && q->integers) q->pack(row, packed);  // as PackBlocks does for GGUF
#ifndef PAWL_SRC_MODEL_QUANTIZED_CHECKPOINT_H_
#define PAWL_SRC_MODEL_QUANTIZED_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/model/checkpoint_format.h"
#include "src/model/gguf_blocks.h"
#include "src/model/safetensors.h"
#include "src/model/tensor_source.h"

namespace pawl {

// Safe to read from any thread.
struct StoredMatrix {
  std::string stored;  // the name of the tensor that has the weights
  // As a tensor of its own: the matrix's shape, the format's name as its type, the bytes of all
  // parts. `data`: of the tensor that has the weights.
  TensorView view;
  // Where there are some, rows of integers with a scale for each group, by `pack`. Otherwise the
  // matrix becomes one of `floats`, with an error of 2^-11 (F16) or 2^-8 (BF16).
  std::optional<PackedFormat> integers;
  WeightType floats = WeightType::kF16;
  std::function<void(int64_t row, PackedRow& out)> pack;
  // What the file says, in single precision. `pack` rounds scales and minimums to halves.
  std::function<void(int64_t row, float* out)> read;
  std::vector<TensorView> parts;
};

// Formats of integers and of 8-bit floats; tensors that are not quantized are those of the files.
class QuantizedCheckpoint final : public TensorSource {
 public:
  QuantizedCheckpoint(Checkpoint files, const CheckpointFormat& format);

  // A quantized matrix has its name with ".weight" at the end, as where it is not quantized.
  const TensorView* Find(std::string_view name) const override;
  const std::string& PathOf(std::string_view name) const override;
  std::vector<std::string> Names() const override;
  int64_t bytes() const override { return files_.bytes(); }
  void Release(const std::byte* data, int64_t bytes) const override { files_.Release(data, bytes); }
  const Result<StoredMatrix>* FindPacked(std::string_view name) const override;

 private:
  Checkpoint files_;
  std::map<std::string, Result<StoredMatrix>, std::less<>> packed_;
  std::set<std::string, std::less<>> parts_;  // names of tensors that are no matrix by themselves
};

// Expert `expert` of NAME_blocks [experts, rows, cols / 32, 16] and NAME_scales [experts, rows,
// cols / 32], the form of gpt-oss: integers into FP4's table. Errors name the tensor.
Result<StoredMatrix> Mxfp4Expert(const TensorSource& source, const std::string& name,
                                 int64_t expert);

// Expert `expert` of a tensor of floats [experts, cols, rows], read as a matrix [rows, cols].
Result<StoredMatrix> TransposedExpert(const TensorSource& source, const std::string& name,
                                      int64_t experts, int64_t expert, int64_t rows, int64_t cols);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_QUANTIZED_CHECKPOINT_H_
