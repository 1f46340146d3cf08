#include "kernels/cuda/matmul.cuh"

namespace pawl::PAWL_GPU {

Status MatMulI8(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kI8, 2>(args, stream);
}

}  // namespace pawl::PAWL_GPU
