// Pipes without blocking: a server that stops to read or to write costs the time limit and nothing
// more. The child leads a process group of its own, so that what it starts ends with it.
#include "plugins/monitors/lsp/process.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "src/base/os/files.h"
#include "src/base/os/processes.h"

namespace pawl::monitors {
namespace {

constexpr size_t kMostBytes = size_t{32} << 20;  // of a message
constexpr size_t kMostHeader = 4096;

}  // namespace

Result<std::unique_ptr<LspProcess>> LspProcess::Start(const std::string& command) {
  const auto failed = [&](int error) {
    return Error{ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(error),
                 command};
  };
  const std::optional<os::Pipe> to = os::MakePipe();
  if (!to) return failed(errno);
  const std::optional<os::Pipe> from = os::MakePipe();
  if (!from) {
    const int error = errno;
    os::CloseFile(to->read);
    os::CloseFile(to->write);
    return failed(error);
  }
  const os::Program shell = {.arguments = os::ShellWords(command),
                             .in = to->read,
                             .out = from->write,
                             .err = os::kNothing,
                             .leads_group = true,
                             .blocks_no_signal = true};
  os::ProcessId child = 0;
  const int error = os::StartProgram(shell, child);
  os::CloseFile(to->read);
  os::CloseFile(from->write);
  if (error != 0) {
    os::CloseFile(to->write);
    os::CloseFile(from->read);
    return failed(error);
  }
  os::DoNotWait(to->write);
  os::DoNotWait(from->read);
  return std::unique_ptr<LspProcess>(new LspProcess(child, to->write, from->read));
}

LspProcess::~LspProcess() {
  os::CloseFile(in_);
  os::CloseFile(out_);
  os::EndGroup(child_);
  os::WaitForEnd(child_);
}

bool LspProcess::Wait(int file, bool to_write, LspClock::time_point deadline) const {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - LspClock::now()).count();
    os::Ready wanted{.file = file, .to_write = to_write};
    const int ready =
        os::WaitUntilReady({&wanted, 1}, static_cast<int>(std::clamp<int64_t>(left, 0, 60000)));
    if (ready > 0) return true;
    if (ready < 0) return false;
    if (LspClock::now() >= deadline) return false;
  }
}

bool LspProcess::Send(const nlohmann::json& message, LspClock::time_point deadline) {
  const std::string body = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string text = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  size_t at = 0;
  while (at < text.size()) {
    const int64_t written = os::WriteQuietly(in_, text.data() + at, text.size() - at);
    if (written > 0) {
      at += static_cast<size_t>(written);
    } else if (written < 0 && errno == EAGAIN && Wait(in_, true, deadline)) {
      continue;
    } else {
      // Half a message cannot be taken back.
      dead_ = true;
      return false;
    }
  }
  return true;
}

nlohmann::json ParseMessage(std::string_view text) {
  constexpr int kMostNesting = 500;
  bool deep = false;
  // What is deeper is not made at all: copies and ends of values are recursive.
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t /*event*/,
                           nlohmann::json& /*value*/) {
    deep = deep || depth > kMostNesting;
    return depth <= kMostNesting;
  };
  nlohmann::json value = nlohmann::json::parse(text, shallow, false);
  return deep ? nlohmann::json(nlohmann::json::value_t::discarded) : value;
}

// The message at the beginning of the buffer, when it is whole.
std::optional<nlohmann::json> LspProcess::Parse() {
  const std::string_view text = std::string_view(buffer_).substr(begin_);
  const size_t head = text.find("\r\n\r\n");
  if (head == std::string_view::npos) {
    if (text.size() > kMostHeader) dead_ = true;
    return std::nullopt;
  }
  std::string header(text.substr(0, head));
  std::transform(header.begin(), header.end(), header.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string_view name = "content-length:";
  const size_t at = header.find(name);
  const size_t size =
      at == std::string::npos ? 0 : std::strtoull(header.c_str() + at + name.size(), nullptr, 10);
  if (head > kMostHeader || size == 0 || size > kMostBytes) {
    dead_ = true;
    return std::nullopt;
  }
  if (text.size() - head - 4 < size) return std::nullopt;
  nlohmann::json message = ParseMessage(text.substr(head + 4, size));
  begin_ += head + 4 + size;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  }
  if (!message.is_object()) {
    dead_ = true;
    return std::nullopt;
  }
  return message;
}

std::optional<nlohmann::json> LspProcess::Receive(LspClock::time_point deadline) {
  while (!dead_) {
    if (auto message = Parse()) return message;
    if (dead_) break;
    if (begin_ > 0) {
      buffer_.erase(0, begin_);
      begin_ = 0;
    }
    if (!Wait(out_, false, deadline)) return std::nullopt;
    char piece[1 << 16];
    const int64_t got = os::Read(out_, piece, sizeof piece);
    if (got > 0) {
      buffer_.append(piece, static_cast<size_t>(got));
    } else if (got == 0 || errno != EAGAIN) {
      dead_ = true;
    }
  }
  return std::nullopt;
}

}  // namespace pawl::monitors
