// Router: which route a request means, who may use it, and what becomes of an error.
#ifndef PAWL_SRC_SERVER_ROUTER_H_
#define PAWL_SRC_SERVER_ROUTER_H_

#include <memory>
#include <optional>
#include <utility>

#include "src/server/http.h"
#include "src/server/server_state.h"

namespace pawl::server {

struct Route;

// Thread-safe.
class Router {
 public:
  explicit Router(std::shared_ptr<ServerState> server) : server_(std::move(server)) {}

  // What the method, the path and the headers are answered before the body is read; nullopt: the
  // body is wanted.
  std::optional<HttpReply> Judge(const HttpRequest& head) const;
  // Answers, or starts what will. Does not wait: bodies over 64 KiB and answers that may take long
  // go to a worker. The request was judged before.
  void Handle(std::shared_ptr<Exchange> exchange) const;
  // The reply that says so; counted and logged.
  HttpReply Refusal(const HttpRequest& request, const ApiError& error) const;

 private:
  // Where there are several models: hands the request to the one that it names, once it is loaded.
  void FindModel(const std::shared_ptr<Exchange>& exchange) const;
  void UseModel(const std::shared_ptr<Exchange>& exchange) const;
  void Read(const std::shared_ptr<Exchange>& exchange, const Route& route, Intake* intake) const;
  void Refuse(Exchange& exchange, const ApiError& error) const;

  std::shared_ptr<ServerState> server_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_ROUTER_H_
