// Pages of a file that were read stay in the process's resident memory until the mapping ends. The
// mapping is private and read-only, so dropping a page loses nothing.
#include "src/base/drop_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace pawl {

void DropPages(const std::byte* data, int64_t bytes) {
#if defined(__linux__)
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + static_cast<uintptr_t>(bytes)) / page * page;
  // Only advice: where it is refused the pages stay.
  if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
#else
  (void)data;
  (void)bytes;
#endif
}

}  // namespace pawl
