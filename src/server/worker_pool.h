// WorkerPool: threads for work that must not hold up connections or the model: bodies, prompts,
// compiling. Work that has not begun when the pool goes is dropped. Work should not throw; an
// exception that leaves it ends that work alone, and the exchange that it held answers 500.
// Thread-safe.
//
// There are two lanes, so that long work of a few clients does not hold up all others: the last of
// the threads takes small work only, the rest take what came first. A pool has at least two threads
// for this.
#ifndef PAWL_SRC_SERVER_WORKER_POOL_H_
#define PAWL_SRC_SERVER_WORKER_POOL_H_

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/thread_name.h"
#include "src/server/server.h"

namespace pawl::server {

// A request whose body has more bytes is large: it is read on a worker, and what follows from it is
// large work.
inline constexpr size_t kSmallBytes = 64 << 10;

enum class WorkSize { kSmall, kLarge };
inline WorkSize WorkSizeOf(size_t bytes) {
  return bytes > kSmallBytes ? WorkSize::kLarge : WorkSize::kSmall;
}

class WorkerPool {
 public:
  explicit WorkerPool(int threads) {
    const int count = std::max(2, threads);
    for (int i = 0; i < count; ++i) {
      const WorkPlace place = i + 1 < count ? WorkPlace::kWorker : WorkPlace::kSmallWorker;
      threads_.emplace_back([this, place] { Loop(place); });
    }
  }
  ~WorkerPool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Submit(std::function<void()> work, WorkSize size = WorkSize::kSmall) {
    {
      const std::lock_guard lock(mutex_);
      (size == WorkSize::kSmall ? small_ : large_).push_back({submitted_++, std::move(work)});
    }
    // All: the one that is woken may not take it.
    wake_.notify_all();
  }

  // Of the calling thread; kConnection where it is none of a pool's.
  static WorkPlace Here() { return Place(); }

 private:
  struct Work {
    uint64_t order;
    std::function<void()> run;
  };

  void Loop(WorkPlace place) {
    NameThread("pawl-worker");
    Place() = place;
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || Next(place) != nullptr; });
        if (stop_) return;
        std::deque<Work>& lane = *Next(place);
        work = std::move(lane.front().run);
        lane.pop_front();
      }
      try {
        work();
      } catch (...) {  // NOLINT(bugprone-empty-catch): see above
      }
    }
  }

  // The lane whose first work is the thread's next; nullptr: there is none for it.
  std::deque<Work>* Next(WorkPlace place) {
    const bool large = !large_.empty() && place == WorkPlace::kWorker;
    if (small_.empty()) return large ? &large_ : nullptr;
    return large && large_.front().order < small_.front().order ? &large_ : &small_;
  }

  static WorkPlace& Place() {
    static thread_local WorkPlace place = WorkPlace::kConnection;
    return place;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  uint64_t submitted_ = 0;
  std::deque<Work> small_, large_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_WORKER_POOL_H_
