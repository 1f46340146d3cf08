// --device: a machine without a CUDA device runs models on the CPU, and says so in one line when it
// was asked to look for one.
#include "kernels/cuda/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

CommandResult Generate(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "generate", "--model", RandomModelFolder(), "--prompt", "Once ", "--max-tokens", "8"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

TEST(DeviceTest, AutoFallsBackToTheCpuAndSaysWhy) {
  if (!FindCudaDevices().devices.empty()) GTEST_SKIP() << "there is a device";
  const CommandResult on_cpu = Generate({});
  const CommandResult anywhere = Generate({"--device", "auto"});
  ASSERT_EQ(anywhere.exit_code, 0) << anywhere.err;
  EXPECT_EQ(anywhere.out, on_cpu.out);
  const std::string line =
      "pawl generate: note: no CUDA device is used: " + FindCudaDevices().problem +
      "; the model runs on the CPU\n";
  EXPECT_NE(anywhere.err.find(line), std::string::npos) << anywhere.err;
  EXPECT_EQ(on_cpu.err.find("CUDA"), std::string::npos) << on_cpu.err;
}

TEST(DeviceTest, CudaIsAnErrorWithoutADevice) {
  if (!FindCudaDevices().devices.empty()) GTEST_SKIP() << "there is a device";
  const CommandResult result = Generate({"--device", "cuda"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find(FindCudaDevices().problem), std::string::npos) << result.err;
}

TEST(DeviceTest, Fp8WeightsAreForDevices) {
  const CommandResult result = Generate({"--dtype", "fp8"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("fp8 weights are for CUDA devices alone"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace pawl
