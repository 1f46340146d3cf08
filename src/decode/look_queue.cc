// A thread takes the oldest look whose lane is free. Threads are started when there is a look and
// none of them is free, up to the number that the owner asks for.
//
// A look that the owner no longer waits for is late. Its thread may be gone for seconds, so it does
// not count any more and another one may be started: outputs whose looks are short wait for a free
// thread and not for a stranger's grammar. Late looks get less of the processors, where the system
// knows such a thing: the model, and the looks that somebody waits for, go first. A thread cannot
// take that back, so it ends with its look.
#include "src/decode/look_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "src/base/threads.h"

namespace pawl {

LookQueue::~LookQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  has_looks_.notify_all();
  for (;;) {
    std::list<Worker> one;
    {
      const std::lock_guard lock(mutex_);
      if (workers_.empty()) break;
      one.splice(one.end(), workers_, workers_.begin());
    }
    one.front().thread.join();
  }
  // Those for which there never was a thread.
  for (Look& look : queued_) look.run();
}

// With mutex_, here and below.
std::list<LookQueue::Look>::iterator LookQueue::NextLook() {
  return std::find_if(queued_.begin(), queued_.end(), [this](const Look& look) {
    return look.lane == nullptr ||
           std::none_of(running_.begin(), running_.end(),
                        [&](const Look& other) { return other.lane == look.lane; });
  });
}

// A thread for the next look.
void LookQueue::Summon() {
  if (NextLook() == queued_.end()) return;
  if (idle_ > 0) return has_looks_.notify_one();
  for (auto it = workers_.begin(); it != workers_.end();) {
    if (it->ended) it->thread.join();
    it = it->ended ? workers_.erase(it) : std::next(it);
  }
  const auto all = static_cast<int>(workers_.size());
  if (all - patient_ >= options_.threads || all >= options_.most_threads) return;
  try {
    Worker& worker = workers_.emplace_back();
    worker.thread = std::thread([this, &worker] { Work(worker); });
  } catch (const std::exception&) {
    // The look waits for another thread.
    if (!workers_.empty() && !workers_.back().thread.joinable()) workers_.pop_back();
  }
}

void LookQueue::Push(const void* lane, std::function<void()> look, bool awaited) {
  std::list<Look> one;
  one.push_back({.lane = lane, .run = std::move(look), .awaited = awaited});
  bool alone;
  {
    const std::lock_guard lock(mutex_);
    queued_.splice(queued_.end(), one);
    if (awaited) ++fresh_;
    Summon();
    // No thread can be had.
    alone = workers_.empty();
    if (alone) {
      one.splice(one.end(), queued_, std::prev(queued_.end()));
      if (awaited) --fresh_;
    }
  }
  if (alone) one.front().run();
}

void LookQueue::Work(Worker& worker) {
  NameThread("pawl-look");
  std::unique_lock lock(mutex_);
  worker.system_id = SystemThreadId();
  for (;;) {
    auto next = NextLook();
    if (next == queued_.end()) {
      if (stop_) break;
      ++idle_;
      has_looks_.wait(lock);
      --idle_;
      continue;
    }
    running_.splice(running_.end(), queued_, next);
    next->worker = &worker;
    if (next->late) BePatient(worker);
    lock.unlock();
    next->run();
    next->run = nullptr;
    lock.lock();
    if (next->awaited && !next->late) --fresh_;
    running_.erase(next);
    news_ = true;
    ended_.notify_all();
    if (!worker.patient) continue;
    Summon();  // in place of this one, which still counts as patient
    --patient_;
    break;
  }
  worker.ended = true;
}

void LookQueue::BePatient(Worker& worker) {
  if (worker.patient) return;
  worker.patient = true;
  ++patient_;
  LowerPriority(worker.system_id);
}

bool LookQueue::Wait(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (ended_.wait_until(lock, until, [this] { return fresh_ == 0; })) return true;
  BeLate();
  return false;
}

void LookQueue::BeLate() {
  for (Look& look : queued_) look.late = true;
  for (Look& look : running_) {
    if (!look.late) BePatient(*look.worker);
    look.late = true;
  }
  fresh_ = 0;
  for (int i = 0; i < options_.threads; ++i) Summon();
}

void LookQueue::WaitForNews(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  ended_.wait_until(lock, until, [this] { return news_; });
  news_ = false;
}

void LookQueue::Wake() {
  {
    const std::lock_guard lock(mutex_);
    news_ = true;
  }
  ended_.notify_all();
}

int LookQueue::left() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(queued_.size() + running_.size());
}

}  // namespace pawl
