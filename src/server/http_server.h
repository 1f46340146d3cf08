// HttpServer: connections, HTTP/1.1, time limits, and an orderly end. What requests mean is the
// handler's affair.
//
//   HttpOptions options;
//   options.port = 8080;
//   auto server = HttpServer::Start(options, {.judge = ..., .handle = ..., .refuse = ...});
//   ...
//   (*server)->Drain();                          // no new connections; those at rest are closed
//   while ((*server)->exchanges() > 0) Wait();
//   server->reset();                             // closes what is left
//
// Connections run on threads of their own number; the handler is called there and must not wait.
#ifndef PAWL_SRC_SERVER_HTTP_SERVER_H_
#define PAWL_SRC_SERVER_HTTP_SERVER_H_

#include <memory>

#include "pawl/result.h"
#include "src/server/http_options.h"

namespace pawl::server {

class HttpServer {
 public:
  // Listens and serves. Errors: kIo when the address is not to be had; kInvalid, of the options.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpOptions& options, HttpHandler handler);
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
  // Of bodies that have not arrived whole, above what each may have.
  size_t waiting_bytes() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_HTTP_SERVER_H_
