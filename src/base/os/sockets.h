// Sockets of TCP, none of which makes its caller wait, and one place to wait for all of them.
//
//   int port = 0;
//   const int listener = os::ListenAt("127.0.0.1", 0, 1024, port);
//   os::SocketWaiter waiter;
//   if (listener < 0 || !waiter.Open() || !waiter.Add(listener, &task)) return errno;
//   std::array<os::SocketWaiter::Told, 64> told;
//   const int count = waiter.Wait(told, 50);
//
// A call that fails returns -1 or false, and errno says why. EAGAIN: not now.
#ifndef PAWL_SRC_BASE_OS_SOCKETS_H_
#define PAWL_SRC_BASE_OS_SOCKETS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace pawl::os {

inline constexpr int kNoAddress = -2;
// A socket that takes connections, and its port; port 0: any that is free. kNoAddress: the host is
// no address in digits.
int ListenAt(const std::string& host, int port, int backlog, int& bound);

struct Accepted {
  int socket = -1;
  std::array<char, 64> from{};  // the address in digits
};
// The next that waits. What is sent goes out at once. EINTR, ECONNABORTED: another may wait.
Accepted AcceptNext(int listener) noexcept;
// 0: the other side sends no more.
int64_t Receive(int socket, char* to, size_t bytes) noexcept;
// No signal when the other side is gone.
int64_t SendSome(int socket, const char* from, size_t bytes) noexcept;
// The other side sees the end; it may still send.
void EndSendingOn(int socket) noexcept;
void CloseSocket(int socket) noexcept;

// Tells once when a socket becomes ready (edges): who is told reads or writes until EAGAIN. What
// was ready when it was added is told, too. A socket that is closed is told of no more.
class SocketWaiter {
 public:
  enum Event : unsigned {
    kReadable = 1,
    kWritable = 2,
    kHalfClosed = 4,  // the other side sends no more
    kGone = 8,        // the other side is not there any more
  };
  struct Told {
    void* who = nullptr;
    unsigned events = 0;
  };

  SocketWaiter();
  ~SocketWaiter();
  SocketWaiter(const SocketWaiter&) = delete;
  SocketWaiter& operator=(const SocketWaiter&) = delete;

  bool Open();
  // From any thread, also while another one waits.
  bool Add(int socket, void* who) noexcept;
  // How many were told: 0 when the time is over or Wake was called. One thread at a time.
  int Wait(std::span<Told> told, int milliseconds) noexcept;
  // From any thread: the one that waits, or the next one that does, returns.
  void Wake() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_SOCKETS_H_
