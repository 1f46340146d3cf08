// WorkerPool: threads for work that must not hold up connections or the model: prompts, compiling.
// Work that has not begun when the pool goes is dropped. Work should not throw; an exception that
// leaves it ends that work alone, and the exchange that it held answers 500. Thread-safe.
#ifndef PAWL_SRC_SERVER_WORKER_POOL_H_
#define PAWL_SRC_SERVER_WORKER_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/thread_name.h"

namespace pawl::server {

class WorkerPool {
 public:
  explicit WorkerPool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
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

  void Submit(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    wake_.notify_one();
  }

 private:
  void Loop() {
    NameThread("pawl-worker");
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || !work_.empty(); });
        if (stop_) return;
        work = std::move(work_.front());
        work_.pop_front();
      }
      try {
        work();
      } catch (...) {  // NOLINT(bugprone-empty-catch): see above
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_WORKER_POOL_H_
