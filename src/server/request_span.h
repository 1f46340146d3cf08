// A request as OpenTelemetry has it: one span, in the JSON of OTLP, a line each
// (opentelemetry.io/docs/specs/otel/protocol/file-exporter). Names of attributes are those of the
// semantic conventions of HTTP and of generative AI.
#ifndef PAWL_SRC_SERVER_REQUEST_SPAN_H_
#define PAWL_SRC_SERVER_REQUEST_SPAN_H_

#include <optional>
#include <string>
#include <string_view>

#include "src/server/call.h"
#include "src/server/http.h"

namespace pawl::server {

// The header `traceparent` (W3C Trace Context, section 3.2).
struct TraceParent {
  std::string trace;     // 32 hexadecimal digits
  std::string span;      // 16 hexadecimal digits
  bool sampled = false;  // whether the caller records the trace
};

// nullopt: the header is not there or not well formed, so a trace begins here.
std::optional<TraceParent> ReadTraceParent(std::string_view header);

struct RequestSpan {
  std::string_view route;    // empty: there is none of that name
  std::string_view version;  // of the server
  int status = 200;
  double seconds = 0;            // from the request to now
  const CallOut* out = nullptr;  // nullptr: nothing ran
  bool makes_outputs = true;     // the route does
};

// The line, without a line feed; empty where the caller records nothing.
// Thread safety: may be called from any thread.
std::string SpanLine(const HttpRequest& request, const RequestSpan& span);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_REQUEST_SPAN_H_
