// The runtime library is linked statically and looks for the driver when first asked.
#include <cuda_runtime.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/runtime.h"

namespace pawl::cuda {
namespace {

Error CudaError(cudaError_t error, const std::string& what) {
  (void)cudaGetLastError();  // the runtime remembers errors until they are read
  const bool memory = error == cudaErrorMemoryAllocation;
  return Error{
      memory ? ErrorCode::kLimit : ErrorCode::kInternal,
      "CUDA error " + std::to_string(static_cast<int>(error)) + ": " + cudaGetErrorString(error),
      what};
}

Status Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return CudaError(error, what);
}

cudaStream_t On(Stream stream) { return static_cast<cudaStream_t>(stream); }

std::string MiB(int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

Result<DeviceFacts> CurrentDevice() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  int device = 0;
  cudaDeviceProp properties = {};
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    int driver = 0;
    const bool none = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
    return Error{ErrorCode::kUnsupported,
                 none ? "no CUDA driver is installed" : cudaGetErrorString(error), "cuda"};
  }
  DeviceFacts facts;
  facts.name = properties.name;
  facts.major = properties.major;
  facts.minor = properties.minor;
  facts.multiprocessors = properties.multiProcessorCount;
  facts.shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  size_t free_bytes = 0, total = 0;
  if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) (void)cudaGetLastError();
  facts.memory_bytes = static_cast<int64_t>(total);
  facts.free_bytes = static_cast<int64_t>(free_bytes);
  if (facts.major < 8) {
    return Error{ErrorCode::kUnsupported,
                 facts.name + " has compute capability " + std::to_string(facts.major) + "." +
                     std::to_string(facts.minor) + "; the kernels need 8.0",
                 "cuda"};
  }
  return facts;
}

Result<void*> Allocate(int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(bytes > 0 ? bytes : 1));
  if (error == cudaSuccess) return memory;
  (void)cudaGetLastError();
  if (error != cudaErrorMemoryAllocation) return CudaError(error, "cudaMalloc");
  size_t free_bytes = 0, total = 0;
  if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) (void)cudaGetLastError();
  return Error{ErrorCode::kLimit,
               "not enough device memory: " + MiB(bytes) + " asked for, " +
                   MiB(static_cast<int64_t>(free_bytes)) + " of " +
                   MiB(static_cast<int64_t>(total)) + " free",
               "cuda"};
}

void Free(void* memory) {
  if (memory != nullptr && cudaFree(memory) != cudaSuccess) (void)cudaGetLastError();
}

Result<void*> AllocatePinned(int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMallocHost(&memory, static_cast<size_t>(bytes > 0 ? bytes : 1));
  if (error != cudaSuccess) return CudaError(error, MiB(bytes) + " of pinned host memory");
  return memory;
}

void FreePinned(void* memory) {
  if (memory != nullptr && cudaFreeHost(memory) != cudaSuccess) (void)cudaGetLastError();
}

Result<Stream> NewStream() {
  cudaStream_t stream = nullptr;
  const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return CudaError(error, "cudaStreamCreate");
  return static_cast<Stream>(stream);
}

void FreeStream(Stream stream) {
  if (stream != nullptr && cudaStreamDestroy(On(stream)) != cudaSuccess) (void)cudaGetLastError();
}

Status Synchronize(Stream stream) { return Check(cudaStreamSynchronize(On(stream)), "the device"); }

Status CopyIn(void* device, const void* host, int64_t bytes, Stream stream) {
  if (bytes == 0) return {};  // null pointers come with nothing to copy
  return Check(
      cudaMemcpyAsync(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, On(stream)),
      "copy to the device");
}
Status CopyOut(void* host, const void* device, int64_t bytes, Stream stream) {
  if (bytes == 0) return {};
  return Check(
      cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, On(stream)),
      "copy from the device");
}
Status CopyWithin(void* to, const void* from, int64_t bytes, Stream stream) {
  if (bytes == 0) return {};
  return Check(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, On(stream)),
      "copy within the device");
}
Status Fill(void* device, int byte, int64_t bytes, Stream stream) {
  if (bytes == 0) return {};
  return Check(cudaMemsetAsync(device, byte, static_cast<size_t>(bytes), On(stream)), "fill");
}

// Relaxed: what other threads of the host program ask of the device meanwhile is none of our
// business. Nothing that is recorded here waits or allocates, and no kernel is launched for the
// first time.
Status BeginCapture(Stream stream) {
  return Check(cudaStreamBeginCapture(On(stream), cudaStreamCaptureModeRelaxed), "graph capture");
}

Result<Graph> EndCapture(Stream stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaError_t error = cudaStreamEndCapture(On(stream), &graph);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&ready, graph, 0);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  if (error != cudaSuccess) return CudaError(error, "graph capture");
  return Graph{ready};
}

Status Replay(const Graph& graph, Stream stream) {
  return Check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.handle), On(stream)),
               "graph launch");
}

void FreeGraph(Graph graph) {
  if (graph.handle == nullptr) return;
  if (cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph.handle)) != cudaSuccess) {
    (void)cudaGetLastError();
  }
}

Result<Fence> NewFence() {
  cudaEvent_t event = nullptr;
  const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error != cudaSuccess) return CudaError(error, "cudaEventCreate");
  return Fence{event};
}
Status Raise(const Fence& fence, Stream stream) {
  return Check(cudaEventRecord(static_cast<cudaEvent_t>(fence.handle), On(stream)), "fence");
}
Status WaitFor(const Fence& fence, Stream stream) {
  return Check(cudaStreamWaitEvent(On(stream), static_cast<cudaEvent_t>(fence.handle), 0), "fence");
}
void FreeFence(Fence fence) {
  if (fence.handle != nullptr &&
      cudaEventDestroy(static_cast<cudaEvent_t>(fence.handle)) != cudaSuccess) {
    (void)cudaGetLastError();
  }
}

Result<Mark> NewMark() {
  cudaEvent_t event = nullptr;
  const cudaError_t error = cudaEventCreate(&event);
  if (error != cudaSuccess) return CudaError(error, "cudaEventCreate");
  return Mark{event};
}
Status Record(const Mark& mark, Stream stream) {
  return Check(cudaEventRecord(static_cast<cudaEvent_t>(mark.handle), On(stream)), "event");
}
Result<float> Milliseconds(const Mark& begin, const Mark& end) {
  float time = 0;
  const cudaError_t error = cudaEventElapsedTime(&time, static_cast<cudaEvent_t>(begin.handle),
                                                 static_cast<cudaEvent_t>(end.handle));
  if (error != cudaSuccess) return CudaError(error, "event");
  return time;
}
void FreeMark(Mark mark) {
  if (mark.handle != nullptr &&
      cudaEventDestroy(static_cast<cudaEvent_t>(mark.handle)) != cudaSuccess) {
    (void)cudaGetLastError();
  }
}

}  // namespace pawl::cuda

namespace pawl {

CudaDevices FindCudaDevices() {
  CudaDevices found;
  found.built = true;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();  // the runtime remembers errors until they are read
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
      found.problem = "no CUDA driver is installed";
    } else {
      found.problem = cudaGetErrorString(error);
    }
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties = {};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    CudaDevice device;
    device.name = properties.name;
    device.major = properties.major;
    device.minor = properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
    device.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
    found.devices.push_back(device);
  }
  if (found.devices.empty()) found.problem = "the driver lists no device";
  return found;
}

}  // namespace pawl
