#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulI4(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kI4, 4>(args, stream);
}

Status HeadI4(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kI4, 4>(args, stream);
}

}  // namespace pawl::PAWL_GPU
