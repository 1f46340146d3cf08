// Choosing the kernels: the widest variant that the processor and the operating system support, of
// those that keep what they get.
#include "kernels/cpu/kernels.h"

#include "src/base/cpu_features.h"

namespace pawl {
namespace {

// kernels/cpu/tiles.h says what stands for the tiles in tests.
#if defined(PAWL_EMULATED_TILES)
bool HaveTiles(const CpuFeatures&) { return true; }
#elif defined(PAWL_X86_KERNELS)
bool HaveTiles(const CpuFeatures& cpu) { return cpu.amx_bf16 && RequestAmx(); }
#endif

}  // namespace

const KernelSet* FindKernels(KernelVariant variant) {
  [[maybe_unused]] const CpuFeatures cpu = DetectCpu();
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
    case KernelVariant::kAmxBf16:
#if defined(PAWL_X86_KERNELS)
      if (HaveTiles(cpu) && cpu.avx512_bf16 && FindKernels(KernelVariant::kAvx512Vnni) != nullptr) {
        return variant == KernelVariant::kAmx ? &AmxKernels() : &AmxBf16Kernels();
      }
#endif
      return nullptr;
    case KernelVariant::kAvx512Bf16:
#if defined(PAWL_X86_KERNELS)
      if (cpu.avx512_bf16 && FindKernels(KernelVariant::kAvx512Vnni) != nullptr) {
        return &kAvx512Bf16Kernels;
      }
#endif
      return nullptr;
    case KernelVariant::kNeon:
#if defined(PAWL_ARM_KERNELS)
      if (cpu.neon) return &kNeonKernels;
#endif
      return nullptr;
    case KernelVariant::kNeonDot:
#if defined(PAWL_ARM_KERNELS)
      if (cpu.dot_product) return &kNeonDotKernels;
#endif
      return nullptr;
    case KernelVariant::kNeonI8mm:
#if defined(PAWL_ARM_KERNELS)
      if (cpu.dot_product && cpu.i8mm) return &kNeonI8mmKernels;
#endif
      return nullptr;
    case KernelVariant::kNeonBfmmla:
#if defined(PAWL_ARM_KERNELS)
      if (cpu.dot_product && cpu.i8mm && cpu.bf16) return &NeonBfmmlaKernels();
#endif
      return nullptr;
    case KernelVariant::kAuto:
      break;
  }
  using enum KernelVariant;
  for (const KernelVariant best :
       {kAmx, kAvx512Vnni, kAvx512, kAvx2, kNeonBfmmla, kNeonI8mm, kNeonDot, kNeon}) {
    if (const KernelSet* kernels = FindKernels(best)) return kernels;
  }
  return &kPortableKernels;
}

}  // namespace pawl
