// Groups of processes that end first when SIGINT, SIGTERM or SIGHUP ends this process. Only what
// starts programs (processes) uses this.
//
//   StartScope starting;
//   if (starting.ending()) ...;   // no program may start any more
//   ...                           // start a group, with the signals of `starting`
//   starting.Started(leader);
//   ...
//   ForgetGroup(leader);          // before it is waited for
//
// A handler is there from the first group on, for signals that nothing else takes.
#ifndef PAWL_SRC_BASE_OS_STARTED_GROUPS_H_
#define PAWL_SRC_BASE_OS_STARTED_GROUPS_H_

#include <memory>

#include "src/base/os/processes.h"

namespace pawl::os {

class StartScope {
 public:
  StartScope();
  ~StartScope();
  StartScope(const StartScope&) = delete;
  StartScope& operator=(const StartScope&) = delete;

  bool ending() const { return ending_; }
  // The signals that were blocked before, as the system has them (POSIX: a sigset_t).
  const void* mask() const { return mask_.get(); }
  void Started(ProcessId leader) const;

 private:
  std::shared_ptr<void> mask_;
  bool ending_ = false;
};

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_STARTED_GROUPS_H_
