// A GGUF file, or a model folder (gguf_folder.h), written as a GGUF file with smaller weights.
//
//   Result<QuantizeReport> done = QuantizeGguf("model-F16.gguf", "model-Q4_K_M.gguf", "Q4_K_M",
//   {});
#ifndef PAWL_SRC_MODEL_GGUF_QUANTIZE_H_
#define PAWL_SRC_MODEL_GGUF_QUANTIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"

namespace pawl {

struct QuantizeOptions {
  int threads = 0;                       // 0: all
  std::function<void(double)> progress;  // the share of the weights that is done
};

struct QuantizeReport {
  int64_t bytes_before = 0, bytes_after = 0;
  int64_t weights = 0;
  // Bytes of the tensors of each type in the new file, the most first.
  std::vector<std::pair<std::string, int64_t>> types;
  // Tensors that were quantized already, and were rounded to another type.
  int quantized_before = 0;
};

// `type`: one of GgufFileTypeNames(). Memory: some tens of MiB, whatever the files have. The result
// does not depend on the number of threads.
// Errors: those of GgufFile::Open or ReadFolderAsGguf for `in`; kInvalid with place "type";
// kUnsupported and kInvalid for a tensor that cannot be read or rounded, with its name; kIo for
// `out`, where nothing is left then.
Result<QuantizeReport> QuantizeGguf(const std::string& in, const std::string& out,
                                    std::string_view type, const QuantizeOptions& options);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_QUANTIZE_H_
