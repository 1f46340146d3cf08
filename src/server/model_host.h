// ModelHost: several models in one server, loaded when a request names them and unloaded when
// others need their memory, or when no request has named them for a while.
//
//   host->Use("extract", {}, exchange,
//             [](std::shared_ptr<ServerState> state, std::shared_ptr<Exchange> exchange) {...},
//             [](const ApiError& why, Exchange& exchange) {...});
//
// Each model has a ServerState of its own, which is there from the beginning; the model in it comes
// and goes. Who has the pointer that Use gives uses the model, and it stays loaded. A request for a
// model that is being loaded waits in the queue of this model, and holds no thread meanwhile.
//
// Memory. A model gets in when the bytes of all models fit into the budget: weights, what a
// tokenizer takes, and a share for keys, values and grammars, or what these have grown to. Until
// then models without requests are unloaded, the one that was asked for longest ago first. Where
// all have requests, the one that was asked for longest ago takes no new ones until it is idle and
// is unloaded. Loads wait for memory in the order in which they were asked for.
//
// Thread safety: all methods may be called from several threads, but for Look and Stop, which one
// thread calls.
#ifndef PAWL_SRC_SERVER_MODEL_HOST_H_
#define PAWL_SRC_SERVER_MODEL_HOST_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "pawl/result.h"
#include "src/server/api_error.h"
#include "src/server/http.h"
#include "src/server/server_state.h"

namespace pawl::server {

class ModelHost : public std::enable_shared_from_this<ModelHost> {
 public:
  using Go = void (*)(std::shared_ptr<ServerState> state, std::shared_ptr<Exchange> exchange);
  using Refuse = std::function<void(const ApiError& why, Exchange& exchange)>;

  // What lists of models tell.
  struct Facts {
    std::string name;
    std::string parent = {};          // of an adapter: the model
    std::string path = {};            // of its file or folder
    const char* status = "unloaded";  // "loading", "loaded", "failed"
    std::string failure;
    std::string architecture;  // empty until the model was loaded once, as are the numbers
    int context_length = 0;
    int64_t weight_bytes = 0;
    int64_t bytes = 0;    // that it takes of the budget now
    double expires = -1;  // seconds until it is unloaded; negative: it is not
    int waiting = 0;      // requests that wait for it to be loaded
    int64_t loads = 0, unloads = 0;
    double load_seconds = 0;  // of all loads
  };

  // `options`: with models. `shared`: of the states.
  ModelHost(const ServerOptions& options, const std::shared_ptr<ServerState::Shared>& shared);
  ~ModelHost();

  int64_t budget() const { return budget_; }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // The only one; empty where there are several.
  std::string OnlyName() const { return entries_.size() == 1 ? entries_[0]->name : ""; }
  // `"a", "b"`, the first of them.
  std::string NamesShown() const;

  // Calls `go` with the state of a loaded model, now or on a thread of the connection, or `refuse`.
  // Where the client goes away meanwhile neither is called. `keep_alive`: of the model from now on.
  void Use(std::string_view name, std::optional<double> keep_alive,
           std::shared_ptr<Exchange> exchange, Go go, Refuse refuse);

  std::vector<Facts> AllFacts() const;
  // All states. What `ready` promises is there for those of Loaded alone.
  std::vector<std::shared_ptr<ServerState>> States() const;
  // Those of loaded models, which stay loaded as long as the pointers are there.
  std::vector<std::shared_ptr<ServerState>> Loaded();

  // A few times a second: unloads what no request named for long, what is too much, and gives up
  // requests that have waited for longer than `seconds`. Returns how many of these there were.
  int Look(double seconds);
  // New requests and those that wait are refused.
  void Drain();
  // Unloads all. Errors: those of UnloadState.
  Status Stop();

 private:
  using Clock = std::chrono::steady_clock;
  // How long a failed load is not tried again; how long a load waits until a model that always has
  // requests takes no new ones.
  static constexpr std::chrono::seconds kRetry{10};
  static constexpr std::chrono::milliseconds kPatience{250};

  struct Waiter {
    std::shared_ptr<Exchange> exchange;
    Go go;
    Refuse refuse;
  };
  using Waiters = std::list<std::shared_ptr<Waiter>>;
  enum class Phase { kCold, kLoading, kReady, kUnloading };
  struct Entry {
    std::string name;
    ModelOfServer options;
    std::shared_ptr<ServerState> state;
    // The rest is under mutex_.
    Phase phase = Phase::kCold;
    bool leaving = false;  // kReady: takes no new requests
    int users = 0;         // pointers to the state that were handed out
    Clock::time_point last_used = Clock::now();
    double keep_alive = 0;
    Waiters waiters;
    std::optional<ApiError> failure;
    Clock::time_point failed = {};
    // Known from the first load on. Bytes: of the weights, of these with all else that does not
    // grow, and with the shares for what does.
    int64_t weights = 0, fixed = 0, least = 0, page = 0;
    int64_t counted = 0;              // of the budget now
    std::atomic<int64_t> coming = 0;  // of these, what a load has not taken yet; without the lock
    std::list<std::thread> loader;
    std::string architecture;
    int context_length = 0;
    int64_t loads = 0, unloads = 0;
    double load_seconds = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  Entry* Find(std::string_view name) const;
  ApiError NotFound(std::string_view name) const;
  // `asked`: for a request, from whose end on the time of keep_alive counts. REQUIRES: `users` has
  // counted it.
  std::shared_ptr<ServerState> Lease(Entry& entry, bool asked = true);
  void Release(Entry& entry, bool asked);
  void Forget(Entry& entry, const Waiter* waiter);
  static void Tell(Waiter& waiter, const ApiError& why) noexcept;

  // ---- With the lock ----
  void StartLoad(Entry& entry);
  // The waiters, which are to be told without the lock.
  Waiters Failed(Entry& entry, const ApiError& why, bool keep);
  // Without the lock meanwhile. REQUIRES: kReady, no users.
  void Unload(Entry& entry, Lock& lock);
  bool Fits(int64_t bytes) const;
  // The loaded model that was asked for longest ago; `idle`: without users. nullptr: there is none.
  Entry* Oldest(bool idle);
  // false: the server stops.
  bool WaitForRoom(Entry& entry, Lock& lock);

  // ---- On the thread of a load ----
  void Load(Entry& entry) noexcept;
  Status TryLoad(Entry& entry);
  // Reads what the files say of memory.
  Status Measure(Entry& entry);

  const int64_t budget_;
  const int64_t base_;   // what the process takes without models
  const int64_t share_;  // for keys, values and grammars of a model, at least
  const std::function<void(const std::string& line)> log_;
  std::vector<std::unique_ptr<Entry>> entries_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry*> room_queue_;     // loads that wait for memory, the first one first
  std::list<std::thread> finished_;  // threads of loads, to be joined
  int loading_ = 0;                  // threads of loads that run
  bool draining_ = false, stopping_ = false;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_MODEL_HOST_H_
