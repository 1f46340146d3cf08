// One line for a human: which devices there are, or why there is none. A build without CUDA says so
// in the same place.
#include "kernels/cuda/device.h"

#include <cstdio>

namespace pawl {

#if !defined(PAWL_HAVE_CUDA)  // else runtime.cu asks the driver
CudaDevices FindCudaDevices() { return {false, {}, "not built with CUDA"}; }
#endif

std::string CudaDeviceSummary() {
  const CudaDevices found = FindCudaDevices();
  if (found.devices.empty()) {
    return found.built ? "no usable device: " + found.problem : found.problem;
  }
  std::string text;
  for (const CudaDevice& device : found.devices) {
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, " (compute %d.%d, %d multiprocessors, %.1f GiB)",
                  device.major, device.minor, device.multiprocessors,
                  static_cast<double>(device.memory_bytes) / (1 << 30));
    if (!text.empty()) text += "; ";
    text += device.name;
    text += numbers;
  }
  return text;
}

}  // namespace pawl
