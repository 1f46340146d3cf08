// Sockets of POSIX. Linux waits with epoll; macOS and the BSDs have kqueue, which tells edges with
// EV_CLEAR and has no flag of accept for what a new socket is to be.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#else
#include <sys/event.h>
#include <sys/time.h>
#endif

#include <algorithm>
#include <cerrno>

#include "src/base/os/sockets.h"

namespace pawl::os {
namespace {

constexpr int kYes = 1;

#if defined(__linux__)
constexpr int kSendFlags = MSG_NOSIGNAL;

int MakeSocket(int family) {
  return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}
int AcceptOne(int listener, sockaddr* from, socklen_t* size) {
  return ::accept4(listener, from, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
#else
constexpr int kSendFlags = 0;

// A socket that does not wait, is not passed on, and whose other side may go without a signal.
int Prepared(int socket) {
  if (socket < 0) return socket;
  if (::fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 &&
      ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK) == 0 &&
      ::setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &kYes, sizeof kYes) == 0) {
    return socket;
  }
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}
int MakeSocket(int family) { return Prepared(::socket(family, SOCK_STREAM, 0)); }
int AcceptOne(int listener, sockaddr* from, socklen_t* size) {
  return Prepared(::accept(listener, from, size));
}
#endif

void CloseKept(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

}  // namespace

int ListenAt(const std::string& host, int port, int backlog, int& bound) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return kNoAddress;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> address(found, ::freeaddrinfo);
  int listener = MakeSocket(found->ai_family);
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (listener < 0 || ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes) != 0 ||
      ::bind(listener, found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(listener, backlog) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    const int error = errno;
    CloseKept(listener);
    errno = error;
    return -1;
  }
  bound = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&at)->sin6_port
                                         : reinterpret_cast<sockaddr_in*>(&at)->sin_port);
  return listener;
}

Accepted AcceptNext(int listener) noexcept {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  Accepted accepted;
  accepted.socket = AcceptOne(listener, reinterpret_cast<sockaddr*>(&from), &size);
  if (accepted.socket < 0) return accepted;
  const void* const address =
      from.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(from).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(from).sin_addr;
  if (::inet_ntop(from.ss_family, address, accepted.from.data(), accepted.from.size()) == nullptr) {
    accepted.from[0] = '\0';
  }
  ::setsockopt(accepted.socket, IPPROTO_TCP, TCP_NODELAY, &kYes, sizeof kYes);
  return accepted;
}

int64_t Receive(int socket, char* to, size_t bytes) noexcept {
  return ::recv(socket, to, bytes, 0);
}
int64_t SendSome(int socket, const char* from, size_t bytes) noexcept {
  return ::send(socket, from, bytes, kSendFlags);
}
void EndSendingOn(int socket) noexcept { ::shutdown(socket, SHUT_WR); }
void CloseSocket(int socket) noexcept { ::close(socket); }

SocketWaiter::SocketWaiter() = default;

#if defined(__linux__)

struct SocketWaiter::State {
  int epoll = -1, wake = -1;
  ~State() {
    CloseKept(wake);
    CloseKept(epoll);
  }
};

bool SocketWaiter::Open() {
  state_ = std::make_unique<State>();
  state_->epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (state_->epoll < 0) return false;
  state_->wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  return state_->wake >= 0 && ::epoll_ctl(state_->epoll, EPOLL_CTL_ADD, state_->wake, &event) == 0;
}

bool SocketWaiter::Add(int socket, void* who) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = who;
  return ::epoll_ctl(state_->epoll, EPOLL_CTL_ADD, socket, &event) == 0;
}

int SocketWaiter::Wait(std::span<Told> told, int milliseconds) noexcept {
  std::array<epoll_event, 64> events;
  const auto most = static_cast<int>(std::min(events.size(), told.size()));
  const int count = ::epoll_wait(state_->epoll, events.data(), most, milliseconds);
  int filled = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.ptr == nullptr) {
      uint64_t ignored;
      [[maybe_unused]] const auto n = ::read(state_->wake, &ignored, sizeof ignored);
      continue;
    }
    unsigned what = 0;
    if ((event.events & EPOLLIN) != 0) what |= kReadable;
    if ((event.events & EPOLLOUT) != 0) what |= kWritable;
    if ((event.events & EPOLLRDHUP) != 0) what |= kHalfClosed;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) what |= kGone;
    told[static_cast<size_t>(filled++)] = {event.data.ptr, what};
  }
  return filled;
}

void SocketWaiter::Wake() noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(state_->wake, &one, sizeof one);
}

#else

struct SocketWaiter::State {
  int queue = -1;
  ~State() { CloseKept(queue); }
};

bool SocketWaiter::Open() {
  state_ = std::make_unique<State>();
  state_->queue = ::kqueue();
  if (state_->queue < 0 || ::fcntl(state_->queue, F_SETFD, FD_CLOEXEC) != 0) return false;
  struct kevent wake {};
  EV_SET(&wake, 0, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, nullptr);
  return ::kevent(state_->queue, &wake, 1, nullptr, 0, nullptr) == 0;
}

bool SocketWaiter::Add(int socket, void* who) noexcept {
  std::array<struct kevent, 2> changes{};
  const auto at = static_cast<uintptr_t>(socket);
  EV_SET(&changes[0], at, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, who);
  EV_SET(&changes[1], at, EVFILT_WRITE, EV_ADD | EV_CLEAR, 0, 0, who);
  // A socket that takes connections is never ready to write, and some systems refuse to watch that.
  if (::kevent(state_->queue, changes.data(), 1, nullptr, 0, nullptr) != 0) return false;
  return ::kevent(state_->queue, &changes[1], 1, nullptr, 0, nullptr) == 0 || errno == EINVAL;
}

int SocketWaiter::Wait(std::span<Told> told, int milliseconds) noexcept {
  std::array<struct kevent, 64> events;
  const auto most = static_cast<int>(std::min(events.size(), told.size()));
  timespec time{};
  time.tv_sec = milliseconds / 1000;
  time.tv_nsec = milliseconds % 1000 * 1'000'000L;
  const int count = ::kevent(state_->queue, nullptr, 0, events.data(), most, &time);
  int filled = 0;
  for (int i = 0; i < count; ++i) {
    const struct kevent& event = events[static_cast<size_t>(i)];
    if (event.udata == nullptr) continue;
    const bool reads = event.filter == EVFILT_READ;
    unsigned what = reads ? kReadable : kWritable;
    // At the end of what can be written the other side is gone; at the end of what can be read it
    // may still read.
    if ((event.flags & EV_EOF) != 0) what |= reads && event.fflags == 0 ? kHalfClosed : kGone;
    if ((event.flags & EV_ERROR) != 0) what |= kGone;
    told[static_cast<size_t>(filled++)] = {event.udata, what};
  }
  return filled;
}

void SocketWaiter::Wake() noexcept {
  struct kevent wake {};
  EV_SET(&wake, 0, EVFILT_USER, 0, NOTE_TRIGGER, 0, nullptr);
  ::kevent(state_->queue, &wake, 1, nullptr, 0, nullptr);
}

#endif

SocketWaiter::~SocketWaiter() = default;

}  // namespace pawl::os
