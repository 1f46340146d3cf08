// A large request leaves free blocks between blocks that are in use, and the C library keeps the
// pages of free blocks. A trim gives them to the system: it takes some milliseconds and holds the
// locks of the heap for parts of them, so it is made once a second at most, and only when the
// process has grown since the last trim, or blocks were freed that were in use then. What the heap
// says of itself takes as long where it has many free blocks.
#include "src/server/heap_trim.h"

#include <algorithm>

#include "src/base/os/memory.h"

namespace pawl::server {

int64_t ResidentBytes() { return os::ResidentBytes(); }

void HeapTrimmer::Look() {
  if (++looks_ < kLooksBetween) return;
  looks_ = 0;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  if (begin < next_) return;
  const int64_t now = ResidentBytes();
  const std::optional<os::HeapBytes> heap = os::AskHeap();
  if (!heap) return;
  const int64_t used = heap->used;
  most_used_ = std::max(most_used_, used);
  if (now >= after_trim_ + kMostGrowth || used <= most_used_ - kMostFreed) {
    os::TrimHeap();
    most_used_ = used;
    after_trim_ = ResidentBytes();
  }
  const Clock::time_point end = Clock::now();
  next_ = end + kPartsBetween * (end - begin);
}

}  // namespace pawl::server
