// The kernel variants that tests go through; those that this processor lacks are passed over.
#ifndef PAWL_TESTS_SUPPORT_KERNEL_VARIANTS_H_
#define PAWL_TESTS_SUPPORT_KERNEL_VARIANTS_H_

#include "kernels/cpu/kernels.h"

namespace pawl {

// Those of the same bits for all weights.
inline constexpr KernelVariant kExactKernels[] = {
    KernelVariant::kPortable,   KernelVariant::kAvx2, KernelVariant::kAvx512,
    KernelVariant::kAvx512Vnni, KernelVariant::kNeon, KernelVariant::kNeonDot,
    KernelVariant::kNeonI8mm};

// The ones that are chosen behind those that are not; those that round inputs are last.
inline constexpr KernelVariant kAllKernels[] = {
    KernelVariant::kPortable,   KernelVariant::kAvx2,      KernelVariant::kAvx512,
    KernelVariant::kAvx512Vnni, KernelVariant::kNeon,      KernelVariant::kNeonDot,
    KernelVariant::kNeonI8mm,   KernelVariant::kAmx,       KernelVariant::kNeonBfmmla,
    KernelVariant::kAmxBf16,    KernelVariant::kAvx512Bf16};

}  // namespace pawl

#endif  // PAWL_TESTS_SUPPORT_KERNEL_VARIANTS_H_
