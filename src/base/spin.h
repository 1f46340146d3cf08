// Waiting for microseconds: what takes less time than it takes to sleep and to be woken.
#ifndef PAWL_SRC_BASE_SPIN_H_
#define PAWL_SRC_BASE_SPIN_H_

#include <mutex>

namespace pawl {

// Between two looks at something that another thread is about to change.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Tries to lock a mutex for some 40 microseconds.
inline std::unique_lock<std::mutex> LockSoon(std::mutex& mutex) {
  constexpr int kTries = 400;
  for (int i = 0; i < kTries; ++i) {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) return lock;
    for (int k = 0; k < 4; ++k) Pause();
  }
  return std::unique_lock(mutex, std::defer_lock);
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_SPIN_H_
