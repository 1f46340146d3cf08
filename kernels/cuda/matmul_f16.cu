#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulF16(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kF16, 1>(args, stream);
}

Status HeadF16(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kF16, 1>(args, stream);
}

}  // namespace pawl::PAWL_GPU
