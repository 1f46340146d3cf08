// Signals are blocked and waited for, so no code runs inside a handler.
#include <pthread.h>
#include <signal.h>

#include "src/base/os/signals.h"

namespace pawl::os {
namespace {

sigset_t ServerSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

void IgnoreBrokenPipes() { ::signal(SIGPIPE, SIG_IGN); }
void IgnoreFileSizeLimit() { ::signal(SIGXFSZ, SIG_IGN); }

void HoldServerSignals() {
  const sigset_t signals = ServerSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

ServerSignal WaitForServerSignal() {
  const sigset_t signals = ServerSignals();
  int signal = 0;
  ::sigwait(&signals, &signal);
  return signal == SIGHUP ? ServerSignal::kReopen : ServerSignal::kEnd;
}

void ReleaseServerSignals() {
  const sigset_t signals = ServerSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace pawl::os
