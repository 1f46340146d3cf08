// Small tools for threads: their names and priorities (os/processors.h), and a function that pauses
// on a thread of its own. Loops over many threads: thread_pool.h. Locks: sync.h.
#ifndef PAWL_SRC_BASE_THREADS_H_
#define PAWL_SRC_BASE_THREADS_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "src/base/os/processors.h"
#include "src/base/sync.h"

namespace pawl {

using os::LowerPriority;
using os::NameThread;
using os::SystemThreadId;

// A function that runs on a thread of its own and stops in the middle, so that its caller goes on
// where it pauses (a coroutine with a stack).
//
//   SideThread side([](SideThread& self) {
//     Ask("first");
//     self.Pause();                     // the caller of Resume goes on
//     Ask("second");
//   });
//   side.Resume();                      // returns at the Pause
//   side.Resume();                      // returns at the end
//   assert(side.ended());
//
// Of the two threads one runs at a time. What one has written, the other one sees.
//
// Thread safety: Resume by one thread at a time, Pause by the function alone. The function must not
// throw, and must have ended, or not have begun, when the object goes.
class SideThread {
 public:
  explicit SideThread(std::function<void(SideThread&)> function) : function_(std::move(function)) {}
  ~SideThread() {
    if (thread_.joinable()) thread_.join();
  }
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  bool begun() const { return thread_.joinable(); }
  bool ended() const { return ended_; }

  // Runs the function until it pauses or ends. REQUIRES: it has not ended. Throws
  // std::system_error where the system has no more threads.
  void Resume() {
    std::unique_lock lock(mutex_);
    inside_ = true;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] {
        {
          std::unique_lock begin(mutex_);
          changed_.wait(begin, [this] { return inside_; });
        }
        function_(*this);
        const std::lock_guard end(mutex_);
        ended_ = true;
        inside_ = false;
        changed_.notify_all();
      });
    }
    changed_.notify_all();
    changed_.wait(lock, [this] { return !inside_; });
  }

  void Pause() {
    std::unique_lock lock(mutex_);
    inside_ = false;
    changed_.notify_all();
    changed_.wait(lock, [this] { return inside_; });
  }

 private:
  const std::function<void(SideThread&)> function_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool inside_ = false;  // whose turn it is
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace pawl

#endif  // PAWL_SRC_BASE_THREADS_H_
