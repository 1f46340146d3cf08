// The kernels for AVX-512 (F, BW, DQ, VL). The bfloat16 dot-product instructions stay unused: they
// round activations to 8 bits, and give half to twice as many products as multiply-add
// (docs/engine.md), of which each input needs two to keep 16 bits. Those who want that rounding
// have avx512_bf16.cc.
#include "kernels/cpu/avx512_inl.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/kernels_inl.h"

namespace pawl {
const KernelSet kAvx512Kernels = TableNamed<kAvx2Integers>("avx512");
const KernelSet kAvx512VnniKernels = TableNamed<kVnniIntegers>("avx512-vnni");
}  // namespace pawl
