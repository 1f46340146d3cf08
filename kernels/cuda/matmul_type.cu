// The products, those of experts and the head for one type of weights; the kernels are templates in
// head.cuh, experts.cuh and what they include. CMake compiles this source once for each type, in
// parallel: PAWL_TYPE is the type, PAWL_TILES the tiles of 16 outputs that a block computes.
#include "kernels/cuda/experts.cuh"
#include "kernels/cuda/head.cuh"

#define PAWL_JOINED(a, b) a##b
#define PAWL_NAME(a, b) PAWL_JOINED(a, b)

namespace pawl::PAWL_GPU {

Status PAWL_NAME(MatMul, PAWL_TYPE)(const MatMul& args, Stream stream) {
  return LaunchMatMul<DeviceWeight::PAWL_NAME(k, PAWL_TYPE), PAWL_TILES>(args, stream);
}

Status PAWL_NAME(Experts, PAWL_TYPE)(const ExpertProducts& args, Stream stream) {
  return LaunchExperts<DeviceWeight::PAWL_NAME(k, PAWL_TYPE)>(args, stream);
}

Status PAWL_NAME(Head, PAWL_TYPE)(const HeadSample& args, Stream stream) {
  return LaunchHead<DeviceWeight::PAWL_NAME(k, PAWL_TYPE), PAWL_TILES>(args, stream);
}

}  // namespace pawl::PAWL_GPU
