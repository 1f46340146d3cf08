// Files: reading whole ones, and mapping big ones without copying.
#ifndef PAWL_SRC_BASE_FILE_H_
#define PAWL_SRC_BASE_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

inline constexpr size_t kMaxFileBytes = size_t{64} << 20;

// The whole file. Errors name the path: kIo with the reason (directories are refused), kLimit when
// there is more than `max_bytes`, which devices and pipes may have without an end.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes = kMaxFileBytes);
// The same of a regular file: all else is kIo, so that no caller waits for a pipe that stands where
// a file of a model should.
Result<std::string> ReadRegularFile(const std::string& path, size_t max_bytes = kMaxFileBytes);
// What is left to read of an open file that errors call `name`.
Result<std::string> ReadDescriptor(int fd, const std::string& name,
                                   size_t max_bytes = kMaxFileBytes);
// The error with `file` before its place: "schema.json: #/properties/a".
Error InFile(const std::string& file, Error error);
Status WriteFile(const std::string& path, std::string_view content);
// kIo when WriteFile would fail; asked before the work whose result is to be written. Leaves the
// file as it is, and none where there was none.
Status CheckWritable(const std::string& path);

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
