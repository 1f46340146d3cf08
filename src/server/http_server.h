// HttpServer: connections, HTTP/1.1, time limits, and an orderly end. What requests mean is the
// handler's affair.
//
//   HttpOptions options;
//   options.port = 8080;
//   auto server = HttpServer::Start(options, [](std::shared_ptr<Exchange> exchange) { ... });
//   ...
//   (*server)->Drain();                          // no new connections; those at rest are closed
//   while ((*server)->exchanges() > 0) Wait();
//   server->reset();                             // closes what is left
//
// Connections run on threads of their own number; the handler is called there and must not wait.
#ifndef PAWL_SRC_SERVER_HTTP_SERVER_H_
#define PAWL_SRC_SERVER_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "pawl/result.h"
#include "src/server/http.h"

namespace pawl::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  int threads = 2;
  int max_connections = 4096;
  size_t max_header_bytes = 32 << 10;
  size_t max_body_bytes = 8 << 20;
  double idle_seconds = 75;   // a connection without a request
  double read_seconds = 30;   // from the first byte of a request to its last: status 408
  double write_seconds = 30;  // in which a client takes nothing of what it is sent
  // Pages of this origin may use the server (Access-Control-Allow-Origin of every reply); empty: no
  // CORS.
  std::string cors_origin;
};

class HttpServer {
 public:
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;

  // Listens and serves. Errors: kIo when the address is not to be had.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpOptions& options, Handler handler);
  // Closes all connections; exchanges that are kept by others do nothing from then on.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // No new connections and no further requests; those that run are answered.
  void Drain();
  int connections() const;
  // Requests without a complete answer.
  int exchanges() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_HTTP_SERVER_H_
