// Memory that runs out on this thread, when a test says so.
//
//   {
//     const Failing failing(3);     // three allocations succeed, all others fail
//     ...
//   }
//   if (Failing::failed()) ...      // there was a fourth
#ifndef PAWL_TESTS_SERVER_FAILING_MEMORY_H_
#define PAWL_TESTS_SERVER_FAILING_MEMORY_H_

#include <cstdint>

namespace pawl::server {

class Failing {
 public:
  // With `once` only the next one fails, and those after it succeed.
  explicit Failing(int64_t left, bool once = false);
  ~Failing();
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
  // Since the last one began.
  static bool failed();
};

}  // namespace pawl::server

#endif  // PAWL_TESTS_SERVER_FAILING_MEMORY_H_
