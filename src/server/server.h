// Server: a model behind HTTP.
//
//   ServerOptions options;
//   options.model_path = "models/tiny-extract";
//   auto server = Server::Start(options);        // listens; the model is loaded meanwhile
//   Status status = (*server)->WaitUntilReady();
//   ...
//   (*server)->Stop();                           // answers what it has taken, then ends
//
// docs/server.md has the routes.
#ifndef PAWL_SRC_SERVER_SERVER_H_
#define PAWL_SRC_SERVER_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/server/code_completion.h"
#include "src/server/http_server.h"
#include "src/server/served_model.h"

namespace pawl {
class Drafter;
}

namespace pawl::server {

// Where a part of a request is worked on: on a connection's thread, on a worker, on the worker that
// takes small work only (worker_pool.h).
enum class WorkPlace { kConnection, kWorker, kSmallWorker };

// One of several models of a server.
struct ModelOfServer {
  std::string path;
  ServedModelOptions model;                               // with a name that no other one has
  int max_batch = 8, max_queue = 256, max_tokens = 4096;  // as in ServerOptions
  int64_t kv_bytes = 0;     // most memory for keys and values; 0: what models_bytes leaves
  double keep_alive = 300;  // seconds without a request until it is unloaded; negative: never
};

struct ServerOptions {
  HttpOptions http;
  std::string model_path;
  ServedModelOptions model;
  // Not empty: these in place of `model`. Requests name one of them, which is then loaded.
  std::vector<ModelOfServer> models;
  int64_t models_bytes = 0;  // of memory for the process with its models; 0: half of the machine's
  std::vector<std::string> api_keys;  // none: keys are not looked at
  int max_batch = 8;
  int threads = 0;
  // Threads for large bodies, prompts and compiling, at least two. One of them takes only what
  // comes of bodies under 64 KiB.
  int workers = 2;
  int max_queue = 256;          // requests that wait for the model; more are answered with 429
  int max_tokens = 4096;        // of an output for which the request names no number
  int max_string = -1;          // characters of strings without maxLength; -1: as `pawl extract`
  int64_t search_rows = 65536;  // most rows of the model for a search
  int64_t search_nodes = int64_t{1} << 20;  // most hypotheses of a search
  bool check_commands = false;              // checks of requests may run commands and read files
  size_t grammar_bytes = size_t{256} << 20;
  // What /v1/responses stores, and for how long. 0 bytes: nothing.
  size_t store_bytes = size_t{64} << 20;
  double store_seconds = 86400;
  double request_seconds = 600;  // from the request to the end of its answer
  double drain_seconds = 15;
  bool playground = true;
  CodeOptions code;
  std::string version = "0";
  // Makes what drafts for the model, once it is loaded; nullptr, or a nullptr from it: no drafts.
  std::function<Result<std::shared_ptr<Drafter>>(const ServedModel& model)> make_drafter;
  int64_t draft_bytes = 0;  // most memory that drafts of one of several models keep
  // What is to run in place of the model that was loaded: for tests of what goes wrong in one.
  std::function<std::unique_ptr<Model>(std::unique_ptr<Model> model)> wrap_model;
  // Gets each part of the work on a request ("read", "answer", "prepare") as it begins, on its
  // thread: for tests of what runs where. `bytes`: of the body.
  std::function<void(WorkPlace place, std::string_view part, size_t bytes)> on_work;
  // Gets a line of JSON for each request and what else is worth knowing.
  std::function<void(const std::string& line)> log;
  // Gets the span of each request whose caller records it, as a line of OTLP's JSON
  // (request_span.h).
  std::function<void(const std::string& line)> trace;
};

class ServerState;

class Server {
 public:
  // Errors: kIo where the address is not to be had.
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Errors: those of loading the model.
  Status WaitUntilReady();
  // Takes no more requests and answers those that run, for at most drain_seconds; then they are
  // given up. Errors: those of the history of drafts, which is written then.
  Status Stop();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_SERVER_H_
