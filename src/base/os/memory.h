// Memory in pages of the system. What uses it is src/base/pages.h.
#ifndef PAWL_SRC_BASE_OS_MEMORY_H_
#define PAWL_SRC_BASE_OS_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

namespace pawl::os {

size_t PageBytes();

// Memory at the start of a page, zero until written; null when the system refuses. kLazy: nothing
// is set aside for pages that were not touched.
enum class Reserving { kNow, kLazy };
void* MapMemory(size_t bytes, Reserving reserving);
// The same bytes in a larger map, perhaps elsewhere; null when the system refuses, and nothing has
// changed.
void* GrowMap(void* data, size_t bytes, size_t grown);
void UnmapMemory(void* data, size_t bytes);

// Advice: this memory gains from large pages.
void PreferLargePages(void* data, size_t bytes);
// The pages hold no memory any more: zero again, or what their file has. REQUIRES: `data` is the
// start of a page. Does nothing where the system has no such call.
void DropPages(void* data, size_t bytes);

// At an address that is a multiple of `alignment`, which is a power of two and divides `bytes`;
// null when the system refuses. Only FreeAligned frees it.
void* AllocateAligned(size_t alignment, size_t bytes);
void FreeAligned(void* data);

// Of this machine, in bytes; 0 where it cannot be told.
int64_t PhysicalMemory();
int64_t UnusedMemory();
// Of this process, in bytes: now, and the most it ever was; 0 where it cannot be told.
int64_t ResidentBytes();
int64_t MostResidentBytes();

// What the C library's heap has handed out, and what it keeps of what was freed; nullopt where
// it does not say. Takes milliseconds where many blocks are free.
struct HeapBytes {
  int64_t used = 0, free = 0;
};
std::optional<HeapBytes> AskHeap();
// The heap gives the pages of free blocks to the system, where it can be told to.
void TrimHeap();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_MEMORY_H_
