// VirtualAlloc. Windows sets memory aside for all pages that are mapped, and gives them when they
// are touched. A map that grows is copied; pages are freed when their map ends.
#include <windows.h>
// After it: it needs its types.
#include <psapi.h>

#include <cstdlib>
#include <cstring>

#include "src/base/os/memory.h"

namespace pawl::os {
namespace {

PROCESS_MEMORY_COUNTERS Counters() {
  PROCESS_MEMORY_COUNTERS counters{};
  counters.cb = sizeof counters;
  ::K32GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof counters);
  return counters;
}

MEMORYSTATUSEX Status() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  ::GlobalMemoryStatusEx(&status);
  return status;
}

}  // namespace

size_t PageBytes() {
  SYSTEM_INFO info{};
  ::GetSystemInfo(&info);
  return info.dwPageSize;
}

void* MapMemory(size_t bytes, Reserving /*reserving*/) {
  return ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void* GrowMap(void* data, size_t bytes, size_t grown) {
  void* moved = MapMemory(grown, Reserving::kNow);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, bytes);
  UnmapMemory(data, bytes);
  return moved;
}

void UnmapMemory(void* data, size_t /*bytes*/) { ::VirtualFree(data, 0, MEM_RELEASE); }

void PreferLargePages(void* /*data*/, size_t /*bytes*/) {}
void DropPages(void* /*data*/, size_t /*bytes*/) {}

void* AllocateAligned(size_t alignment, size_t bytes) {
  return ::_aligned_malloc(bytes, alignment);
}
void FreeAligned(void* data) { ::_aligned_free(data); }

int64_t PhysicalMemory() { return static_cast<int64_t>(Status().ullTotalPhys); }
int64_t UnusedMemory() { return static_cast<int64_t>(Status().ullAvailPhys); }
int64_t ResidentBytes() { return static_cast<int64_t>(Counters().WorkingSetSize); }
int64_t MostResidentBytes() { return static_cast<int64_t>(Counters().PeakWorkingSetSize); }

std::optional<HeapBytes> AskHeap() { return std::nullopt; }
void TrimHeap() {}

}  // namespace pawl::os
