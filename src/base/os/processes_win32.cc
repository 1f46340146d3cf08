// CreateProcess, with a job for each child that leads a group: what it starts ends with the job.
// Windows forgets a process that has ended when its last handle is closed, so the handles of
// children stand in a table until they are waited for. Pipes cannot be waited for; they are looked
// at every millisecond.
#include <fcntl.h>
#include <io.h>
#include <windows.h>
// After it: it needs its types.
#include <shellapi.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "src/base/os/files.h"
#include "src/base/os/processes.h"
#include "src/base/os/wide_win32.h"

namespace pawl::os {
namespace {

struct Child {
  HANDLE process = nullptr, job = nullptr;
};
std::mutex children_mutex;
std::map<ProcessId, Child>& Children() {
  static auto& children = *new std::map<ProcessId, Child>();
  return children;
}

Child Find(ProcessId id) {
  const std::lock_guard lock(children_mutex);
  const auto found = Children().find(id);
  return found == Children().end() ? Child() : found->second;
}

// The exit code of a child that has ended.
int Forget(ProcessId id, const Child& child) {
  DWORD code = 0;
  const bool known = ::GetExitCodeProcess(child.process, &code) != 0;
  ::CloseHandle(child.process);
  if (child.job != nullptr) ::CloseHandle(child.job);
  const std::lock_guard lock(children_mutex);
  Children().erase(id);
  return known ? static_cast<int>(code) : -1;
}

// As the C library of the program takes it apart: quotes around words, backslashes doubled in front
// of a quote.
std::wstring CommandLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += '"';
    size_t backslashes = 0;
    for (const char c : word) {
      if (c == '"') line.append(backslashes + 1, '\\');
      backslashes = c == '\\' ? backslashes + 1 : 0;
      line += c;
    }
    line.append(backslashes, '\\');
    line += '"';
  }
  return Wide(line);
}

// A handle that the child inherits. `opened`: to be closed again.
HANDLE ForChild(int file, DWORD standard, std::vector<HANDLE>& opened) {
  if (file == kInherited) return ::GetStdHandle(standard);
  HANDLE copy = nullptr;
  if (file == kNothing) {
    SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
    copy = ::CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                         &inherited, OPEN_EXISTING, 0, nullptr);
  } else {
    const HANDLE self = ::GetCurrentProcess();
    ::DuplicateHandle(self, reinterpret_cast<HANDLE>(::_get_osfhandle(file)), self, &copy, 0, TRUE,
                      DUPLICATE_SAME_ACCESS);
  }
  opened.push_back(copy);
  return copy;
}

bool IsReady(const Ready& one) {
  if (one.to_write) return true;
  const auto handle = reinterpret_cast<HANDLE>(::_get_osfhandle(one.file));
  if (::GetFileType(handle) != FILE_TYPE_PIPE) return true;
  DWORD bytes = 0;
  return ::PeekNamedPipe(handle, nullptr, 0, nullptr, &bytes, nullptr) == 0 || bytes > 0;
}

}  // namespace

ProcessId ThisProcess() { return static_cast<ProcessId>(::GetCurrentProcessId()); }

std::vector<std::string> BeginProgram(int /*argc*/, char** /*argv*/) {
  // Names of files are UTF-8 to the C library, too. Numbers are written as ever.
  std::setlocale(LC_CTYPE, ".UTF8");
  ::_set_fmode(_O_BINARY);
  for (const int file : {0, 1, 2}) ::_setmode(file, _O_BINARY);
  std::vector<std::string> arguments;
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  for (int i = 0; words != nullptr && i < count; ++i) arguments.push_back(Narrow(words[i]));
  ::LocalFree(words);
  return arguments;
}

std::string FindProgram(const std::string& name) {
  std::array<wchar_t, 4096> buffer;
  const DWORD units = ::SearchPathW(nullptr, Wide(name).c_str(), L".exe",
                                    static_cast<DWORD>(buffer.size()), buffer.data(), nullptr);
  return units == 0 || units >= buffer.size() ? "" : Narrow({buffer.data(), units});
}

std::string ThisProgram() {
  std::array<wchar_t, 4096> buffer;
  const DWORD units =
      ::GetModuleFileNameW(nullptr, buffer.data(), static_cast<DWORD>(buffer.size()));
  if (units == 0 || units >= buffer.size()) return {};
  std::string path = Narrow({buffer.data(), units});
  for (char& c : path) {
    if (c == '\\') c = '/';
  }
  return path;
}

std::vector<std::string> EnvironmentVariables() {
  std::vector<std::string> variables;
  wchar_t* const all = ::GetEnvironmentStringsW();
  for (const wchar_t* at = all; at != nullptr && *at != L'\0';) {
    const std::wstring_view one(at);
    variables.push_back(Narrow(one));
    at += one.size() + 1;
  }
  if (all != nullptr) ::FreeEnvironmentStringsW(all);
  return variables;
}

std::optional<Pipe> MakePipe() {
  int ends[2];
  if (::_pipe(ends, 1 << 16, _O_BINARY | _O_NOINHERIT) != 0) return std::nullopt;
  return Pipe{ends[0], ends[1]};
}

// There are no signals: any pipe will do.
std::optional<Pipe> MakeSendPipe() { return MakePipe(); }
int64_t SendTo(int file, const char* from, size_t bytes) { return Write(file, from, bytes); }
int64_t WriteQuietly(int file, const char* from, size_t bytes) { return Write(file, from, bytes); }

// The descriptor stays, and leads nowhere.
void EndSending(int file) {
  const int nowhere = ::_wopen(L"NUL", _O_WRONLY | _O_BINARY | _O_NOINHERIT);
  if (nowhere < 0) return;
  ::_dup2(nowhere, file);
  ::_close(nowhere);
}

void DoNotWait(int file) {
  DWORD mode = PIPE_READMODE_BYTE | PIPE_NOWAIT;
  ::SetNamedPipeHandleState(reinterpret_cast<HANDLE>(::_get_osfhandle(file)), &mode, nullptr,
                            nullptr);
}

int WaitUntilReady(std::span<Ready> files, int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (true) {
    int count = 0;
    for (Ready& one : files) {
      one.ready = one.file >= 0 && IsReady(one);
      count += one.ready ? 1 : 0;
    }
    if (count > 0 || (milliseconds >= 0 && Clock::now() >= end)) return count;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<std::string> ShellWords(const std::string& command) {
  return {"cmd.exe", "/d", "/s", "/c", command};
}

int StartProgram(const Program& program, ProcessId& child) {
  std::vector<HANDLE> opened;
  STARTUPINFOW start{};
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = ForChild(program.in, STD_INPUT_HANDLE, opened);
  start.hStdOutput = ForChild(program.out, STD_OUTPUT_HANDLE, opened);
  start.hStdError = ForChild(program.err, STD_ERROR_HANDLE, opened);
  std::wstring line = CommandLine(program.arguments);
  PROCESS_INFORMATION made{};
  const BOOL done = ::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED,
                                     nullptr, nullptr, &start, &made);
  if (done == 0) KeepLastError();
  for (const HANDLE handle : opened) ::CloseHandle(handle);
  if (done == 0) return errno;
  Child one{made.hProcess, nullptr};
  if (program.leads_group) {
    one.job = ::CreateJobObjectW(nullptr, nullptr);
    if (one.job != nullptr && program.ends_with_us) {
      JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit{};
      limit.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
      ::SetInformationJobObject(one.job, JobObjectExtendedLimitInformation, &limit, sizeof limit);
    }
    if (one.job != nullptr) ::AssignProcessToJobObject(one.job, made.hProcess);
  }
  child = static_cast<ProcessId>(made.dwProcessId);
  {
    const std::lock_guard lock(children_mutex);
    Children()[child] = one;
  }
  ::ResumeThread(made.hThread);
  ::CloseHandle(made.hThread);
  return 0;
}

ProcessId Fork() {
  errno = ENOSYS;
  return -1;
}

void ExitAtOnce(int code) { std::_Exit(code); }

// There is no asking.
void AskToEnd(ProcessId child) { End(child); }

void End(ProcessId child) {
  const Child found = Find(child);
  if (found.process != nullptr) ::TerminateProcess(found.process, 1);
}

void EndGroup(ProcessId child) {
  const Child found = Find(child);
  if (found.job != nullptr) ::TerminateJobObject(found.job, 1);
}

int WaitForEnd(ProcessId child) {
  const Child found = Find(child);
  if (found.process == nullptr) return -1;
  ::WaitForSingleObject(found.process, INFINITE);
  return Forget(child, found);
}

std::optional<int> EndedWith(ProcessId child) {
  const Child found = Find(child);
  if (found.process == nullptr) return -1;
  if (::WaitForSingleObject(found.process, 0) == WAIT_TIMEOUT) return std::nullopt;
  return Forget(child, found);
}

double ProcessorSeconds(ProcessId child) {
  const Child found = Find(child);
  FILETIME began{}, ended{}, system{}, user{};
  if (found.process == nullptr ||
      ::GetProcessTimes(found.process, &began, &ended, &system, &user) == 0) {
    return 0;
  }
  const auto ticks = [](const FILETIME& time) {
    return static_cast<double>(uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
  };
  return (ticks(system) + ticks(user)) * 1e-7;
}

}  // namespace pawl::os
