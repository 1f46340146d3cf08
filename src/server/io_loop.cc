// One waiter for all threads, with a leader: of the threads that have nothing to run one polls, the
// others sleep. When events come the leader queues their tasks, wakes a sleeper, who leads next,
// and takes tasks from the queue like all others. So as many threads work as there is work, and a
// task that takes long holds one thread and not those that would have come after it.
//
// The queue and the list of all tasks are links in the tasks themselves, and what was told to a
// task that runs is bits that are looked at when it has ended. Tasks that are taken out while the
// leader polls stay until it has looked at its events, which point at them.
//
// Deadlines are looked at every twentieth of a second by a walk over all tasks: some microseconds
// for a thousand, and nothing to keep in order.
#include "src/server/io_loop.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace pawl::server {
namespace {

constexpr int kMostEvents = 64;
constexpr std::chrono::milliseconds kLookEvery{50};

}  // namespace

IoLoop::~IoLoop() { Stop(); }

Status IoLoop::Open(int threads) {
  if (!waiter_.Open()) {
    return Error{ErrorCode::kIo, std::generic_category().message(errno), "sockets"};
  }
  stopped_ = false;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  return {};
}

bool IoLoop::Add(const std::shared_ptr<IoTask>& task, int fd) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    task->listed_ = task;
    task->after_ = all_;
    if (all_ != nullptr) all_->before_ = task.get();
    all_ = task.get();
  }
  if (waiter_.Add(fd, task.get())) return true;
  Remove(*task);
  return false;
}

void IoLoop::Remove(IoTask& task) noexcept {
  std::shared_ptr<IoTask> kept;
  const std::lock_guard lock(mutex_);
  if (task.listed_ == nullptr) return;
  (task.before_ == nullptr ? all_ : task.before_->after_) = task.after_;
  if (task.after_ != nullptr) task.after_->before_ = task.before_;
  task.before_ = task.after_ = nullptr;
  // A queued task has its link in use, and is kept by the queue; so has one that runs no need of
  // it.
  if (polling_) {
    task.after_ = removed_;
    removed_ = &task;
  } else {
    kept = std::move(task.listed_);  // the caller runs it, so it does not end here
  }
}

// ---- Queueing, all with the mutex held ----

void IoLoop::Push(IoTask& task) noexcept {
  task.next_ = nullptr;
  (ready_last_ == nullptr ? ready_ : ready_last_->next_) = &task;
  ready_last_ = &task;
}

IoTask* IoLoop::Pop() noexcept {
  IoTask* const task = ready_;
  ready_ = task->next_;
  if (ready_ == nullptr) ready_last_ = nullptr;
  return task;
}

void IoLoop::Tell(IoTask& task, unsigned events) noexcept {
  task.events_ |= events;
  if (task.phase_ == IoTask::Phase::kRunning) {
    task.again_ = true;
  } else if (task.phase_ == IoTask::Phase::kIdle) {
    task.phase_ = IoTask::Phase::kQueued;
    task.queued_ = task.shared_from_this();
    Push(task);
  }
}

void IoLoop::WakeOne() noexcept {
  if (idle_ > 0) return changed_.notify_one();
  if (!polling_) return;
  waiter_.Wake();
}

bool IoLoop::Schedule(IoTask& task) noexcept {
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  Tell(task, 0);
  if (ready_ != nullptr) WakeOne();
  return true;
}

void IoLoop::ScheduleAll() noexcept {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  for (IoTask* task = all_; task != nullptr; task = task->after_) Tell(*task, 0);
  if (ready_ != nullptr) WakeOne();
}

// ---- The threads ----

void IoLoop::Work() noexcept {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (ready_ != nullptr) {
      RunOne(lock);
    } else if (!polling_) {
      Poll(lock);
    } else {
      ++idle_;
      changed_.wait(lock);
      --idle_;
    }
  }
}

void IoLoop::RunOne(std::unique_lock<std::mutex>& lock) noexcept {
  IoTask& task = *Pop();
  std::shared_ptr<IoTask> kept = std::move(task.queued_);
  task.phase_ = IoTask::Phase::kRunning;
  const unsigned events = std::exchange(task.events_, 0);
  if (idle_ > 0 && (ready_ != nullptr || !polling_)) changed_.notify_one();
  lock.unlock();
  task.Run(events, std::chrono::steady_clock::now());
  lock.lock();
  task.phase_ = IoTask::Phase::kIdle;
  if (std::exchange(task.again_, false)) Tell(task, 0);
  lock.unlock();
  kept.reset();  // maybe the end of it
  lock.lock();
}

void IoLoop::LookAtTime(IoTask::TimePoint now) noexcept {
  if (now - looked_ < kLookEvery) return;
  looked_ = now;
  const auto at = now.time_since_epoch().count();
  for (IoTask* task = all_; task != nullptr; task = task->after_) {
    auto deadline = task->deadline_.load();
    if (deadline > at) continue;
    // A task that runs may set another one meanwhile.
    if (task->deadline_.compare_exchange_strong(deadline,
                                                IoTask::kNever.time_since_epoch().count())) {
      Tell(*task, IoTask::kTime);
    }
  }
}

void IoLoop::Poll(std::unique_lock<std::mutex>& lock) noexcept {
  polling_ = true;
  // Alone with the listener there is no time to look at, or some.
  const bool busy = all_ != nullptr && all_->after_ != nullptr;
  lock.unlock();
  std::array<os::SocketWaiter::Told, kMostEvents> told;
  const int count = waiter_.Wait(told, static_cast<int>(kLookEvery.count()) * (busy ? 1 : 10));
  const IoTask::TimePoint now = std::chrono::steady_clock::now();
  lock.lock();
  polling_ = false;
  for (int i = 0; i < count; ++i) {
    const os::SocketWaiter::Told& one = told[static_cast<size_t>(i)];
    Tell(*static_cast<IoTask*>(one.who), one.events);
  }
  LookAtTime(now);
  IoTask* removed = std::exchange(removed_, nullptr);
  if (removed == nullptr) return;
  lock.unlock();
  while (removed != nullptr) {
    const std::shared_ptr<IoTask> kept = std::move(removed->listed_);
    removed = std::exchange(removed->after_, nullptr);
  }
  lock.lock();
}

void IoLoop::Stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ && threads_.empty()) return;
    stopped_ = true;
    changed_.notify_all();
    waiter_.Wake();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  // Only this thread is left. A task takes itself out of the lists, or is taken out here.
  while (all_ != nullptr) {
    const std::shared_ptr<IoTask> task = all_->listed_;
    task->Run(IoTask::kGone, std::chrono::steady_clock::now());
    Remove(*task);
  }
  while (removed_ != nullptr) {
    const std::shared_ptr<IoTask> kept = std::move(removed_->listed_);
    removed_ = std::exchange(kept->after_, nullptr);
  }
  while (ready_ != nullptr) {
    const std::shared_ptr<IoTask> kept = std::move(Pop()->queued_);
  }
}

}  // namespace pawl::server
