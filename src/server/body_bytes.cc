// Capacity doubles, from a kilobyte. Beyond kHeapBytes the bytes move to a mapping, which grows by
// mremap; pages that nothing was written to take no memory.
#include "src/server/body_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "src/base/os/memory.h"

namespace pawl::server {

void BodyBytes::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  if (capacity_ - size_ < bytes.size()) {
    Grow(std::max({size_ + bytes.size(), 2 * capacity_, size_t{1} << 10}));
  }
  std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

void BodyBytes::Grow(size_t capacity) {
  void* grown = nullptr;
  if (capacity <= kHeapBytes) {
    grown = std::realloc(data_, capacity);
    if (grown == nullptr) throw std::bad_alloc();
  } else if (capacity_ > kHeapBytes) {
    grown = os::GrowMap(data_, capacity_, capacity);
    if (grown == nullptr) throw std::bad_alloc();
  } else {
    grown = os::MapMemory(capacity, os::Reserving::kNow);
    if (grown == nullptr) throw std::bad_alloc();
    if (size_ > 0) std::memcpy(grown, data_, size_);
    std::free(data_);
  }
  data_ = static_cast<char*>(grown);
  capacity_ = capacity;
}

void BodyBytes::Clear() noexcept {
  if (capacity_ > kHeapBytes) {
    os::UnmapMemory(data_, capacity_);
  } else {
    std::free(data_);
  }
  data_ = nullptr;
  size_ = capacity_ = 0;
}

}  // namespace pawl::server
