// Pipes without blocking: a server that stops to read or to write costs the time limit and nothing
// more. The child leads a process group of its own, so that what it starts ends with it.
#include "plugins/monitors/lsp/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

extern char** environ;

namespace pawl::monitors {
namespace {

constexpr size_t kMostBytes = size_t{32} << 20;  // of a message
constexpr size_t kMostHeader = 4096;

// A write to a pipe that nobody reads raises SIGPIPE, which belongs to the whole process: it is
// blocked in this thread, and taken back if it came.
ssize_t WriteQuietly(int file, const char* data, size_t size) {
  sigset_t pipe, old, pending;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::sigpending(&pending);
  const bool was_pending = ::sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe, &old);
  const ssize_t written = ::write(file, data, size);
  const int error = errno;
  if (written < 0 && error == EPIPE && !was_pending) {
    const timespec none = {};
    ::sigtimedwait(&pipe, nullptr, &none);
  }
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  errno = error;
  return written;
}

}  // namespace

Result<std::unique_ptr<LspProcess>> LspProcess::Start(const std::string& command) {
  int to[2], from[2];
  const auto failed = [&](int error) {
    return Error{ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(error),
                 command};
  };
  if (::pipe2(to, O_CLOEXEC) != 0) return failed(errno);
  if (::pipe2(from, O_CLOEXEC) != 0) {
    const int error = errno;
    ::close(to[0]);
    ::close(to[1]);
    return failed(error);
  }
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, to[0], 0);
  ::posix_spawn_file_actions_adddup2(&files, from[1], 1);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string line = "exec " + command;
  char shell[] = "sh", option[] = "-c";
  char* arguments[] = {shell, option, line.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/bin/sh", &files, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  ::close(to[0]);
  ::close(from[1]);
  if (error != 0) {
    ::close(to[1]);
    ::close(from[0]);
    return failed(error);
  }
  ::fcntl(to[1], F_SETFL, O_NONBLOCK);
  ::fcntl(from[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<LspProcess>(new LspProcess(child, to[1], from[0]));
}

LspProcess::~LspProcess() {
  ::close(in_);
  ::close(out_);
  ::kill(-child_, SIGKILL);
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
}

bool LspProcess::Wait(int file, short events, LspClock::time_point deadline) const {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - LspClock::now()).count();
    pollfd wanted{file, events, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (LspClock::now() >= deadline) return false;
  }
}

bool LspProcess::Send(const nlohmann::json& message, LspClock::time_point deadline) {
  const std::string body = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string text = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t written = WriteQuietly(in_, text.data() + at, text.size() - at);
    if (written > 0) {
      at += static_cast<size_t>(written);
    } else if (written < 0 && errno == EINTR) {
      continue;
    } else if (written < 0 && errno == EAGAIN && Wait(in_, POLLOUT, deadline)) {
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
    if (!Wait(out_, POLLIN, deadline)) return std::nullopt;
    char piece[1 << 16];
    const ssize_t got = ::read(out_, piece, sizeof piece);
    if (got > 0) {
      buffer_.append(piece, static_cast<size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      dead_ = true;
    }
  }
  return std::nullopt;
}

}  // namespace pawl::monitors
