// Times of a span are those of the system's clock. A request is timed by the steady clock, so the
// span ends now and begins `seconds` before.
#include "src/server/request_span.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>

#include "src/base/os/random.h"
#include "src/server/api.h"
#include "src/server/json_writer.h"

namespace pawl::server {
namespace {

constexpr int kServerSpan = 2;  // SPAN_KIND_SERVER
constexpr int kErrorCode = 2;   // STATUS_CODE_ERROR

bool IsHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

std::string RandomHex(size_t digits) {
  thread_local std::mt19937_64 random{os::RandomSeed()};
  std::string out;
  while (out.size() < digits) {
    char part[17];
    std::snprintf(part, sizeof part, "%016llx", static_cast<unsigned long long>(random() | 1));
    out += part;
  }
  out.resize(digits);
  return out;
}

// The name of what a route does, by the conventions of generative AI.
std::string_view OperationOf(std::string_view route) {
  if (route.ends_with("/embeddings")) return "embeddings";
  for (const std::string_view text : {"/v1/completions", "/api/generate"}) {
    if (route == text) return "text_completion";
  }
  for (const std::string_view chat :
       {"/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"}) {
    if (route == chat) return "chat";
  }
  return route.substr(route.rfind('/') + 1);
}

class Attributes {
 public:
  explicit Attributes(JsonWriter& json) : json_(json) { json_.Key("attributes").Array(); }
  void Text(std::string_view key, std::string_view value) {
    Open(key).Key("stringValue").String(value).End().End();
  }
  // The JSON of Protocol Buffers has 64-bit numbers as strings.
  void Count(std::string_view key, int64_t value) {
    Open(key).Key("intValue").String(std::to_string(value)).End().End();
  }
  void Seconds(std::string_view key, double value) {
    Open(key).Key("doubleValue").Number(value).End().End();
  }
  void End() { json_.End(); }

 private:
  JsonWriter& Open(std::string_view key) {
    return json_.Object().Key("key").String(key).Key("value").Object();
  }

  JsonWriter& json_;
};

void WriteUsage(const CallOut& out, Attributes& attributes) {
  attributes.Text("gen_ai.response.model", out.model);
  attributes.Count("gen_ai.usage.input_tokens", out.prompt_tokens);
  attributes.Count("gen_ai.usage.output_tokens", out.output_tokens);
  attributes.Count("gen_ai.usage.cache_read.input_tokens", out.reused_tokens);
  attributes.Count("pawl.outputs", static_cast<int64_t>(out.choices.size()));
  attributes.Seconds("pawl.queue_seconds", out.queue_seconds);
  if (out.has_grammar) attributes.Seconds("pawl.compile_seconds", out.compile_seconds);
  double mask = 0;
  for (const ChoiceOut& choice : out.choices) mask += choice.stats.constraint_seconds;
  attributes.Seconds("pawl.mask_seconds", mask);
}

}  // namespace

std::optional<TraceParent> ReadTraceParent(std::string_view header) {
  // VERSION-TRACE-SPAN-FLAGS. Later versions may go on behind another hyphen.
  constexpr size_t kTrace = 3, kTraceDigits = 32, kSpan = 36, kSpanDigits = 16, kFlags = 53;
  constexpr size_t kLength = 55;
  if (header.size() < kLength) return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  if (!IsHex(version) || version == "ff") return std::nullopt;
  if (version == "00" ? header.size() != kLength
                      : header.size() > kLength && header[kLength] != '-') {
    return std::nullopt;
  }
  if (header[kTrace - 1] != '-' || header[kSpan - 1] != '-' || header[kFlags - 1] != '-') {
    return std::nullopt;
  }
  const std::string_view trace = header.substr(kTrace, kTraceDigits);
  const std::string_view span = header.substr(kSpan, kSpanDigits);
  const std::string_view flags = header.substr(kFlags, 2);
  if (!IsHex(trace) || IsZero(trace) || !IsHex(span) || IsZero(span) || !IsHex(flags)) {
    return std::nullopt;
  }
  const char low = flags[1];
  const int digit = low <= '9' ? low - '0' : low - 'a' + 10;
  return TraceParent{std::string(trace), std::string(span), digit % 2 == 1};
}

std::string SpanLine(const HttpRequest& request, const RequestSpan& span) {
  const std::optional<TraceParent> parent = ReadTraceParent(request.Header("traceparent"));
  if (parent && !parent->sampled) return "";
  const int64_t end = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const auto nanos = [](double seconds) { return static_cast<int64_t>(seconds * 1e9); };
  const int64_t begin = end - nanos(span.seconds);
  const bool ran = span.out != nullptr && span.status == 200;

  JsonWriter json;
  json.Object().Key("resourceSpans").Array().Object().Key("resource").Object();
  Attributes resource(json);
  resource.Text("service.name", "pawl");
  resource.Text("service.version", span.version);
  resource.End();
  json.End().Key("scopeSpans").Array().Object();
  json.Key("scope").Object().Key("name").String("pawl.server").End();
  json.Key("spans").Array().Object();
  json.Key("traceId").String(parent ? parent->trace : RandomHex(32));
  json.Key("spanId").String(RandomHex(16));
  if (parent) json.Key("parentSpanId").String(parent->span);
  const std::string method = ShownBytes(request.method);
  json.Key("name").String(span.route.empty() ? method : method + " " + std::string(span.route));
  json.Key("kind").Int(kServerSpan);
  json.Key("startTimeUnixNano").String(std::to_string(begin));
  json.Key("endTimeUnixNano").String(std::to_string(end));
  Attributes attributes(json);
  attributes.Text("http.request.method", method);
  if (!span.route.empty()) attributes.Text("http.route", span.route);
  attributes.Count("http.response.status_code", span.status);
  attributes.Count("http.request.body.size", static_cast<int64_t>(request.body.size()));
  if (!request.peer.empty()) attributes.Text("client.address", request.peer);
  attributes.Text("pawl.request_id", request.id);
  if (!span.route.empty() && span.makes_outputs) {
    attributes.Text("gen_ai.provider.name", "pawl");
    attributes.Text("gen_ai.operation.name", OperationOf(span.route));
  }
  if (ran) WriteUsage(*span.out, attributes);
  attributes.End();
  if (ran && span.out->first_token_seconds > 0) {
    json.Key("events").Array().Object().Key("name").String("first token");
    json.Key("timeUnixNano").String(std::to_string(begin + nanos(span.out->first_token_seconds)));
    json.End().End();
  }
  json.Key("status").Object();
  if (span.status >= 500) json.Key("code").Int(kErrorCode);
  json.End();
  json.End().End().End().End().End().End().End();
  return json.Take();
}

}  // namespace pawl::server
