// Work that waits is looked at a few times within its patience, and only while there is some. What
// holds the threads meanwhile is late: each of them ends with it, and one that belongs to the pool
// leaves a new thread in its place.
#include "src/server/worker_pool.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "src/base/threads.h"

namespace pawl::server {
namespace {

WorkPlace& Place() {
  static thread_local WorkPlace place = WorkPlace::kConnection;
  return place;
}

}  // namespace

WorkPlace WorkerPool::Here() { return Place(); }

WorkerPool::WorkerPool(int threads, Clock::duration patience) : patience_(patience) {
  const int count = std::max(2, threads);
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < count; ++i)
    Start(i + 1 < count ? WorkPlace::kWorker : WorkPlace::kSmallWorker, /*more=*/false);
  watcher_ = std::thread([this] { Watch(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  waits_.notify_all();
  watcher_.join();
  // No thread is started any more.
  for (Worker& worker : workers_) worker.thread.join();
}

void WorkerPool::Submit(std::function<void()> work, WorkSize size) {
  bool watch = false;
  {
    const std::lock_guard lock(mutex_);
    (size == WorkSize::kSmall ? small_ : large_)
        .push_back({submitted_++, std::move(work), Clock::now()});
    watch = watcher_sleeps_ && !small_.empty();
  }
  // All: the one that is woken may not take it.
  wake_.notify_all();
  if (watch) waits_.notify_one();
}

void WorkerPool::Start(WorkPlace place, bool more) {
  Worker& worker = workers_.emplace_back(Worker{.place = place, .more = more});
  try {
    worker.thread = std::thread([this, &worker] { Loop(worker); });
  } catch (...) {
    workers_.pop_back();
    throw;
  }
  more_ += more ? 1 : 0;
}

void WorkerPool::Loop(Worker& worker) {
  NameThread("pawl-worker");
  Place() = worker.place;
  std::unique_lock lock(mutex_);
  worker.system_id = SystemThreadId();
  for (;;) {
    if (!worker.more) wake_.wait(lock, [&] { return stop_ || Next(worker.place) != nullptr; });
    if (stop_ || Next(worker.place) == nullptr) break;
    std::deque<Work>& lane = *Next(worker.place);
    std::function<void()> work = std::move(lane.front().run);
    lane.pop_front();
    worker.begun = Clock::now();
    lock.unlock();
    try {
      work();
    } catch (...) {  // NOLINT(bugprone-empty-catch): see above
    }
    work = nullptr;
    lock.lock();
    worker.begun.reset();
    if (!worker.late || stop_) continue;
    if (worker.more) break;
    try {
      Start(worker.place, /*more=*/false);
      break;
    } catch (const std::exception&) {
      worker.late = false;  // no thread can be had: this one goes on
    }
  }
  more_ -= worker.more ? 1 : 0;
  worker.ended = true;
}

void WorkerPool::Watch() {
  NameThread("pawl-watch");
  std::unique_lock lock(mutex_);
  while (!stop_) {
    for (auto it = workers_.begin(); it != workers_.end();) {
      if (it->ended) it->thread.join();
      it = it->ended ? workers_.erase(it) : std::next(it);
    }
    if (small_.empty()) {
      watcher_sleeps_ = true;
      waits_.wait(lock);
      watcher_sleeps_ = false;
      continue;
    }
    const Clock::time_point now = Clock::now();
    if (const auto until = small_.front().since + patience_; now < until) {
      waits_.wait_for(lock, std::min<Clock::duration>(until - now, kPatience));
      continue;
    }
    for (Worker& worker : workers_) {
      if (worker.late || !worker.begun || now - *worker.begun < patience_) continue;
      worker.late = true;
      LowerPriority(worker.system_id);
    }
    // Each work that has waited gets a thread; those that were started and have not begun yet
    // count.
    auto wanted = std::ranges::count_if(
        small_, [&](const Work& work) { return now - work.since >= patience_; });
    wanted -= std::ranges::count_if(workers_, [](const Worker& worker) {
      return worker.more && !worker.begun && !worker.ended;
    });
    try {
      for (; wanted > 0 && more_ < kMostMore; --wanted)
        Start(WorkPlace::kSmallWorker, /*more=*/true);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it waits for the others
    }
    waits_.wait_for(lock, kPatience / 4);
  }
}

std::deque<WorkerPool::Work>* WorkerPool::Next(WorkPlace place) {
  const bool large = !large_.empty() && place == WorkPlace::kWorker;
  if (small_.empty()) return large ? &large_ : nullptr;
  return large && large_.front().order < small_.front().order ? &large_ : &small_;
}

}  // namespace pawl::server
