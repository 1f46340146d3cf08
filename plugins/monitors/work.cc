// Counters of a thread. A question is a scope on the stack; the innermost one counts and is the
// only one that ends anything, so that reading a file which later questions use too does not
// depend on how much the question that needed it first had left.
#include "plugins/monitors/work.h"

#include "src/base/stop_scope.h"

namespace pawl::monitors {

const MonitorLimits& Work::Limits() {
  static constexpr MonitorLimits kDefault;
  const Work* const question = Here().question;
  return question != nullptr ? question->limits_ : kDefault;
}

void Work::Look() {
  constexpr uint64_t kBetweenLooks = 1000;
  Here().look_at = Here().total + kBetweenLooks;
  StopScope::Check();
}

void Work::Steps() { throw GaveUp(GaveUp::Why::kSteps, Here().byte); }

void Work::TooDeep() { throw GaveUp(GaveUp::Why::kDepth, Here().byte); }

}  // namespace pawl::monitors
