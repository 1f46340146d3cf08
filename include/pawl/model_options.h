// ModelOptions: how a model is loaded.
//
//   pawl::EngineOptions options;                          // pawl/engine.h
//   options.model.dtype = pawl::WeightDtype::kInt8;       // half the memory of bf16
//   options.model.threads = 4;
#ifndef PAWL_MODEL_OPTIONS_H_
#define PAWL_MODEL_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace pawl {

enum class KernelVariant : int;

// How matrices are kept in memory. Stored ones stay in the mapped file; all others are copied or
// converted when loading, into large pages where the system has them, which are read faster.
// Integers are in groups of 32 with a scale each; with kInt4 the embedding and the head are int8.
// kFp8 is e4m3 with a scale for each row, on CUDA devices alone. Norms and biases are always float.
enum class WeightDtype { kAsStored, kFp32, kBf16, kFp16, kInt8, kInt4, kFp8 };

// Where the model runs. kAuto: on a CUDA device if there is one that can, else on the CPU.
enum class Device { kCpu, kCuda, kAuto };
// Keys and values on CUDA devices; the CPU's are floats.
enum class KvDtype { kBf16, kFp8, kFp32 };

struct ModelOptions {
  WeightDtype dtype = WeightDtype::kAsStored;
  int threads = 0;  // 0: all cores
  // Memory for keys and values, of all sequences together; taken as sequences grow. 0: half of
  // what the machine has (of a CUDA device: most of what the weights leave, at once). How much of
  // it may be kept for prefixes that no sequence uses now; -1: what the longest sequence takes, at
  // least 64 MiB, at most a quarter of kv_bytes.
  int64_t kv_bytes = 0;
  int64_t kept_kv_bytes = -1;
  Device device = Device::kCpu;
  KvDtype kv_dtype = KvDtype::kBf16;
  // Told in one line why the CPU is used after all where `device` is kAuto.
  std::function<void(const std::string& reason)> on_fallback;
  std::function<void(double fraction)> progress;
  // Which instructions the CPU's products use (docs/engine.md). The default is the best that this
  // processor has and that keeps what it multiplies.
  KernelVariant kernels = KernelVariant{};
};

}  // namespace pawl

#endif  // PAWL_MODEL_OPTIONS_H_
