// Streams, fences and graphs for tests: queues of work whose order can be adversarial.
//
// What is put on a stream goes to the end of its queue, and a fence in a queue is the number of
// steps that stood before it. Nothing runs until it has to, when the host waits for a stream, or as
// soon as it may, or some of it by chance (Timing): always in the order of its queue and behind the
// fences that its stream was told to wait for, and in no other order. So a copy from pinned memory
// reads what is there when the device comes to it, not when it was asked for; what another stream
// should have brought is not there unless a fence says so; and what a late kernel still needs is
// overwritten by an early copy unless something keeps the copy back. Memory that is not pinned is
// read when the copy is put on the stream, and a copy to it waits, as the runtime library does.
//
// A step that fails is told to the next who waits for its stream; what stood behind it is dropped.
// Steps run on the thread that makes them run, one at a time. A kernel whose first launch is inside
// a capture is refused: on a device its code would be loaded there.
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/runtime.h"

namespace pawl::emulated {
namespace {

struct Queue;

// A place in a queue: behind its first `at` steps.
struct Place {
  std::shared_ptr<Queue> queue;
  int64_t at = 0;
};

struct Step {
  std::function<Status()> run;
  Place until;  // with a queue: nothing to run, but to wait for
};

struct Work {
  std::vector<std::function<Status()>> steps;
};

struct Queue {
  int number = 0;
  int64_t done = 0, submitted = 0;
  std::deque<Step> steps;
  Status failed;
  bool capturing = false;
  Work captured;
};

// What a Stream, a Graph, a Fence and a Mark point to.
struct Handle {
  std::shared_ptr<Queue> queue;
};
struct GraphWork {
  std::shared_ptr<const Work> work;
};
struct Raised {
  Place place;
};
struct Moment {
  std::chrono::steady_clock::time_point time;
  bool there = false;
};

class Device {
 public:
  static Device& The() {
    static Device device;
    return device;
  }

  // Held by all functions below.
  std::recursive_mutex mutex;

  std::shared_ptr<Queue> Make() {
    auto queue = std::make_shared<Queue>();
    queue->number = made_++;
    queues_.push_back(queue);
    return queue;
  }
  std::shared_ptr<Queue> Of(Stream stream) {
    return stream != nullptr ? static_cast<Handle*>(stream)->queue : default_;
  }
  void Drop(const std::shared_ptr<Queue>& queue) { std::erase(queues_, queue); }

  Status Put(const std::shared_ptr<Queue>& queue, Step step) {
    queue->steps.push_back(std::move(step));
    ++queue->submitted;
    RunSome();
    return {};
  }

  void RunUntil(Queue& queue, int64_t at) {
    while (queue.done < at) {
      Step step = std::move(queue.steps.front());
      queue.steps.pop_front();
      if (step.until.queue != nullptr) RunUntil(*step.until.queue, step.until.at);
      if (step.run && queue.failed.ok()) queue.failed = step.run();
      ++queue.done;
    }
  }

  void RunAll() {
    for (const auto& queue : queues_) RunUntil(*queue, queue->submitted);
  }
  Status WaitForAll() {
    RunAll();
    Status status;
    for (const auto& queue : queues_) {
      if (status.ok()) status = queue->failed;
      queue->failed = Status();
    }
    return status;
  }

  void SetTiming(Timing timing, int seed) {
    timing_ = timing;
    seed_ = seed;
    random_.seed(static_cast<unsigned>(seed));
  }

  // What a device in this mood does when it has been given something.
  void RunSome() {
    if (timing_ == Timing::kLate) return;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < queues_.size(); ++i) moved = RunSomeOf(*queues_[i]) || moved;
      if (timing_ == Timing::kMixed) return;
    }
  }

  std::set<const void*> loaded;  // kernels
  int graphs_to_fail = 0;
  bool without_fences = false;
  int waits = 0, wait_left_out = 0;

 private:
  Device() : default_(Make()) {}

  // Not beyond what is not there yet. Whether anything was done.
  bool RunSomeOf(Queue& queue) {
    int most = 1 << 30;
    if (timing_ == Timing::kMixed) {
      // Streams made one after the other have different digits of the seed.
      const int mood = queue.number % 2 == 0 ? seed_ % 3 : seed_ / 3 % 3;
      if (mood == 0) return false;
      if (mood == 1) most = static_cast<int>(random_() % 4);
    }
    bool moved = false;
    for (; most > 0 && !queue.steps.empty(); --most) {
      const Place& until = queue.steps.front().until;
      if (until.queue != nullptr && until.queue->done < until.at) break;
      RunUntil(queue, queue.done + 1);
      moved = true;
    }
    return moved;
  }

  std::vector<std::shared_ptr<Queue>> queues_;
  int made_ = 0;
  std::shared_ptr<Queue> default_;
  Timing timing_ = Timing::kLate;
  int seed_ = 0;
  std::mt19937 random_{1};
};

Error Refused(const char* what) { return {ErrorCode::kInternal, what, "emulated device"}; }

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

Status Submit(Stream stream, std::function<Status()> step, const void* kernel, const char* name) {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  const std::shared_ptr<Queue> queue = device.Of(stream);
  if (kernel != nullptr && device.loaded.count(kernel) == 0) {
    if (queue->capturing) {
      return Error{ErrorCode::kInternal, "its first launch is inside a capture", name};
    }
    device.loaded.insert(kernel);
  }
  if (queue->capturing) {
    queue->captured.steps.push_back(std::move(step));
    return {};
  }
  return device.Put(queue, {std::move(step), {}});
}

void SetTiming(Timing timing, int seed) {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  device.SetTiming(timing, seed);
}
void ForgetKernels() {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  device.loaded.clear();
}
void LeaveOutFences(bool leave_out) { Device::The().without_fences = leave_out; }
void LeaveOutSynchronize(int nth) {
  Device::The().waits = 0;
  Device::The().wait_left_out = nth;
}
int SynchronizeCalls() { return Device::The().waits; }

void RunAll() {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  device.RunAll();
}
Status SynchronizeAll() {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  return device.WaitForAll();
}

// ---- Streams ----

Result<Stream> NewStream() {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  return static_cast<Stream>(new Handle{device.Make()});
}
void FreeStream(Stream stream) {
  if (stream == nullptr) return;
  Device& device = Device::The();
  const Lock lock(device.mutex);
  const std::shared_ptr<Queue> queue = device.Of(stream);
  device.RunUntil(*queue, queue->submitted);
  device.Drop(queue);
  delete static_cast<Handle*>(stream);
}
Status Synchronize(Stream stream) {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  const std::shared_ptr<Queue> queue = device.Of(stream);
  if (queue->capturing) return Refused("a stream that is being captured cannot be waited for");
  if (++device.waits == device.wait_left_out) return {};
  device.RunSome();
  device.RunUntil(*queue, queue->submitted);
  return std::exchange(queue->failed, Status());
}

// ---- Copies ----

Status CopyIn(void* device, const void* host, int64_t bytes, Stream stream) {
  if (bytes <= 0) return {};
  const auto size = static_cast<size_t>(bytes);
  if (IsPinned(host)) return CopyWithin(device, host, bytes, stream);
  if (Device::The().Of(stream)->capturing) {
    return Refused("a copy of memory that is not pinned inside a capture");
  }
  const auto* begin = static_cast<const unsigned char*>(host);
  const auto staged = std::make_shared<const std::vector<unsigned char>>(begin, begin + size);
  return Submit(stream, [=]() -> Status {
    std::memcpy(device, staged->data(), size);
    return {};
  });
}
Status CopyOut(void* host, const void* device, int64_t bytes, Stream stream) {
  Status status = CopyWithin(host, device, bytes, stream);
  if (!status.ok() || bytes <= 0 || IsPinned(host)) return status;
  Device& on = Device::The();
  const Lock lock(on.mutex);
  const std::shared_ptr<Queue> queue = on.Of(stream);
  if (queue->capturing) return Refused("a copy to memory that is not pinned inside a capture");
  on.RunUntil(*queue, queue->submitted);
  return {};
}
Status CopyWithin(void* to, const void* from, int64_t bytes, Stream stream) {
  if (bytes <= 0) return {};
  return Submit(stream, [=]() -> Status {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return {};
  });
}
Status Fill(void* device, int byte, int64_t bytes, Stream stream) {
  if (bytes <= 0) return {};
  return Submit(stream, [=]() -> Status {
    std::memset(device, byte, static_cast<size_t>(bytes));
    return {};
  });
}

// ---- Graphs ----

Status BeginCapture(Stream stream) {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  if (stream == nullptr) return Refused("the default stream cannot be captured");
  const std::shared_ptr<Queue> queue = device.Of(stream);
  if (queue->capturing) return Refused("a stream that is being captured already");
  queue->capturing = true;
  queue->captured.steps.clear();
  return {};
}
Result<Graph> EndCapture(Stream stream) {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  const std::shared_ptr<Queue> queue = device.Of(stream);
  if (!queue->capturing) return Refused("a stream that is not being captured");
  queue->capturing = false;
  if (device.graphs_to_fail > 0) {
    --device.graphs_to_fail;
    return Refused("no graph");
  }
  return Graph{new GraphWork{std::make_shared<const Work>(std::move(queue->captured))}};
}
Status Replay(const Graph& graph, Stream stream) {
  return Submit(stream, [work = static_cast<const GraphWork*>(graph.handle)->work]() -> Status {
    for (const auto& step : work->steps) {
      if (Status status = step(); !status.ok()) return status;
    }
    return {};
  });
}
void FailGraphs(int count) { Device::The().graphs_to_fail = count; }
void FreeGraph(Graph graph) { delete static_cast<GraphWork*>(graph.handle); }

// ---- Fences and marks ----

Result<Fence> NewFence() { return Fence{new Raised}; }
Status Raise(const Fence& fence, Stream stream) {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  const std::shared_ptr<Queue> queue = device.Of(stream);
  if (queue->capturing) return Refused("a fence inside a capture");
  static_cast<Raised*>(fence.handle)->place = {queue, queue->submitted};
  return {};
}
// For what the fence was raised behind last, before this call.
Status WaitFor(const Fence& fence, Stream stream) {
  Device& device = Device::The();
  const Lock lock(device.mutex);
  const std::shared_ptr<Queue> queue = device.Of(stream);
  if (queue->capturing) return Refused("a fence inside a capture");
  const Place& place = static_cast<Raised*>(fence.handle)->place;
  if (place.queue == nullptr || device.without_fences) return {};
  return device.Put(queue, {nullptr, place});
}
void FreeFence(Fence fence) { delete static_cast<Raised*>(fence.handle); }

Result<Mark> NewMark() { return Mark{new std::shared_ptr<Moment>(std::make_shared<Moment>())}; }
Status Record(const Mark& mark, Stream stream) {
  const std::shared_ptr<Moment> moment = *static_cast<std::shared_ptr<Moment>*>(mark.handle);
  moment->there = false;
  return Submit(stream, [moment]() -> Status {
    moment->time = std::chrono::steady_clock::now();
    moment->there = true;
    return {};
  });
}
Result<float> Milliseconds(const Mark& begin, const Mark& end) {
  const Moment& from = **static_cast<std::shared_ptr<Moment>*>(begin.handle);
  const Moment& to = **static_cast<std::shared_ptr<Moment>*>(end.handle);
  if (!from.there || !to.there) return Refused("a mark that the device has not come to");
  return std::chrono::duration<float, std::milli>(to.time - from.time).count();
}
void FreeMark(Mark mark) { delete static_cast<std::shared_ptr<Moment>*>(mark.handle); }

}  // namespace pawl::emulated
