#include "kernels/cuda/matmul.cuh"

namespace pawl::PAWL_GPU {

Status MatMulF16(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kF16, 1>(args, stream);
}

}  // namespace pawl::PAWL_GPU
