// The compiler's __builtin_cpu_supports asks CPUID and XGETBV, so that a feature whose registers
// the operating system does not save counts as absent. F16C is missing from its list in older
// compilers and is read from CPUID leaf 1 here (ECX bit 29); it uses the AVX registers, so AVX
// stands for the system's support.
#include "src/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <cstring>
#include <string_view>

#include "src/base/os/processors.h"

namespace pawl {
namespace {

// What is left of `features` under MostInstructions().
CpuFeatures Limited(CpuFeatures features) {
  const char* most = MostInstructions != nullptr ? MostInstructions() : nullptr;
  if (most == nullptr || *most == '\0') return features;
  const std::string_view name = most;
  const int level = name == "avx512-vnni" ? 3 : name == "avx512" ? 2 : name == "avx2" ? 1 : 0;
  features.amx_bf16 = features.avx512_bf16 = false;
  if (level < 3) features.avx512_vnni = false;
  if (level < 2) {
    features.avx512f = features.avx512bw = features.avx512dq = features.avx512vl = false;
  }
  if (level < 1) features.avx2 = features.fma = features.f16c = false;
  const int arm = name == "neon-i8mm" ? 3 : name == "neon-dot" ? 2 : name == "neon" ? 1 : 0;
  features.bf16 = false;
  if (arm < 3) features.i8mm = false;
  if (arm < 2) features.dot_product = false;
  if (arm < 1) features.neon = false;
  return features;
}

}  // namespace

CpuFeatures DetectCpu() {
  CpuFeatures features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  features.avx2 = __builtin_cpu_supports("avx2");
  features.fma = __builtin_cpu_supports("fma");
  features.avx512f = __builtin_cpu_supports("avx512f");
  features.avx512bw = __builtin_cpu_supports("avx512bw");
  features.avx512dq = __builtin_cpu_supports("avx512dq");
  features.avx512vl = __builtin_cpu_supports("avx512vl");
  features.avx512_vnni = __builtin_cpu_supports("avx512vnni");
  features.avx512_bf16 = __builtin_cpu_supports("avx512bf16");
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
    features.f16c = __builtin_cpu_supports("avx") && (ecx >> 29 & 1) != 0;
    const bool osxsave = (ecx >> 27 & 1) != 0;
    // CPUID 7, EDX: AMX-BF16 is bit 22, AMX-TILE bit 24; XCR0 bits 17 and 18: the tiles are saved.
    if (osxsave && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
      unsigned low = 0, high = 0;
      asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      features.amx_bf16 = (edx >> 22 & 1) != 0 && (edx >> 24 & 1) != 0 && (low >> 17 & 3) == 3;
    }
  }
#endif
#if defined(__aarch64__)
  features.neon = true;
  const os::ArmFeatures arm = os::AskArmFeatures();
  features.dot_product = arm.dot_product;
  features.i8mm = arm.i8mm;
  features.bf16 = arm.bf16;
#endif
  return Limited(features);
}

bool RequestAmx() { return DetectCpu().amx_bf16 && os::RequestTiles(); }

std::string ToString(const CpuFeatures& features) {
  std::string text;
  const auto add = [&text](bool present, const char* name) {
    if (!present) return;
    if (!text.empty()) text += ' ';
    text += name;
  };
  add(features.avx2, "avx2");
  add(features.fma, "fma");
  add(features.f16c, "f16c");
  add(features.avx512f, "avx512f");
  add(features.avx512bw, "avx512bw");
  add(features.avx512dq, "avx512dq");
  add(features.avx512vl, "avx512vl");
  add(features.avx512_vnni, "avx512_vnni");
  add(features.avx512_bf16, "avx512_bf16");
  add(features.amx_bf16, "amx_bf16");
  add(features.neon, "neon");
  add(features.dot_product, "dotprod");
  add(features.i8mm, "i8mm");
  add(features.bf16, "bf16");
  return text.empty() ? "baseline" : text;
}

std::string CpuName() {
#if defined(__x86_64__)
  char name[49] = {};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned words[4] = {};
    if (__get_cpuid(0x80000002u + leaf, &words[0], &words[1], &words[2], &words[3]) == 0) {
      return "x86-64";
    }
    std::memcpy(name + 16 * leaf, words, 16);
  }
  std::string text(name);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  text.erase(0, text.find_first_not_of(' ') == std::string::npos ? text.size()
                                                                 : text.find_first_not_of(' '));
  return text.empty() ? "x86-64" : text;
#elif defined(__aarch64__)
  return "arm64";
#else
  return "unknown";
#endif
}

}  // namespace pawl
