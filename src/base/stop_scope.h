// StopScope: lets another thread end what this thread computes, at the next place where the
// computation asks.
//
//   std::atomic<bool> stop{false};
//   try {
//     const StopScope scope(&stop);
//     mask = state.mask();                // calls StopScope::Check() at least every 1,000 steps
//   } catch (const Stopped&) { ... }      // stop = true was set by another thread
//
// Scopes nest: the innermost one counts; one for a StopFlag is asked beside the flag around it.
// Without a scope, Check does nothing. A computation that a Stopped exception leaves may be half
// done; the owner of its memory has to drop or repair the result.
//
// Thread safety: a scope belongs to the thread that made it; the flag may be set by any thread.
#ifndef PAWL_SRC_BASE_STOP_SCOPE_H_
#define PAWL_SRC_BASE_STOP_SCOPE_H_

#include <atomic>
#include <cstddef>
#include <exception>

#include "pawl/stop_flag.h"

namespace pawl {

class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>* flag) : outer_(Current()) {
    Current() = {flag, nullptr};
  }
  // `flag` nullptr: as without this scope.
  explicit StopScope(const StopFlag* flag) : outer_(Current()) {
    if (flag != nullptr) Current().stop = flag;
  }
  ~StopScope() { Current() = outer_; }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  static bool Requested() {
    const Flags& now = Current();
    return (now.flag != nullptr && now.flag->load(std::memory_order_relaxed)) ||
           (now.stop != nullptr && now.stop->stopped());
  }
  // Throws Stopped where the flag of the innermost scope is set.
  static void Check() {
    if (Requested()) throw Stopped();
  }
  // For inner loops: steps that a computation counts. Checks at least at every 256th step of the
  // thread, so one step should take microseconds at most.
  static void Steps(size_t count) {
    static thread_local size_t left = kStepsPerCheck;
    if (count < left) {
      left -= count;
      return;
    }
    left = kStepsPerCheck;
    Check();
  }
  static void Step() { Steps(1); }

 private:
  static constexpr size_t kStepsPerCheck = 256;

  struct Flags {
    const std::atomic<bool>* flag = nullptr;
    const StopFlag* stop = nullptr;
  };
  static Flags& Current() {
    static thread_local Flags current;
    return current;
  }

  const Flags outer_;
};

}  // namespace pawl

#endif  // PAWL_SRC_BASE_STOP_SCOPE_H_
