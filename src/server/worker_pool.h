// WorkerPool: threads for work that must not hold up connections or the model: bodies, prompts,
// compiling. Work that has not begun when the pool goes is dropped. Work should not throw; an
// exception that leaves it ends that work alone, and the exchange that it held answers 500.
// Thread-safe.
//
// There are two lanes, so that long work of a few clients does not hold up all others: the last of
// the threads takes small work only, the rest take what came first. A pool has at least two threads
// for this. A small request may want a grammar that takes seconds, and small work that has waited
// for `patience` gets a thread of its own (up to kMostMore, as many as requests may wait). Threads
// that have worked for so long on one piece get less of the processors from then on, and end with
// it.
#ifndef PAWL_SRC_SERVER_WORKER_POOL_H_
#define PAWL_SRC_SERVER_WORKER_POOL_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "src/server/server.h"

namespace pawl::server {

// A request whose body has more bytes is large: it is read on a worker, and what follows from it is
// large work.
inline constexpr size_t kSmallBytes = 64 << 10;

enum class WorkSize { kSmall, kLarge };
inline WorkSize WorkSizeOf(size_t bytes) {
  return bytes > kSmallBytes ? WorkSize::kLarge : WorkSize::kSmall;
}

class WorkerPool {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{200};
  static constexpr int kMostMore = 256;

  explicit WorkerPool(int threads, Clock::duration patience = kPatience);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Submit(std::function<void()> work, WorkSize size = WorkSize::kSmall);

  // Of the calling thread; kConnection where it is none of a pool's.
  static WorkPlace Here();

 private:
  struct Work {
    uint64_t order;
    std::function<void()> run;
    Clock::time_point since;
  };
  struct Worker {
    WorkPlace place;
    bool more = false;  // than the pool began with: ends when there is no work for it
    std::thread thread = {};
    int system_id = 0;
    std::optional<Clock::time_point> begun = {};  // what it works on
    bool late = false, ended = false;
  };

  // With mutex_. May throw.
  void Start(WorkPlace place, bool more);
  void Loop(Worker& worker);
  // Starts threads for small work that has waited for long.
  void Watch();
  // The lane whose first work is the thread's next; nullptr: there is none for it.
  std::deque<Work>* Next(WorkPlace place);

  const Clock::duration patience_;
  std::mutex mutex_;
  std::condition_variable wake_, waits_;
  uint64_t submitted_ = 0;
  std::deque<Work> small_, large_;
  bool stop_ = false, watcher_sleeps_ = false;
  int more_ = 0;  // threads that the pool did not begin with
  std::list<Worker> workers_;
  std::thread watcher_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_WORKER_POOL_H_
