// The CUDA twin of ApplyBitmask.
#ifndef PAWL_KERNELS_CUDA_BITMASK_H_
#define PAWL_KERNELS_CUDA_BITMASK_H_

#include "kernels/bitmask.h"
#include "pawl/result.h"

namespace pawl {

// Puts the kernel on a stream (a cudaStream_t, null for the default one); every pointer in `args`
// is the device's. Errors (kInternal): the launch failed. What the kernel itself does wrong shows
// at the next synchronisation.
Status ApplyBitmaskCuda(const BitmaskArgs& args, void* stream);

}  // namespace pawl

#endif  // PAWL_KERNELS_CUDA_BITMASK_H_
