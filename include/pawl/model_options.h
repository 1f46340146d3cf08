// ModelOptions: how a model is loaded.
//
//   pawl::EngineOptions options;                          // pawl/engine.h
//   options.model.dtype = pawl::WeightDtype::kInt8;       // half the memory of bf16
//   options.model.threads = 4;
#ifndef PAWL_MODEL_OPTIONS_H_
#define PAWL_MODEL_OPTIONS_H_

#include <cstdint>
#include <functional>

namespace pawl {

enum class KernelVariant : int;

// How matrices are kept in memory. Stored ones stay in the mapped file; all others are copied or
// converted when loading, into large pages where the system has them, which are read faster.
// Integers are in groups of 32 with a scale each; with kInt4 the embedding and the head are int8.
// Norms and biases are always float.
enum class WeightDtype { kAsStored, kFp32, kBf16, kFp16, kInt8, kInt4 };

struct ModelOptions {
  WeightDtype dtype = WeightDtype::kAsStored;
  int threads = 0;  // 0: all cores
  // Memory for keys and values, of all sequences together; taken as sequences grow. 0: half of
  // what the machine has. How much of it may be kept for prefixes that no sequence uses now; -1:
  // what the longest sequence takes, at least 64 MiB, at most a quarter of kv_bytes.
  int64_t kv_bytes = 0;
  int64_t kept_kv_bytes = -1;
  std::function<void(double fraction)> progress;
  // For tests; the default is the best this processor has.
  KernelVariant kernels = KernelVariant{};
};

}  // namespace pawl

#endif  // PAWL_MODEL_OPTIONS_H_
