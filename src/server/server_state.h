// What all requests of a server share. Internal to src/server.
#ifndef PAWL_SRC_SERVER_SERVER_STATE_H_
#define PAWL_SRC_SERVER_SERVER_STATE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/async_engine.h"
#include "src/server/call.h"
#include "src/server/code_completion.h"
#include "src/server/grammar_store.h"
#include "src/server/intake.h"
#include "src/server/known_tools.h"
#include "src/server/metrics.h"
#include "src/server/response_store.h"
#include "src/server/served_model.h"
#include "src/server/server.h"
#include "src/server/worker_pool.h"

namespace pawl::server {

class ModelHost;

class ServerState {
 public:
  // Of the bytes for grammars, lists of tools get a share.
  static constexpr size_t kToolShare = 32;

  // What does not depend on the model.
  struct Shared {
    explicit Shared(const ServerOptions& options)
        : known_tools(options.grammar_bytes / kToolShare),
          responses(options.store_bytes, options.store_seconds) {}
    KnownTools known_tools;
    ResponseStore responses;
  };

  explicit ServerState(ServerOptions options_in) : ServerState(std::move(options_in), nullptr) {}
  // Of one of several models. `shared_in`: of all of them; nullptr: its own.
  ServerState(ServerOptions options_in, std::shared_ptr<Shared> shared_in)
      : options(std::move(options_in)),
        shared(shared_in == nullptr ? std::make_shared<Shared>(options) : std::move(shared_in)),
        known_tools(shared->known_tools),
        responses(shared->responses) {}

  const ServerOptions options;
  const std::shared_ptr<Shared> shared;
  Metrics metrics;
  KnownTools& known_tools;
  ResponseStore& responses;

  // Of a server with several models: each has a state of its own, and this one has no model.
  std::shared_ptr<ModelHost> host;

  // There from `ready` on.
  std::unique_ptr<ServedModel> model;
  std::unique_ptr<GrammarStore> grammars;
  std::unique_ptr<AsyncEngine> engine;  // of the model
  std::unique_ptr<CodePlans> code;      // nullptr: code is completed without monitors
  std::unique_ptr<WorkerPool> workers;
  std::atomic<bool> ready{false};
  std::atomic<bool> draining{false};

  // Requests that were taken and not answered yet; those that wait for a worker to read them.
  std::atomic<int> calls{0}, reading{0};
  std::atomic<uint64_t> last_group{0};  // BatchRequest::group of a call

  std::mutex mutex;
  std::set<Call*> live;       // under mutex
  std::set<Intake*> intakes;  // under mutex

  // Of a part of the work that begins now.
  void Begins(std::string_view part, const HttpRequest& request) const {
    if (options.on_work) options.on_work(WorkerPool::Here(), part, request.body.size());
  }
  void Log(const std::string& line) const {
    if (options.log) options.log(line);
  }
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_SERVER_STATE_H_
