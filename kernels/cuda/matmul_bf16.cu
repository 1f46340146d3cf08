// The products with weights of type bfloat16, in a source of its own so that the types compile
// beside each other; the kernels are templates in head.cuh and what it includes.
#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulBf16(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kBf16, 1>(args, stream);
}

Status HeadBf16(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kBf16, 1>(args, stream);
}

}  // namespace pawl::PAWL_GPU
