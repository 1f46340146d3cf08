// The runtime library is linked statically and looks for the driver when first asked, so a program
// with CUDA kernels starts and answers on a machine that has neither driver nor device.
#include <cuda_runtime.h>

#include "kernels/cuda/device.h"

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
