// What a server of HTTP may be told, and what it asks of those who answer requests.
#ifndef PAWL_SRC_SERVER_HTTP_OPTIONS_H_
#define PAWL_SRC_SERVER_HTTP_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/server/api_error.h"
#include "src/server/http.h"

namespace pawl::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  int threads = 2;
  int max_connections = 4096;
  size_t max_header_bytes = 32 << 10;  // of a request: its line, fields and trailers
  size_t max_body_bytes = 8 << 20;
  // Of all bodies together that have not arrived whole, less the first 64 KiB of each. One body
  // always has space: at least max_body_bytes.
  size_t max_waiting_bytes = 64 << 20;
  double idle_seconds = 75;   // a connection without a request
  double read_seconds = 30;   // from the first byte of a request to its last: status 408
  double write_seconds = 30;  // in which a client takes nothing of what it is sent
  // Pages of this origin may use the server (Access-Control-Allow-Origin of every reply); empty: no
  // CORS.
  std::string cors_origin;
  // Requests have to be for this machine by the name of their Host: localhost, 127.0.0.0/8, [::1],
  // or one of allowed_hosts. Without it pages of the web reach the server by names of their own.
  bool known_hosts_only = false;
  std::vector<std::string> allowed_hosts;  // names or addresses without a port

  // Errors: kInvalid, for what cannot be an origin or a host.
  Status Check() const;
};

// What answers requests. Called on threads of the connections, which must not wait.
struct HttpHandler {
  // What a request is answered before its body is read; nullopt: the body is wanted. The request
  // has all but its body.
  std::function<std::optional<HttpReply>(const HttpRequest& head)> judge;
  // Answers a whole request that was not refused.
  std::function<void(std::shared_ptr<Exchange>)> handle;
  // The reply to a request that the connection itself refuses; where it is not HTTP the request has
  // what could be read.
  std::function<HttpReply(const HttpRequest& head, const ApiError& error)> refuse;
};

// What the headers alone forbid, whatever the route: a Host that is not ours, an Origin of another
// page, a body of a page that is not JSON, a content coding, an Expect that cannot be met.
std::optional<ApiError> JudgeHeaders(const HttpOptions& options, const HttpRequest& head);

// An address on which only this machine listens: localhost, 127.0.0.0/8, ::1.
bool IsLoopback(std::string_view host);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_HTTP_OPTIONS_H_
