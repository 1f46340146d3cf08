// The products with weights of type 8-bit integers, in a source of its own so that the types
// compile beside each other; the kernels are templates in head.cuh and what it includes.
#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulI8(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kI8, 2>(args, stream);
}

Status HeadI8(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kI8, 2>(args, stream);
}

}  // namespace pawl::PAWL_GPU
