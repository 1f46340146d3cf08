// The language server protocol on stdin and stdout: messages as JSON, read by a thread of its own,
// so that a request can be cancelled while another one is answered.
//
//   LspWire wire;
//   for (;;) {
//     LspWire::Message message = wire.Next();
//     if (message.kind == LspWire::Kind::kEnd) break;
//     wire.Send(Answer(message.json, wire.stop()));
//   }
//
// Thread safety: Send may be called from any thread, the rest from one.
#ifndef PAWL_SRC_CLI_LSP_WIRE_H_
#define PAWL_SRC_CLI_LSP_WIRE_H_
#ifdef PAWL_HAVE_MONITORS

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

namespace pawl::cli {

using LspJson = nlohmann::json;

inline constexpr int kLspParseError = -32700, kLspInvalidRequest = -32600,
                     kLspMethodNotFound = -32601, kLspInvalidParams = -32602,
                     kLspNotInitialized = -32002, kLspCancelled = -32800;

// Of an object, else nothing, or an empty text.
const LspJson& LspAt(const LspJson& object, const char* key);
std::string LspText(const LspJson& object, const char* key);
// A line or a column: in LSP a whole number from 0 to 2^31 - 1.
std::optional<int64_t> LspNumber(const LspJson& object, const char* key);

class LspWire {
 public:
  enum class Kind {
    kMessage,
    kBroken,  // what came is no JSON
    kWrong,   // it is, but no message of JSON-RPC 2.0; `problem`: why
    kEnd      // `problem`: why, empty at the end of the input
  };
  struct Message {
    Kind kind = Kind::kMessage;
    LspJson json = nullptr;
    std::string problem = {};
    size_t bytes = 0;
    std::string id = {};  // of a request, as JSON
  };

  LspWire();
  // Ends the reader. REQUIRES: a message "exit", or the end of the input, has come.
  ~LspWire();
  LspWire(const LspWire&) = delete;
  LspWire& operator=(const LspWire&) = delete;

  // Waits for the next one. A request is under way till the next call. Requests that were cancelled
  // before their turn have been answered already.
  Message Next();
  // Set where the request under way is cancelled.
  const std::atomic<bool>* stop() const { return &stop_; }
  void Send(const LspJson& message);
  void SendError(const LspJson& id, int code, const std::string& text);

 private:
  std::optional<std::string> Receive(std::string& problem) const;
  void Read();
  void Push(Message message);
  void Cancel(const LspJson& id);

  std::mutex mutex_;
  std::condition_variable more_, less_;
  std::deque<Message> waiting_;
  size_t waiting_bytes_ = 0;
  std::string under_way_;  // the id
  std::atomic<bool> stop_{false};
  std::mutex sending_;
  std::thread reader_;
};

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
#endif  // PAWL_SRC_CLI_LSP_WIRE_H_
