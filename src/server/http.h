// HTTP as the routes see it: requests, replies, and the exchange of the one for the other.
//
//   void Hello(std::shared_ptr<Exchange> exchange) {
//     exchange->Reply({.status = 200, .content_type = "text/plain", .body = "hello\n"});
//   }
//
// A reply of unknown length is pulled, not pushed: a thread that has something to say calls Wake,
// and the connection asks for it when the client can take more. What a slow client has not read yet
// is not even written down.
//
//   exchange->Stream({.content_type = "text/event-stream"}, [state](std::string& out) {
//     out += state->TakeText();
//     return !state->at_end();
//   });
//   state->on_text = [exchange] { exchange->Wake(); };
#ifndef PAWL_SRC_SERVER_HTTP_H_
#define PAWL_SRC_SERVER_HTTP_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/server/body_bytes.h"

namespace pawl::server {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;   // "POST"
  std::string path;     // "/v1/models", as it was sent
  std::string query;    // what follows '?'
  HttpHeaders headers;  // names in lower case
  BodyBytes body;
  std::string peer;  // the address that it came from; empty: not known
  std::string id;    // the client's x-request-id, or one made here
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();

  // The first header of that name (in lower case); empty when there is none.
  std::string_view Header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers = {};
  std::string body = {};
};

// A request that waits for its answer. Thread safety: all functions may be called from any thread.
// Exactly one of Reply and Stream is to be called, once; more calls do nothing. An exchange that
// goes without either is answered with status 500. Reply, Stream, Wake, Abort and the destructor
// allocate nothing and throw nothing.
class Exchange {
 public:
  // Appends what is to be sent now, possibly nothing; false after the last of it. Called on a
  // thread of the connection, never twice at a time, and not any more when the client has gone.
  using Pull = std::function<bool(std::string& out)>;

  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;
  virtual void Reply(HttpReply reply) = 0;
  virtual void Stream(HttpReply head, Pull pull) = 0;
  // There may be more to pull.
  virtual void Wake() = 0;
  // Runs `work` on a thread of the connection, not while something is pulled.
  virtual void Post(std::function<void()> work) = 0;
  // `gone` is called once, on a thread of the connection, when the client goes away before the
  // answer is complete; at once where it has gone already. One function; a later one replaces it.
  virtual void OnGone(std::function<void()> gone) = 0;
  // Closes the connection without an answer, or in the middle of one: for when there is no memory
  // for anything else.
  virtual void Abort() noexcept = 0;
};

// "Not Found" and the like.
std::string_view StatusText(int status);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_HTTP_H_
