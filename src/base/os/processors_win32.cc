// The processors of this process's group, and caches from the table of logical processors. AMX's
// tiles are not asked for: Windows on this path uses AVX-512.
#include <windows.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "src/base/os/processors.h"
#include "src/base/os/wide_win32.h"

namespace pawl::os {

int AvailableProcessors() {
  DWORD_PTR ours = 0, all = 0;
  if (::GetProcessAffinityMask(::GetCurrentProcess(), &ours, &all) == 0) return 1;
  return std::max(1, std::popcount(static_cast<uint64_t>(ours)));
}

int64_t CacheBytes(int level) {
  DWORD bytes = 0;
  ::GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> table(
      bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  if (table.empty() || ::GetLogicalProcessorInformation(table.data(), &bytes) == 0) return 0;
  for (const auto& entry : table) {
    if (entry.Relationship == RelationCache && entry.Cache.Level == level) return entry.Cache.Size;
  }
  return 0;
}

void NameThread(const char* name) {
  ::SetThreadDescription(::GetCurrentThread(), Wide(name).c_str());
}

int SystemThreadId() { return static_cast<int>(::GetCurrentThreadId()); }

void LowerPriority(int system_id) {
  const HANDLE thread = ::OpenThread(THREAD_SET_INFORMATION, FALSE, static_cast<DWORD>(system_id));
  if (thread == nullptr) return;
  ::SetThreadPriority(thread, THREAD_PRIORITY_IDLE);
  ::CloseHandle(thread);
}

ArmFeatures AskArmFeatures() { return {}; }
bool RequestTiles() { return false; }

}  // namespace pawl::os
