// Which of the kernels of matmul.cuh runs.
#include "kernels/cuda/experts.cuh"
#include "kernels/cuda/head.cuh"

namespace pawl::PAWL_GPU {

Status RunMatMul(const MatMul& args, Stream stream) {
  if (args.rows <= 0) return {};
  switch (args.parts[0].w.type) {
    case DeviceWeight::kF32:
      return MatMulF32(args, stream);
    case DeviceWeight::kBf16:
      return MatMulBf16(args, stream);
    case DeviceWeight::kF16:
      return MatMulF16(args, stream);
    case DeviceWeight::kFp8:
      return MatMulFp8(args, stream);
    case DeviceWeight::kI8:
      return MatMulI8(args, stream);
    case DeviceWeight::kI4:
      return MatMulI4(args, stream);
  }
  return {};
}

Status RunExpertProducts(const ExpertProducts& args, Stream stream) {
  if (args.most_runs <= 0) return {};
  switch (args.w.first.type) {
    case DeviceWeight::kF32:
      return ExpertsF32(args, stream);
    case DeviceWeight::kBf16:
      return ExpertsBf16(args, stream);
    case DeviceWeight::kF16:
      return ExpertsF16(args, stream);
    case DeviceWeight::kFp8:
      return ExpertsFp8(args, stream);
    case DeviceWeight::kI8:
      return ExpertsI8(args, stream);
    case DeviceWeight::kI4:
      return ExpertsI4(args, stream);
  }
  return {};
}

Status RunHeadSample(const HeadSample& args, Stream stream) {
  if (args.product.rows <= 0) return {};
  switch (args.product.parts[0].w.type) {
    case DeviceWeight::kF32:
      return HeadF32(args, stream);
    case DeviceWeight::kBf16:
      return HeadBf16(args, stream);
    case DeviceWeight::kF16:
      return HeadF16(args, stream);
    case DeviceWeight::kFp8:
      return HeadFp8(args, stream);
    case DeviceWeight::kI8:
      return HeadI8(args, stream);
    case DeviceWeight::kI4:
      return HeadI4(args, stream);
  }
  return {};
}

}  // namespace pawl::PAWL_GPU
