// The programs that checks have started. Where SIGINT, SIGTERM or SIGHUP ends this process, they
// end first.
//
//   StartScope starting;
//   if (starting.ending()) ...;       // no program may start any more
//   posix_spawn(..., starting.mask()) // the signals that were blocked before
//   starting.Started(pid);            // the leader of a process group
//   ...
//   ForgetProgram(pid);               // before it is waited for
//
// A handler is there from the first program on, for signals that nothing else takes.
#ifndef PAWL_SRC_DECODE_SAMPLING_RUNNING_PROGRAMS_H_
#define PAWL_SRC_DECODE_SAMPLING_RUNNING_PROGRAMS_H_

#include <signal.h>
#include <sys/types.h>

namespace pawl {

class StartScope {
 public:
  StartScope();
  ~StartScope();
  StartScope(const StartScope&) = delete;
  StartScope& operator=(const StartScope&) = delete;

  bool ending() const { return ending_; }
  const sigset_t& mask() const { return mask_; }
  void Started(pid_t leader) const;

 private:
  sigset_t mask_;
  bool ending_ = false;
};

void ForgetProgram(pid_t leader);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_RUNNING_PROGRAMS_H_
