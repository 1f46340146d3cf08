// The tables of the compiled variants; kernels.cc picks one.
#ifndef PAWL_KERNELS_CPU_VARIANTS_H_
#define PAWL_KERNELS_CPU_VARIANTS_H_

#include "kernels/cpu/kernels.h"

namespace pawl {

extern const KernelSet kPortableKernels;
#if defined(PAWL_X86_KERNELS)
extern const KernelSet kAvx2Kernels;
extern const KernelSet kAvx512Kernels;
// The same with AVX-512 VNNI for integer weights.
extern const KernelSet kAvx512VnniKernels;
// The same with inputs beside bf16 weights rounded to bf16. It needs AVX-512 BF16 too.
extern const KernelSet kAvx512Bf16Kernels;
// REQUIRES: RequestAmx() is true.
const KernelSet& AmxKernels();
const KernelSet& AmxBf16Kernels();
#endif

}  // namespace pawl

#endif  // PAWL_KERNELS_CPU_VARIANTS_H_
