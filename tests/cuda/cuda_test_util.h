// Shared by the tests of the CUDA backend, which run on the host emulation or on a device.
#ifndef PAWL_TESTS_CUDA_CUDA_TEST_UTIL_H_
#define PAWL_TESTS_CUDA_CUDA_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/runtime.h"
#if defined(PAWL_CUDA_EMULATED)
#include PAWL_CUDA_EMULATED
#endif

namespace pawl::PAWL_GPU {

using Random = std::mt19937;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline std::vector<float> Normal(Random& random, size_t n, float spread = 1.0f) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

inline float RoundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint16_t Bf16Bits(float value) {
  const float rounded = RoundToBf16(value);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

// A vector in device memory.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    EXPECT_TRUE(CopyIn(data(), values.data(), Bytes(), nullptr).ok());
  }
  // Poisoned.
  explicit OnDevice(size_t size) : size_(size) {
    Result<DeviceMemory> memory = DeviceMemory::Make(Bytes());
    EXPECT_TRUE(memory.ok());
    if (memory.ok()) memory_ = *std::move(memory);
    EXPECT_TRUE(Fill(memory_.data(), 0xff, Bytes(), nullptr).ok());
  }
  T* data() const { return memory_.as<T>(); }
  std::vector<T> values() const {
    std::vector<T> values(size_);
    EXPECT_TRUE(CopyOut(values.data(), data(), Bytes(), nullptr).ok());
    const Status status = Synchronize(nullptr);
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    return values;
  }

 private:
  int64_t Bytes() const { return static_cast<int64_t>(size_ * sizeof(T)); }
  size_t size_;
  DeviceMemory memory_;
};

// Skips without a device. Checks guards at the end.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<DeviceFacts> device = CurrentDevice();
    if (!device.ok()) GTEST_SKIP() << "no usable device: " << device.error().message;
  }
  void TearDown() override {
#if defined(PAWL_CUDA_EMULATED)
    const Status status = SynchronizeAll();
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_TRUE(GuardsIntact());
#endif
  }
};

// `run` starts kernels and returns what they wrote. On the emulation it runs for each order of
// blocks and threads, and the answers must have the same bits.
template <typename T>
std::vector<T> InAnyOrder(const std::function<std::vector<T>()>& run) {
  std::vector<T> first = run();
#if defined(PAWL_CUDA_EMULATED)
  for (const auto schedule : {emulation::Schedule::kBackward, emulation::Schedule::kShuffled}) {
    emulation::SetSchedule(schedule);
    const std::vector<T> again = run();
    EXPECT_TRUE(first.size() == again.size() &&
                std::memcmp(first.data(), again.data(), first.size() * sizeof(T)) == 0)
        << "the order of threads or blocks changes the result: something does not wait";
  }
  emulation::SetSchedule(emulation::Schedule::kForward);
#endif
  return first;
}

#define PAWL_EXPECT_OK(expression)                           \
  do {                                                       \
    const ::pawl::Status status_ = (expression);             \
    EXPECT_TRUE(status_.ok()) << status_.error().ToString(); \
  } while (false)

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_TESTS_CUDA_CUDA_TEST_UTIL_H_
