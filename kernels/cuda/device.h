// What CUDA devices there are. This header and its functions exist in builds without CUDA too.
#ifndef PAWL_KERNELS_CUDA_DEVICE_H_
#define PAWL_KERNELS_CUDA_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pawl {

struct CudaDevice {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
};

struct CudaDevices {
  bool built = false;               // this build has CUDA kernels
  std::vector<CudaDevice> devices;  // those that can be used
  std::string problem;              // why there are none, in words; empty otherwise
};

// Asks the driver. Never fails: a missing driver or device is an answer. Thread-safe.
CudaDevices FindCudaDevices();

// The same in one line, for people: "NVIDIA H200 (compute 9.0, 132 multiprocessors, 139.8 GiB)",
// "not built with CUDA", "no usable device: ...".
std::string CudaDeviceSummary();

}  // namespace pawl

#endif  // PAWL_KERNELS_CUDA_DEVICE_H_
