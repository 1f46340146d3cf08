// Memory, streams and graphs of one device: the few calls of the CUDA runtime that the backend
// needs, with errors as Status. The emulated form (tests/cuda/emulation) has the same functions on
// host memory, between guards and filled with NaNs.
//
// Thread safety: different streams from different threads. All calls work on the calling thread's
// current device, which is device 0 unless the host program has chosen another.
#ifndef PAWL_KERNELS_CUDA_RUNTIME_H_
#define PAWL_KERNELS_CUDA_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "pawl/result.h"

// The sources of the backend are compiled twice: by nvcc and the host compiler for devices
// (namespace pawl::cuda), and by the host compiler alone, with PAWL_CUDA_EMULATED, for tests
// without a device (namespace pawl::emulated). That macro is the header of the emulation. Both can
// be linked into one program.
#if defined(PAWL_CUDA_EMULATED)
#define PAWL_GPU emulated
#else
#define PAWL_GPU cuda
#endif

namespace pawl::PAWL_GPU {

using Stream = void*;  // a cudaStream_t; null is the default stream
struct Graph {
  void* handle = nullptr;
};

struct DeviceFacts {
  std::string name;
  int major = 0, minor = 0;
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  // that a block can have
  int64_t memory_bytes = 0, free_bytes = 0;
};

// The current device. Errors (kUnsupported): no driver, no device, or one older than the kernels
// (compute capability 8.0), in words.
Result<DeviceFacts> CurrentDevice();

// Device memory, aligned to 256 bytes. Errors: kLimit with how much was asked for and is free.
Result<void*> Allocate(int64_t bytes);
void Free(void* memory);
// Host memory that copies to and from the device use while kernels run.
Result<void*> AllocatePinned(int64_t bytes);
void FreePinned(void* memory);

Result<Stream> NewStream();
void FreeStream(Stream stream);
// Waits for all work on the stream. Errors (kInternal): what went wrong on the device.
Status Synchronize(Stream stream);

// In the order of the stream. Host memory that is not pinned makes the call wait.
Status CopyIn(void* device, const void* host, int64_t bytes, Stream stream);
Status CopyOut(void* host, const void* device, int64_t bytes, Stream stream);
Status CopyWithin(void* to, const void* from, int64_t bytes, Stream stream);
Status Fill(void* device, int byte, int64_t bytes, Stream stream);

// Between BeginCapture and EndCapture, work put on the stream is recorded instead of done. Kernels
// have to have run once before: their code is loaded then, which a capture is no place for.
Status BeginCapture(Stream stream);
Result<Graph> EndCapture(Stream stream);
Status Replay(const Graph& graph, Stream stream);
void FreeGraph(Graph graph);

// A point of a stream that other streams wait for: Raise puts it there, WaitFor makes what is put
// on `stream` afterwards wait until all before it is done.
struct Fence {
  void* handle = nullptr;
};
Result<Fence> NewFence();
Status Raise(const Fence& fence, Stream stream);
Status WaitFor(const Fence& fence, Stream stream);
void FreeFence(Fence fence);

// Whether kernels that this thread launches may be set up before the one in front has ended
// (programmatic dependent launch; devices before compute capability 9.0 never do). On at first.
// In the header, because the kernels of pawl/cuda_kernels.h are a library without the rest.
inline thread_local bool dependent_launch = true;
inline void AllowDependentLaunch(bool allow) { dependent_launch = allow; }
inline bool DependentLaunchAllowed() { return dependent_launch; }

// Of a launch.
struct Shape {
  unsigned x = 1, y = 1, z = 1;  // blocks
  unsigned threads = 128;        // of a block, a multiple of 32
  size_t dynamic_shared = 0;     // bytes
  // So many blocks along x, which divide x, are a cluster: they run at the same time and read each
  // other's shared memory. Before compute capability 9.0 one block takes the place of a cluster.
  unsigned cluster = 1;
};
constexpr unsigned kMostClusterBlocks = 8;

// Time in milliseconds between two points of a stream: Mark both, synchronise, ask. For benchmarks.
struct Mark {
  void* handle = nullptr;
};
Result<Mark> NewMark();
Status Record(const Mark& mark, Stream stream);
Result<float> Milliseconds(const Mark& begin, const Mark& end);
void FreeMark(Mark mark);

// A piece of device memory with an owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> Make(int64_t bytes) {
    Result<void*> memory = Allocate(bytes);
    if (!memory.ok()) return memory.error();
    DeviceMemory made;
    made.memory_ = *memory;
    made.bytes_ = bytes;
    return Result<DeviceMemory>(std::move(made));
  }
  DeviceMemory(DeviceMemory&& other) noexcept { Take(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    if (this != &other) {
      Free(memory_);
      Take(other);
    }
    return *this;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { Free(memory_); }

  void* data() const { return memory_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void Take(DeviceMemory& other) {
    memory_ = other.memory_;
    bytes_ = other.bytes_;
    other.memory_ = nullptr;
    other.bytes_ = 0;
  }
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_RUNTIME_H_
