// A large request leaves free blocks between blocks that are in use, and the C library keeps the
// pages of free blocks. A trim gives them to the system: it takes some milliseconds and holds the
// locks of the heap for parts of them, so it is made once a second at most, and only when the
// process has grown. The size after the trim is what the next growth is measured from.
#include "src/server/heap_trim.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace pawl::server {

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  return file >> size >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

void HeapTrimmer::Look() {
  if (++looks_ < kLooksBetween) return;
  looks_ = 0;
  const int64_t now = ResidentBytes();
  if (now < after_trim_) after_trim_ = now;
  if (now < after_trim_ + kMostGrowth) return;
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
  after_trim_ = ResidentBytes();
}

}  // namespace pawl::server
