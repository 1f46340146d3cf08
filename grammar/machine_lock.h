// MachineLock: the lock of all machines that share parts, and whether what they have found can
// still be trusted.
//
//   MachineUse use(*lock);                  // waits for the lock
//   if (use.broken()) return nothing;       // no call may ask these machines any more
//   return machine->Completion(state);      // an exception that passes breaks them
//
// A machine grows in every question and keeps what it finds, in several tables that refer to each
// other. An exception that leaves a question in the middle (memory has run out, or a Stopped of
// src/base/stop_scope.h) may leave some of them written and others not. So it breaks the lock:
// the machines are not asked again, and callers that know a text replay it in a new machine
// (State::lost() in pawl/grammar.h, grammar_impl.h).
//
// Thread-safe. Breaking allocates nothing.
#ifndef PAWL_GRAMMAR_MACHINE_LOCK_H_
#define PAWL_GRAMMAR_MACHINE_LOCK_H_

#include <atomic>
#include <exception>
#include <mutex>

#include "src/base/sync.h"

namespace pawl {

class MachineLock {
 public:
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  const std::atomic<bool>& broken_flag() const { return broken_; }
  void Break() noexcept { broken_.store(true, std::memory_order_release); }

 private:
  friend class MachineUse;
  Mutex mutex_;
  std::atomic<bool> broken_{false};
};

// Holds the lock. Who holds two takes the one with the lower address first.
class MachineUse {
 public:
  explicit MachineUse(MachineLock& lock) : lock_(&lock), held_(lock.mutex_) {}
  // Tries for some 40 microseconds first; `soon` becomes whether that was enough.
  MachineUse(MachineLock& lock, bool& soon) : lock_(&lock), held_(LockSoon(lock.mutex_)) {
    soon = held_.owns_lock();
    if (!soon) held_.lock();
  }
  // Only where no thread has the lock; see held().
  MachineUse(MachineLock& lock, std::try_to_lock_t)
      : lock_(&lock), held_(lock.mutex_, std::try_to_lock) {}
  ~MachineUse() {
    if (held() && std::uncaught_exceptions() > exceptions_) lock_->Break();
  }
  MachineUse(const MachineUse&) = delete;
  MachineUse& operator=(const MachineUse&) = delete;

  bool broken() const { return lock_->broken(); }
  bool held() const { return held_.owns_lock(); }

 private:
  MachineLock* const lock_;
  std::unique_lock<Mutex> held_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MACHINE_LOCK_H_
