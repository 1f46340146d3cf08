// The routes, and the life of a server: it listens at once, answers 503 while the model is loaded,
// then serves, and at the end drains.
#include "src/server/server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>
#include <utility>

#include "src/server/api.h"
#include "src/server/playground.h"
#include "src/server/server_state.h"

namespace pawl::server {
namespace {

// Equal in a time that does not depend on where they differ.
bool SameKey(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

bool KeyIsGood(const ServerState& server, const HttpRequest& request) {
  if (server.options.api_keys.empty()) return true;
  std::string_view given = request.Header("authorization");
  constexpr std::string_view kBearer = "bearer ";
  const bool bearer = given.size() > kBearer.size() &&
                      std::equal(kBearer.begin(), kBearer.end(), given.begin(), [](char a, char b) {
                        return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
                      });
  given = bearer ? given.substr(kBearer.size()) : request.Header("x-api-key");
  bool good = false;
  for (const std::string& key : server.options.api_keys) good |= SameKey(given, key);
  return good;
}

HttpReply JsonReply(std::string body) {
  HttpReply reply;
  reply.body = std::move(body);
  return reply;
}

// ---- Routes that make no outputs ----

HttpReply Models(const ServerState& server) {
  const ServedModel& model = *server.model;
  JsonWriter json;
  json.Object().Key("object").String("list").Key("data").Array().Object();
  json.Key("id").String(model.name()).Key("object").String("model").Key("created").Int(0);
  json.Key("owned_by").String("pawl").Key("max_model_len").Int(model.info().context_length);
  return JsonReply(json.End().End().End().Take());
}

HttpReply OllamaTags(const ServerState& server) {
  const ServedModel& model = *server.model;
  JsonWriter json;
  json.Object().Key("models").Array().Object();
  json.Key("name").String(model.name()).Key("model").String(model.name());
  json.Key("modified_at").String("1970-01-01T00:00:00Z");
  json.Key("size").Int(model.info().weight_bytes).Key("digest").String("");
  json.Key("details").Object().Key("format").String("safetensors");
  json.Key("family").String(model.info().architecture).End();
  return JsonReply(json.End().End().End().Take());
}

HttpReply Health(const ServerState& server) {
  if (server.ready && !server.draining) return JsonReply(R"({"status":"ok"})");
  ApiError error{.status = 503,
                 .message = server.draining ? "the server is shutting down" : "Loading model"};
  error.retry_seconds = 1;
  return error.ToReply();
}

HttpReply MetricsReply(const ServerState& server) {
  std::string out;
  const Metrics& m = server.metrics;
  const auto count = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "counter", help, value, out);
  };
  const auto gauge = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "gauge", help, value, out);
  };
  m.WriteRequests(out);
  count("pawl_prompt_tokens_total", "Tokens of prompts.", static_cast<double>(m.prompt_tokens));
  count("pawl_prompt_tokens_reused_total", "Of these, found in the prefix cache.",
        static_cast<double>(m.reused_tokens));
  count("pawl_output_tokens_total", "Tokens of outputs.", static_cast<double>(m.output_tokens));
  count("pawl_output_tokens_sampled_total", "Of these, drawn from the model.",
        static_cast<double>(m.sampled_tokens));
  count("pawl_output_tokens_forced_total", "Of these, dictated by a grammar.",
        static_cast<double>(m.forced_tokens));
  count("pawl_output_tokens_closing_total", "Of these, written to close an output in time.",
        static_cast<double>(m.closing_tokens));
  count("pawl_prompt_seconds_total", "The model on prompts.",
        static_cast<double>(m.prefill_micros) * 1e-6);
  count("pawl_output_seconds_total", "The model on outputs.",
        static_cast<double>(m.decode_micros) * 1e-6);
  count("pawl_mask_seconds_total", "Masks and states of grammars.",
        static_cast<double>(m.mask_micros) * 1e-6);
  count("pawl_clients_gone_total", "Requests whose client went away.",
        static_cast<double>(m.cancelled));
  count("pawl_refused_full_total", "Requests refused because the queue was full.",
        static_cast<double>(m.refused_full));
  count("pawl_timed_out_total", "Requests given up after the time for a request.",
        static_cast<double>(m.timed_out));
  gauge("pawl_requests_live", "Requests taken and not answered yet.", server.calls);
  if (server.ready) {
    const Decoder& decoder = *server.decoder;
    gauge("pawl_outputs_running", "Outputs in the batch.", decoder.running());
    gauge("pawl_outputs_waiting", "Outputs that wait for a place in the batch.", decoder.waiting());
    count("pawl_model_steps_total", "Steps of the batch.", static_cast<double>(decoder.steps()));
    gauge("pawl_kv_usage_ratio", "Keys and values in use, of the memory for them.",
          decoder.kv_usage());
    const GrammarStore::Stats grammars = server.grammars->stats();
    gauge("pawl_grammars", "Compiled grammars that are kept.",
          static_cast<double>(grammars.grammars));
    gauge("pawl_grammar_bytes", "What they take, by estimate, keys included.",
          static_cast<double>(grammars.bytes));
    count("pawl_grammar_hits_total", "Grammars that were there.",
          static_cast<double>(grammars.hits));
    count("pawl_grammar_misses_total", "Grammars that were compiled.",
          static_cast<double>(grammars.misses));
    count("pawl_grammar_evictions_total", "Grammars that had to go.",
          static_cast<double>(grammars.evicted));
  }
  m.first_token.Write("pawl_first_token_seconds", "From the request to its first token.", out);
  m.request.Write("pawl_request_seconds", "From the request to the end of its answer.", out);
  m.compile.Write("pawl_compile_seconds", "Constraints into grammars.", out);
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4";
  reply.body = std::move(out);
  return reply;
}

// vLLM's {"prompt"} or {"messages"}, llama.cpp's {"content"}.
Result<HttpReply> Tokenize(const ServerState& server, const json::Value& body) {
  RequestReader in(body, "#");
  const ServedModel& model = *server.model;
  std::string text;
  bool special = true, pieces = false, add = false;
  in.Bool("parse_special", special);
  in.Bool("with_pieces", pieces);
  const bool vllm = in.Find("prompt") != nullptr;
  if (vllm) add = true;
  in.Bool(vllm ? "add_special_tokens" : "add_special", add);
  std::vector<TokenId> tokens;
  if (in.Find("messages") != nullptr) {
    CallSpec spec;
    if (Status status = ReadChatPrompt(in, spec, "messages"); !status.ok()) return status.error();
    Result<PreparedPrompt> prompt = model.Prepare(spec.prompts[0]);
    if (!prompt.ok()) return prompt.error();
    tokens = prompt->tokens;
  } else {
    if (!in.String(vllm ? "prompt" : "content", text) && in.ok()) {
      in.Fail(vllm ? "prompt" : "content", "is missing");
    }
    if (!in.ok()) return in.error();
    tokens = model.tokenizer().Encode(text, {.add_special_tokens = add, .parse_special = special});
  }
  if (!in.ok()) return in.error();
  JsonWriter json;
  json.Object().Key("tokens").Array();
  for (const TokenId token : tokens) {
    if (pieces) {
      json.Object().Key("id").Int(token).Key("piece");
      json.String(ShownBytes(model.vocabulary()->bytes(token))).End();
    } else {
      json.Int(token);
    }
  }
  json.End().Key("count").Int(static_cast<int64_t>(tokens.size()));
  json.Key("max_model_len").Int(model.info().context_length);
  return JsonReply(json.End().Take());
}

Result<HttpReply> Detokenize(const ServerState& server, const json::Value& body) {
  RequestReader in(body, "#");
  const json::Value* list = in.FindArray("tokens");
  if (in.ok() && list == nullptr) in.Fail("tokens", "is missing");
  if (!in.ok()) return in.error();
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const std::optional<int64_t> token = WholeOf(list->items[i]);
    if (!token || *token < 0 || *token >= server.model->vocabulary()->size()) {
      return Error{ErrorCode::kInvalid, "is no token id of this model",
                   "#/tokens/" + std::to_string(i)};
    }
    tokens.push_back(static_cast<TokenId>(*token));
  }
  const std::string text = ShownBytes(server.model->tokenizer().Decode(tokens, true));
  JsonWriter json;
  json.Object().Key("prompt").String(text).Key("content").String(text);
  return JsonReply(json.End().Take());
}

// What lm-evaluation-harness asks for.
HttpReply TokenizerInfo(const ServerState& server) {
  const Tokenizer& tokenizer = server.model->tokenizer();
  const auto name = [&](TokenId id, JsonWriter& json) {
    id == kNoToken ? json.Null() : json.String(tokenizer.NameOf(id));
  };
  const std::span<const TokenId> ends = tokenizer.end_tokens();
  const TokenId end = ends.empty() ? kNoToken : ends[0];
  JsonWriter json;
  json.Object().Key("tokenizer_class").String("PawlTokenizer").Key("bos_token");
  name(tokenizer.bos(), json);
  json.Key("eos_token");
  name(end, json);
  json.Key("pad_token");
  name(end, json);
  json.Key("vocab_size").Int(tokenizer.size());
  json.Key("model_max_length").Int(server.model->info().context_length);
  json.Key("chat_template").Null();
  return JsonReply(json.End().Take());
}

// A constraint tried without a model: what a schema editor wants to know.
Result<HttpReply> CompileOnly(ServerState& server, const json::Value& body) {
  Result<RequestConstraints> asked = ReadConstraints(body);
  if (!asked.ok()) return asked.error();
  if (asked->layout.max_string < 0) asked->layout.max_string = server.options.max_string;
  Result<OutputPlan> plan = MakePlan(*asked, server.model->traits(), ThinkingStart::kOff);
  if (!plan.ok()) return plan.error();
  JsonWriter json;
  json.Object().Key("ok").Bool(true);
  if (plan->grammar.kind != ConstraintSpec::Kind::kNone) {
    const auto begin = std::chrono::steady_clock::now();
    bool known = false;
    Result<Grammar> grammar = server.grammars->Get(plan->grammar, asked->layout, known);
    if (!grammar.ok()) {
      Error error = grammar.error();
      if (error.place.starts_with("#")) error.place = plan->grammar.pointer + error.place.substr(1);
      return error;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    json.Key("compile_seconds").Number(seconds.count()).Key("grammar_known").Bool(known);
    json.Key("notes").Array();
    for (const std::string& note : grammar->notes()) json.String(note);
    json.End();
  }
  return JsonReply(json.End().Take());
}

// ---- The router ----

using Start = Status (*)(const ApiRequest&);

struct Route {
  const char* path;
  Start start;
};

constexpr Route kRoutes[] = {
    {"/v1/chat/completions", [](const ApiRequest& r) { return StartChat(r, false); }},
    {"/chat/completions", [](const ApiRequest& r) { return StartChat(r, false); }},
    {"/v1/completions", StartCompletion},
    {"/v1/responses", StartResponse},
    {"/v1/extract", StartExtract},
    {"/v1/fim/completions", [](const ApiRequest& r) { return StartChat(r, true); }},
    {"/infill", [](const ApiRequest& r) { return StartInfill(r, true); }},
    {"/completion", [](const ApiRequest& r) { return StartInfill(r, false); }},
    {"/api/chat", [](const ApiRequest& r) { return StartOllama(r, true); }},
    {"/api/generate", [](const ApiRequest& r) { return StartOllama(r, false); }},
};

class Router {
 public:
  explicit Router(std::shared_ptr<ServerState> server) : server_(std::move(server)) {}

  void Handle(std::shared_ptr<Exchange> exchange) const {
    const HttpRequest& request = exchange->request();
    if (!server_->options.cors_origin.empty() && request.method == "OPTIONS") {
      HttpReply reply;
      reply.status = 204;
      reply.headers = {{"access-control-allow-methods", "GET, POST, OPTIONS"},
                       {"access-control-allow-headers", "authorization, content-type"},
                       {"access-control-max-age", "600"}};
      return Send(*exchange, std::move(reply));
    }
    if (Open(*exchange)) return;
    if (!KeyIsGood(*server_, request)) {
      return Send(
          *exchange,
          ApiError{.status = 401, .message = "the API key is missing or not known"}.ToReply());
    }
    if (!server_->ready) {
      HttpReply reply = Health(*server_);
      return Send(*exchange, std::move(reply));
    }
    if (request.method == "GET" || request.method == "HEAD") return Get(*exchange);
    if (request.method == "POST") return Post(std::move(exchange));
    Send(*exchange,
         ApiError{.status = 405, .message = "there is no " + Shown(request.method) + " here"}
             .ToReply());
  }

 private:
  static std::string Shown(std::string_view text) { return ShownBytes(text.substr(0, 100)); }

  void Send(Exchange& exchange, HttpReply reply) const {
    if (!server_->options.cors_origin.empty()) {
      reply.headers.emplace_back("access-control-allow-origin", server_->options.cors_origin);
    }
    exchange.Reply(std::move(reply));
  }

  // What everybody may see.
  bool Open(Exchange& exchange) const {
    const HttpRequest& request = exchange.request();
    if (request.method != "GET" && request.method != "HEAD") return false;
    if (request.path == "/health" || request.path == "/v1/health") {
      Send(exchange, Health(*server_));
    } else if (request.path == "/metrics") {
      Send(exchange, MetricsReply(*server_));
    } else if (request.path == "/" && server_->options.playground) {
      HttpReply reply;
      reply.content_type = "text/html; charset=utf-8";
      reply.headers.emplace_back("content-security-policy",
                                 "default-src 'none'; style-src 'unsafe-inline'; script-src "
                                 "'unsafe-inline'; connect-src 'self'; img-src data:");
      reply.body = std::string(PlaygroundPage());
      Send(exchange, std::move(reply));
    } else {
      return false;
    }
    return true;
  }

  void Get(Exchange& exchange) const {
    const std::string& path = exchange.request().path;
    const ServerState& server = *server_;
    if (path == "/v1/models" || path == "/models") return Send(exchange, Models(server));
    if (path == "/v1/models/" + server.model->name()) {
      JsonWriter json;
      json.Object().Key("id").String(server.model->name()).Key("object").String("model");
      json.Key("created").Int(0).Key("owned_by").String("pawl").End();
      return Send(exchange, JsonReply(json.Take()));
    }
    if (path == "/tokenizer_info") return Send(exchange, TokenizerInfo(server));
    if (path == "/version" || path == "/api/version") {
      return Send(exchange, JsonReply("{\"version\":" + json::Quote(server.options.version) + "}"));
    }
    if (path == "/api/tags" || path == "/api/ps") return Send(exchange, OllamaTags(server));
    if (path == "/props") return Send(exchange, Props());
    NotFound(exchange);
  }

  HttpReply Props() const {
    JsonWriter json;
    json.Object().Key("model_path").String(server_->model->name());
    json.Key("total_slots").Int(server_->options.max_batch);
    json.Key("chat_template").String(server_->model->has_chat() ? "model" : "");
    json.Key("has_chat_template").Bool(server_->model->has_chat());
    json.Key("can_infill").Bool(server_->model->can_infill());
    json.Key("n_ctx").Int(server_->model->info().context_length).End();
    return JsonReply(json.Take());
  }

  void NotFound(Exchange& exchange) const {
    Send(exchange, ApiError{.status = 404,
                            .message = "there is no " + Shown(exchange.request().path) + " here"}
                       .ToReply());
  }

  void Post(std::shared_ptr<Exchange> exchange) const {
    const HttpRequest& request = exchange->request();
    const auto route = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                    [&](const Route& one) { return request.path == one.path; });
    const bool ollama = request.path.starts_with("/api/");
    const bool simple = request.path == "/tokenize" || request.path == "/detokenize" ||
                        request.path == "/v1/constraints/compile" || request.path == "/api/show";
    if (route == std::end(kRoutes) && !simple) return NotFound(*exchange);
    Result<json::Value> body = json::Parse(request.body);
    if (!body.ok()) {
      Error error = body.error();
      error.message = "the body is not JSON: " + error.ToString();
      error.place.clear();
      return Refuse(*exchange, error, ollama);
    }
    if (route != std::end(kRoutes)) {
      const Status status = route->start({server_, exchange, *body});
      if (!status.ok()) Refuse(*exchange, status.error(), ollama);
      return;
    }
    if (request.path == "/v1/constraints/compile") {
      // Compiling may take long: not here.
      server_->workers->Submit([self = *this, exchange, tree = *std::move(body)] {
        const Result<HttpReply> reply = CompileOnly(*self.server_, tree);
        reply.ok() ? self.Send(*exchange, *reply) : self.Refuse(*exchange, reply.error(), false);
      });
      return;
    }
    Result<HttpReply> reply = Error{ErrorCode::kInternal, "no such route", ""};
    if (request.path == "/tokenize") reply = Tokenize(*server_, *body);
    if (request.path == "/detokenize") reply = Detokenize(*server_, *body);
    if (request.path == "/api/show") {
      JsonWriter json;
      json.Object().Key("details").Object().Key("family");
      json.String(server_->model->info().architecture).End().Key("capabilities").Array();
      json.String("completion").String("tools").End().Key("model_info").Object().End().End();
      reply = JsonReply(json.Take());
    }
    reply.ok() ? Send(*exchange, *std::move(reply)) : Refuse(*exchange, reply.error(), ollama);
  }

  void Refuse(Exchange& exchange, const Error& error, bool ollama) const {
    const ApiError refusal = FromError(error, "");
    HttpReply reply = refusal.ToReply();
    if (ollama) {
      const std::string place = refusal.param.empty() ? "" : "#" + refusal.param + ": ";
      reply.body = "{\"error\":" + json::Quote(place + refusal.message) + "}";
    }
    server_->metrics.CountRequest("refused", reply.status);
    JsonWriter json;
    json.Object().Key("event").String("refused").Key("id").String(exchange.request().id);
    json.Key("status").Int(reply.status).Key("message").String(ShownBytes(refusal.message));
    server_->Log(json.End().Take());
    Send(exchange, std::move(reply));
  }

  std::shared_ptr<ServerState> server_;
};

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options) : state_(std::make_shared<ServerState>(options)) {}
  ~Impl() { Stop(); }

  Status Listen() {
    Router router(state_);
    Result<std::unique_ptr<HttpServer>> http = HttpServer::Start(
        state_->options.http,
        [router](std::shared_ptr<Exchange> exchange) { router.Handle(std::move(exchange)); });
    if (!http.ok()) return http.error();
    http_ = *std::move(http);
    loader_ = std::thread([this] { Load(); });
    watcher_ = std::thread([this] { Watch(); });
    return {};
  }

  int port() const { return http_->port(); }

  Status WaitUntilReady() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return loaded_; });
    return load_status_;
  }

  void Stop() {
    if (stopped_ || http_ == nullptr) return;
    stopped_ = true;
    state_->draining = true;
    if (loader_.joinable()) loader_.join();
    http_->Drain();
    const auto end =
        std::chrono::steady_clock::now() +
        std::chrono::milliseconds(static_cast<int64_t>(state_->options.drain_seconds * 1e3));
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
    state_->decoder.reset();
    http_.reset();
  }

 private:
  void Load() {
    Result<std::unique_ptr<ServedModel>> model =
        ServedModel::Load(state_->options.model_path, state_->options.model);
    Status status;
    Result<std::shared_ptr<Drafter>> drafter = std::shared_ptr<Drafter>();
    if (model.ok() && state_->options.make_drafter) {
      drafter = state_->options.make_drafter(**model);
      if (!drafter.ok()) model = drafter.error();
    }
    if (model.ok()) {
      ServerState& state = *state_;
      state.model = *std::move(model);
      state.grammars = std::make_unique<GrammarStore>(
          state.model->vocabulary(),
          GrammarStore::Options{.max_bytes = state.options.grammar_bytes});
      state.code = MakeCodePlans(state.model->vocabulary(), state.options.code);
      state.workers = std::make_unique<WorkerPool>(std::max(1, state.options.workers));
      Decoder::Options options;
      options.max_batch = state.options.max_batch;
      options.threads = state.options.max_batch > 1 ? state.model->info().threads : 1;
      options.drafter = *std::move(drafter);
      state.decoder = std::make_unique<Decoder>(*state.model->model, state.model->vocabulary(),
                                                state.model->encoder(), options);
      state.ready = true;
    } else {
      status = model.error();
    }
    {
      const std::lock_guard lock(mutex_);
      load_status_ = status;
      loaded_ = true;
    }
    changed_.notify_all();
  }

  // Requests that take longer than they may.
  void Watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return ending_; })) {
      lock.unlock();
      const int given_up = GiveUpOlderThan(
          state_->options.request_seconds,
          {.status = 408, .message = "the request took longer than it may take on this server"});
      state_->metrics.timed_out += given_up;
      lock.lock();
    }
  }

  int GiveUpOlderThan(double seconds, const ApiError& error) {
    std::vector<std::shared_ptr<Call>> late;
    {
      const std::lock_guard lock(state_->mutex);
      for (Call* call : state_->live) {
        if (call->seconds() <= seconds) continue;
        if (auto alive = call->weak_from_this().lock()) late.push_back(std::move(alive));
      }
    }
    int count = 0;
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
void Server::Stop() { impl_->Stop(); }

}  // namespace pawl::server
