// StopTicks: asks now and then, in a loop that may be long, whether the caller still wants the
// answer (StopScope).
#ifndef PAWL_GRAMMAR_CFG_STOP_TICKS_H_
#define PAWL_GRAMMAR_CFG_STOP_TICKS_H_

#include <cstddef>

#include "src/base/stop_scope.h"

namespace pawl {

class StopTicks {
 public:
  // So many steps were made. Throws Stopped as StopScope::Check does, at least every 1,000 steps.
  void Tick(size_t steps = 1) {
    if (steps < left_) {
      left_ -= steps;
      return;
    }
    left_ = kSteps;
    StopScope::Check();
  }

 private:
  static constexpr size_t kSteps = 500;
  size_t left_ = kSteps;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_STOP_TICKS_H_
