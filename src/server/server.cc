// The life of a server: it listens at once, answers 503 while the model is loaded, then serves, and
// at the end drains.
#include "src/server/server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>
#include <utility>

#include "src/base/failure.h"
#include "src/server/heap_trim.h"
#include "src/server/json_writer.h"
#include "src/server/model_host.h"
#include "src/server/router.h"
#include "src/server/server_state.h"
#include "src/server/state_life.h"

namespace pawl::server {

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options) : state_(std::make_shared<ServerState>(options)) {
    if (!options.models.empty()) {
      state_->host = std::make_shared<ModelHost>(options, state_->shared);
    }
  }
  ~Impl() { (void)Stop(); }

  Status Listen() {
    Router router(state_);
    HttpOptions options = state_->options.http;
    // Where only this machine listens and no key is asked for, every page of a browser gets here.
    options.known_hosts_only = !options.allowed_hosts.empty() ||
                               (IsLoopback(options.host) && state_->options.api_keys.empty());
    Result<std::unique_ptr<HttpServer>> http = HttpServer::Start(
        options,
        {.judge = [router](const HttpRequest& head) { return router.Judge(head); },
         .handle = [router](std::shared_ptr<Exchange> e) { router.Handle(std::move(e)); },
         .refuse = [router](const HttpRequest& head,
                            const ApiError& error) { return router.Refusal(head, error); }});
    if (!http.ok()) return http.error();
    http_ = *std::move(http);
    loader_ = std::thread([this] { LoadOrFail(); });
    watcher_ = std::thread([this] { Watch(); });
    return {};
  }

  int port() const { return http_->port(); }

  Status WaitUntilReady() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return loaded_; });
    return load_status_;
  }

  Status Stop() {
    if (stopped_ || http_ == nullptr) return {};
    stopped_ = true;
    state_->draining = true;
    if (loader_.joinable()) loader_.join();
    if (state_->host != nullptr) state_->host->Drain();
    // Meanwhile others hear 503 (Router, Call::Start).
    const auto end =
        std::chrono::steady_clock::now() +
        std::chrono::milliseconds(static_cast<int64_t>(state_->options.drain_seconds * 1e3));
    while (Calls() > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    http_->Drain();
    while (http_->exchanges() > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (http_->exchanges() > 0) {
      GiveUpOlderThan(-1, {.status = 503, .message = "the server is shutting down"});
      for (int i = 0; i < 200 && http_->exchanges() > 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    watcher_.join();
    state_->workers.reset();
    Status saved;
    if (state_->engine != nullptr) saved = state_->engine->Close();
    state_->engine.reset();
    if (state_->host != nullptr) saved = state_->host->Stop();
    http_.reset();
    return saved;
  }

 private:
  // This one, and those of several models.
  std::vector<std::shared_ptr<ServerState>> States() const {
    std::vector<std::shared_ptr<ServerState>> states;
    if (state_->host != nullptr) states = state_->host->States();
    states.push_back(state_);
    return states;
  }
  int Calls() const {
    int calls = 0;
    for (const auto& state : States()) calls += state->calls;
    return calls;
  }

  void LoadOrFail() {
    const Status status = Guarded([&] { return Load(); });
    {
      const std::lock_guard lock(mutex_);
      if (!status.ok()) load_status_ = CopyOf(status.error());
      loaded_ = true;
    }
    changed_.notify_all();
  }

  Status Load() {
    ServerState& state = *state_;
    if (state.host != nullptr) {
      state.workers = std::make_unique<WorkerPool>(state.options.workers);
      state.ready = true;
      LogHost();
      return {};
    }
    if (Status status = LoadState(state); !status.ok()) return status;
    LogStart();
    return {};
  }

  void LogHost() const {
    JsonWriter json;
    json.Object().Key("event").String("started").Key("version").String(state_->options.version);
    json.Key("address").String(state_->options.http.host + ":" + std::to_string(port()));
    json.Key("models").Int(static_cast<int64_t>(state_->options.models.size()));
    json.Key("models_bytes").Int(state_->host->budget());
    json.Key("keys").Int(static_cast<int64_t>(state_->options.api_keys.size()));
    state_->Log(json.End().Take());
  }

  void LogStart() const {
    const ModelInfo& info = state_->model->info();
    JsonWriter json;
    json.Object().Key("event").String("started").Key("version").String(state_->options.version);
    json.Key("address").String(state_->options.http.host + ":" + std::to_string(port()));
    json.Key("model").String(state_->model->name()).Key("architecture").String(info.architecture);
    json.Key("dtype").String(info.dtype).Key("weight_bytes").Int(info.weight_bytes);
    json.Key("context").Int(info.context_length).Key("kernels").String(info.kernels);
    json.Key("threads").Int(info.threads).Key("batch").Int(state_->options.max_batch);
    json.Key("keys").Int(static_cast<int64_t>(state_->options.api_keys.size()));
    state_->Log(json.End().Take());
  }

  // Requests that take longer than they may, and memory that is not in use.
  void Watch() {
    constexpr int kLooksBetweenFrees = 25;  // five seconds
    HeapTrimmer trimmer;
    int looks = 0;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return ending_; })) {
      lock.unlock();
      // Without memory for the list: the next time.
      (void)Guarded([&]() -> Status {
        const double seconds = state_->options.request_seconds;
        state_->metrics.timed_out += GiveUpOlderThan(
            seconds,
            {.status = 408, .message = "the request took longer than it may take on this server"});
        const bool frees = ++looks % kLooksBetweenFrees == 0;
        if (ModelHost* const host = state_->host.get()) {
          state_->metrics.timed_out += host->Look(seconds);
          if (frees) {
            for (const auto& state : host->Loaded()) state->grammars->FreeUnused();
          }
        } else if (frees && state_->ready) {
          // There are none before the model is loaded, which may take longer.
          state_->grammars->FreeUnused();
        }
        trimmer.Look();
        return {};
      });
      lock.lock();
    }
  }

  int GiveUpOlderThan(double seconds, const ApiError& error) {
    std::vector<std::shared_ptr<Call>> late;
    std::vector<std::shared_ptr<Intake>> unread;
    for (const auto& state : States()) {
      const std::lock_guard lock(state->mutex);
      for (Call* call : state->live) {
        if (call->seconds() <= seconds) continue;
        if (auto alive = call->weak_from_this().lock()) late.push_back(std::move(alive));
      }
      for (Intake* intake : state->intakes) {
        if (intake->seconds() <= seconds) continue;
        if (auto alive = intake->weak_from_this().lock()) unread.push_back(std::move(alive));
      }
    }
    int count = 0;
    for (const auto& intake : unread) count += intake->GiveUp(error) ? 1 : 0;
    for (const auto& call : late) count += call->GiveUp(error) ? 1 : 0;
    return count;
  }

  const std::shared_ptr<ServerState> state_;
  std::unique_ptr<HttpServer> http_;
  std::thread loader_, watcher_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool loaded_ = false, ending_ = false, stopped_ = false;
  Status load_status_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  if (Status status = impl->Listen(); !status.ok()) return status.error();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

int Server::port() const { return impl_->port(); }
Status Server::WaitUntilReady() { return impl_->WaitUntilReady(); }
Status Server::Stop() { return impl_->Stop(); }

}  // namespace pawl::server
