// Sockets of Windows. WSAEventSelect tells edges as epoll does: of what can be read again after
// each call that reads, of what can be written after one that was refused. All sockets of a waiter
// set one event; when it is set each of them is asked what has happened. That takes time for each
// socket, which some hundred connections do not feel. Sockets fit into an int: only 32 bits of
// handles mean something.
//
// Windows knows neither which sockets were closed, nor who was to be told of them. So those that
// are waited for stand in a table until CloseSocket.
#include <winsock2.h>
// After it: they need its types.
#include <windows.h>
#include <ws2tcpip.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/os/sockets.h"

namespace pawl::os {
namespace {

SOCKET SocketOf(int socket) { return static_cast<SOCKET>(static_cast<unsigned>(socket)); }

// Sets errno from WSAGetLastError.
void KeepSocketError() {
  switch (::WSAGetLastError()) {
    case WSAEWOULDBLOCK:
      errno = EAGAIN;
      break;
    case WSAEINTR:
      errno = EINTR;
      break;
    case WSAECONNRESET:
    case WSAECONNABORTED:
      errno = ECONNABORTED;
      break;
    case WSAEADDRINUSE:
      errno = EADDRINUSE;
      break;
    case WSAEADDRNOTAVAIL:
      errno = EADDRNOTAVAIL;
      break;
    case WSAEACCES:
      errno = EACCES;
      break;
    case WSAEMFILE:
      errno = EMFILE;
      break;
    case WSAENOBUFS:
      errno = ENOMEM;
      break;
    default:
      errno = EIO;
  }
}

bool StartSockets() {
  static const bool started = [] {
    WSADATA data{};
    return ::WSAStartup(MAKEWORD(2, 2), &data) == 0;
  }();
  if (!started) errno = EIO;
  return started;
}

struct Waiting {
  const void* waiter = nullptr;
  void* who = nullptr;
};
std::mutex waiting_mutex;
std::map<int, Waiting>& WaitingSockets() {
  static auto& sockets = *new std::map<int, Waiting>();
  return sockets;
}

unsigned SocketEvents(const WSANETWORKEVENTS& found) {
  unsigned what = 0;
  if ((found.lNetworkEvents & (FD_READ | FD_ACCEPT)) != 0) what |= SocketWaiter::kReadable;
  if ((found.lNetworkEvents & FD_WRITE) != 0) what |= SocketWaiter::kWritable;
  if ((found.lNetworkEvents & FD_CLOSE) != 0) {
    what |= SocketWaiter::kReadable |
            (found.iErrorCode[FD_CLOSE_BIT] == 0 ? SocketWaiter::kHalfClosed : SocketWaiter::kGone);
  }
  return what;
}

}  // namespace

int ListenAt(const std::string& host, int port, int backlog, int& bound) {
  if (!StartSockets()) return -1;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return kNoAddress;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> address(
      found, [](addrinfo* one) { ::freeaddrinfo(one); });
  const SOCKET made = ::WSASocketW(found->ai_family, SOCK_STREAM, IPPROTO_TCP, nullptr, 0,
                                   WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
  sockaddr_storage at{};
  int size = sizeof at;
  u_long no_wait = 1;
  const BOOL alone = TRUE;  // SO_REUSEADDR would let others take the port as well
  if (made == INVALID_SOCKET || ::ioctlsocket(made, static_cast<long>(FIONBIO), &no_wait) != 0 ||
      ::setsockopt(made, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, reinterpret_cast<const char*>(&alone),
                   sizeof alone) != 0 ||
      ::bind(made, found->ai_addr, static_cast<int>(found->ai_addrlen)) != 0 ||
      ::listen(made, backlog) != 0 ||
      ::getsockname(made, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    KeepSocketError();
    if (made != INVALID_SOCKET) ::closesocket(made);
    return -1;
  }
  bound = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&at)->sin6_port
                                         : reinterpret_cast<sockaddr_in*>(&at)->sin_port);
  return static_cast<int>(made);
}

Accepted AcceptNext(int listener) noexcept {
  sockaddr_storage from{};
  int size = sizeof from;
  Accepted accepted;
  const SOCKET made = ::accept(SocketOf(listener), reinterpret_cast<sockaddr*>(&from), &size);
  if (made == INVALID_SOCKET) {
    KeepSocketError();
    return accepted;
  }
  // It has the listener's event, which is told of no other socket's affairs.
  u_long no_wait = 1;
  ::WSAEventSelect(made, nullptr, 0);
  if (::ioctlsocket(made, static_cast<long>(FIONBIO), &no_wait) != 0) {
    ::closesocket(made);
    errno = ECONNABORTED;
    return accepted;
  }
  ::SetHandleInformation(reinterpret_cast<HANDLE>(made), HANDLE_FLAG_INHERIT, 0);
  const BOOL yes = TRUE;
  ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&yes), sizeof yes);
  const void* const address =
      from.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(from).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(from).sin_addr;
  if (::inet_ntop(from.ss_family, address, accepted.from.data(), accepted.from.size()) == nullptr) {
    accepted.from[0] = '\0';
  }
  accepted.socket = static_cast<int>(made);
  return accepted;
}

int64_t Receive(int socket, char* to, size_t bytes) noexcept {
  const auto most = static_cast<int>(std::min<size_t>(bytes, size_t{1} << 30));
  const int got = ::recv(SocketOf(socket), to, most, 0);
  if (got < 0) KeepSocketError();
  return got;
}

int64_t SendSome(int socket, const char* from, size_t bytes) noexcept {
  const auto most = static_cast<int>(std::min<size_t>(bytes, size_t{1} << 30));
  const int sent = ::send(SocketOf(socket), from, most, 0);
  if (sent < 0) KeepSocketError();
  return sent;
}

void EndSendingOn(int socket) noexcept { ::shutdown(SocketOf(socket), SD_SEND); }

void CloseSocket(int socket) noexcept {
  {
    const std::lock_guard lock(waiting_mutex);
    WaitingSockets().erase(socket);
  }
  ::closesocket(SocketOf(socket));
}

struct SocketWaiter::State {
  HANDLE changed = nullptr;
  int next = -1;  // where the walk goes on, so that each is asked in its turn
};

SocketWaiter::SocketWaiter() = default;

SocketWaiter::~SocketWaiter() {
  if (state_ == nullptr) return;
  const std::lock_guard lock(waiting_mutex);
  std::erase_if(WaitingSockets(),
                [&](const auto& entry) { return entry.second.waiter == state_.get(); });
  if (state_->changed != nullptr) ::CloseHandle(state_->changed);
}

bool SocketWaiter::Open() {
  state_ = std::make_unique<State>();
  state_->changed = ::CreateEventW(nullptr, FALSE, FALSE, nullptr);
  if (state_->changed == nullptr) errno = ENOMEM;
  return state_->changed != nullptr;
}

bool SocketWaiter::Add(int socket, void* who) noexcept {
  const std::lock_guard lock(waiting_mutex);
  try {
    WaitingSockets()[socket] = {state_.get(), who};
  } catch (...) {
    errno = ENOMEM;
    return false;
  }
  constexpr long kAll = FD_READ | FD_WRITE | FD_ACCEPT | FD_CLOSE;
  if (::WSAEventSelect(SocketOf(socket), state_->changed, kAll) == 0) return true;
  KeepSocketError();
  WaitingSockets().erase(socket);
  return false;
}

int SocketWaiter::Wait(std::span<Told> told, int milliseconds) noexcept {
  const auto time = static_cast<DWORD>(milliseconds);
  if (::WaitForSingleObject(state_->changed, time) != WAIT_OBJECT_0) return 0;
  const std::lock_guard lock(waiting_mutex);
  const std::map<int, Waiting>& sockets = WaitingSockets();
  size_t filled = 0;
  auto at = sockets.upper_bound(state_->next);
  for (size_t asked = 0; asked < sockets.size(); ++asked, ++at) {
    if (at == sockets.end()) at = sockets.begin();
    if (at->second.waiter != state_.get()) continue;
    if (filled == told.size()) {
      ::SetEvent(state_->changed);  // the rest is asked next time
      break;
    }
    WSANETWORKEVENTS found{};
    if (::WSAEnumNetworkEvents(SocketOf(at->first), nullptr, &found) != 0) continue;
    state_->next = at->first;
    if (const unsigned what = SocketEvents(found); what != 0)
      told[filled++] = {at->second.who, what};
  }
  return static_cast<int>(filled);
}

void SocketWaiter::Wake() noexcept { ::SetEvent(state_->changed); }

}  // namespace pawl::os
