// Device memory as host memory, for tests. Every piece starts as 0xff bytes, NaNs of all the
// formats in use, and ends exactly where the heap block ends, so that AddressSanitizer sees the
// first byte beyond; a guard in front keeps 256-byte alignment, and without the sanitizer there is
// one behind too. Work on a stream is done at once, or kept in a list while it is being captured:
// kernel arguments are copied then, as a real graph copies them.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#define PAWL_TAIL_GUARD 0
#else
#define PAWL_TAIL_GUARD 256
#endif

namespace pawl::emulated {
namespace {

constexpr int64_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xA5;

struct Heap {
  std::mutex mutex;
  std::map<unsigned char*, int64_t> pieces;
  int64_t used = 0, limit = -1;
};
Heap& TheHeap() {
  static Heap heap;
  return heap;
}

bool Intact(const unsigned char* memory, int64_t bytes) {
  for (int64_t i = 1; i <= kGuard; ++i) {
    if (memory[-i] != kGuardByte) return false;
  }
  for (int64_t i = 0; i < PAWL_TAIL_GUARD; ++i) {
    if (memory[bytes + i] != kGuardByte) return false;
  }
  return true;
}

struct Work {
  std::vector<std::function<Status()>> steps;
};
struct Recorder {
  bool capturing = false;
  Work work;
};

int graphs_to_fail = 0;

}  // namespace

Status Submit(Stream stream, std::function<Status()> step) {
  auto* recorder = static_cast<Recorder*>(stream);
  if (recorder == nullptr || !recorder->capturing) return step();
  recorder->work.steps.push_back(std::move(step));
  return {};
}

Result<DeviceFacts> CurrentDevice() {
  DeviceFacts facts;
  facts.name = "emulated device";
  facts.major = 9;
  facts.multiprocessors = 4;
  facts.shared_bytes = emulation::kSharedBytes;
  facts.memory_bytes = facts.free_bytes = int64_t{64} << 20;
  return facts;
}

Result<void*> Allocate(int64_t bytes) {
  if (bytes <= 0) bytes = 1;
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  if (heap.limit >= 0 && heap.used + bytes > heap.limit) {
    const auto mib = [](int64_t b) { return std::to_string((b + (1 << 20) - 1) >> 20) + " MiB"; };
    return Error{ErrorCode::kLimit,
                 "not enough device memory: " + mib(bytes) + " asked for, " +
                     mib(heap.limit - heap.used) + " of " + mib(heap.limit) + " free",
                 "cuda"};
  }
  void* block = nullptr;
  const auto whole = static_cast<size_t>(kGuard + bytes + PAWL_TAIL_GUARD);
  if (::posix_memalign(&block, 256, whole) != 0) {
    return Error{ErrorCode::kLimit, "not enough memory", "emulated device"};
  }
  std::memset(block, kGuardByte, whole);
  auto* memory = static_cast<unsigned char*>(block) + kGuard;
  std::memset(memory, 0xff, static_cast<size_t>(bytes));
  heap.pieces[memory] = bytes;
  heap.used += bytes;
  return static_cast<void*>(memory);
}

void Free(void* memory) {
  if (memory == nullptr) return;
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const auto found = heap.pieces.find(static_cast<unsigned char*>(memory));
  // A damaged piece stays in the list, so that GuardsIntact reports it.
  if (found == heap.pieces.end() || !Intact(found->first, found->second)) return;
  heap.used -= found->second;
  heap.pieces.erase(found);
  std::free(static_cast<unsigned char*>(memory) - kGuard);
}

bool GuardsIntact() {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  for (const auto& [memory, bytes] : heap.pieces) {
    if (!Intact(memory, bytes)) return false;
  }
  return true;
}

void LimitMemory(int64_t bytes) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  heap.limit = bytes < 0 ? -1 : heap.used + bytes;
}

Result<void*> AllocatePinned(int64_t bytes) { return Allocate(bytes); }
void FreePinned(void* memory) { Free(memory); }

Result<Stream> NewStream() { return static_cast<Stream>(new Recorder); }
void FreeStream(Stream stream) { delete static_cast<Recorder*>(stream); }
Status Synchronize(Stream stream) {
  if (stream != nullptr && static_cast<Recorder*>(stream)->capturing) {
    return Error{ErrorCode::kInternal, "a stream that is being captured cannot be waited for",
                 "emulated device"};
  }
  return {};
}

Status CopyIn(void* device, const void* host, int64_t bytes, Stream stream) {
  return CopyWithin(device, host, bytes, stream);
}
Status CopyOut(void* host, const void* device, int64_t bytes, Stream stream) {
  return CopyWithin(host, device, bytes, stream);
}
Status CopyWithin(void* to, const void* from, int64_t bytes, Stream stream) {
  return Submit(stream, [=]() -> Status {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return {};
  });
}
Status Fill(void* device, int byte, int64_t bytes, Stream stream) {
  return Submit(stream, [=]() -> Status {
    std::memset(device, byte, static_cast<size_t>(bytes));
    return {};
  });
}

Status BeginCapture(Stream stream) {
  auto* recorder = static_cast<Recorder*>(stream);
  recorder->capturing = true;
  recorder->work.steps.clear();
  return {};
}
Result<Graph> EndCapture(Stream stream) {
  auto* recorder = static_cast<Recorder*>(stream);
  recorder->capturing = false;
  if (graphs_to_fail > 0) {
    --graphs_to_fail;
    return Error{ErrorCode::kInternal, "no graph", "emulated device"};
  }
  return Graph{new Work(std::move(recorder->work))};
}
Status Replay(const Graph& graph, Stream) {
  for (const auto& step : static_cast<const Work*>(graph.handle)->steps) {
    if (Status status = step(); !status.ok()) return status;
  }
  return {};
}
void FailGraphs(int count) { graphs_to_fail = count; }
void FreeGraph(Graph graph) { delete static_cast<Work*>(graph.handle); }

// Work is done when it is put on a stream, so that there is nothing to wait for.
Result<Fence> NewFence() { return Fence{}; }
Status Raise(const Fence&, Stream) { return {}; }
Status WaitFor(const Fence&, Stream) { return {}; }
void FreeFence(Fence) {}

Result<Mark> NewMark() { return Mark{new std::chrono::steady_clock::time_point}; }
Status Record(const Mark& mark, Stream) {
  *static_cast<std::chrono::steady_clock::time_point*>(mark.handle) =
      std::chrono::steady_clock::now();
  return {};
}
Result<float> Milliseconds(const Mark& begin, const Mark& end) {
  using Point = std::chrono::steady_clock::time_point;
  return std::chrono::duration<float, std::milli>(*static_cast<Point*>(end.handle) -
                                                  *static_cast<Point*>(begin.handle))
      .count();
}
void FreeMark(Mark mark) {
  delete static_cast<std::chrono::steady_clock::time_point*>(mark.handle);
}

}  // namespace pawl::emulated
