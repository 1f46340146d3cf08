// cuBLASLt by dlopen. Of its half a gigabyte the engine needs one function for more rows than its
// own kernels take, so it must not be needed to start, nor its header to build. Descriptors are
// made for each call, which is host memory; which algorithm to take is asked once for each shape,
// which takes the library tens of microseconds.
//
// Row-major y = x w^T is column-major y^T = w x^T: what the library sees as its first operand is w
// transposed, its second is x as it is.
#include "kernels/cuda/kernels.h"
#include "src/base/os/libraries.h"

#if __has_include(<cublasLt.h>)

#include <cublasLt.h>

#include <array>
#include <map>
#include <string>
#include <utility>

namespace pawl::cuda {
namespace {

constexpr size_t kMostAlgorithms = 1024;

// What the library may count on; unless told, it takes 256 bytes for granted.
uint32_t Alignment(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

struct Functions {
  decltype(&::cublasLtCreate) create;
  decltype(&::cublasLtDestroy) destroy;
  decltype(&::cublasLtMatmul) matmul;
  decltype(&::cublasLtMatmulDescCreate) desc_create;
  decltype(&::cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic;
};

template <typename F>
bool Load(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(os::FunctionOf(library, name));
  return function != nullptr;
}

bool LoadAll(void* library, Functions& f) {
  return Load(library, "cublasLtCreate", f.create) && Load(library, "cublasLtDestroy", f.destroy) &&
         Load(library, "cublasLtMatmul", f.matmul) &&
         Load(library, "cublasLtMatmulDescCreate", f.desc_create) &&
         Load(library, "cublasLtMatmulDescDestroy", f.desc_destroy) &&
         Load(library, "cublasLtMatmulDescSetAttribute", f.desc_set) &&
         Load(library, "cublasLtMatrixLayoutCreate", f.layout_create) &&
         Load(library, "cublasLtMatrixLayoutDestroy", f.layout_destroy) &&
         Load(library, "cublasLtMatmulPreferenceCreate", f.preference_create) &&
         Load(library, "cublasLtMatmulPreferenceDestroy", f.preference_destroy) &&
         Load(library, "cublasLtMatmulPreferenceSetAttribute", f.preference_set) &&
         Load(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic);
}

class CublasLt final : public Library {
 public:
  CublasLt(const Functions& functions, cublasLtHandle_t handle, DeviceMemory workspace)
      : f_(functions), handle_(handle), workspace_(std::move(workspace)) {}
  // The library itself stays loaded: it has registered itself with the driver.
  ~CublasLt() override { (void)f_.destroy(handle_); }

  Status Run(const LibraryProduct& p, Stream stream) override {
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasStatus_t status = f_.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const auto then = [&](auto&& call) {
      if (status == CUBLAS_STATUS_SUCCESS) status = call();
    };
    const auto k = static_cast<uint64_t>(p.columns), outputs = static_cast<uint64_t>(p.outputs);
    const auto rows = static_cast<uint64_t>(p.rows);
    then([&] {
      return f_.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    });
    then([&] { return f_.layout_create(&w, CUDA_R_16BF, k, outputs, p.w_stride); });
    then([&] { return f_.layout_create(&x, CUDA_R_16BF, k, rows, p.x_stride); });
    then([&] {
      return f_.layout_create(&y, p.rounded != nullptr ? CUDA_R_16BF : CUDA_R_32F, outputs, rows,
                              p.y_stride);
    });
    const auto workspace = static_cast<size_t>(workspace_.bytes());
    void* to = p.rounded != nullptr ? static_cast<void*>(p.rounded) : p.y;
    const uint32_t alignments[] = {Alignment(p.w), Alignment(p.x), Alignment(to)};
    const Key key = {p.outputs,  p.columns,     p.rows,        p.w_stride,    p.x_stride,
                     p.y_stride, alignments[0], alignments[1], alignments[2], p.rounded != nullptr};
    auto known = algorithms_.find(key);
    if (known == algorithms_.end()) {
      then([&] { return f_.preference_create(&preference); });
      const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const void* value,
                              size_t bytes) {
        then([&] { return f_.preference_set(preference, what, value, bytes); });
      };
      prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignments[0], sizeof(uint32_t));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignments[1], sizeof(uint32_t));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignments[2], sizeof(uint32_t));
      prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignments[2], sizeof(uint32_t));
      cublasLtMatmulHeuristicResult_t found = {};
      int count = 0;
      then([&] { return f_.heuristic(handle_, desc, w, x, y, y, preference, 1, &found, &count); });
      if (status == CUBLAS_STATUS_SUCCESS && count == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
      if (status == CUBLAS_STATUS_SUCCESS) {
        if (algorithms_.size() >= kMostAlgorithms) algorithms_.clear();
        known = algorithms_.emplace(key, found.algo).first;
      }
    }
    const float one = 1.0f, beta = p.add ? 1.0f : 0.0f;
    then([&] {
      return f_.matmul(handle_, desc, &one, p.w, w, p.x, x, &beta, to, y, to, y, &known->second,
                       workspace_.data(), workspace, static_cast<cudaStream_t>(stream));
    });
    if (preference != nullptr) (void)f_.preference_destroy(preference);
    for (const cublasLtMatrixLayout_t layout : {w, x, y}) {
      if (layout != nullptr) (void)f_.layout_destroy(layout);
    }
    if (desc != nullptr) (void)f_.desc_destroy(desc);
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return Error{
        status == CUBLAS_STATUS_EXECUTION_FAILED ? ErrorCode::kInternal : ErrorCode::kUnsupported,
        "cuBLASLt: status " + std::to_string(static_cast<int>(status)) + " for " +
            std::to_string(p.outputs) + " x " + std::to_string(p.columns) + " by " +
            std::to_string(p.rows) + " rows",
        "cuda"};
  }

 private:
  using Key = std::array<int64_t, 10>;
  Functions f_;
  cublasLtHandle_t handle_;
  DeviceMemory workspace_;
  std::map<Key, cublasLtMatmulAlgo_t> algorithms_;
};

}  // namespace

Result<std::unique_ptr<Library>> OpenLibrary() {
  // The version that the headers are of: structures may differ in others.
  const std::string major = std::to_string(CUBLAS_VER_MAJOR);
  const std::string versioned = "libcublasLt.so." + major;
  const std::string beside = "/usr/local/cuda/lib64/" + versioned;
  void* library = nullptr;
  for (const char* name : {versioned.c_str(), beside.c_str()}) {
    if (library == nullptr) library = os::OpenLibrary(name);
  }
  Functions functions = {};
  if (library == nullptr || !LoadAll(library, functions)) {
    return Error{ErrorCode::kUnsupported,
                 "no " + versioned + " was found (looked for " + versioned + " and " + beside + ")",
                 "cuda"};
  }
  Result<DeviceMemory> workspace = DeviceMemory::Make(kLibraryWorkspace);
  if (!workspace.ok()) return workspace.error();
  cublasLtHandle_t handle = nullptr;
  if (const cublasStatus_t status = functions.create(&handle); status != CUBLAS_STATUS_SUCCESS) {
    return Error{ErrorCode::kUnsupported,
                 versioned + " does not start: status " + std::to_string(static_cast<int>(status)),
                 "cuda"};
  }
  return std::unique_ptr<Library>(
      std::make_unique<CublasLt>(functions, handle, *std::move(workspace)));
}

}  // namespace pawl::cuda

#else

namespace pawl::cuda {

Result<std::unique_ptr<Library>> OpenLibrary() {
  return Error{ErrorCode::kUnsupported, "built without cublasLt.h", "cuda"};
}

}  // namespace pawl::cuda

#endif
