// LazyMemory is an anonymous mapping without reserved swap: address space is plentiful, and what is
// never touched costs nothing. Ranges that are used from their beginning gain from huge pages: 256
// MiB touched in steps of 4 KiB take 65,000 faults, a tenth of a second and more.
//
// HugeArena aligns its chunks to large pages and cuts them from the front; many matrices are
// smaller than a large page, so memory of their own would not get any. What a chunk does not hand
// out is never touched and takes no memory; the rest of its last large page is freed when the next
// chunk begins.
//
// Pages of a file that were read stay in the process's resident memory until the mapping ends. The
// mapping is private and read-only, so dropping a page loses nothing.
#include "src/base/pages.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/file.h"
#include "src/base/os/memory.h"

namespace pawl {

LazyMemory::LazyMemory(size_t bytes) {
  if (bytes == 0) return;
  data_ = os::MapMemory(bytes, os::Reserving::kLazy);
  if (data_ == nullptr) return;
  bytes_ = bytes;
  // Fewer faults, each for more.
  os::PreferLargePages(data_, bytes);
}

LazyMemory::~LazyMemory() {
  if (data_ != nullptr) os::UnmapMemory(data_, bytes_);
}

LazyMemory::LazyMemory(LazyMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

LazyMemory& LazyMemory::operator=(LazyMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

int64_t PhysicalMemory() { return os::PhysicalMemory(); }

namespace {
// The number behind `key` in a file of the system, or at its beginning; -1 where there is none.
int64_t NumberIn(const char* path, std::string_view key) {
  const Result<std::string> text = ReadFile(path, size_t{1} << 20);
  if (!text.ok()) return -1;
  size_t at = key.empty() ? 0 : text->find(key);
  if (at == std::string::npos) return -1;
  at = text->find_first_not_of(" \t\n", at + key.size());
  if (at == std::string::npos) return -1;
  int64_t number = -1;
  std::from_chars(text->data() + at, text->data() + text->size(), number);
  return number;
}
}  // namespace

int64_t AvailableMemory() {
  const int64_t kilobytes = NumberIn("/proc/meminfo", "MemAvailable:");
  int64_t available = kilobytes > 0 ? kilobytes * 1024 : 0;
  if (available == 0) available = os::UnusedMemory();
  const int64_t limit = NumberIn("/sys/fs/cgroup/memory.max", "");
  const int64_t used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (limit > 0 && used >= 0) available = std::min(available, std::max<int64_t>(limit - used, 1));
  return available;
}

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kLargePage = int64_t{2} << 20;
constexpr int64_t kChunk = int64_t{32} << 20;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// What is left of a chunk. A large page that has been begun holds memory for all of it.
void GiveBack(std::byte* next, int64_t left) {
  const auto page = static_cast<int64_t>(os::PageBytes());
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next));
  const int64_t skipped = RoundUp(at, page) - at;
  if (left > skipped) {
    os::DropPages(next + skipped, static_cast<size_t>(left - skipped));
  }
}

}  // namespace

std::byte* HugeArena::Allocate(int64_t bytes) {
  bytes = RoundUp(std::max<int64_t>(bytes, 1), kLine);
  if (bytes > left_) {
    GiveBack(next_, left_);
    const int64_t size = RoundUp(std::max(bytes, kChunk), kLargePage);
    auto* chunk =
        static_cast<std::byte*>(os::AllocateAligned(kLargePage, static_cast<size_t>(size)));
    if (chunk == nullptr) throw std::bad_alloc();
    chunks_.emplace_back(chunk);
    // Only advice: without large pages all works as well.
    os::PreferLargePages(chunk, static_cast<size_t>(size));
    next_ = chunk;
    left_ = size;
  }
  std::byte* result = next_;
  next_ += bytes;
  left_ -= bytes;
  return result;
}

void HugeArena::Free::operator()(std::byte* p) const { os::FreeAligned(p); }

void HugeArena::Clear() {
  chunks_.clear();
  next_ = nullptr;
  left_ = 0;
}

void DropPages(const std::byte* data, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(os::PageBytes());
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + static_cast<uintptr_t>(bytes)) / page * page;
  // Only advice: where it is refused the pages stay.
  if (first < end) os::DropPages(reinterpret_cast<void*>(first), end - first);
}

}  // namespace pawl
