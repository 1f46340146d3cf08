// Memory in pages of the system, for what is large: LazyMemory takes it piece by piece when it is
// first touched, HugeArena takes it in large pages, DropPages frees that of a mapped file.
#ifndef PAWL_SRC_BASE_PAGES_H_
#define PAWL_SRC_BASE_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pawl {

// A range of addresses whose memory is taken from the system piece by piece, of at most a few MiB.
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

// Memory for much that is read over and over, such as weights: in large pages where the system has
// them. Reading 270 MB in pages of 4 KiB takes 1.6 times as long on a virtual machine, whose walks
// to a page are long. Freed all at once. One thread at a time.
class HugeArena {
 public:
  // At least `bytes` bytes at the start of a cache line, untouched. Throws std::bad_alloc.
  std::byte* Allocate(int64_t bytes);
  void Clear();

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::vector<std::unique_ptr<std::byte[], Free>> chunks_;
  std::byte* next_ = nullptr;
  int64_t left_ = 0;
};

// The whole pages among these bytes are no memory of this process any more; who reads them again
// gets them from the system's cache, or from the disk. REQUIRES: the bytes are of a MappedFile.
void DropPages(const std::byte* data, int64_t bytes);

}  // namespace pawl

#endif  // PAWL_SRC_BASE_PAGES_H_
