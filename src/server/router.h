// Router: which route a request means, who may use it, and what becomes of an error.
#ifndef PAWL_SRC_SERVER_ROUTER_H_
#define PAWL_SRC_SERVER_ROUTER_H_

#include <memory>
#include <utility>

#include "src/server/http.h"
#include "src/server/server_state.h"

namespace pawl::server {

struct Route;

// Thread-safe.
class Router {
 public:
  explicit Router(std::shared_ptr<ServerState> server) : server_(std::move(server)) {}

  // Answers, or starts what will. Does not wait: bodies over 64 KiB and answers that may take long
  // go to a worker.
  void Handle(std::shared_ptr<Exchange> exchange) const;

 private:
  void Read(const std::shared_ptr<Exchange>& exchange, const Route& route, Intake* intake) const;
  void Refuse(Exchange& exchange, const ApiError& error) const;

  std::shared_ptr<ServerState> server_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_ROUTER_H_
