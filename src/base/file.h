// Files: reading whole ones, and mapping big ones without copying.
#ifndef PAWL_SRC_BASE_FILE_H_
#define PAWL_SRC_BASE_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

// The whole file. Errors (kIo) name the path and the reason; directories are refused.
Result<std::string> ReadFile(const std::string& path);
Status WriteFile(const std::string& path, std::string_view content);

// A read-only mapping of a file; movable, unmapped on destruction. An empty file maps to no bytes.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_BASE_FILE_H_
