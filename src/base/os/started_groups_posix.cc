// What a signal handler may touch: atomics, kill and nanosleep. A thread that starts a program has
// these signals blocked, so the handler can wait until the program is in the list.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "src/base/os/started_groups.h"

namespace pawl::os {
namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::array<std::atomic<pid_t>, 1024> running_leaders{};
std::atomic<pid_t> leaders_owner{0};  // a process that forks off has none of them
std::atomic<int> programs_starting{0};
std::atomic<bool> process_ending{false};

void EndPrograms(int number) {
  const int before = errno;
  if (leaders_owner.load() == ::getpid()) {
    process_ending = true;
    for (int i = 0; i < 1000 && programs_starting.load() > 0; ++i) {
      const timespec millisecond = {0, 1000000};
      ::nanosleep(&millisecond, nullptr);
    }
    for (const std::atomic<pid_t>& leader : running_leaders) {
      const pid_t pid = leader.load();
      if (pid > 0) ::kill(-pid, SIGKILL);
    }
  }
  ::signal(number, SIG_DFL);
  errno = before;
  ::raise(number);  // ends the process when the handler returns
}

// Takes the signals that would end the process. When the library is unloaded it gives them back.
struct EndingHandlers {
  void Take() const {
    for (const int number : kEndingSignals) {
      struct sigaction action = {};
      if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
      action.sa_handler = EndPrograms;
      action.sa_flags = SA_RESTART;
      sigemptyset(&action.sa_mask);
      ::sigaction(number, &action, nullptr);
    }
  }
  ~EndingHandlers() {
    for (const int number : kEndingSignals) {
      struct sigaction action = {};
      if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler != EndPrograms) continue;
      ::signal(number, SIG_DFL);
    }
  }
};

}  // namespace

StartScope::StartScope() : mask_(std::make_shared<sigset_t>()) {
  static const EndingHandlers handlers;
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : kEndingSignals) sigaddset(&ends, number);
  ::pthread_sigmask(SIG_BLOCK, &ends, static_cast<sigset_t*>(mask_.get()));
  ++programs_starting;
  const pid_t own = ::getpid();
  if (leaders_owner.exchange(own) != own) {
    for (std::atomic<pid_t>& leader : running_leaders) leader = 0;
  }
  handlers.Take();
  ending_ = process_ending.load();
}

StartScope::~StartScope() {
  --programs_starting;
  ::pthread_sigmask(SIG_SETMASK, static_cast<sigset_t*>(mask_.get()), nullptr);
}

void StartScope::Started(ProcessId leader) const {
  for (std::atomic<pid_t>& place : running_leaders) {
    pid_t none = 0;
    if (place.compare_exchange_strong(none, leader)) return;
  }
}

void ForgetGroup(ProcessId leader) {
  for (std::atomic<pid_t>& place : running_leaders) {
    pid_t expected = leader;
    if (place.compare_exchange_strong(expected, 0)) return;
  }
}

}  // namespace pawl::os
