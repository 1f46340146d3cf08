// What the host emulation promises to show, shown on kernels with the fault in question. Kernels
// that are right are in the other tests.
#include <numeric>

#include "kernels/cuda/device_language.h"
#include "tests/cuda/cuda_test_util.h"

namespace pawl::PAWL_GPU {
namespace {

// What went wrong in a kernel is known when it has run.
template <typename... Arguments>
Status LaunchAndWait(Arguments... arguments) {
  Status status = Launch(arguments...);
  return status.ok() ? Synchronize(nullptr) : status;
}

Shape Threads(unsigned threads, unsigned blocks = 1) {
  Shape shape;
  shape.x = blocks;
  shape.threads = threads;
  return shape;
}

// Reverses a block's numbers through shared memory.
__global__ void Reverse(int* out, bool barrier) {
  DependencyWait();
  PAWL_SHARED(int, numbers, 64);
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (barrier) __syncthreads();
  out[threadIdx.x] = numbers[63 - threadIdx.x];
}

TEST(EmulationTest, AMissingBarrierShowsInSomeOrder) {
  for (const bool barrier : {true, false}) {
    bool right = true;
    for (const auto schedule : {emulation::Schedule::kForward, emulation::Schedule::kBackward,
                                emulation::Schedule::kShuffled}) {
      emulation::SetSchedule(schedule);
      OnDevice<int> out(size_t{64});
      PAWL_EXPECT_OK(Launch("reverse", Threads(64), nullptr, Reverse, out.data(), barrier));
      const std::vector<int> values = out.values();
      for (int i = 0; i < 64; ++i) right = right && values[static_cast<size_t>(i)] == 63 - i;
    }
    emulation::SetSchedule(emulation::Schedule::kForward);
    EXPECT_EQ(right, barrier);
  }
}

__global__ void HalfABarrier() {
  DependencyWait();
  if (threadIdx.x < 32) __syncwarp();
  if (threadIdx.x == 40) __syncwarp();
}
TEST(EmulationTest, ABarrierThatSomeNeverReachIsReported) {
  const Status status = LaunchAndWait("half", Threads(64), nullptr, HalfABarrier);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("deadlock"), std::string::npos) << status.error().message;
  // The emulation goes on working.
  OnDevice<int> out(size_t{64});
  PAWL_EXPECT_OK(Launch("reverse", Threads(64), nullptr, Reverse, out.data(), true));
  EXPECT_EQ(out.values()[0], 63);
}

__global__ void TwoOperations() {
  DependencyWait();
  if (threadIdx.x < 7) {
    __syncwarp();
  } else {
    (void)__ballot_sync(kAllLanes, 1);
  }
}
TEST(EmulationTest, LanesAtDifferentOperationsAreReported) {
  const Status status = LaunchAndWait("two", Threads(32), nullptr, TwoOperations);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("lanes of a warp are at"), std::string::npos);
}

__global__ void Beyond(int* out) {
  DependencyWait();
  PAWL_SHARED(int, numbers, 24);
  numbers[threadIdx.x] = 1;
  out[0] = numbers[0];
}
#if !defined(__SANITIZE_ADDRESS__)
TEST(EmulationTest, WritesBeyondMemoryAreReported) {
  OnDevice<int> out(size_t{1});
  const Status status = LaunchAndWait("beyond", Threads(32), nullptr, Beyond, out.data());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("beyond a shared array"), std::string::npos);
}
#endif

__global__ void SumSoFar(int* sums) {
  DependencyWait();
  const int block = static_cast<int>(blockIdx.x);
  sums[block] = block + (block > 0 ? sums[block - 1] : 0);
}
TEST(EmulationTest, ABlockThatCountsOnTheOneBeforeShowsInSomeOrder) {
  bool right = true;
  for (const auto schedule : {emulation::Schedule::kForward, emulation::Schedule::kBackward,
                              emulation::Schedule::kShuffled}) {
    emulation::SetSchedule(schedule);
    OnDevice<int> sums(size_t{20});
    PAWL_EXPECT_OK(Launch("sums", Threads(32, 20), nullptr, SumSoFar, sums.data()));
    right = right && sums.values()[19] == 190;
    EXPECT_TRUE(right || schedule != emulation::Schedule::kForward);
  }
  emulation::SetSchedule(emulation::Schedule::kForward);
  EXPECT_FALSE(right);
}

// Each block of a cluster sums what all of them have.
__global__ void SumOfCluster(int* out, bool barrier, bool stay) {
  DependencyWait();
  PAWL_SHARED(int, number, 1);
  if (threadIdx.x == 0) number[0] = static_cast<int>(blockIdx.x) + 1;
  if (barrier) ClusterSync();
  int sum = 0;
  if (stay || ClusterRank() == 0) {
    for (int r = 0; r < ClusterBlocks(); ++r) sum += *SharedOf(number, r);
  }
  if (stay) ClusterSync();
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
TEST(EmulationTest, BlocksOfAClusterReadEachOthersMemory) {
  Shape shape = Threads(64, 6);
  shape.cluster = 3;
  const std::vector<int> got = InAnyOrder<int>([&] {
    OnDevice<int> out(size_t{6});
    PAWL_EXPECT_OK(Launch("cluster", shape, nullptr, SumOfCluster, out.data(), true, true));
    return out.values();
  });
  EXPECT_EQ(got, (std::vector<int>{6, 6, 6, 15, 15, 15}));
}
TEST(EmulationTest, BlocksOfAClusterThatDoNotWaitAreReported) {
  Shape shape = Threads(64, 6);
  shape.cluster = 3;
  for (const bool barrier : {true, false}) {
    emulation::SetSchedule(emulation::Schedule::kBackward);
    OnDevice<int> out(size_t{6});
    const Status status =
        LaunchAndWait("cluster", shape, nullptr, SumOfCluster, out.data(), barrier, !barrier);
    emulation::SetSchedule(emulation::Schedule::kForward);
    ASSERT_FALSE(status.ok()) << barrier;
    EXPECT_NE(status.error().message.find("of the cluster does not have"), std::string::npos);
  }
}

__global__ void Hurried(int* out) { out[threadIdx.x] = 1; }
TEST(EmulationTest, AKernelThatDoesNotWaitForTheOneInFrontIsReported) {
  OnDevice<int> out(size_t{32});
  const Status status = LaunchAndWait("hurried", Threads(32), nullptr, Hurried, out.data());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("without DependencyWait"), std::string::npos);
}

TEST(EmulationTest, LaunchesThatNoDeviceTakesAreRefusedAtOnce) {
  Shape shape = Threads(32);
  shape.y = 65536;
  EXPECT_FALSE(Launch("two", shape, nullptr, TwoOperations).ok());
  shape = Threads(1056);
  EXPECT_FALSE(Launch("two", shape, nullptr, TwoOperations).ok());
  shape = Threads(32);
  shape.dynamic_shared = emulation::kSharedBytes + 1;
  EXPECT_FALSE(Launch("two", shape, nullptr, TwoOperations).ok());
  shape = Threads(32, 9);
  for (const unsigned cluster : {0u, 2u, 9u}) {
    shape.cluster = cluster;
    EXPECT_FALSE(Launch("two", shape, nullptr, TwoOperations).ok());
  }
}

__global__ void WarpThings(int* out) {
  DependencyWait();
  const int lane = static_cast<int>(threadIdx.x);
  int value = __shfl_xor_sync(kAllLanes, lane, 1) * 1000;
  value += __shfl_sync(kAllLanes, lane, 5) * 10;
  value += static_cast<int>(__ballot_sync(kAllLanes, lane == 3) == 8u);
  value += __shfl_up_sync(kAllLanes, lane, 2u) * 100000;
  out[lane] = value;
}
TEST(EmulationTest, WarpOperations) {
  const std::vector<int> got = InAnyOrder<int>([] {
    OnDevice<int> out(size_t{32});
    PAWL_EXPECT_OK(Launch("warp", Threads(32), nullptr, WarpThings, out.data()));
    return out.values();
  });
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(got[static_cast<size_t>(i)], (i ^ 1) * 1000 + 51 + (i < 2 ? i : i - 2) * 100000);
  }
}

__global__ void OneMma(const float* a, const float* b, float* c) {
  DependencyWait();
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  uint32_t left[4], right[2];
  for (int i = 0; i < 4; ++i) {
    const float* at = a + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    left[i] = PackBf16(at[0], at[1]);
  }
  for (int i = 0; i < 2; ++i) {
    const float* at = b + (2 * t + i * 8) * 8 + g;
    right[i] = PackBf16(at[0], at[8]);
  }
  float sums[4] = {0, 0, 0, 0};
  MmaBf16(sums, left, right);
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
}
TEST(EmulationTest, MmaIsAMatrixProduct) {
  Random random(1);
  std::vector<float> a = Normal(random, 256), b = Normal(random, 128);
  for (std::vector<float>* values : {&a, &b}) {
    for (float& v : *values) v = RoundToBf16(v);
  }
  const OnDevice<float> device_a(a), device_b(b);
  OnDevice<float> c(size_t{128});
  PAWL_EXPECT_OK(
      Launch("mma", Threads(32), nullptr, OneMma, device_a.data(), device_b.data(), c.data()));
  const std::vector<float> got = c.values();
  for (size_t m = 0; m < 16; ++m) {
    for (size_t n = 0; n < 8; ++n) {
      double sum = 0;
      for (size_t k = 0; k < 16; ++k) sum += double{a[m * 16 + k]} * b[k * 8 + n];
      EXPECT_NEAR(got[m * 8 + n], sum, 1e-5);
    }
  }
}

TEST(EmulationTest, GraphsKeepArgumentsAndReadMemory) {
  const Result<Stream> stream = NewStream();
  ASSERT_TRUE(stream.ok());
  OnDevice<int> out(size_t{64}), copy(size_t{64});
  PAWL_EXPECT_OK(LaunchAndWait("reverse", Threads(64), nullptr, Reverse, out.data(), true));
  PAWL_EXPECT_OK(Fill(out.data(), 0xff, 64 * 4, nullptr));
  PAWL_EXPECT_OK(BeginCapture(*stream));
  PAWL_EXPECT_OK(Launch("reverse", Threads(64), *stream, Reverse, out.data(), true));
  PAWL_EXPECT_OK(CopyWithin(copy.data(), out.data(), 64 * 4, *stream));
  Result<Graph> graph = EndCapture(*stream);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(out.values()[0], -1);
  PAWL_EXPECT_OK(Replay(*graph, *stream));
  PAWL_EXPECT_OK(Synchronize(*stream));
  EXPECT_EQ(copy.values()[1], 62);
  FreeGraph(*graph);
  FreeStream(*stream);
}

TEST(EmulationTest, MemoryRunsOutWithNumbers) {
  LimitMemory(1 << 20);
  const Result<void*> memory = Allocate(int64_t{3} << 20);
  LimitMemory(-1);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kLimit);
  EXPECT_EQ(memory.error().message,
            "not enough device memory: 3 MiB asked for, 1 MiB of 1 MiB free");
}

// Every e4m3 code, and the nearest code of every float between.
__global__ void AllCodes(float* out) {
  DependencyWait();
  for (unsigned i = threadIdx.x; i < 256; i += 32) out[i] = E4m3ToFloat(i);
}
TEST(EmulationTest, E4m3) {
  OnDevice<float> values(size_t{256});
  PAWL_EXPECT_OK(Launch("codes", Threads(32), nullptr, AllCodes, values.data()));
  const std::vector<float> value = values.values();
  EXPECT_EQ(value[1], 0.001953125f);
  EXPECT_EQ(value[0x7e], 448.0f);
  EXPECT_EQ(value[0x38], 1.0f);
  EXPECT_EQ(value[0xb8], -1.0f);
  for (unsigned code = 0; code < 0x7e; ++code) {
    EXPECT_EQ(FloatToE4m3(value[code]), code);
    const float middle = (value[code] + value[code + 1]) / 2;
    EXPECT_EQ(FloatToE4m3(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(FloatToE4m3(std::nextafter(middle, 1e9f)), code + 1);
    EXPECT_EQ(FloatToE4m3(std::nextafter(middle, 0.0f)), code);
  }
  EXPECT_EQ(FloatToE4m3(1e30f), 0x7e);
  EXPECT_EQ(FloatToE4m3(-500.0f), 0xfe);
}

}  // namespace
}  // namespace pawl::PAWL_GPU
