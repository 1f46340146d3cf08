// A small HTTP client of the tests' own: it sends what it is told, also what is wrong, and reads
// whole and chunked answers.
#ifndef PAWL_TESTS_SERVER_HTTP_CLIENT_H_
#define PAWL_TESTS_SERVER_HTTP_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"

namespace pawl::server {

struct Answer {
  int status = 0;  // 0: the connection was closed without an answer
  std::string head, body;
  bool complete = false;

  json::Value Json() const {
    const auto value = json::Parse(body);
    return value.ok() ? *value : json::Value();
  }
  // The data of server-sent events.
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    size_t at = 0;
    while ((at = body.find("data: ", at)) != std::string::npos) {
      const size_t end = body.find("\n\n", at);
      events.push_back(body.substr(at + 6, end - at - 6));
      at = end == std::string::npos ? body.size() : end;
    }
    return events;
  }
};

// The value at a JSON Pointer; null where there is none.
inline const json::Value& At(const json::Value& root, std::string_view pointer) {
  static const json::Value kNull;
  const json::Value* at = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const size_t slash = std::min(pointer.find('/'), pointer.size());
    const std::string key(pointer.substr(0, slash));
    pointer.remove_prefix(slash);
    if (at->type == json::Type::kArray) {
      const size_t i = std::strtoul(key.c_str(), nullptr, 10);
      if (i >= at->items.size()) return kNull;
      at = &at->items[i];
    } else {
      at = at->Find(key);
      if (at == nullptr) return kNull;
    }
  }
  return *at;
}

class Connection {
 public:
  explicit Connection(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    good_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Connection() { Close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // At least a byte more; false at the end.
  bool Read() {
    char bytes[65536];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    read_.append(bytes, static_cast<size_t>(n));
    return true;
  }
  int fd() const { return fd_; }
  const std::string& read() const { return read_; }

  Answer ReadAnswer() {
    Answer answer;
    size_t end = 0;
    while ((end = read_.find("\r\n\r\n")) == std::string::npos) {
      if (!Read()) return answer;
    }
    answer.head = read_.substr(0, end + 2);
    read_.erase(0, end + 4);
    answer.status = std::atoi(answer.head.c_str() + 9);
    if (answer.head.find("transfer-encoding: chunked") != std::string::npos) {
      ReadChunks(answer);
      return answer;
    }
    const size_t length_at = answer.head.find("content-length: ");
    if (length_at == std::string::npos) {
      while (Read()) {
      }
      answer.body = read_;
      answer.complete = true;
      return answer;
    }
    const size_t length = std::strtoul(answer.head.c_str() + length_at + 16, nullptr, 10);
    while (read_.size() < length && Read()) {
    }
    answer.complete = read_.size() >= length;
    answer.body = read_.substr(0, length);
    read_.erase(0, length);
    return answer;
  }

  Answer Post(const std::string& path, const std::string& body, const std::string& headers = "") {
    Send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return ReadAnswer();
  }
  // Without a body.
  Answer Request(const std::string& method, const std::string& path, const std::string& headers) {
    Send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
    return ReadAnswer();
  }
  Answer Get(const std::string& path, const std::string& headers = "") {
    return Request("GET", path, headers);
  }

 private:
  void ReadChunks(Answer& answer) {
    for (;;) {
      size_t line = 0;
      while ((line = read_.find("\r\n")) == std::string::npos) {
        if (!Read()) return;
      }
      const size_t size = std::strtoul(read_.c_str(), nullptr, 16);
      while (read_.size() < line + 4 + size) {
        if (!Read()) return;
      }
      answer.body += read_.substr(line + 2, size);
      read_.erase(0, line + 4 + size);
      if (size == 0) {
        answer.complete = true;
        return;
      }
    }
  }

  int fd_;
  bool good_ = false;
  std::string read_;
};

}  // namespace pawl::server

#endif  // PAWL_TESTS_SERVER_HTTP_CLIENT_H_
