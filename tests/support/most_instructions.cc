// Every test program: PAWL_KERNELS=avx2 (or another of kInstructionLimits) in the environment, and
// it runs as on a processor that has no more (src/base/cpu_features.h). scripts/test.sh --kernels
// avx2 does that for the whole suite.
#include <cstdlib>

#include "src/base/cpu_features.h"

namespace pawl {

const char* MostInstructions() { return std::getenv("PAWL_KERNELS"); }

}  // namespace pawl
