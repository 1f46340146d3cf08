#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulF32(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kF32, 1>(args, stream);
}

Status HeadF32(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kF32, 1>(args, stream);
}

}  // namespace pawl::PAWL_GPU
