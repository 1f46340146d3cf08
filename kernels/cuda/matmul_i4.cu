#include "kernels/cuda/matmul.cuh"

namespace pawl::PAWL_GPU {

Status MatMulI4(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kI4, 4>(args, stream);
}

}  // namespace pawl::PAWL_GPU
