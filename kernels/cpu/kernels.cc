// Choosing the kernels: the widest variant that the processor and the operating system support.
#include "kernels/cpu/kernels.h"

#include "kernels/cpu/variants.h"
#include "src/base/cpu_features.h"

namespace pawl {

const KernelSet* FindKernels(KernelVariant variant) {
  const CpuFeatures cpu = DetectCpu();
  switch (variant) {
    case KernelVariant::kPortable:
      return &kPortableKernels;
    case KernelVariant::kAvx2:
#if defined(PAWL_X86_KERNELS)
      if (cpu.avx2 && cpu.fma && cpu.f16c) return &kAvx2Kernels;
#endif
      return nullptr;
    case KernelVariant::kAvx512:
#if defined(PAWL_X86_KERNELS)
      if (cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl) return &kAvx512Kernels;
#endif
      return nullptr;
    case KernelVariant::kAvx512Vnni:
#if defined(PAWL_X86_KERNELS)
      if (cpu.avx512_vnni && FindKernels(KernelVariant::kAvx512) != nullptr) {
        return &kAvx512VnniKernels;
      }
#endif
      return nullptr;
    case KernelVariant::kAmx:
#if defined(PAWL_X86_KERNELS)
      if (cpu.amx_bf16 && cpu.avx512_bf16 && FindKernels(KernelVariant::kAvx512Vnni) != nullptr &&
          RequestAmx()) {
        return &AmxKernels();
      }
#endif
      return nullptr;
    case KernelVariant::kAuto:
      break;
  }
  if (const KernelSet* tiles = FindKernels(KernelVariant::kAmx)) return tiles;
  if (const KernelSet* bytes = FindKernels(KernelVariant::kAvx512Vnni)) return bytes;
  if (const KernelSet* best = FindKernels(KernelVariant::kAvx512)) return best;
  if (const KernelSet* good = FindKernels(KernelVariant::kAvx2)) return good;
  return &kPortableKernels;
}

}  // namespace pawl
