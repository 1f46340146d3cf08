// StopSteps: counts the steps of a loop and asks the thread's StopScope once in a thousand, so that
// a loop over single bytes stays as fast as without it.
//
//   StopSteps steps;
//   for (const char c : text) {
//     steps.Step();                     // throws Stopped
//     ...
//   }
//
// Not thread-safe: a counter belongs to one loop.
#ifndef PAWL_SRC_BASE_STOP_STEPS_H_
#define PAWL_SRC_BASE_STOP_STEPS_H_

#include <cstddef>

#include "src/base/stop_scope.h"

namespace pawl {

class StopSteps {
 public:
  static constexpr size_t kBetween = 1000;

  void Step(size_t steps = 1) {
    if (steps < left_) {
      left_ -= steps;
      return;
    }
    left_ = kBetween;
    StopScope::Check();
  }

 private:
  size_t left_ = kBetween;
};

}  // namespace pawl

#endif  // PAWL_SRC_BASE_STOP_STEPS_H_
