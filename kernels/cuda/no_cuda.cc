// Stands in for device.cu in builds without CUDA.
#include "kernels/cuda/device.h"

namespace pawl {

CudaDevices FindCudaDevices() { return {false, {}, "not built with CUDA"}; }

}  // namespace pawl
