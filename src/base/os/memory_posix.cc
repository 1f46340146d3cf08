// Anonymous maps. mremap, large pages and the pages that madvise drops are Linux's own; elsewhere a
// map that grows is copied.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "src/base/os/memory.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace pawl::os {

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

void* MapMemory(size_t bytes, Reserving reserving) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (reserving == Reserving::kLazy) flags |= MAP_NORESERVE;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void* GrowMap(void* data, size_t bytes, size_t grown) {
#if defined(__linux__)
  void* moved = ::mremap(data, bytes, grown, MREMAP_MAYMOVE);
  return moved == MAP_FAILED ? nullptr : moved;
#else
  void* moved = MapMemory(grown, Reserving::kNow);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, bytes);
  UnmapMemory(data, bytes);
  return moved;
#endif
}

void UnmapMemory(void* data, size_t bytes) { ::munmap(data, bytes); }

void PreferLargePages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
  // A refusal changes nothing.
  (void)::madvise(data, bytes, MADV_HUGEPAGE);
#endif
}

void DropPages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  (void)::madvise(data, bytes, MADV_DONTNEED);
#endif
}

void* AllocateAligned(size_t alignment, size_t bytes) {
  return std::aligned_alloc(alignment, bytes);
}
void FreeAligned(void* data) { std::free(data); }

int64_t PhysicalMemory() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

int64_t UnusedMemory() {
#if defined(_SC_AVPHYS_PAGES)
  return std::max(0L, ::sysconf(_SC_AVPHYS_PAGES) * ::sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  return file >> size >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

int64_t MostResidentBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return usage.ru_maxrss;
#else
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
#endif
}

#if defined(__GLIBC__)
namespace {
// mallinfo2() of glibc 2.33 and newer. Programs that are built for an older one find it at run
// time, where it is there.
struct GlibcHeap {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
extern "C" GlibcHeap GlibcMallinfo2() __asm__("mallinfo2") __attribute__((weak));
}  // namespace
#endif

std::optional<HeapBytes> AskHeap() {
#if defined(__GLIBC__)
  if (GlibcMallinfo2 == nullptr) return std::nullopt;
  const GlibcHeap heap = GlibcMallinfo2();
  return HeapBytes{static_cast<int64_t>(heap.uordblks + heap.hblkhd),
                   static_cast<int64_t>(heap.fordblks)};
#else
  return std::nullopt;
#endif
}

void TrimHeap() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace pawl::os
