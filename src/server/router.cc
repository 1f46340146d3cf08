// One table has all routes. A request goes through the same steps whatever it asks: the route, the
// key, whether the model is there, all of them when the headers are there; then the body and the
// answer. The handler's thread is one of the connections': what may take long, and every long body,
// goes to a worker (intake.h).
#include "src/server/router.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/digest.h"
#include "src/base/stop_scope.h"
#include "src/server/api.h"
#include "src/server/api_plain.h"
#include "src/server/model_choice.h"
#include "src/server/model_host.h"
#include "src/server/request_span.h"

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

// The key that a request brings.
std::string_view KeyOf(const HttpRequest& request) {
  const std::string_view given = request.Header("authorization");
  constexpr std::string_view kBearer = "bearer ";
  const bool bearer = given.size() > kBearer.size() &&
                      std::equal(kBearer.begin(), kBearer.end(), given.begin(), [](char a, char b) {
                        return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
                      });
  return bearer ? given.substr(kBearer.size()) : request.Header("x-api-key");
}

// Which of the keys it is, from 1; 0: none of them. All are compared.
int KeyNumberOf(const ServerState& server, const HttpRequest& request) {
  const std::string_view given = KeyOf(request);
  int number = 0, found = 0;
  for (const std::string& key : server.options.api_keys) {
    ++number;
    if (SameKey(given, key)) found = number;
  }
  return found;
}

bool KeyIsGood(const ServerState& server, const HttpRequest& request) {
  return server.options.api_keys.empty() || KeyNumberOf(server, request) > 0;
}

// Clients with one key learn from each other; 0 where keys are not looked at.
uint64_t OwnerOf(const ServerState& server, const HttpRequest& request) {
  if (server.options.api_keys.empty()) return 0;
  // It goes into the file of histories, so it must not tell the key.
  Digest digest(DigestKind::kSha256);
  digest.Add("pawl draft owner\n");
  digest.Add(KeyOf(request));
  uint64_t owner = 0;
  for (const char c : digest.Hex().substr(0, 16)) {
    owner = owner << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return owner == 0 ? 1 : owner;
}

using Start = Status (*)(const ApiRequest& request);

// Arrays and objects take more memory than their text: so many bound both.
constexpr json::ParseLimits kBodyLimits{.max_values = size_t{1} << 20};
constexpr size_t kMostMembers = 4096;

}  // namespace

struct Route {
  enum class Access { kKey, kOpen };  // kOpen: for everybody, also before the model is there
  std::string_view method, path;
  const char* summary = "";
  PlainAnswer answer = nullptr;  // either this
  Start start = nullptr;         // or this
  Access access = Access::kKey;
  bool slow = false;     // an answer for which a worker is wanted, however short the body
  bool tools = false;    // may be long, and often the same: they are looked for by their bytes
  bool of_model = true;  // needs one: which, is to be found out where there are several
};

namespace {

constexpr Route Get(std::string_view path, PlainAnswer answer, const char* summary,
                    Route::Access access = Route::Access::kKey, bool of_model = false) {
  return {.method = "GET",
          .path = path,
          .summary = summary,
          .answer = answer,
          .access = access,
          .of_model = of_model};
}
constexpr Route Post(std::string_view path, PlainAnswer answer, const char* summary,
                     bool slow = false) {
  return {.method = "POST", .path = path, .summary = summary, .answer = answer, .slow = slow};
}
constexpr Route Outputs(std::string_view path, Start start, const char* summary,
                        bool tools = false) {
  return {.method = "POST", .path = path, .summary = summary, .start = start, .tools = tools};
}

Result<HttpReply> OpenApi(ServerState& server, const PlainRequest& request);

constexpr Route::Access kOpen = Route::Access::kOpen;
constexpr Route::Access kKey = Route::Access::kKey;
constexpr Route kRoutes[] = {
    Get("/health", Health, "Whether the server is ready", kOpen),
    Get("/v1/health", Health, "Whether the server is ready", kOpen),
    Get("/metrics", MetricsPage, "Counters for Prometheus", kOpen),
    Get("/", Playground, "The playground", kOpen),
    Get("/openapi.json", OpenApi, "This description"),
    Get("/v1/models", Models, "The models, as OpenAI lists them"),
    Get("/models", Models, "The models, as OpenAI lists them"),
    Get("/tokenizer_info", TokenizerInfo, "Special tokens and sizes of the tokenizer", kKey, true),
    Get("/version", Version, "The version of the server"),
    Get("/api/version", Version, "The version of the server"),
    Get("/api/tags", OllamaTags, "The models, as Ollama lists them"),
    Get("/api/ps", OllamaRunning, "The models that are loaded, as Ollama lists them"),
    Get("/props", Props, "The model, as llama.cpp describes it", kKey, true),
    Post("/tokenize", Tokenize, "The tokens of a text or of messages", true),
    Post("/detokenize", Detokenize, "The text of tokens", true),
    Post("/api/show", OllamaShow, "The model, as Ollama describes it"),
    Post("/v1/constraints/compile", CompileOnly, "Whether a constraint compiles", true),
    Outputs(
        "/v1/chat/completions", [](const ApiRequest& r) { return StartChat(r, false); },
        "OpenAI's chat API", true),
    Outputs(
        "/chat/completions", [](const ApiRequest& r) { return StartChat(r, false); },
        "OpenAI's chat API", true),
    Outputs("/v1/completions", StartCompletion, "OpenAI's completions"),
    Outputs("/v1/embeddings", StartEmbeddings, "Vectors of texts"),
    Outputs("/v1/rerank", StartRerank, "How well documents answer a query"),
    Outputs("/rerank", StartRerank, "How well documents answer a query"),
    Outputs("/v1/responses", StartResponse, "OpenAI's responses API"),
    Outputs("/v1/extract", StartExtract, "Records from texts, by a schema"),
    Outputs(
        "/v1/fim/completions", [](const ApiRequest& r) { return StartChat(r, true); },
        "A gap between a prompt and a suffix"),
    Outputs(
        "/infill", [](const ApiRequest& r) { return StartInfill(r, true); },
        "A gap in code, as llama.cpp's editor plugins ask for it"),
    Outputs(
        "/completion", [](const ApiRequest& r) { return StartInfill(r, false); },
        "llama.cpp's completions"),
    Outputs("/v1/messages", StartMessages, "Anthropic's messages API", true),
    Outputs("/v1/messages/count_tokens", StartCountTokens, "How many tokens messages have", true),
    Outputs("/apply-template", StartApplyTemplate, "The prompt that messages become", true),
    Outputs(
        "/api/chat", [](const ApiRequest& r) { return StartOllama(r, true); }, "Ollama's chat API"),
    Outputs(
        "/api/generate", [](const ApiRequest& r) { return StartOllama(r, false); },
        "Ollama's completions"),
};

// Their path ends with the id of a response.
constexpr std::string_view kStored = "/v1/responses/";
constexpr Route kStoredRoutes[] = {
    Get(kStored, StoredResponse, "A stored response"),
    {.method = "DELETE",
     .path = kStored,
     .summary = "Deletes a stored response",
     .answer = DeleteResponse,
     .of_model = false},
};
bool IsStored(std::string_view path) {
  return path.starts_with(kStored) && path.size() > kStored.size();
}

void WriteOperation(const Route& route, JsonWriter& json) {
  const bool post = route.method == "POST";
  json.Key(post ? "post" : route.method == "GET" ? "get" : "delete").Object();
  json.Key("summary").String(route.summary);
  if (route.access == kOpen) json.Key("security").Array().End();
  if (post) {
    json.Key("requestBody");
    json.Raw(R"({"required":true,"content":{"application/json":{"schema":{"type":"object"}}}})");
  }
  json.Key("responses").Object().Key("200").Object().Key("description").String("The answer");
  json.End();
  if (post) {
    json.Key("400").Object();
    json.Key("description").String("What is wrong with the body, and where").End();
  }
  json.End().End();
}

// The routes as an OpenAPI 3.1 document.
Result<HttpReply> OpenApi(ServerState& server, const PlainRequest& /*request*/) {
  JsonWriter json;
  json.Object().Key("openapi").String("3.1.0").Key("info").Object();
  json.Key("title").String("Pawl").Key("version").String(server.options.version).End();
  if (!server.options.api_keys.empty()) {
    json.Key("security").Raw(R"([{"key":[]}])").Key("components").Object();
    json.Key("securitySchemes").Raw(R"({"key":{"type":"http","scheme":"bearer"}})").End();
  }
  json.Key("paths").Object();
  for (const Route& route : kRoutes) {
    if (route.path == "/" && !server.options.playground) continue;
    json.Key(route.path).Object();
    WriteOperation(route, json);
    json.End();
  }
  json.Key(std::string(kStored) + "{response_id}").Object();
  json.Key("parameters");
  json.Raw(R"([{"name":"response_id","in":"path","required":true,"schema":{"type":"string"}}])");
  for (const Route& route : kStoredRoutes) WriteOperation(route, json);
  json.End();
  HttpReply reply;
  reply.body = json.End().End().Take();
  return reply;
}

std::string Shown(std::string_view text) { return ShownBytes(text.substr(0, 100)); }

// In the form that the clients of the route read.
HttpReply ErrorReply(const HttpRequest& request, const ApiError& error) {
  if (request.path.starts_with("/api/")) return OllamaError(error);
  if (request.path.starts_with("/v1/messages")) return MessagesError(error);
  return error.ToReply();
}

bool IsServed(const ServedModel& model, std::string_view name) {
  return !name.empty() && model.AdapterNamed(name).has_value();
}

// Of a server with adapters: which of them the body asks for. Any name is good where there are
// none.
std::optional<ApiError> FindAdapter(const ServedModel& model, const json::Value& body,
                                    int& adapter) {
  if (model.info().adapters.empty()) return std::nullopt;
  const json::Value* const name = body.Find("model");
  if (name == nullptr || name->type == json::Type::kNull) return std::nullopt;
  if (name->type != json::Type::kString) {
    return ApiError{.message = "must be a string, not " + json::Shown(*name), .param = "/model"};
  }
  const std::optional<int> found = model.AdapterNamed(name->text);
  if (found) {
    adapter = *found;
    return std::nullopt;
  }
  constexpr size_t kMostShown = 20;
  std::string names = json::Quote(model.name());
  const std::span<const ModelInfo::Adapter> adapters = model.info().adapters;
  for (const ModelInfo::Adapter& one : adapters.first(std::min(adapters.size(), kMostShown))) {
    names += ", " + json::Quote(one.name);
  }
  return ApiError{.status = 404,
                  .message = "the model " + json::Quote(Shown(name->text)) +
                             " does not exist; this server has " + names,
                  .param = "/model",
                  .code = "model_not_found"};
}

// nullptr, with the error that says so.
const Route* FindRoute(const ServerState& server, const HttpRequest& request, ApiError& error) {
  std::string_view path = request.path;
  constexpr std::string_view kModels = "/v1/models/";
  const std::string name =
      path.starts_with(kModels) ? PercentDecoded(path.substr(kModels.size())) : "";
  if (server.ready && !name.empty() &&
      (server.host != nullptr ? server.host->Has(name) : IsServed(*server.model, name))) {
    static constexpr Route kModel = Get("/v1/models/", OneModel, "The model");
    if (request.method == "GET" || request.method == "HEAD") return &kModel;
  }
  const std::string_view method =
      request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
  if (IsStored(path)) {
    for (const Route& route : kStoredRoutes) {
      if (route.method == method) return &route;
    }
    error = {.status = 405,
             .message = Shown(path) + " is for GET and DELETE, not " + Shown(request.method)};
    return nullptr;
  }
  std::string_view other;
  for (const Route& route : kRoutes) {
    if (route.path != path || (path == "/" && !server.options.playground)) continue;
    if (route.method == method) return &route;
    other = route.method;
  }
  if (other.empty()) {
    error = {.status = 404, .message = "there is no " + Shown(path) + " here"};
  } else {
    error = {.status = 405,
             .message =
                 Shown(path) + " is for " + std::string(other) + ", not " + Shown(request.method)};
  }
  return nullptr;
}

// Of a path that is there for other methods: what it is for.
std::string AllowedMethods(std::string_view path) {
  if (IsStored(path)) return "GET, HEAD, DELETE";
  std::string out;
  for (const Route& route : kRoutes) {
    if (route.path != path) continue;
    if (!out.empty()) out += ", ";
    out += route.method;
    if (route.method == "GET") out += ", HEAD";
  }
  return out.empty() ? "GET, HEAD" : out;
}

}  // namespace

HttpReply Router::Refusal(const HttpRequest& request, const ApiError& error) const {
  server_->metrics.CountRequest("refused", error.status);
  JsonWriter json;
  json.Object().Key("event").String("refused").Key("id").String(request.id);
  json.Key("method").String(ShownBytes(request.method)).Key("peer").String(request.peer);
  json.Key("status").Int(error.status).Key("message").String(ShownBytes(error.ShortMessage()));
  server_->Log(json.End().Take());
  if (server_->options.trace) {
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - request.received;
    ApiError ignored;
    const Route* const route = FindRoute(*server_, request, ignored);
    std::string path(route == nullptr ? "" : route->path);
    if (path.size() > 1 && path.ends_with('/')) path += "{id}";
    const std::string line =
        SpanLine(request, {path, server_->options.version, error.status, seconds.count(), nullptr,
                           route != nullptr && route->start != nullptr});
    if (!line.empty()) server_->options.trace(line);
  }
  return ErrorReply(request, error);
}

void Router::Refuse(Exchange& exchange, const ApiError& error) const {
  exchange.Reply(Refusal(exchange.request(), error));
}

std::optional<HttpReply> Router::Judge(const HttpRequest& head) const {
  if (!server_->options.http.cors_origin.empty() && head.method == "OPTIONS") {
    return HttpReply{.status = 204};
  }
  ApiError error;
  const Route* const route = FindRoute(*server_, head, error);
  const bool open = route != nullptr && route->access == Route::Access::kOpen;
  if (!open && !KeyIsGood(*server_, head)) {
    return Refusal(head, {.status = 401, .message = "the API key is missing or not known"});
  }
  if (route == nullptr) {
    HttpReply reply = Refusal(head, error);
    if (error.status == 405) reply.headers.emplace_back("allow", AllowedMethods(head.path));
    return reply;
  }
  if (!open && !server_->ready) return *Health(*server_, {.http = head, .stop = nullptr});
  return std::nullopt;
}

void Router::Handle(std::shared_ptr<Exchange> exchange) const {
  const HttpRequest& request = exchange->request();
  ApiError error;
  const Route* const route = FindRoute(*server_, request, error);
  if (route == nullptr) return Refuse(*exchange, error);
  if (server_->host != nullptr && route->of_model) return FindModel(exchange);
  const bool read = route->method == "POST";
  if (!read || (!route->slow && request.body.size() <= kSmallBytes)) {
    return Read(exchange, *route, nullptr);
  }
  Intake::Start(
      server_, exchange,
      [self = *this, exchange](const ApiError& why) { self.Refuse(*exchange, why); },
      [self = *this, exchange, route](Intake& intake) { self.Read(exchange, *route, &intake); });
}

void Router::FindModel(const std::shared_ptr<Exchange>& exchange) const {
  if (exchange->request().body.size() <= kSmallBytes) return UseModel(exchange);
  Intake::Start(
      server_, exchange,
      [self = *this, exchange](const ApiError& why) { self.Refuse(*exchange, why); },
      [self = *this, exchange](Intake& intake) {
        if (intake.Claim()) self.UseModel(exchange);
      });
}

void Router::UseModel(const std::shared_ptr<Exchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  Result<ModelChoice> choice = ChoiceOf(request);
  if (!choice.ok()) return Refuse(*exchange, FromError(choice.error(), ""));
  if (choice->name.empty()) choice->name = server_->host->OnlyName();
  if (choice->name.empty()) {
    // The body may be no JSON at all.
    const bool post = request.method == "POST";
    if (const auto parsed = json::Parse(post ? std::string_view(request.body) : "{}", kBodyLimits);
        !parsed.ok()) {
      return Refuse(*exchange, {.message = "the body is not JSON: " + parsed.error().ToString(),
                                .code = ErrorCodeName(parsed.error().code)});
    }
    return Refuse(*exchange, {.message = "must be one of the models of this server: " +
                                         server_->host->NamesShown(),
                              .param = "/model"});
  }
  server_->host->Use(
      choice->name, choice->keep_alive, exchange,
      [](std::shared_ptr<ServerState> state, std::shared_ptr<Exchange> asked) {
        Router(std::move(state)).Handle(std::move(asked));
      },
      [self = *this](const ApiError& why, Exchange& asked) { self.Refuse(asked, why); });
}

// `intake`: on a worker; nullptr: on the connection's thread.
void Router::Read(const std::shared_ptr<Exchange>& exchange, const Route& route,
                  Intake* intake) const {
  const HttpRequest& request = exchange->request();
  const auto claim = [intake] { return intake == nullptr || intake->Claim(); };
  const auto refuse = [&](const ApiError& why) {
    if (claim()) Refuse(*exchange, why);
  };
  json::Value body;
  KnownTools::Match tools;
  if (route.method == "POST") {
    server_->Begins("read", request);
    const StopScope scope(intake == nullptr ? nullptr : &intake->halt());
    if (route.tools) tools = server_->known_tools.Find(request.body);
    const bool known = tools.tools != nullptr;
    Result<json::Value> parsed = known ? json::Parse(tools.Rest(request.body), kBodyLimits)
                                       : json::Parse(request.body, kBodyLimits);
    if (known && !parsed.ok()) {
      tools = {};  // for the place of what is wrong
      parsed = json::Parse(request.body, kBodyLimits);
    }
    if (!parsed.ok()) {
      const bool limit = parsed.error().code == ErrorCode::kLimit;
      return refuse(
          {.message = (limit ? "the body is too much to read: " : "the body is not JSON: ") +
                      parsed.error().ToString(),
           .code = ErrorCodeName(parsed.error().code)});
    }
    body = *std::move(parsed);
    // Each member that a route knows is looked for among all of them.
    if (body.members.size() > kMostMembers) {
      return refuse(
          {.message = "the body has more than " + std::to_string(kMostMembers) + " members",
           .code = ErrorCodeName(ErrorCode::kLimit)});
    }
  }
  if (route.start != nullptr) {
    int adapter = 0;
    if (const auto error = FindAdapter(*server_->model, body, adapter)) return refuse(*error);
    if (!claim()) return;
    const Status status =
        route.start({server_, exchange, body, route.tools ? &tools : nullptr,
                     OwnerOf(*server_, request), KeyNumberOf(*server_, request), adapter});
    if (!status.ok()) Refuse(*exchange, FromError(status.error(), ""));
    return;
  }
  server_->Begins("answer", request);
  PlainRequest asked{.http = request, .body = &body};
  asked.key = KeyNumberOf(*server_, request);
  if (intake != nullptr) {
    asked.stop = intake->stop();
    asked.halt = &intake->halt();
  }
  Result<HttpReply> reply = route.answer(*server_, asked);
  if (!reply.ok()) return refuse(FromError(reply.error(), ""));
  if (claim()) exchange->Reply(*std::move(reply));
}

}  // namespace pawl::server
