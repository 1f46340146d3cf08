// The functions of pawl/cuda_kernels.h in the form that is compiled here (backend.h).
#ifndef PAWL_KERNELS_CUDA_MASKS_H_
#define PAWL_KERNELS_CUDA_MASKS_H_

#include "kernels/cuda/backend.h"
#include "kernels/cuda/runtime.h"
#include "pawl/cuda_kernels.h"

namespace pawl::PAWL_GPU {

int64_t WorkspaceBytes(int64_t count, int64_t vocabulary);
Status ApplyBitmask(const BitmaskArgs& args, Stream stream);
Status Sample(const SampleArgs& args, Stream stream);
Status LogSoftmax(const LogSoftmaxArgs& args, Stream stream);
Status TopK(const TopKArgs& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_MASKS_H_
