// What many rows at once need: attention on tensor cores, and activations and weights as bf16 for
// library products. A row's result does not depend on the rows beside it, but its bits are not
// those of the kernels for few rows: activations are rounded to bf16 here.
#ifndef PAWL_KERNELS_CUDA_PREFILL_H_
#define PAWL_KERNELS_CUDA_PREFILL_H_

#include <cstdint>
#include <memory>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/layer.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/runtime.h"

namespace pawl::PAWL_GPU {

constexpr int kPrefillTile = 64;

// As Attention, for plain rows (without `extra`), bf16 results.
struct PrefillAttention {
  const float* q = nullptr;
  int64_t q_stride = 0;
  const DeviceRow* rows = nullptr;
  const RowRun* runs = nullptr;  // of at most kPrefillTile plain rows
  int run_count = 0;
  int heads = 0;
  const int32_t* tables = nullptr;
  Cache cache;
  float scale = 1.0f, soft_cap = 0.0f;
  int window = 0;
  uint16_t* out = nullptr;
  int64_t out_stride = 0;
};
Status RunPrefillAttention(const PrefillAttention& args, Stream stream);

// `to` = x, or x / sqrt(mean(x^2) + epsilon) * norm, or act(x) . up; bf16, zeros from `columns` to
// `to_stride`. At most one of norm and up.
struct ToBf16 {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* norm = nullptr;
  float epsilon = 0.0f;
  const float* up = nullptr;  // strided as x
  Gate gate = Gate::kNone;
  int columns = 0, count = 0;
  uint16_t* to = nullptr;
  int64_t to_stride = 0;
};
Status RunToBf16(const ToBf16& args, Stream stream);

// Weights of any type as rows of PaddedColumns(columns) bf16.
Status RunUnpack(const DeviceMatrix& matrix, uint16_t* to, Stream stream);

// y[r] (+)= w x[r] for many rows: w [outputs][w_stride] and x [rows][x_stride] bf16, y floats.
struct LibraryProduct {
  const uint16_t* w = nullptr;
  int64_t w_stride = 0;
  const uint16_t* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int outputs = 0, columns = 0, rows = 0;
  bool add = false;
};

// What a Library takes of device memory: its workspace, and about as much for its code.
#if defined(PAWL_CUDA_EMULATED)
constexpr int64_t kLibraryWorkspace = int64_t{1} << 20, kLibraryBytes = kLibraryWorkspace;
#else
constexpr int64_t kLibraryWorkspace = int64_t{32} << 20, kLibraryBytes = 2 * kLibraryWorkspace;
#endif

// cuBLASLt, loaded when first asked for, so that nothing needs it to start or to decode.
class Library {
 public:
  virtual ~Library() = default;
  // One thread at a time. Errors: kUnsupported where the library does not take such a product,
  // kInternal where it failed.
  virtual Status Run(const LibraryProduct& product, Stream stream) = 0;
};
// Errors (kUnsupported): there is none, and where it was looked for.
Result<std::unique_ptr<Library>> OpenLibrary();

#if defined(PAWL_CUDA_EMULATED)
// Lets the emulated library refuse products with so many outputs. 0: none.
void RefuseProducts(int outputs);
#endif

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_PREFILL_H_
