// NameThread: the name under which the calling thread stands in top, ps and debuggers. At most 15
// bytes. Does nothing where the system has no such names.
#ifndef PAWL_SRC_BASE_THREAD_NAME_H_
#define PAWL_SRC_BASE_THREAD_NAME_H_

#if defined(__linux__)
#include <pthread.h>
#endif

namespace pawl {

inline void NameThread([[maybe_unused]] const char* name) {
#if defined(__linux__)
  (void)pthread_setname_np(pthread_self(), name);
#endif
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_THREAD_NAME_H_
