// What CPUID says against what the compiler's own library says.
#include "src/base/cpu_features.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

TEST(CpuFeaturesTest, AgreesWithTheCompilersLibrary) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (MostInstructions() != nullptr && *MostInstructions() != '\0') {
    GTEST_SKIP() << "some features are left out on purpose";
  }
  __builtin_cpu_init();
  const CpuFeatures found = DetectCpu();
  EXPECT_EQ(found.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(found.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(found.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(found.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(found.avx512dq, __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(found.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(found.avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(found.avx512_bf16, __builtin_cpu_supports("avx512bf16") != 0);
  // Each processor with AVX2 has both.
  EXPECT_EQ(found.f16c, found.avx2);
#else
  GTEST_SKIP() << "for GCC on x86-64";
#endif
}

}  // namespace
}  // namespace pawl
