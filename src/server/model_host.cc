// A load has a thread of its own, so a slow one delays no other request. The thread unloads what
// has to go for it. What runs without the lock: reading files, loading, unloading, and whatever
// answers.
#include "src/server/model_host.h"

#include <algorithm>
#include <utility>

#include "src/base/failure.h"
#include "src/base/os/memory.h"
#include "src/base/pages.h"
#include "src/model/tensor_source.h"
#include "src/server/heap_trim.h"
#include "src/server/json_writer.h"
#include "src/server/state_life.h"

namespace pawl::server {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Of the budget a model gets so much for keys, values and grammars before it has used them.
constexpr int64_t kShares = 32;
// Threads, scratch memory of the model, heap; a token of the vocabulary with its tables.
constexpr int64_t kFixedBytes = 10 * kMiB, kTokenBytes = 600;
// Of the process without models: code that has not run yet, connections.
constexpr int64_t kProcessBytes = 8 * kMiB;

int64_t BudgetOf(const ServerOptions& options) {
  if (options.models_bytes > 0) return options.models_bytes;
  const int64_t physical = PhysicalMemory();
  return physical > 0 ? physical / 2 : int64_t{4} << 30;
}

void Trim() { os::TrimHeap(); }

std::string Mib(int64_t bytes) { return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB"; }

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

ApiError ShuttingDown() {
  return {.status = 503, .message = "the server is shutting down", .retry_seconds = 1};
}

}  // namespace

ModelHost::ModelHost(const ServerOptions& options,
                     const std::shared_ptr<ServerState::Shared>& shared)
    : budget_(BudgetOf(options)),
      base_(ResidentBytes() + kProcessBytes),
      share_(budget_ / kShares),
      log_(options.log) {
  for (const ModelOfServer& model : options.models) {
    auto entry = std::make_unique<Entry>();
    entry->name = model.model.name;
    entry->options = model;
    entry->keep_alive = model.keep_alive;
    ServerOptions own = options;
    own.models.clear();
    own.model_path = model.path;
    own.model = model.model;
    own.max_batch = model.max_batch;
    own.max_queue = model.max_queue;
    own.max_tokens = model.max_tokens;
    own.grammar_bytes = std::min<size_t>(own.grammar_bytes, static_cast<size_t>(budget_ / 8));
    entry->state = std::make_shared<ServerState>(std::move(own), shared);
    entries_.push_back(std::move(entry));
  }
}

ModelHost::~ModelHost() = default;

ModelHost::Entry* ModelHost::Find(std::string_view name) const {
  for (int i = 0; i < 2; ++i) {
    for (const auto& entry : entries_) {
      if (entry->name == name) return entry.get();
    }
    // As Ollama's clients write it.
    constexpr std::string_view kLatest = ":latest";
    if (!name.ends_with(kLatest)) break;
    name.remove_suffix(kLatest.size());
  }
  return nullptr;
}

std::string ModelHost::NamesShown() const {
  constexpr size_t kMostNames = 20;
  std::string out;
  for (size_t i = 0; i < std::min(entries_.size(), kMostNames); ++i) {
    out += (i == 0 ? "" : ", ") + json::Quote(entries_[i]->name);
  }
  if (entries_.size() > kMostNames) out += ", ... (" + std::to_string(entries_.size()) + ")";
  return out;
}

ApiError ModelHost::NotFound(std::string_view name) const {
  return {.status = 404,
          .message = "the model " + json::Quote(Shortened(name, 100)) +
                     " does not exist; the models of this server are " + NamesShown(),
          .param = "/model",
          .code = "model_not_found"};
}

std::shared_ptr<ServerState> ModelHost::Lease(Entry& entry, bool asked) {
  // Where there is no memory for the pointer, its deleter is called.
  return {entry.state.get(), [self = shared_from_this(), &entry, asked](ServerState*) {
            self->Release(entry, asked);
          }};
}

void ModelHost::Release(Entry& entry, bool asked) {
  const std::lock_guard lock(mutex_);
  if (asked) entry.last_used = std::max(entry.last_used, Clock::now());
  if (--entry.users > 0) return;
  changed_.notify_all();
}

void ModelHost::Tell(Waiter& waiter, const ApiError& why) noexcept {
  try {
    waiter.refuse(why, *waiter.exchange);
  } catch (...) {
    waiter.exchange->Abort();
  }
}

void ModelHost::Use(std::string_view name, std::optional<double> keep_alive,
                    std::shared_ptr<Exchange> exchange, Go go, Refuse refuse) {
  Entry* const entry = Find(name);
  if (entry == nullptr) return refuse(NotFound(name), *exchange);
  const auto waiter = std::make_shared<Waiter>(Waiter{exchange, go, refuse});
  std::optional<ApiError> no;
  {
    const Lock lock(mutex_);
    const int most = entry->options.max_queue + entry->options.max_batch;
    if (keep_alive) entry->keep_alive = *keep_alive;
    entry->last_used = Clock::now();
    if (draining_) {
      no = ShuttingDown();
    } else if (entry->phase == Phase::kReady && !entry->leaving) {
      ++entry->users;
    } else if (entry->failure && Clock::now() < entry->failed + kRetry) {
      no = *entry->failure;
    } else if (static_cast<int>(entry->waiters.size()) >= most) {
      ++entry->state->metrics.refused_full;
      no = ApiError{.status = 429,
                    .message = "the queue is full: " + std::to_string(most) +
                               " requests wait for the model to be loaded",
                    .retry_seconds = 1};
    } else {
      entry->waiters.push_back(waiter);
      if (entry->phase == Phase::kCold) StartLoad(*entry);
      exchange = nullptr;
    }
  }
  if (no) return refuse(*no, *exchange);
  if (exchange != nullptr) return go(Lease(*entry), std::move(exchange));
  waiter->exchange->OnGone([weak = weak_from_this(), entry, waiter = waiter.get()] {
    if (const auto self = weak.lock()) self->Forget(*entry, waiter);
  });
}

void ModelHost::Forget(Entry& entry, const Waiter* waiter) {
  Waiters gone;  // after the lock
  const std::lock_guard lock(mutex_);
  for (auto at = entry.waiters.begin(); at != entry.waiters.end(); ++at) {
    if (at->get() != waiter) continue;
    gone.splice(gone.begin(), entry.waiters, at);
    ++entry.state->metrics.cancelled;
    return;
  }
}

void ModelHost::StartLoad(Entry& entry) {
  entry.phase = Phase::kLoading;
  entry.failure.reset();
  ++loading_;
  try {
    entry.loader.emplace_back([self = shared_from_this(), &entry] { self->Load(entry); });
  } catch (...) {
    --loading_;
    entry.phase = Phase::kCold;
    entry.loader.clear();
    throw;
  }
}

ModelHost::Waiters ModelHost::Failed(Entry& entry, const ApiError& why, bool keep) {
  entry.phase = Phase::kCold;
  entry.counted = 0;
  if (keep) {
    entry.failure = why;
    entry.failed = Clock::now();
  }
  changed_.notify_all();
  return std::exchange(entry.waiters, {});
}

bool ModelHost::Fits(int64_t bytes) const {
  int64_t counted = base_ + bytes, coming = bytes;
  bool alone = true;
  for (const auto& entry : entries_) {
    counted += entry->counted;
    coming += entry->coming;
    if (entry->counted > 0) alone = false;
  }
  return counted <= budget_ && (alone || ResidentBytes() + coming <= budget_);
}

ModelHost::Entry* ModelHost::Oldest(bool idle) {
  Entry* oldest = nullptr;
  for (const auto& entry : entries_) {
    if (entry->phase != Phase::kReady || (idle && entry->users > 0)) continue;
    if (oldest == nullptr || (entry->leaving && !oldest->leaving) ||
        (entry->leaving == oldest->leaving && entry->last_used < oldest->last_used)) {
      oldest = entry.get();
    }
  }
  return oldest;
}

void ModelHost::Unload(Entry& entry, Lock& lock) {
  entry.phase = Phase::kUnloading;
  lock.unlock();
  const Status saved = Guarded([&] { return UnloadState(*entry.state); });
  Trim();
  if (log_) {
    (void)Guarded([&]() -> Status {
      JsonWriter json;
      json.Object().Key("event").String("unloaded").Key("model").String(entry.name);
      if (!saved.ok()) json.Key("message").String(saved.error().ToString());
      log_(json.End().Take());
      return {};
    });
  }
  lock.lock();
  entry.phase = Phase::kCold;
  entry.leaving = false;
  entry.counted = 0;
  ++entry.unloads;
  changed_.notify_all();
  if (entry.waiters.empty() || draining_) return;
  try {
    StartLoad(entry);
  } catch (...) {
    Waiters waiters = Failed(entry, FailureError(CurrentFailure()), false);
    lock.unlock();
    for (const auto& waiter : waiters) Tell(*waiter, FailureError(CurrentFailure()));
    lock.lock();
  }
}

bool ModelHost::WaitForRoom(Entry& entry, Lock& lock) {
  const auto place = room_queue_.insert(room_queue_.end(), &entry);
  const Clock::time_point begin = Clock::now();
  while (!draining_ && !stopping_) {
    if (room_queue_.front() == &entry) {
      if (Fits(entry.least)) break;
      if (Entry* const victim = Oldest(true)) {
        Unload(*victim, lock);
        continue;
      }
      const bool comes = std::ranges::any_of(entries_, [](const auto& other) {
        return other->leaving || other->phase == Phase::kUnloading;
      });
      if (!comes && Clock::now() > begin + kPatience) {
        if (Entry* const busy = Oldest(false)) busy->leaving = true;
      }
    }
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  room_queue_.erase(place);
  changed_.notify_all();
  if (draining_ || stopping_) return false;
  entry.counted = entry.coming = entry.least;
  return true;
}

Status ModelHost::Measure(Entry& entry) {
  {
    const Lock lock(mutex_);
    if (entry.least > 0) return {};
  }
  const ModelOfServer& options = entry.options;
  const Result<WeightPlan> plan = PlanWeights(options.path, options.model.model.dtype);
  if (!plan.ok()) return plan.error();
  const ServerOptions& own = entry.state->options;
  const int64_t context = plan->page_bytes * plan->context_pages;
  const Lock lock(mutex_);
  entry.weights = plan->memory_bytes;
  entry.page = plan->page_bytes;
  entry.fixed = plan->memory_bytes + kFixedBytes + kTokenBytes * plan->vocabulary_size +
                (own.make_drafter ? own.draft_bytes : 0);
  entry.least =
      entry.fixed + (options.kv_bytes > 0
                         ? options.kv_bytes
                         : std::min(share_, context + static_cast<int64_t>(own.grammar_bytes)));
  return {};
}

Status ModelHost::TryLoad(Entry& entry) {
  if (Status status = Measure(entry); !status.ok()) return status;
  LoadLimits limits;
  {
    Lock lock(mutex_);
    const int64_t given = entry.options.kv_bytes, room = budget_ - base_;
    if (entry.least > room) {
      return Error{ErrorCode::kLimit,
                   "it needs " + Mib(entry.least) + " of memory, and --models-mb leaves " +
                       Mib(std::max<int64_t>(room, 0)) + " for models",
                   ""};
    }
    // Alone in the server it may take all.
    limits.kv_bytes = given > 0 ? given : std::max(room - entry.fixed - share_, entry.page);
    limits.kept_kv_bytes = std::min(limits.kv_bytes, std::max(share_, entry.page));
    limits.progress = [&entry, least = entry.least, weights = entry.weights](double fraction) {
      entry.coming = least - static_cast<int64_t>(fraction * static_cast<double>(weights));
    };
    if (!WaitForRoom(entry, lock))
      return Error{ErrorCode::kInvalid, "the server is shutting down", ""};
  }
  return LoadState(*entry.state, limits);
}

void ModelHost::Load(Entry& entry) noexcept {
  const Clock::time_point begin = Clock::now();
  const Status status = Guarded([&] { return TryLoad(entry); });
  if (!status.ok()) Trim();
  Waiters waiters;
  ApiError why{.status = 503};
  {
    const Lock lock(mutex_);
    entry.load_seconds += SecondsSince(begin);
    entry.coming = 0;
    if (status.ok()) {
      entry.phase = Phase::kReady;
      entry.last_used = Clock::now();
      entry.architecture = entry.state->model->info().architecture;
      entry.context_length = entry.state->model->info().context_length;
      ++entry.loads;
      waiters.swap(entry.waiters);
      entry.users += static_cast<int>(waiters.size());
      changed_.notify_all();
    } else if (draining_ || stopping_) {
      why = ShuttingDown();
      waiters = Failed(entry, why, false);
    } else {
      const Status told = Guarded([&]() -> Status {
        why = {.status = 503,
               .message = "the model " + json::Quote(entry.name) +
                          " cannot be loaded: " + status.error().ToString(),
               .code = "model_not_loaded",
               .retry_seconds = static_cast<int>(kRetry.count())};
        return {};
      });
      waiters = Failed(entry, why, told.ok());
    }
  }
  (void)Guarded([&]() -> Status {
    if (!log_) return {};
    JsonWriter json;
    json.Object().Key("event").String(status.ok() ? "loaded" : "load_failed");
    json.Key("model").String(entry.name).Key("seconds").Number(SecondsSince(begin));
    if (!status.ok()) json.Key("message").String(status.error().ToString());
    log_(json.End().Take());
    return {};
  });
  for (const auto& waiter : waiters) {
    if (!status.ok()) {
      Tell(*waiter, why);
      continue;
    }
    try {
      waiter->exchange->Post([lease = Lease(entry), exchange = waiter->exchange, go = waiter->go] {
        go(lease, exchange);
      });
    } catch (...) {
      waiter->exchange->Abort();
    }
  }
  waiters.clear();
  const Lock lock(mutex_);
  // The next load of the model may have begun.
  const auto own =
      std::ranges::find(entry.loader, std::this_thread::get_id(), &std::thread::get_id);
  finished_.splice(finished_.end(), entry.loader, own);
  --loading_;
  changed_.notify_all();
}

std::vector<std::shared_ptr<ServerState>> ModelHost::States() const {
  std::vector<std::shared_ptr<ServerState>> out;
  for (const auto& entry : entries_) out.push_back(entry->state);
  return out;
}

std::vector<std::shared_ptr<ServerState>> ModelHost::Loaded() {
  std::vector<std::shared_ptr<ServerState>> out;
  out.reserve(entries_.size());
  for (const auto& entry : entries_) {
    {
      const std::lock_guard lock(mutex_);
      if (entry->phase != Phase::kReady) continue;
      ++entry->users;
    }
    out.push_back(Lease(*entry, false));
  }
  return out;
}

std::vector<ModelHost::Facts> ModelHost::AllFacts() const {
  std::vector<Facts> out;
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    Facts facts{.name = entry->name, .path = entry->options.path};
    if (entry->phase == Phase::kLoading) facts.status = "loading";
    if (entry->phase == Phase::kReady) facts.status = "loaded";
    if (entry->failure) {
      facts.status = "failed";
      facts.failure = entry->failure->ShortMessage();
    }
    facts.architecture = entry->architecture;
    facts.context_length = entry->context_length;
    facts.weight_bytes = entry->weights;
    facts.bytes = entry->counted;
    if (entry->phase == Phase::kReady && entry->keep_alive >= 0) {
      facts.expires = std::max(0.0, entry->keep_alive - SecondsSince(entry->last_used));
    }
    facts.waiting = static_cast<int>(entry->waiters.size());
    facts.loads = entry->loads;
    facts.unloads = entry->unloads;
    facts.load_seconds = entry->load_seconds;
    out.push_back(std::move(facts));
  }
  return out;
}

int ModelHost::Look(double seconds) {
  Waiters late;
  std::list<std::thread> ended;
  // What the models have grown to. The pointers are gone before anything is unloaded.
  std::vector<std::pair<const ServerState*, int64_t>> grown;
  for (const auto& state : Loaded()) {
    const auto bytes = static_cast<int64_t>(state->grammars->stats().bytes);
    grown.emplace_back(state.get(), bytes + state->engine->kv_bytes());
  }
  {
    Lock lock(mutex_);
    ended.swap(finished_);
    int64_t counted = base_;
    int ready = 0;
    for (const auto& entry : entries_) {
      for (auto at = entry->waiters.begin(); at != entry->waiters.end();) {
        const auto here = at++;
        if (SecondsSince((*here)->exchange->request().received) <= seconds) continue;
        late.splice(late.end(), entry->waiters, here);
      }
      for (const auto& [state, bytes] : grown) {
        if (state != entry->state.get() || entry->phase != Phase::kReady) continue;
        entry->counted = std::max(entry->least, entry->fixed + bytes);
      }
      counted += entry->counted;
      ready += entry->phase == Phase::kReady ? 1 : 0;
    }
    bool full = counted > budget_;
    if (!full && ready > 1 && ResidentBytes() > budget_) {
      Trim();
      full = ResidentBytes() > budget_;
    }
    if (full && ready > 1) {
      if (Entry* const busy = Oldest(Oldest(true) != nullptr)) busy->leaving = true;
    }
    for (const auto& entry : entries_) {
      const bool old =
          entry->keep_alive >= 0 && SecondsSince(entry->last_used) >= entry->keep_alive;
      if (entry->phase == Phase::kReady && entry->users == 0 && (old || entry->leaving)) {
        Unload(*entry, lock);
      }
    }
  }
  for (std::thread& thread : ended) thread.join();
  const ApiError why{.status = 408,
                     .message = "the request took longer than it may take on this server"};
  for (const auto& waiter : late) Tell(*waiter, why);
  return static_cast<int>(late.size());
}

void ModelHost::Drain() {
  Waiters waiting;
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    for (const auto& entry : entries_) {
      entry->state->draining = true;
      waiting.splice(waiting.end(), entry->waiters);
    }
  }
  changed_.notify_all();
  for (const auto& waiter : waiting) Tell(*waiter, ShuttingDown());
}

Status ModelHost::Stop() {
  std::list<std::thread> ended;
  {
    Lock lock(mutex_);
    stopping_ = draining_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return loading_ == 0; });
    ended.swap(finished_);
  }
  for (std::thread& thread : ended) thread.join();
  Status saved;
  for (const auto& entry : entries_) {
    Status one = UnloadState(*entry->state);
    if (!one.ok() && saved.ok()) saved = std::move(one);
  }
  return saved;
}

}  // namespace pawl::server
