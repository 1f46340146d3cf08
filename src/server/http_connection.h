// HttpConnection: one client, from its first byte to the end. It reads requests (http_reader.h),
// lets the handler answer them, and writes the answers.
//
//   auto connection = std::make_shared<HttpConnection>(shared, runner, std::move(stream));
//   connection->Run(IoTask::kReadable, now);      // whenever something has happened
//
// The bytes come from a ByteStream, which is a socket, or a text in memory
// (tests/fuzz/http_fuzz.cc). Run never waits. Everything but what HttpExchange calls happens in
// Run.
#ifndef PAWL_SRC_SERVER_HTTP_CONNECTION_H_
#define PAWL_SRC_SERVER_HTTP_CONNECTION_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/server/http.h"
#include "src/server/http_options.h"
#include "src/server/http_reader.h"
#include "src/server/io_loop.h"
#include "src/server/waiting_bodies.h"

namespace pawl::server {

// Where the bytes of a connection come from and go to. Nothing waits.
class ByteStream {
 public:
  static constexpr int64_t kNotNow = 0, kEnd = -1, kBroken = -2;

  virtual ~ByteStream() = default;
  // How many bytes were read, or one of the above.
  virtual int64_t Read(char* to, size_t size) noexcept = 0;
  // How many bytes were taken, kNotNow or kBroken.
  virtual int64_t Write(const char* from, size_t size) noexcept = 0;
  virtual void ShutdownSend() noexcept = 0;
  virtual void Close() noexcept = 0;
};

// What the connections of a server share.
struct HttpShared {
  HttpShared(const HttpOptions& options_in, HttpHandler handler_in)
      : options(options_in),
        handler(std::move(handler_in)),
        bodies(std::max(options.max_waiting_bytes, options.max_body_bytes)) {}

  const HttpOptions options;
  const HttpHandler handler;
  WaitingBodies bodies;
  std::atomic<bool> draining{false}, closing{false};
  std::atomic<int> connections{0};
  std::atomic<int> exchanges{0};  // requests without a complete answer
};

class HttpExchange;

class HttpConnection final : public IoTask, private WaitingBodies::Share {
 public:
  HttpConnection(std::shared_ptr<HttpShared> shared, std::shared_ptr<IoRunner> runner,
                 std::unique_ptr<ByteStream> stream, std::string peer = {});
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void Run(unsigned events, TimePoint now) noexcept override;

 private:
  friend class HttpExchange;
  enum class Phase { kReading, kAnswering, kLingering, kClosed };

  // ---- For the exchange, from any thread ----

  void PutAnswer(uint64_t serial, HttpReply reply, Exchange::Pull pull) noexcept;
  void PutLost(uint64_t serial) noexcept;
  void PutAbort(uint64_t serial) noexcept;
  void Wake() noexcept { runner_->Schedule(*this); }
  void PutWork(std::function<void()> work);
  void MayGoOn() noexcept override { runner_->Schedule(*this); }

  // ---- In Run ----

  void RunWork();
  bool Aborted();
  void Late();
  // Each does the next thing, and says whether there was one.
  bool Step();
  bool StepReading();
  bool StepAnswering();
  bool StepLingering();

  bool RoomForBody(size_t& room);
  size_t Take(std::string_view bytes);
  void TakeHead(bool more);
  std::optional<HttpReply> Judge();
  void Handle();
  void Refuse(const ApiError& error);
  void BeginAnswer();
  void StartReply(HttpReply reply, Exchange::Pull pull);
  void StartLost();
  bool TakeAnswer();
  void Pump();
  void Answered();
  void NextRequest();
  bool AtRest() const {
    return phase_ == Phase::kReading && !reader_.begun() && in_at_ >= in_.size();
  }
  void EndIn(double seconds);
  void LookAgainAt(TimePoint at);
  void Close() noexcept;
  void TellGone() noexcept;

  const std::shared_ptr<HttpShared> shared_;
  const std::shared_ptr<IoRunner> runner_;
  const std::unique_ptr<ByteStream> stream_;
  const std::string peer_;
  Phase phase_ = Phase::kReading;
  TimePoint now_{};
  TimePoint end_ = kNever;    // of what it does: then it is late
  TimePoint probe_ = kNever;  // when a client that sends no more is asked whether it is there
  std::chrono::milliseconds probe_after_{};

  HttpReader reader_;
  std::string in_;  // what was read beyond a request, from in_at_ on
  size_t in_at_ = 0;
  size_t lingered_ = 0;
  std::string id_;
  std::string_view interim_;  // of a status 100 what was not sent yet

  bool keep_alive_ = false, http11_ = true, head_only_ = false, half_closed_ = false;
  bool counted_ = false, started_ = false, chunked_ = false, waits_ = false;
  std::string out_;
  std::string_view unsent_;       // of out_ or lost_
  std::array<char, 768> lost_{};  // an answer that takes no memory
  Exchange::Pull pull_;
  std::weak_ptr<HttpExchange> exchange_;

  // What other threads put.
  struct Mail {
    uint64_t serial = 0;  // of the request it is for
    bool lost = false, aborted = false;
    std::optional<HttpReply> reply;
    Exchange::Pull pull;
    std::vector<std::function<void()>> work;
  };
  std::mutex mail_mutex_;
  Mail mail_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_HTTP_CONNECTION_H_
