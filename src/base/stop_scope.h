// StopScope: lets another thread end what this thread computes, at the next place where the
// computation asks.
//
//   std::atomic<bool> stop{false};
//   try {
//     const StopScope scope(&stop);
//     mask = state.mask();                // calls StopScope::Check() at least every 1,000 steps
//   } catch (const Stopped&) { ... }      // stop = true was set by another thread
//
// Scopes nest: the innermost one counts; one for a StopFlag is asked next to the flag around it.
// Without a scope, Check does nothing. A computation that a Stopped exception leaves may be half
// done; the owner of its memory has to drop or repair the result.
//
// A StepWatch is asked at the same places, less often: the owner of what the computation keeps may
// end it as well.
//
// Thread safety: a scope belongs to the thread that made it; the flag may be set by any thread.
#ifndef PAWL_SRC_BASE_STOP_SCOPE_H_
#define PAWL_SRC_BASE_STOP_SCOPE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "pawl/result.h"

namespace pawl {

class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

// From its beginning to its end the innermost one is asked. Look may throw.
class StepWatch {
 public:
  StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;
  virtual void Look() = 0;

 protected:
  ~StepWatch();

 private:
  StepWatch* const outer_;
};

class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>* flag) : outer_(Current()) {
    Current().flag = flag;
    Current().stop = nullptr;
  }
  // `flag` nullptr: as without this scope.
  explicit StopScope(const StopFlag* flag) : outer_(Current()) {
    if (flag != nullptr) Current().stop = flag;
  }
  ~StopScope() {
    Current().flag = outer_.flag;
    Current().stop = outer_.stop;
  }
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
    Flags& now = Current();
    if (now.watch == nullptr || ++now.checks % kChecksPerLook != 0) return;
    now.watch->Look();
  }
  static void Step() { Steps(1); }

 private:
  friend class StepWatch;
  static constexpr size_t kStepsPerCheck = 256;
  static constexpr uint32_t kChecksPerLook = 16;

  struct Flags {
    const std::atomic<bool>* flag = nullptr;
    const StopFlag* stop = nullptr;
    StepWatch* watch = nullptr;
    uint32_t checks = 0;
  };
  static Flags& Current() {
    static thread_local Flags current;
    return current;
  }

  const Flags outer_;
};

inline StepWatch::StepWatch() : outer_(StopScope::Current().watch) {
  StopScope::Current().watch = this;
}
inline StepWatch::~StepWatch() { StopScope::Current().watch = outer_; }

// Counts the steps of a loop and asks the thread's StopScope once in a thousand, so that a loop
// over single bytes stays as fast as without it.
//
//   StopSteps steps;
//   for (const char c : text) {
//     steps.Step();                     // throws Stopped
//     ...
//   }
//
// Not thread-safe: a counter belongs to one loop.
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

#endif  // PAWL_SRC_BASE_STOP_SCOPE_H_
