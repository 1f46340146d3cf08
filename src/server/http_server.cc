// The listener is a task of the loop as its connections are. It accepts until no client waits any
// more; where the system has no file descriptors or no memory left it looks again a moment later,
// when others may have closed theirs. Connections above the number that is allowed are closed at
// once.
#include "src/server/http_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/os/sockets.h"
#include "src/server/http_connection.h"
#include "src/server/io_loop.h"

namespace pawl::server {
namespace {

constexpr int kBacklog = 1024;
constexpr int kAcceptAtATime = 64;
constexpr std::chrono::milliseconds kAcceptAgain{50};

class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(int fd) : fd_(fd) {}
  ~SocketStream() override { SocketStream::Close(); }
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  int64_t Read(char* to, size_t size) noexcept override {
    const int64_t n = os::Receive(fd_, to, size);
    return n > 0 ? n : n == 0 ? kEnd : Failed(errno);
  }
  int64_t Write(const char* from, size_t size) noexcept override {
    const int64_t n = os::SendSome(fd_, from, size);
    return n >= 0 ? n : Failed(errno);
  }
  void ShutdownSend() noexcept override { os::EndSendingOn(fd_); }
  void Close() noexcept override {
    if (fd_ >= 0) os::CloseSocket(std::exchange(fd_, -1));
  }

 private:
  static int64_t Failed(int error) {
    // An interrupted call is tried again when the socket says so, or in the next run.
    return error == EAGAIN || error == EWOULDBLOCK ? kNotNow : kBroken;
  }

  int fd_;
};

class Listener final : public IoTask {
 public:
  Listener(std::shared_ptr<HttpShared> shared, std::shared_ptr<IoLoop> loop)
      : shared_(std::move(shared)), loop_(loop.get()), runner_(std::move(loop)) {}
  ~Listener() override { Close(); }

  Result<int> Listen(const HttpOptions& options) {
    const std::string place = options.host + ":" + std::to_string(options.port);
    const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
    int port = 0;
    const int listener = os::ListenAt(host, options.port, kBacklog, port);
    if (listener == os::kNoAddress) {
      return Error{ErrorCode::kInvalid, "is not an IP address", options.host};
    }
    if (listener < 0) return Error{ErrorCode::kIo, std::generic_category().message(errno), place};
    fd_ = listener;
    return port;
  }
  int fd() const { return fd_; }

  void Run(unsigned events, TimePoint now) noexcept override {
    if (shared_->draining || (events & kGone) != 0) return Close();
    for (int i = 0; i < kAcceptAtATime; ++i) {
      const os::Accepted accepted = os::AcceptNext(fd_);
      if (accepted.socket < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (accepted.socket < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) SetDeadline(now + kAcceptAgain);
        return;
      }
      Welcome(accepted);
    }
    loop_->Schedule(*this);
  }

 private:
  void Welcome(const os::Accepted& accepted) noexcept {
    bool owned = false;
    try {
      auto stream = std::make_unique<SocketStream>(accepted.socket);
      owned = true;
      if (shared_->connections >= shared_->options.max_connections) return;
      const auto connection = std::make_shared<HttpConnection>(shared_, runner_, std::move(stream),
                                                               accepted.from.data());
      if (loop_->Add(connection, accepted.socket)) loop_->Schedule(*connection);
    } catch (...) {
      if (!owned) os::CloseSocket(accepted.socket);
    }
  }

  void Close() noexcept {
    if (fd_ < 0) return;
    os::CloseSocket(std::exchange(fd_, -1));
    loop_->Remove(*this);
  }

  const std::shared_ptr<HttpShared> shared_;
  IoLoop* const loop_;
  const std::shared_ptr<IoRunner> runner_;  // the same
  int fd_ = -1;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, HttpHandler handler)
      : shared_(std::make_shared<HttpShared>(options, std::move(handler))) {}
  ~Impl() {
    Drain();
    shared_->closing = true;
    loop_->ScheduleAll();
    // A moment for those who are told that their client has gone.
    for (int i = 0; i < 100 && shared_->connections > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    loop_->Stop();
  }

  Status Listen() {
    const HttpOptions& options = shared_->options;
    if (Status status = options.Check(); !status.ok()) return status;
    const auto listener = std::make_shared<Listener>(shared_, loop_);
    const Result<int> port = listener->Listen(options);
    if (!port.ok()) return port.error();
    port_ = *port;
    if (Status status = loop_->Open(std::max(1, options.threads)); !status.ok()) return status;
    if (!loop_->Add(listener, listener->fd())) {
      return Error{ErrorCode::kIo, std::generic_category().message(errno), "sockets"};
    }
    loop_->Schedule(*listener);
    return {};
  }

  void Drain() {
    if (!shared_->draining.exchange(true)) loop_->ScheduleAll();
  }

  int port() const { return port_; }
  const HttpShared& shared() const { return *shared_; }

 private:
  const std::shared_ptr<HttpShared> shared_;
  const std::shared_ptr<IoLoop> loop_ = std::make_shared<IoLoop>();
  int port_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                      HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  if (Status status = impl->Listen(); !status.ok()) return status.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }
void HttpServer::Drain() { impl_->Drain(); }
int HttpServer::connections() const { return impl_->shared().connections; }
int HttpServer::exchanges() const { return impl_->shared().exchanges; }
size_t HttpServer::waiting_bytes() const { return impl_->shared().bodies.bytes(); }

}  // namespace pawl::server
