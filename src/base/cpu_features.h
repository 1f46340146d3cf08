// What this processor can do, asked of the processor at run time.
#ifndef PAWL_SRC_BASE_CPU_FEATURES_H_
#define PAWL_SRC_BASE_CPU_FEATURES_H_

#include <string>

namespace pawl {

// A feature is set when both the processor and the operating system (saved registers) support it.
// Those of other architectures than the processor's are false.
struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avx512_vnni = false, avx512_bf16 = false;
  bool amx_bf16 = false;  // with its tiles; a process must ask for them first, see RequestAmx
  bool neon = false, dot_product = false, i8mm = false, bf16 = false;  // 64-bit ARM
};

inline constexpr const char* kInstructionLimits[] = {
    "portable", "avx2", "avx512", "avx512-vnni", "neon", "neon-dot", "neon-i8mm"};

// Less what MostInstructions() leaves out.
CpuFeatures DetectCpu();

// To try on one processor what runs on a lesser one, a program may define this function, in
// place of the library's, which answers null. One of kInstructionLimits: no instructions beyond
// those of that kernel variant; null or "": all that the processor has. Other texts count as
// "portable".
const char* MostInstructions();

// Asks the system to let this process use AMX's tiles, once for all its threads; asking again does
// nothing. False when it refuses or has none. From then on a thread that uses them needs 8 KiB more
// on signal stacks and in core dumps.
bool RequestAmx();

// "avx2 fma f16c ...", the features that are set; "baseline" when none is.
std::string ToString(const CpuFeatures& features);

// The processor's name as it gives it, or the architecture's when it gives none.
std::string CpuName();

}  // namespace pawl

#endif  // PAWL_SRC_BASE_CPU_FEATURES_H_
