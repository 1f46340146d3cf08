// One table has all routes. A request goes through the same steps whatever it asks: the route, the
// key, whether the model is there, all of them when the headers are there; then the body and the
// answer. The handler's thread is one of the connections': what may take long, and every long body,
// goes to a worker (intake.h).
#include "src/server/router.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/digest.h"
#include "src/base/stop_scope.h"
#include "src/server/api.h"
#include "src/server/api_plain.h"

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

bool KeyIsGood(const ServerState& server, const HttpRequest& request) {
  if (server.options.api_keys.empty()) return true;
  const std::string_view given = KeyOf(request);
  bool good = false;
  for (const std::string& key : server.options.api_keys) good |= SameKey(given, key);
  return good;
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
  PlainAnswer answer = nullptr;  // either this
  Start start = nullptr;         // or this
  Access access = Access::kKey;
  bool slow = false;   // an answer for which a worker is wanted, however short the body
  bool tools = false;  // may be long, and often the same: they are looked for by their bytes
};

namespace {

constexpr Route Get(std::string_view path, PlainAnswer answer,
                    Route::Access access = Route::Access::kKey) {
  return {.method = "GET", .path = path, .answer = answer, .access = access};
}
constexpr Route Post(std::string_view path, PlainAnswer answer, bool slow = false) {
  return {.method = "POST", .path = path, .answer = answer, .slow = slow};
}
constexpr Route Outputs(std::string_view path, Start start, bool tools = false) {
  return {.method = "POST", .path = path, .start = start, .tools = tools};
}

constexpr Route kRoutes[] = {
    Get("/health", Health, Route::Access::kOpen),
    Get("/v1/health", Health, Route::Access::kOpen),
    Get("/metrics", MetricsPage, Route::Access::kOpen),
    Get("/", Playground, Route::Access::kOpen),
    Get("/v1/models", Models),
    Get("/models", Models),
    Get("/tokenizer_info", TokenizerInfo),
    Get("/version", Version),
    Get("/api/version", Version),
    Get("/api/tags", OllamaTags),
    Get("/api/ps", OllamaTags),
    Get("/props", Props),
    Post("/tokenize", Tokenize, true),
    Post("/detokenize", Detokenize, true),
    Post("/api/show", OllamaShow),
    Post("/v1/constraints/compile", CompileOnly, true),
    Outputs(
        "/v1/chat/completions", [](const ApiRequest& r) { return StartChat(r, false); }, true),
    Outputs(
        "/chat/completions", [](const ApiRequest& r) { return StartChat(r, false); }, true),
    Outputs("/v1/completions", StartCompletion),
    Outputs("/v1/responses", StartResponse),
    Outputs("/v1/extract", StartExtract),
    Outputs("/v1/fim/completions", [](const ApiRequest& r) { return StartChat(r, true); }),
    Outputs("/infill", [](const ApiRequest& r) { return StartInfill(r, true); }),
    Outputs("/completion", [](const ApiRequest& r) { return StartInfill(r, false); }),
    Outputs("/api/chat", [](const ApiRequest& r) { return StartOllama(r, true); }),
    Outputs("/api/generate", [](const ApiRequest& r) { return StartOllama(r, false); }),
};

std::string Shown(std::string_view text) { return ShownBytes(text.substr(0, 100)); }

bool IsOllama(const HttpRequest& request) { return request.path.starts_with("/api/"); }

// nullptr, with the error that says so.
const Route* FindRoute(const ServerState& server, const HttpRequest& request, ApiError& error) {
  std::string_view path = request.path;
  if (server.ready && path == "/v1/models/" + server.model->name()) {
    static constexpr Route kModel = Get("/v1/models/", OneModel);
    if (request.method == "GET" || request.method == "HEAD") return &kModel;
  }
  const std::string_view method =
      request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
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
  json.Key("status").Int(error.status).Key("message").String(ShownBytes(error.ShortMessage()));
  server_->Log(json.End().Take());
  return IsOllama(request) ? OllamaError(error) : error.ToReply();
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
  const bool read = route->method == "POST";
  if (!read || (!route->slow && request.body.size() <= kSmallBytes)) {
    return Read(exchange, *route, nullptr);
  }
  Intake::Start(
      server_, exchange,
      [self = *this, exchange](const ApiError& why) { self.Refuse(*exchange, why); },
      [self = *this, exchange, route](Intake& intake) { self.Read(exchange, *route, &intake); });
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
    if (!claim()) return;
    const Status status = route.start(
        {server_, exchange, body, route.tools ? &tools : nullptr, OwnerOf(*server_, request)});
    if (!status.ok()) Refuse(*exchange, FromError(status.error(), ""));
    return;
  }
  server_->Begins("answer", request);
  PlainRequest asked{.http = request, .body = &body};
  if (intake != nullptr) {
    asked.stop = intake->stop();
    asked.halt = &intake->halt();
  }
  Result<HttpReply> reply = route.answer(*server_, asked);
  if (!reply.ok()) return refuse(FromError(reply.error(), ""));
  if (claim()) exchange->Reply(*std::move(reply));
}

}  // namespace pawl::server
