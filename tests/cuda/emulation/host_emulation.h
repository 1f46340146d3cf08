// The part of CUDA C++ that the kernels (kernels/cuda) use, as plain C++: enough to compile and run
// them on the host, one thread of a block after the other. And what tests can ask of the emulated
// device and set.
//
// Each thread of a block is a fiber that runs until it comes to a barrier: __syncthreads, or
// anything that a warp does together (__syncwarp, shuffles, votes, mma). There it waits until all
// who have to come have come. Blocks run one after the other, in one order or another; those of a
// cluster run together. So the emulation shows
//   - wrong results, from wrong indices, bounds, tails or arithmetic;
//   - accesses out of bounds: device memory (runtime.h) and shared memory lie between guards, and
//     at the end of a heap block for AddressSanitizer;
//   - memory read before it was written: both kinds of memory start as NaNs;
//   - barriers that some threads of a block or warp never reach, and warp operations that differ
//     between lanes: the launch fails and says who waits where;
//   - many missing barriers: the order in which the threads run between barriers is a setting, and
//     a kernel whose threads read what others write without a barrier gives other bits forwards
//     than backwards (Schedule);
//   - blocks that count on others having run before them: the same setting orders the blocks;
//   - shared memory of a block of the cluster that has ended or does not have it yet;
//   - kernels that do not wait for the one in front of them (DependencyWait).
// The order of kernels and copies on streams is another file's (streams_emulated.cc).
//
// It does not show data races that no order of whole threads brings out, races between blocks that
// run at the same time, a fence between threads that is missing (__threadfence), what hardware does
// faster or slower, the registers and memory that a kernel needs, or the order in which a tensor
// core adds: mma is a double-precision sum here. Warp operations take whole warps only: a mask
// other than all ones is refused.
#ifndef PAWL_TESTS_CUDA_EMULATION_HOST_EMULATION_H_
#define PAWL_TESTS_CUDA_EMULATION_HOST_EMULATION_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/runtime.h"

namespace pawl::emulation {

using PAWL_GPU::Shape;

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Of the fiber that runs.
struct Position {
  Index thread, block, block_size, grid_size;
  unsigned cluster = 1;  // blocks
};
extern thread_local Position position;

// The order of a launch's blocks, and of a block's threads between two barriers.
enum class Schedule { kForward, kBackward, kShuffled };
void SetSchedule(Schedule schedule);

// What a block can have: dynamic in all, as compute capability 9.0 allows, and static.
constexpr size_t kSharedBytes = size_t{227} << 10, kStaticSharedBytes = size_t{48} << 10;

// Why no device would take such a launch; "" if one would.
std::string Refusal(const char* kernel, const Shape& shape);
// Runs `body` for every thread of every block. "" or what went wrong.
std::string Run(const char* kernel, const Shape& shape, const std::function<void()>& body);

// The weights that kernels load, written down between two calls of Watch.
struct Load {
  const unsigned char* begin;
  size_t bytes;
};
void Watch(std::vector<Load>* loads);  // null: nothing is written down
void NoteLoad(const void* address, size_t bytes);

void SyncThreads();
void SyncCluster();
void DependencyWaited();
// Asynchronous copies (cp.async), which a thread puts into groups: each is made when the thread
// waits for its group and no earlier, so that a wait that is missing shows. `from` null: zeros.
void CopyLater(void* to, const void* from, size_t bytes);
void CloseCopies();
void WaitForCopies(int groups_open);  // all but the last so many groups
// A value of at most 32 bytes from each lane of the warp: returns those of all 32 lanes, 32 bytes
// apart, intact until this thread's next but one warp operation. `what` must be the same for all.
const unsigned char* Exchange(const char* what, const void* value, size_t bytes);
// Shared memory of the block that runs: the same for the same tag.
void* SharedArray(const void* tag, size_t bytes);
void* DynamicShared();
// The same in another block of the cluster.
const void* SharedOf(const void* shared, int rank);
[[noreturn]] void Fail(const std::string& message);

template <typename T>
T FromLane(const unsigned char* lanes, int lane) {
  T value;
  std::memcpy(&value, lanes + (lane & 31) * 32, sizeof value);
  return value;
}
inline void RequireWholeWarp(unsigned mask) {
  if (mask != 0xffffffffu) Fail("a warp operation for a part of a warp");
}

}  // namespace pawl::emulation

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define threadIdx (::pawl::emulation::position.thread)
#define blockIdx (::pawl::emulation::position.block)
#define blockDim (::pawl::emulation::position.block_size)
#define gridDim (::pawl::emulation::position.grid_size)

inline void __syncthreads() { ::pawl::emulation::SyncThreads(); }
inline void __syncwarp() { ::pawl::emulation::Exchange("__syncwarp", "", 0); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
  ::pawl::emulation::RequireWholeWarp(mask);
  return ::pawl::emulation::FromLane<T>(
      ::pawl::emulation::Exchange("__shfl_sync", &value, sizeof value), lane);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  ::pawl::emulation::RequireWholeWarp(mask);
  const int lane = static_cast<int>(threadIdx.x & 31u) ^ bits;
  return ::pawl::emulation::FromLane<T>(
      ::pawl::emulation::Exchange("__shfl_xor_sync", &value, sizeof value), lane);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance) {
  ::pawl::emulation::RequireWholeWarp(mask);
  const unsigned lane = threadIdx.x & 31u;
  return ::pawl::emulation::FromLane<T>(
      ::pawl::emulation::Exchange("__shfl_up_sync", &value, sizeof value),
      static_cast<int>(lane < distance ? lane : lane - distance));
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  ::pawl::emulation::RequireWholeWarp(mask);
  const unsigned char* lanes = ::pawl::emulation::Exchange("__ballot_sync", &vote, sizeof vote);
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i) {
    if (::pawl::emulation::FromLane<int>(lanes, i) != 0) bits |= 1u << i;
  }
  return bits;
}

inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline int atomicOr(int* at, int bits) {
  const int before = *at;
  *at |= bits;
  return before;
}
inline unsigned atomicOr(unsigned* at, unsigned bits) {
  const unsigned before = *at;
  *at |= bits;
  return before;
}
inline unsigned long long atomicMax(unsigned long long* at, unsigned long long value) {
  const unsigned long long before = *at;
  if (value > before) *at = value;
  return before;
}
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long by) {
  const unsigned long long before = *at;
  *at += by;
  return before;
}
// Blocks run one after the other.
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* at, unsigned by) {
  const unsigned before = *at;
  *at += by;
  return before;
}
inline int atomicAdd(int* at, int by) {
  const int before = *at;
  *at += by;
  return before;
}

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

// An array of n elements of shared memory; the static gives each its identity.
#define PAWL_SHARED(T, name, n)     \
  static const char name##_tag = 0; \
  T* const name = static_cast<T*>(  \
      ::pawl::emulation::SharedArray(&name##_tag, sizeof(T) * static_cast<size_t>(n)))
#define PAWL_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(::pawl::emulation::DynamicShared())

namespace pawl::emulated {

// Whether everything allocated lies between intact guards.
bool GuardsIntact();
// Lets Allocate fail once so many bytes are taken, and CurrentDevice say so. Negative: no limit.
void LimitMemory(int64_t bytes);
// Lets the next so many graphs fail when they are complete.
void FailGraphs(int count);

// When work that is on streams is done, within what their order, fences and waits allow
// (streams_emulated.cc). Late, when somebody waits for it, at first; at once; or some streams early
// and others late, or by chance: which, `seed` says, and kTimingSeeds of them are all the ways that
// two streams can differ.
enum class Timing { kLate, kAtOnce, kMixed };
constexpr int kTimingSeeds = 9;
void SetTiming(Timing timing, int seed = 0);
// Runs all that is on streams; what has failed is told to those who wait for them, or, by
// SynchronizeAll, now.
void RunAll();
Status SynchronizeAll();
// As if no kernel had ever run.
void ForgetKernels();
// For tests that show what order is needed for. LeaveOutFences: WaitFor does nothing.
// LeaveOutSynchronize: the n-th call of Synchronize from now on does nothing; 0: none.
void LeaveOutFences(bool leave_out);
void LeaveOutSynchronize(int nth);
// How often Synchronize has been called since LeaveOutSynchronize was.
int SynchronizeCalls();

// Whether the address lies in pinned memory.
bool IsPinned(const void* memory);
// Lets the emulated library refuse products with so many outputs. 0: none.
void RefuseProducts(int outputs);

// ---- Launches ----

// Puts a step at the end of the stream's queue, or into its graph while the stream is being
// captured (streams_emulated.cc). `kernel`: the code that it runs, if it is a launch.
Status Submit(Stream stream, std::function<Status()> step, const void* kernel = nullptr,
              const char* name = "");

template <typename... Parameters, typename... Arguments>
Status Launch(const char* name, const Shape& shape, Stream stream, void (*kernel)(Parameters...),
              Arguments... arguments) {
  // As on devices, a launch that cannot be is refused at once; what goes wrong in a kernel is known
  // to those who wait for it.
  if (const std::string problem = emulation::Refusal(name, shape); !problem.empty()) {
    return Error{ErrorCode::kInternal, problem, name};
  }
  const auto step = [=]() -> Status {
    const std::string problem = emulation::Run(name, shape, [&] { kernel(arguments...); });
    if (problem.empty()) return {};
    return Error{ErrorCode::kInternal, problem, name};
  };
  return Submit(stream, step, reinterpret_cast<const void*>(kernel), name);
}

}  // namespace pawl::emulated

#endif  // PAWL_TESTS_CUDA_EMULATION_HOST_EMULATION_H_
