// One loop at a time. The caller publishes it, wakes sleepers, takes ranges from a shared counter
// like everyone else, and when the counter is used up closes the loop and waits only for the
// workers that joined it: a worker that the system has not scheduled yet delays no other, it finds
// the loop closed and goes back to sleep.
//
// A matrix product of a middling model takes tens of microseconds and a sleeping thread takes about
// as long to wake, so a worker that ran dry looks for the next loop for a few microseconds before
// it sleeps. The bound keeps an idle process at zero load.
//
// A body that throws does not leave its thread: the first exception is kept, the shared counter is
// set to the end, and the caller throws the exception on when the loop is closed. So a body's
// context outlives all that runs in it, and the next loop finds the pool as after a good one.
#include "src/base/thread_pool.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "src/base/os/processors.h"
#include "src/base/threads.h"

namespace pawl {
namespace {

constexpr int kSpins = 400;  // about 10 microseconds of PAUSE on current x86

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = os::AvailableProcessors();
  workers_.reserve(static_cast<size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) {
    try {
      workers_.emplace_back([this, i] { WorkerLoop(i); });
    } catch (const std::system_error&) {
      break;
    } catch (const std::bad_alloc&) {
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    epoch_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t n, int64_t grain, Function function, const void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t ranges = (n - 1) / grain + 1;
  if (ranges == 1 || workers_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
    for (int64_t begin = 0; begin < n; begin += grain) {
      function(context, begin, std::min(n, begin + grain), 0);
    }
    return;
  }
  int wanted = 0;
  {
    std::lock_guard lock(mutex_);
    function_ = function;
    context_ = context;
    n_ = n;
    grain_ = grain;
    next_.store(0, std::memory_order_relaxed);
    open_ = true;
    epoch_.fetch_add(1, std::memory_order_release);
    wanted = static_cast<int>(std::min<int64_t>(sleeping_, ranges - 1));
  }
  for (int i = 0; i < wanted; ++i) wake_.notify_one();
  Work(0);
  Close();
  std::exception_ptr failure;
  {
    // No worker is active, but the lock orders this thread behind the one that failed.
    std::lock_guard lock(mutex_);
    failure = std::exchange(failure_, nullptr);
  }
  busy_.store(false, std::memory_order_release);
  if (failure != nullptr) std::rethrow_exception(std::move(failure));
}

// No worker joins the loop any more, and those that did have left it.
void ThreadPool::Close() noexcept {
  std::unique_lock lock(mutex_);
  open_ = false;
  if (active_.load(std::memory_order_relaxed) == 0) return;
  lock.unlock();
  for (int i = 0; i < kSpins && active_.load(std::memory_order_acquire) > 0; ++i) Pause();
  lock.lock();
  done_.wait(lock, [this] { return active_.load(std::memory_order_relaxed) == 0; });
}

void ThreadPool::Work(int thread) noexcept {
  while (true) {
    const int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
    if (begin >= n_) return;
    try {
      function_(context_, begin, std::min(n_, begin + grain_), thread);
    } catch (...) {
      next_.store(n_, std::memory_order_relaxed);
      std::lock_guard lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
  }
}

void ThreadPool::WorkerLoop(int thread) {
  NameThread("pawl-pool");
  uint64_t seen = 0;
  while (true) {
    for (int i = 0; i < kSpins && epoch_.load(std::memory_order_acquire) == seen; ++i) Pause();
    std::unique_lock lock(mutex_);
    if (!stop_ && epoch_.load(std::memory_order_relaxed) == seen) {
      ++sleeping_;
      wake_.wait(lock, [&] { return stop_ || epoch_.load(std::memory_order_relaxed) != seen; });
      --sleeping_;
    }
    if (stop_) return;
    seen = epoch_.load(std::memory_order_relaxed);
    if (!open_) continue;
    active_.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    Work(thread);
    lock.lock();
    if (active_.fetch_sub(1, std::memory_order_release) == 1) done_.notify_one();
  }
}

}  // namespace pawl
