// LazyMemory: a range of addresses whose memory is taken from the system piece by piece, of at most
// a few MiB, when it is first touched.
#ifndef PAWL_SRC_BASE_LAZY_MEMORY_H_
#define PAWL_SRC_BASE_LAZY_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace pawl {

// Zero until written. Starts at a page of the system's.
class LazyMemory {
 public:
  LazyMemory() = default;
  // data() is null when the system refuses.
  explicit LazyMemory(size_t bytes);
  ~LazyMemory();
  LazyMemory(LazyMemory&& other) noexcept;
  LazyMemory& operator=(LazyMemory&& other) noexcept;

  void* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Of this machine, in bytes; 0 where it cannot be told.
int64_t PhysicalMemory();
// What this process can still get without anything being swapped, as far as the system tells (on
// Linux with the limit of its control group); 0 where it cannot be told.
int64_t AvailableMemory();

}  // namespace pawl

#endif  // PAWL_SRC_BASE_LAZY_MEMORY_H_
