// Applying token masks to logits on the CPU. The arguments are those of the CUDA kernel.
#ifndef PAWL_KERNELS_BITMASK_H_
#define PAWL_KERNELS_BITMASK_H_

#include "pawl/cuda_kernels.h"

namespace pawl {

// In place, on the calling thread. Per row at most vocabulary / 8 bytes are read, and only refused
// logits are written.
void ApplyBitmask(const BitmaskArgs& args);

}  // namespace pawl

#endif  // PAWL_KERNELS_BITMASK_H_
