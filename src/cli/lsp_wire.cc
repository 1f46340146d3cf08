// The framing of the protocol: headers, an empty line, JSON. The reader keeps messages in a queue
// of at most 64 MiB and one message; when it is full, the client has to wait. Behind what is no
// frame nothing can be read any more, so the input ends there.
#ifdef PAWL_HAVE_MONITORS
#include "src/cli/lsp_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "plugins/monitors/lsp/process.h"
#include "src/cli/command.h"

namespace pawl::cli {
namespace {

constexpr size_t kMaxMessage = size_t{64} << 20;
constexpr size_t kMostWaitingBytes = size_t{64} << 20;
constexpr size_t kMostHeader = 4096;

}  // namespace

const LspJson& LspAt(const LspJson& object, const char* key) {
  static const LspJson kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string LspText(const LspJson& object, const char* key) {
  const LspJson& value = LspAt(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<int64_t> LspNumber(const LspJson& object, const char* key) {
  const LspJson& value = LspAt(object, key);
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(number >= 0 && number <= std::numeric_limits<int32_t>::max())) return std::nullopt;
  if (number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

LspWire::LspWire() : reader_([this] { Read(); }) {}

LspWire::~LspWire() { reader_.join(); }

LspWire::Message LspWire::Next() {
  std::unique_lock lock(mutex_);
  under_way_.clear();
  more_.wait(lock, [&] { return !waiting_.empty(); });
  Message message = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= message.bytes;
  under_way_ = message.id;
  stop_ = false;
  less_.notify_one();
  return message;
}

void LspWire::Push(Message message) {
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] {
    return waiting_.empty() || waiting_bytes_ + message.bytes <= kMostWaitingBytes;
  });
  waiting_bytes_ += message.bytes;
  waiting_.push_back(std::move(message));
  more_.notify_one();
}

void LspWire::Cancel(const LspJson& id) {
  const std::string key = id.dump(-1, ' ', false, LspJson::error_handler_t::replace);
  LspJson waiting = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (under_way_ == key) stop_ = true;
    const auto found = std::ranges::find(waiting_, key, &Message::id);
    if (found == waiting_.end()) return;
    waiting = found->json["id"];
    waiting_bytes_ -= found->bytes;
    waiting_.erase(found);
    less_.notify_one();
  }
  SendError(waiting, kLspCancelled, "the request was cancelled");
}

namespace {

// An id is a string or a whole number. Numbers beyond 64 bits are read as fractions, and an answer
// could not repeat them.
bool IsId(const LspJson& id) { return id.is_string() || id.is_number_integer(); }

// What is wrong with a message by JSON-RPC 2.0; empty: nothing.
std::string ProblemOf(const LspJson& message) {
  if (LspText(message, "jsonrpc") != "2.0") return "\"jsonrpc\" must be \"2.0\"";
  const bool answer = message.contains("result") || message.contains("error");
  // The answer to a message whose id was not read has a null.
  if (message.contains("id") && !IsId(message["id"]) && !(answer && message["id"].is_null()))
    return "\"id\" must be a string or a whole number of at most 64 bits";
  if (message.contains("method") ? !message["method"].is_string() : !answer)
    return "\"method\" must be a string";
  return "";
}

}  // namespace

void LspWire::Read() {
  for (;;) {
    std::string problem;
    std::optional<std::string> text = Receive(problem);
    if (!text) return Push({.kind = Kind::kEnd, .problem = std::move(problem)});
    Message message{.bytes = text->size() + 1};
    message.json = monitors::ParseMessage(*text);
    text.reset();
    if (!message.json.is_object()) {
      const bool json = !message.json.is_discarded();
      message = {.kind = json ? Kind::kWrong : Kind::kBroken, .bytes = 1};
      message.problem = json ? "a message must be a JSON object, not an array or a value" : "";
    } else if (std::string problem_of = ProblemOf(message.json); !problem_of.empty()) {
      message.kind = Kind::kWrong;
      message.problem = std::move(problem_of);
    } else {
      const std::string method = LspText(message.json, "method");
      if (method == "$/cancelRequest") {
        Cancel(LspAt(LspAt(message.json, "params"), "id"));
        continue;
      }
      if (!method.empty() && message.json.contains("id"))
        message.id = message.json["id"].dump(-1, ' ', false, LspJson::error_handler_t::replace);
      if (method == "exit") return Push(std::move(message));
    }
    Push(std::move(message));
  }
}

std::optional<std::string> LspWire::Receive(std::string& problem) const {
  size_t length = 0;
  bool measured = false;
  std::string line;
  for (;;) {
    const int c = std::getchar();
    if (c == EOF) return std::nullopt;
    if (c != '\n') {
      line += static_cast<char>(c);
      if (line.size() > kMostHeader) {
        problem = fmt::format("a header of a message has more than {} bytes", kMostHeader);
        return std::nullopt;
      }
      continue;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) break;
    std::string name = line.substr(0, line.find(':'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char ch) { return std::tolower(ch); });
    if (name == "content-length") {
      const size_t first = line.find_first_not_of(" \t", name.size() + 1);
      const char* const digits = line.c_str() + std::min(first, line.size());
      const char* const end = line.c_str() + line.size();
      const auto [stop, error] = std::from_chars(digits, end, length);
      measured = error == std::errc() && stop == end;
      if (!measured) {
        problem = "Content-Length must be a number of bytes: " + line.substr(0, 100);
        return std::nullopt;
      }
    }
    line.clear();
  }
  if (!measured) {
    problem = "a message has no Content-Length";
    return std::nullopt;
  }
  if (length > kMaxMessage) {
    problem = fmt::format("a message has {} bytes; the limit is {}", length, kMaxMessage);
    return std::nullopt;
  }
  std::string message(length, '\0');
  if (std::fread(message.data(), 1, length, stdin) != length) {
    problem = "the input ends inside a message";
    return std::nullopt;
  }
  return message;
}

void LspWire::Send(const LspJson& message) {
  const std::string text = message.dump(-1, ' ', false, LspJson::error_handler_t::replace);
  const std::lock_guard lock(sending_);
  Print(fmt::format("Content-Length: {}\r\n\r\n{}", text.size(), text));
  (void)FlushOutput();
  std::fflush(stdout);
}

void LspWire::SendError(const LspJson& id, int code, const std::string& text) {
  Send({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", text}}}});
}

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
