// The products with weights of type 4-bit integers, in a source of its own so that the types
// compile beside each other; the kernels are templates in head.cuh and what it includes.
#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulI4(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kI4, 4>(args, stream);
}

Status HeadI4(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kI4, 4>(args, stream);
}

}  // namespace pawl::PAWL_GPU
