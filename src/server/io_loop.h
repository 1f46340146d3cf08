// IoLoop: threads that run tasks when their sockets, their time or other threads say so.
//
//   auto loop = std::make_shared<IoLoop>();
//   Status status = loop->Open(2);            // two threads
//   loop->Add(task, fd);                      // task->Run(kReadable | ..., now) from now on
//   loop->Schedule(*task);                    // from any thread: task->Run(0, now)
//   loop->Stop();
//
// A task never runs twice at a time, and any thread runs it. Events of a socket are told once (they
// are edges): a task reads or writes until there is no more. Telling, queueing and taking tasks out
// allocates nothing, so none of it can fail.
#ifndef PAWL_SRC_SERVER_IO_LOOP_H_
#define PAWL_SRC_SERVER_IO_LOOP_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "pawl/result.h"
#include "src/base/os/sockets.h"

namespace pawl::server {

class IoTask : public std::enable_shared_from_this<IoTask> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum Event : unsigned {
    kReadable = os::SocketWaiter::kReadable,
    kWritable = os::SocketWaiter::kWritable,
    kHalfClosed = os::SocketWaiter::kHalfClosed,  // the other side sends no more
    kGone = os::SocketWaiter::kGone,              // the other side is not there any more
    kTime = 16,                                   // the deadline has come
  };

  virtual ~IoTask() = default;
  virtual void Run(unsigned events, TimePoint now) noexcept = 0;

  // kTime is told then, once, up to a tenth of a second late.
  void SetDeadline(TimePoint at) { deadline_ = at.time_since_epoch().count(); }
  static constexpr TimePoint kNever = TimePoint::max();

 private:
  friend class IoLoop;
  enum class Phase : uint8_t { kIdle, kQueued, kRunning };

  std::atomic<TimePoint::rep> deadline_{TimePoint::max().time_since_epoch().count()};
  // Under the loop's mutex.
  Phase phase_ = Phase::kIdle;
  bool again_ = false;
  unsigned events_ = 0;
  IoTask *before_ = nullptr, *after_ = nullptr;  // among all
  IoTask* next_ = nullptr;                       // in the queue, or among those taken out
  std::shared_ptr<IoTask> listed_, queued_;      // what keeps it
};

// What a task needs of the loop.
class IoRunner {
 public:
  virtual ~IoRunner() = default;
  // The task runs soon. false: nothing runs any more.
  virtual bool Schedule(IoTask& task) noexcept = 0;
  // No more events; called while the task runs.
  virtual void Remove(IoTask& task) noexcept = 0;
};

class IoLoop : public IoRunner {
 public:
  IoLoop() = default;
  ~IoLoop() override;
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  // Errors: kIo.
  Status Open(int threads);
  // false: the system has no room for it.
  bool Add(const std::shared_ptr<IoTask>& task, int fd) noexcept;
  bool Schedule(IoTask& task) noexcept override;
  void ScheduleAll() noexcept;
  void Remove(IoTask& task) noexcept override;
  // Ends the threads, then runs each task that is left once more, with kGone, on this one.
  void Stop() noexcept;

 private:
  void Work() noexcept;
  void RunOne(std::unique_lock<std::mutex>& lock) noexcept;
  void Poll(std::unique_lock<std::mutex>& lock) noexcept;
  void Tell(IoTask& task, unsigned events) noexcept;
  void Push(IoTask& task) noexcept;
  IoTask* Pop() noexcept;
  void WakeOne() noexcept;
  void LookAtTime(IoTask::TimePoint now) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  os::SocketWaiter waiter_;
  bool stopped_ = true, polling_ = false;
  int idle_ = 0;
  IoTask* all_ = nullptr;
  IoTask *ready_ = nullptr, *ready_last_ = nullptr;
  IoTask* removed_ = nullptr;  // while one polls: its events may name them
  IoTask::TimePoint looked_{};
  std::vector<std::thread> threads_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_IO_LOOP_H_
