// Locks. What runs on several threads takes its locks from here, so that the same source builds
// where there are no threads: in WebAssembly a lock is nothing, and costs nothing.
//
//   Mutex mutex;
//   const std::lock_guard lock(mutex);
//
// PAWL_HAS_THREADS is 1 where there are threads. Then the names below are those of the standard
// library, and their rules hold. Without threads nothing can change while a thread waits, so
// ConditionVariable::wait returns only where it need not wait; else it throws std::logic_error.
#ifndef PAWL_SRC_BASE_SYNC_H_
#define PAWL_SRC_BASE_SYNC_H_

#include <chrono>
#include <mutex>
#include <utility>

#if defined(__wasm__) && !defined(_REENTRANT)
#define PAWL_HAS_THREADS 0
#include <stdexcept>
#else
#define PAWL_HAS_THREADS 1
#include <condition_variable>
#include <shared_mutex>
#endif

namespace pawl {

#if PAWL_HAS_THREADS

using Mutex = std::mutex;
using SharedMutex = std::shared_mutex;
using RecursiveMutex = std::recursive_mutex;
using SharedLock = std::shared_lock<SharedMutex>;
using ConditionVariable = std::condition_variable;
// For decisions about waiting.
using LockClock = std::chrono::steady_clock;

// Waiting for microseconds: what takes less time than it takes to sleep and to be woken. Pause
// comes between two looks at something that another thread is about to change.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Tries to lock a mutex for some 40 microseconds.
inline std::unique_lock<Mutex> LockSoon(Mutex& mutex) {
  constexpr int kTries = 400;
  for (int i = 0; i < kTries; ++i) {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) return lock;
    for (int k = 0; k < 4; ++k) Pause();
  }
  return std::unique_lock(mutex, std::defer_lock);
}

// Waits for `time` at most. false: the time is over.
inline bool WaitFor(ConditionVariable& changed, std::unique_lock<Mutex>& lock,
                    std::chrono::milliseconds time) {
  return changed.wait_for(lock, time) != std::cv_status::timeout;
}

#else

class Mutex {
 public:
  void lock() {}
  bool try_lock() { return true; }
  void unlock() {}
};
using SharedMutex = Mutex;
using RecursiveMutex = Mutex;

class SharedLock {
 public:
  explicit SharedLock(SharedMutex&) {}
  ~SharedLock() {}  // NOLINT: a lock that is not used is no mistake
};

class ConditionVariable {
 public:
  void notify_one() {}
  void notify_all() {}
  template <typename Lock, typename Changed>
  void wait(Lock&, const Changed& changed) {
    if (!changed()) throw std::logic_error("waits for a thread where there is one thread");
  }
};

struct LockClock {
  using time_point = std::chrono::steady_clock::time_point;
  static time_point now() { return {}; }
};

inline std::unique_lock<Mutex> LockSoon(Mutex& mutex) { return std::unique_lock(mutex); }

inline bool WaitFor(ConditionVariable&, std::unique_lock<Mutex>&, std::chrono::milliseconds) {
  throw std::logic_error("waits for a thread where there is one thread");
}

#endif

}  // namespace pawl

#endif  // PAWL_SRC_BASE_SYNC_H_
