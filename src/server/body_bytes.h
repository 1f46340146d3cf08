// BodyBytes: the body of a request, as it grows. A long one lies in pages of its own (mmap), so its
// memory goes back to the system when the body goes, whatever lies around it on the heap. Growing
// moves pages, not bytes.
#ifndef PAWL_SRC_SERVER_BODY_BYTES_H_
#define PAWL_SRC_SERVER_BODY_BYTES_H_

#include <cstddef>
#include <string_view>
#include <utility>

namespace pawl::server {

class BodyBytes {
 public:
  // Up to here a body lies on the heap.
  static constexpr size_t kHeapBytes = 64 << 10;

  BodyBytes() = default;
  ~BodyBytes() { Clear(); }
  BodyBytes(BodyBytes&& other) noexcept { *this = std::move(other); }
  BodyBytes& operator=(BodyBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  // Throws std::bad_alloc, and then nothing has changed.
  void Append(std::string_view bytes);
  void Clear() noexcept;

  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }
  operator std::string_view() const { return view(); }

 private:
  void Grow(size_t capacity);

  char* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_BODY_BYTES_H_
