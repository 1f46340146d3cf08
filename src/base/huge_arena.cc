// Chunks are aligned to large pages and cut from the front; many matrices are smaller than a large
// page, so memory of their own would not get any. What a chunk does not hand out is never touched
// and takes no memory; the rest of its last large page is given back when the next chunk begins.
#include "src/base/huge_arena.h"

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pawl {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kLargePage = int64_t{2} << 20;
constexpr int64_t kChunk = int64_t{32} << 20;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// What is left of a chunk. A large page that has been begun holds memory for all of it.
void GiveBack(std::byte* next, int64_t left) {
#if defined(__linux__)
  constexpr int64_t kPage = 4096;
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next));
  const int64_t skipped = RoundUp(at, kPage) - at;
  if (left > skipped) {
    (void)::madvise(next + skipped, static_cast<size_t>(left - skipped), MADV_DONTNEED);
  }
#else
  (void)next;
  (void)left;
#endif
}

}  // namespace

std::byte* HugeArena::Allocate(int64_t bytes) {
  bytes = RoundUp(std::max<int64_t>(bytes, 1), kLine);
  if (bytes > left_) {
    GiveBack(next_, left_);
    const int64_t size = RoundUp(std::max(bytes, kChunk), kLargePage);
    auto* chunk =
        static_cast<std::byte*>(std::aligned_alloc(kLargePage, static_cast<size_t>(size)));
    if (chunk == nullptr) throw std::bad_alloc();
    chunks_.emplace_back(chunk);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    // Only advice: without large pages all works as well.
    (void)::madvise(chunk, static_cast<size_t>(size), MADV_HUGEPAGE);
#endif
    next_ = chunk;
    left_ = size;
  }
  std::byte* result = next_;
  next_ += bytes;
  left_ -= bytes;
  return result;
}

void HugeArena::Clear() {
  chunks_.clear();
  next_ = nullptr;
  left_ = 0;
}

}  // namespace pawl
