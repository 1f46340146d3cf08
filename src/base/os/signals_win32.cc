// Windows calls a handler on a thread of its own for Ctrl-C and for a console that closes. It sets
// an event, which the server waits for. There is no signal that says that logs were moved.
#include <windows.h>

#include <atomic>

#include "src/base/os/signals.h"

namespace pawl::os {
namespace {

std::atomic<HANDLE> server_end{nullptr};

BOOL WINAPI OnConsole(DWORD /*kind*/) {
  const HANDLE event = server_end.load();
  if (event == nullptr) return FALSE;
  ::SetEvent(event);
  return TRUE;
}

}  // namespace

void IgnoreBrokenPipes() {}
void IgnoreFileSizeLimit() {}

void HoldServerSignals() {
  server_end.store(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  ::SetConsoleCtrlHandler(&OnConsole, TRUE);
}

ServerSignal WaitForServerSignal() {
  ::WaitForSingleObject(server_end.load(), INFINITE);
  return ServerSignal::kEnd;
}

void ReleaseServerSignals() { ::SetConsoleCtrlHandler(&OnConsole, FALSE); }

}  // namespace pawl::os
