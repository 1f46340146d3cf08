// A handler that says what it was asked, and a reader of what a connection answered.
#ifndef PAWL_TESTS_SERVER_HTTP_ECHO_H_
#define PAWL_TESTS_SERVER_HTTP_ECHO_H_

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/server/http_options.h"

namespace pawl::server {

// "POST /a?b 5:hello". /none is not there, which is said before the body is read.
inline HttpHandler EchoHandler() {
  return {
      .judge = [](const HttpRequest& head) -> std::optional<HttpReply> {
        if (head.path != "/none") return std::nullopt;
        return ApiError{.status = 404, .message = "none"}.ToReply();
      },
      .handle =
          [](std::shared_ptr<Exchange> exchange) {
            const HttpRequest& request = exchange->request();
            std::string said = request.method + " " + request.path;
            if (!request.query.empty()) said += "?" + request.query;
            said += " " + std::to_string(request.body.size()) + ":";
            said += request.body.view();
            exchange->Reply({.content_type = "text/plain", .body = std::move(said)});
          },
      .refuse = [](const HttpRequest& /*head*/, const ApiError& error) { return error.ToReply(); }};
}

struct EchoAnswer {
  int status = 0;
  std::string head, body;
};

// The final answers of a connection, each read by its own Content-Length; `whole` says whether
// there is nothing else. `heads`: the requests were HEAD, in order.
inline std::vector<EchoAnswer> ReadAnswers(std::string_view said, bool& whole,
                                           const std::vector<bool>& heads = {}) {
  std::vector<EchoAnswer> answers;
  whole = true;
  while (!said.empty()) {
    const size_t end = said.find("\r\n\r\n");
    whole = said.starts_with("HTTP/1.1 ") && end != std::string_view::npos;
    if (!whole) return answers;
    EchoAnswer answer;
    answer.head = said.substr(0, end + 2);
    answer.status = std::atoi(answer.head.c_str() + 9);
    said.remove_prefix(end + 4);
    if (answer.status == 100) continue;
    const size_t at = answer.head.find("\r\ncontent-length: ");
    size_t size =
        at == std::string::npos ? 0 : std::strtoul(answer.head.c_str() + at + 18, nullptr, 10);
    if (answers.size() < heads.size() && heads[answers.size()]) size = 0;
    whole = said.size() >= size;
    if (!whole) return answers;
    answer.body = said.substr(0, size);
    said.remove_prefix(size);
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace pawl::server

#endif  // PAWL_TESTS_SERVER_HTTP_ECHO_H_
