// The products with weights of type float32, in a source of its own so that the types compile
// beside each other; the kernels are templates in head.cuh and what it includes.
#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulF32(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kF32, 1>(args, stream);
}

Status HeadF32(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kF32, 1>(args, stream);
}

}  // namespace pawl::PAWL_GPU
