// The kernels for 64-bit ARM. All floats are NEON's, which every such processor has; what differs
// are products of integers.
#include "kernels/cpu/neon_inl.h"

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/kernels_inl.h"

namespace pawl {
const KernelSet kNeonKernels = TableNamed<kNeonIntegers>("neon");
const KernelSet kNeonDotKernels = TableNamed<kNeonDotIntegers>("neon-dot");
const KernelSet kNeonI8mmKernels = TableNamed<kNeonI8mmIntegers>("neon-i8mm");
}  // namespace pawl
