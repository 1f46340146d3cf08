#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status MatMulBf16(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::kBf16, 1>(args, stream);
}

Status HeadBf16(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::kBf16, 1>(args, stream);
}

}  // namespace pawl::PAWL_GPU
