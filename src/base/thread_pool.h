// A pool of threads for loops: the caller works too, and threads with nothing to do sleep.
#ifndef PAWL_SRC_BASE_THREAD_POOL_H_
#define PAWL_SRC_BASE_THREAD_POOL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "src/base/sync.h"
#if PAWL_HAS_THREADS
#include <thread>
#endif

namespace pawl {

#if PAWL_HAS_THREADS

// Thread safety: ParallelFor may be called from any thread, also from inside a loop body; a call
// that finds the pool busy runs its whole loop on the calling thread.
class ThreadPool {
 public:
  // `threads` counts the caller: a pool of 1 starts none. 0 or less: one for each processor that
  // the process may run on. When the system refuses to start a thread the pool is that much
  // smaller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // How many threads a loop can use, the caller counted.
  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end, thread) for disjoint ranges that cover 0 .. n-1, each of at most `grain`
  // iterations, and returns when all are done. `thread` is in 0 .. size()-1 and no two bodies of
  // one loop run at once with the same one. A loop of one range never leaves the calling thread.
  //
  // Exceptions. When a body throws, ranges that have not begun are left out, those that run end,
  // and ParallelFor throws the loop's first exception to its caller once no worker is inside the
  // loop. The pool is free again then. A nested loop throws out of the body that called it. The
  // pool itself allocates nothing in a loop.
  template <typename Body>
  void ParallelFor(int64_t n, int64_t grain, const Body& body) {
    Run(
        n, grain,
        [](const void* context, int64_t begin, int64_t end, int thread) {
          (*static_cast<const Body*>(context))(begin, end, thread);
        },
        &body);
  }

 private:
  using Function = void (*)(const void* context, int64_t begin, int64_t end, int thread);

  void Run(int64_t n, int64_t grain, Function function, const void* context);
  void WorkerLoop(int thread);
  void Work(int thread) noexcept;
  void Close() noexcept;

  // The current loop. Written by its caller under mutex_ while no worker is active; read by active
  // workers.
  Function function_ = nullptr;
  const void* context_ = nullptr;
  int64_t n_ = 0;
  int64_t grain_ = 1;
  std::atomic<int64_t> next_{0};
  std::exception_ptr failure_;  // the loop's first (under mutex_)

  std::atomic<bool> busy_{false};   // a caller owns the pool
  std::atomic<uint64_t> epoch_{0};  // grows with each loop: what idle workers watch
  std::atomic<int> active_{0};      // workers inside the current loop; changed under mutex_
  bool open_ = false;               // workers may still join the loop (under mutex_)
  bool stop_ = false;               // (under mutex_)
  int sleeping_ = 0;                // workers in wake_.wait (under mutex_)
  Mutex mutex_;
  ConditionVariable wake_;
  ConditionVariable done_;
  std::vector<std::thread> workers_;
};

#else  // loops on the one thread that there is

class ThreadPool {
 public:
  explicit ThreadPool(int) {}
  int size() const { return 1; }
  template <typename Body>
  void ParallelFor(int64_t n, int64_t grain, const Body& body) {
    for (int64_t begin = 0; begin < n; begin += grain) body(begin, std::min(n, begin + grain), 0);
  }
};

#endif

}  // namespace pawl

#endif  // PAWL_SRC_BASE_THREAD_POOL_H_
