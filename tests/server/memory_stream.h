// A connection without a socket: its bytes come from a text, cut where the test wants, and what it
// says is kept. Everything runs on the thread of the test, by a clock of the test's own.
#ifndef PAWL_TESTS_SERVER_MEMORY_STREAM_H_
#define PAWL_TESTS_SERVER_MEMORY_STREAM_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "src/server/http_connection.h"

namespace pawl::server {

// What both sides of a connection have said.
struct Wire {
  std::string in;                 // from the client, not read yet
  bool in_ends = false;           // nothing follows
  std::string out;                // to the client
  size_t room = size_t{1} << 30;  // bytes that the client takes at a time
  bool out_ended = false, closed = false;
  bool broken = false;  // the client is gone
};

class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}

  int64_t Read(char* to, size_t size) noexcept override {
    if (wire_->broken) return kBroken;
    if (wire_->in.empty()) return wire_->in_ends ? kEnd : kNotNow;
    size = std::min(size, wire_->in.size());
    std::memcpy(to, wire_->in.data(), size);
    wire_->in.erase(0, size);
    return static_cast<int64_t>(size);
  }
  // The memory of the wire is the client's and not the connection's.
  int64_t Write(const char* from, size_t size) noexcept override {
    if (wire_->broken || wire_->out_ended) return kBroken;
    size = std::min({size, wire_->room, wire_->out.capacity() - wire_->out.size()});
    wire_->out.append(from, size);
    return static_cast<int64_t>(size);
  }
  void ShutdownSend() noexcept override { wire_->out_ended = true; }
  void Close() noexcept override { wire_->closed = true; }

 private:
  const std::shared_ptr<Wire> wire_;
};

// Remembers that its one task wants to run.
class OneTaskRunner final : public IoRunner {
 public:
  bool Schedule(IoTask& /*task*/) noexcept override {
    wanted_ = true;
    return true;
  }
  void Remove(IoTask& /*task*/) noexcept override {}
  bool TakeWanted() { return std::exchange(wanted_, false); }

 private:
  bool wanted_ = false;
};

class MemoryClient {
 public:
  // `most`: bytes that either side may have said and the other has not taken.
  explicit MemoryClient(std::shared_ptr<HttpShared> shared, size_t most = size_t{1} << 20)
      : connection_(std::make_shared<HttpConnection>(std::move(shared), runner_,
                                                     std::make_unique<MemoryStream>(wire_))) {
    wire_->out.reserve(most);
    wire_->in.reserve(most);
  }

  Wire& wire() { return *wire_; }
  // Runs the connection until it waits.
  void Run(unsigned events = IoTask::kReadable | IoTask::kWritable) {
    do {
      connection_->Run(events, now_);
    } while (runner_->TakeWanted());
  }
  void Say(std::string_view bytes) {
    wire_->in += bytes;
    Run();
  }
  void EndSaying() {
    wire_->in_ends = true;
    Run(IoTask::kReadable | IoTask::kHalfClosed);
  }
  void Pass(std::chrono::milliseconds time) {
    now_ += time;
    Run(IoTask::kTime);
  }
  // Where another connection or thread has told it to.
  bool RunIfWanted() {
    if (!runner_->TakeWanted()) return false;
    Run();
    return true;
  }

 private:
  const std::shared_ptr<Wire> wire_ = std::make_shared<Wire>();
  const std::shared_ptr<OneTaskRunner> runner_ = std::make_shared<OneTaskRunner>();
  IoTask::TimePoint now_ = IoTask::TimePoint{} + std::chrono::hours(1);
  const std::shared_ptr<HttpConnection> connection_;
};

}  // namespace pawl::server

#endif  // PAWL_TESTS_SERVER_MEMORY_STREAM_H_
