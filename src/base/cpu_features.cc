// CPUID says what the processor has, XGETBV which registers the system saves; a feature whose
// registers are not saved counts as absent. Intel's manual, volume 1, chapters 14 and 15. Not the
// compiler's __builtin_cpu_supports: some of the libraries behind it know no processor.
#include "src/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstring>
#include <string_view>

#include "src/base/os/processors.h"

namespace pawl {

// A function, and not an open name, which linkers for macOS do not take.
__attribute__((weak)) const char* MostInstructions() { return nullptr; }

namespace {

// What is left of `features` under MostInstructions().
CpuFeatures Limited(CpuFeatures features) {
  const char* most = MostInstructions();
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

#if defined(__x86_64__)
void AskX86(CpuFeatures& features) {
  const auto bit = [](unsigned word, int at) { return (word >> at & 1) != 0; };
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return;
  const bool saves = bit(ecx, 27), avx = bit(ecx, 28);
  const bool fma = bit(ecx, 12), f16c = bit(ecx, 29);
  if (!saves) return;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const bool vectors = avx && (low & 0x06) == 0x06;   // SSE, AVX
  const bool wide = vectors && (low & 0xE0) == 0xE0;  // masks, halves of registers, registers
  const bool tiles = (low >> 17 & 3) == 3;
  features.fma = vectors && fma;
  features.f16c = vectors && f16c;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return;
  const unsigned leaves = eax;
  features.avx2 = vectors && bit(ebx, 5);
  features.avx512f = wide && bit(ebx, 16);
  features.avx512dq = wide && bit(ebx, 17);
  features.avx512bw = wide && bit(ebx, 30);
  features.avx512vl = wide && bit(ebx, 31);
  features.avx512_vnni = wide && bit(ecx, 11);
  features.amx_bf16 = tiles && bit(edx, 22) && bit(edx, 24);
  if (leaves < 1 || __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return;
  features.avx512_bf16 = wide && bit(eax, 5);
}
#endif

}  // namespace

CpuFeatures DetectCpu() {
  CpuFeatures features;
#if defined(__x86_64__)
  AskX86(features);
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
