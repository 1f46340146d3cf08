// The memory of a WebAssembly module is one piece that grows. Nothing is set aside without being
// there, and no page is freed.
#include <cstdlib>

#include "src/base/os/memory.h"

namespace pawl::os {

size_t PageBytes() { return size_t{1} << 16; }

void* MapMemory(size_t bytes, Reserving) { return std::calloc(bytes, 1); }
void UnmapMemory(void* data, size_t) { std::free(data); }

void PreferLargePages(void*, size_t) {}
void DropPages(void*, size_t) {}

void* AllocateAligned(size_t alignment, size_t bytes) {
  return std::aligned_alloc(alignment, bytes);
}
void FreeAligned(void* data) { std::free(data); }

int64_t PhysicalMemory() { return 0; }
int64_t UnusedMemory() { return 0; }

}  // namespace pawl::os
