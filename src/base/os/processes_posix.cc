// posix_spawn, which needs no copy of a large process's page tables.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "src/base/os/files.h"
#include "src/base/os/processes.h"
#include "src/base/os/started_groups.h"

#if defined(__linux__)
#include <sys/auxv.h>
#endif

extern char** environ;  // NOLINT: POSIX has it so

namespace pawl::os {
namespace {

// What a child's status says.
int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

void Redirect(posix_spawn_file_actions_t& actions, int file, int to) {
  if (file >= 0) ::posix_spawn_file_actions_adddup2(&actions, file, to);
  if (file == kNothing) {
    ::posix_spawn_file_actions_addopen(&actions, to, "/dev/null", to == 0 ? O_RDONLY : O_WRONLY, 0);
  }
}

}  // namespace

ProcessId ThisProcess() { return ::getpid(); }

std::vector<std::string> BeginProgram(int argc, char** argv) { return {argv, argv + argc}; }

std::string FindProgram(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    std::string file = std::string(rest.substr(0, end)) + "/" + name;
    if (MayRun(file)) return file;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

std::string ThisProgram() {
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (length > 0 && static_cast<size_t>(length) < buffer.size()) {
    return {buffer.data(), static_cast<size_t>(length)};
  }
#if defined(__linux__)
  // Where /proc is not there: the name that the program was started by.
  const auto* name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (name != nullptr && *name == '/') return name;
#endif
  return {};
}

std::vector<std::string> EnvironmentVariables() {
  std::vector<std::string> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) variables.emplace_back(*at);
  return variables;
}

std::optional<Pipe> MakePipe() {
  int ends[2];
#if defined(__linux__)
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
#else
  if (::pipe(ends) != 0) return std::nullopt;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
  return Pipe{ends[0], ends[1]};
}

std::optional<Pipe> MakeSendPipe() {
  int ends[2];
#if defined(__linux__)
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
#else
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return std::nullopt;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
  return Pipe{ends[1], ends[0]};
}

int64_t SendTo(int file, const char* from, size_t bytes) {
  while (true) {
    const ssize_t sent = ::send(file, from, bytes, MSG_NOSIGNAL);
    if (sent >= 0 || errno != EINTR) return sent;
  }
}

void EndSending(int file) { ::shutdown(file, SHUT_WR); }

// SIGPIPE belongs to the whole process: it is blocked in this thread, and taken back if it came.
int64_t WriteQuietly(int file, const char* from, size_t bytes) {
  sigset_t pipe, old, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe, &old);
  ssize_t written = 0;
  do {
    written = ::write(file, from, bytes);
  } while (written < 0 && errno == EINTR);
  const int error = errno;
  if (written < 0 && error == EPIPE && !was_pending) {
#if defined(__APPLE__)
    int taken = 0;
    ::sigwait(&pipe, &taken);
#else
    const timespec none = {};
    ::sigtimedwait(&pipe, nullptr, &none);
#endif
  }
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  errno = error;
  return written;
}

void DoNotWait(int file) { ::fcntl(file, F_SETFL, O_NONBLOCK); }

int WaitUntilReady(std::span<Ready> files, int milliseconds) {
  std::vector<pollfd> polled;
  polled.reserve(files.size());
  for (const Ready& one : files) {
    polled.push_back({one.file, static_cast<short>(one.to_write ? POLLOUT : POLLIN), 0});
  }
  const int ready = ::poll(polled.data(), static_cast<nfds_t>(polled.size()), milliseconds);
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].ready = ready > 0 && files[i].file >= 0 && polled[i].revents != 0;
  }
  return ready < 0 && errno == EINTR ? 0 : ready;
}

std::vector<std::string> ShellWords(const std::string& command) {
  return {"/bin/sh", "-c", "exec " + command};
}

int StartProgram(const Program& program, ProcessId& child) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  Redirect(actions, program.in, STDIN_FILENO);
  Redirect(actions, program.out, STDOUT_FILENO);
  Redirect(actions, program.err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  int flags = 0;
  if (program.leads_group) {
    ::posix_spawnattr_setpgroup(&attributes, 0);
    flags |= POSIX_SPAWN_SETPGROUP;
  }
  std::optional<StartScope> starting;
  if (program.ends_with_us) {
    starting.emplace();
    ::posix_spawnattr_setsigmask(&attributes, static_cast<const sigset_t*>(starting->mask()));
    flags |= POSIX_SPAWN_SETSIGMASK;
  }
  if (program.blocks_no_signal) {
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    flags |= POSIX_SPAWN_SETSIGMASK;
  }
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
  std::vector<char*> arguments;
  for (const std::string& word : program.arguments) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t pid = -1;
  int error = ECANCELED;
  if (!starting || !starting->ending()) {
    error = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  }
  if (error == 0 && starting) starting->Started(pid);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  child = pid;
  return error;
}

ProcessId Fork() { return ::fork(); }

void ExitAtOnce(int code) { ::_exit(code); }

void AskToEnd(ProcessId child) { ::kill(child, SIGTERM); }
void End(ProcessId child) { ::kill(child, SIGKILL); }
void EndGroup(ProcessId child) { ::kill(-child, SIGKILL); }

int WaitForEnd(ProcessId child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return CodeOf(status);
}

std::optional<int> EndedWith(ProcessId child) {
  int status = 0;
  const pid_t ended = ::waitpid(child, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  return ended < 0 ? -1 : CodeOf(status);
}

double ProcessorSeconds([[maybe_unused]] ProcessId child) {
#if defined(__linux__)
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
#else
  return 0;
#endif
}

}  // namespace pawl::os
