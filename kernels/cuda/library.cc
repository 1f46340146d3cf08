// cuBLASLt by dlopen. Of its half a gigabyte the engine needs one function for more rows than its
// own kernels take, so it must not be needed to start. Descriptors are made for each call: they are
// host memory, and a product with so many rows takes hundreds of microseconds.
//
// Row-major y = x w^T is column-major y^T = w x^T: what the library sees as its first operand is w
// transposed, its second is x as it is.
#include <cublasLt.h>
#include <dlfcn.h>

#include <string>
#include <utility>

#include "kernels/cuda/prefill.h"

namespace pawl::cuda {
namespace {

constexpr int64_t kWorkspace = int64_t{32} << 20;

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
  function = reinterpret_cast<F>(::dlsym(library, name));
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
    then([&] { return f_.layout_create(&y, CUDA_R_32F, outputs, rows, p.y_stride); });
    then([&] { return f_.preference_create(&preference); });
    const auto workspace = static_cast<size_t>(workspace_.bytes());
    then([&] {
      return f_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                               sizeof workspace);
    });
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    then([&] { return f_.heuristic(handle_, desc, w, x, y, y, preference, 1, &found, &count); });
    if (status == CUBLAS_STATUS_SUCCESS && count == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    const float one = 1.0f, beta = p.add ? 1.0f : 0.0f;
    then([&] {
      return f_.matmul(handle_, desc, &one, p.w, w, p.x, x, &beta, p.y, y, p.y, y, &found.algo,
                       workspace_.data(), workspace, static_cast<cudaStream_t>(stream));
    });
    if (preference != nullptr) (void)f_.preference_destroy(preference);
    for (const cublasLtMatrixLayout_t layout : {w, x, y}) {
      if (layout != nullptr) (void)f_.layout_destroy(layout);
    }
    if (desc != nullptr) (void)f_.desc_destroy(desc);
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return Error{ErrorCode::kInternal,
                 "cuBLASLt: status " + std::to_string(static_cast<int>(status)) + " for " +
                     std::to_string(p.outputs) + " x " + std::to_string(p.columns) + " by " +
                     std::to_string(p.rows) + " rows",
                 "cuda"};
  }

 private:
  Functions f_;
  cublasLtHandle_t handle_;
  DeviceMemory workspace_;
};

}  // namespace

Result<std::unique_ptr<Library>> OpenLibrary() {
  // The version that the headers are of: structures may differ in others.
  const std::string major = std::to_string(CUBLAS_VER_MAJOR);
  const std::string versioned = "libcublasLt.so." + major;
  const std::string beside = "/usr/local/cuda/lib64/" + versioned;
  void* library = nullptr;
  for (const char* name : {versioned.c_str(), beside.c_str()}) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  Functions functions = {};
  if (library == nullptr || !LoadAll(library, functions)) {
    return Error{ErrorCode::kUnsupported,
                 "no " + versioned + " was found (looked for " + versioned + " and " + beside + ")",
                 "cuda"};
  }
  Result<DeviceMemory> workspace = DeviceMemory::Make(kWorkspace);
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
