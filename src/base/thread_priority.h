// A thread that gets less of the processors than others, where the system knows such a thing. A
// thread cannot take that back.
//
//   const int id = SystemThreadId();   // on the thread itself
//   LowerPriority(id);                 // on any thread
#ifndef PAWL_SRC_BASE_THREAD_PRIORITY_H_
#define PAWL_SRC_BASE_THREAD_PRIORITY_H_

#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pawl {

inline int SystemThreadId() {
#if defined(__linux__)
  return static_cast<int>(::syscall(SYS_gettid));
#else
  return 0;
#endif
}

inline void LowerPriority([[maybe_unused]] int system_id) {
#if defined(__linux__)
  constexpr int kNiceness = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(system_id), kNiceness);
#endif
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_THREAD_PRIORITY_H_
