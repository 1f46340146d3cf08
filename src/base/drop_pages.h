// Memory of a mapped file, given back to the system once its bytes have been used.
#ifndef PAWL_SRC_BASE_DROP_PAGES_H_
#define PAWL_SRC_BASE_DROP_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace pawl {

// The whole pages among these bytes are no memory of this process any more; who reads them again
// gets them from the system's cache, or from the disk. REQUIRES: the bytes are of a MappedFile.
void DropPages(const std::byte* data, int64_t bytes);

}  // namespace pawl

#endif  // PAWL_SRC_BASE_DROP_PAGES_H_
