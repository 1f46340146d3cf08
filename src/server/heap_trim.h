// HeapTrimmer: returns memory that the heap does not use to the system.
//
//   HeapTrimmer trimmer;
//   trimmer.Look();      // a few times a second, from one thread
#ifndef PAWL_SRC_SERVER_HEAP_TRIM_H_
#define PAWL_SRC_SERVER_HEAP_TRIM_H_

#include <chrono>
#include <cstdint>

namespace pawl::server {

// Pages of the process that are in memory, in bytes; 0: not known on this system.
int64_t ResidentBytes();

// Thread safety: one call at a time.
class HeapTrimmer {
 public:
  // Trims when the process has grown by kMostGrowth since the last trim, or kMostFreed of what was
  // in use since then is free.
  void Look();

 private:
  static constexpr int64_t kMostGrowth = int64_t{16} << 20, kMostFreed = int64_t{4} << 20;
  static constexpr int kLooksBetween = 5;
  // Of the time, so many parts are for other things: a look goes through all free blocks.
  static constexpr int kPartsBetween = 100;

  int64_t after_trim_ = 0, most_used_ = 0;
  int looks_ = 0;
  std::chrono::steady_clock::time_point next_ = {};  // not before
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_HEAP_TRIM_H_
