// LookQueue: threads for what may take long, so that the thread that hands it over does not.
//
//   LookQueue looks({.threads = 2});
//   looks.Push(lane, [&] { answer = Ask(); });       // what the answer needs outlives it
//   if (!looks.Wait(Clock::now() + 5ms)) ...         // some are late
//
// Looks of one lane run one after the other, so that those that want the same lock take one thread
// and not all of them.
//
// Thread-safe, but for Wait, which one thread calls.
#ifndef PAWL_SRC_DECODE_LOOK_QUEUE_H_
#define PAWL_SRC_DECODE_LOOK_QUEUE_H_

#include <chrono>
#include <functional>
#include <list>

#include "src/base/sync.h"
#if PAWL_HAS_THREADS
#include <thread>
#endif

namespace pawl {

#if PAWL_HAS_THREADS

class LookQueue {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    int threads = 2;         // that work on looks that are not late
    int most_threads = 256;  // with those that work on late ones
  };

  explicit LookQueue(const Options& options) : options_(options) {}
  // Waits for all looks.
  ~LookQueue();
  LookQueue(const LookQueue&) = delete;
  LookQueue& operator=(const LookQueue&) = delete;

  // `look` must not throw. `lane` nullptr: one of its own. `awaited`: Wait waits for it.
  void Push(const void* lane, std::function<void()> look, bool awaited = true);
  // Waits until no look is left but late ones, at most until that time. false: some are left, which
  // are late from now on.
  bool Wait(Clock::time_point until);
  // Waits until any look ends or Wake is called, since the last call of this; at most until that
  // time.
  void WaitForNews(Clock::time_point until);
  void Wake();

  // Looks that have not ended.
  int left() const;

 private:
  struct Worker {
    std::thread thread;
    int system_id = 0;
    bool patient = false;  // works on a late look, and ends with it
    bool ended = false;
  };
  struct Look {
    const void* lane;
    std::function<void()> run;
    Worker* worker = nullptr;  // that runs it
    bool awaited = true;
    bool late = false;
  };

  std::list<Look>::iterator NextLook();
  void Summon();
  void Work(Worker& worker);
  void BePatient(Worker& worker);
  void BeLate();

  const Options options_;
  mutable Mutex mutex_;
  ConditionVariable has_looks_, ended_;
  // What follows is under mutex_.
  std::list<Look> queued_, running_;
  std::list<Worker> workers_;
  int idle_ = 0, patient_ = 0;
  int fresh_ = 0;  // looks that are awaited and not late
  bool news_ = false, stop_ = false;
};

#else  // a look runs where it is handed over

class LookQueue {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    int threads = 0;
  };
  explicit LookQueue(const Options&) {}
  void Push(const void*, const std::function<void()>& look, bool = true) { look(); }
  bool Wait(Clock::time_point) { return true; }
  void WaitForNews(Clock::time_point) {}
  void Wake() {}
  int left() const { return 0; }
};

#endif

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_LOOK_QUEUE_H_
