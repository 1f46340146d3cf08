// Everything goes through descriptors: what was opened is what was checked, so a path cannot become
// a folder or a device between the two. Errors have the path as their place and the system's words
// as their reason.
#include "src/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace pawl {
namespace {

Error IoError(const std::string& path, const char* action) {
  return {ErrorCode::kIo, std::string(action) + ": " + std::strerror(errno), path};
}

enum class Kinds { kAllButFolders, kRegularFiles };

// Opens for reading. `action`: of errors.
Result<int> OpenToRead(const std::string& path, const char* action, Kinds kinds,
                       struct stat& info) {
  const auto check = [&]() -> Status {
    if (S_ISDIR(info.st_mode)) {
      errno = EISDIR;
      return IoError(path, action);
    }
    if (kinds == Kinds::kRegularFiles && !S_ISREG(info.st_mode)) {
      return Error{ErrorCode::kIo, std::string(action) + ": not a regular file", path};
    }
    return {};
  };
  // Before it is opened: that alone would wait for a pipe's writer, or end it.
  if (kinds == Kinds::kRegularFiles && ::stat(path.c_str(), &info) == 0) {
    if (Status status = check(); !status.ok()) return status.error();
  }
  const int flags = kinds == Kinds::kRegularFiles ? O_NONBLOCK : 0;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) return IoError(path, action);
  Status status = ::fstat(fd, &info) == 0 ? check() : IoError(path, action);
  if (status.ok()) return fd;
  ::close(fd);
  return status.error();
}

Result<std::string> Read(const std::string& path, Kinds kinds, size_t max_bytes) {
  struct stat info = {};
  const Result<int> fd = OpenToRead(path, "cannot read", kinds, info);
  if (!fd.ok()) return fd.error();
  Result<std::string> content = ReadDescriptor(*fd, path, max_bytes);
  ::close(*fd);
  return content;
}

}  // namespace

Error InFile(const std::string& file, Error error) {
  error.place = error.place.empty() ? file : file + ": " + error.place;
  return error;
}

Result<std::string> ReadDescriptor(int fd, const std::string& name, size_t max_bytes) {
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(name, "cannot read");
    if (got == 0) return content;
    if (static_cast<size_t>(got) > max_bytes - content.size()) {
      return Error{ErrorCode::kLimit,
                   "is larger than the limit of " + std::to_string(max_bytes >> 20) + " MiB", name};
    }
    content.append(buffer, static_cast<size_t>(got));
  }
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  return Read(path, Kinds::kAllButFolders, max_bytes);
}

Result<std::string> ReadRegularFile(const std::string& path, size_t max_bytes) {
  return Read(path, Kinds::kRegularFiles, max_bytes);
}

Status WriteFile(const std::string& path, std::string_view content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return IoError(path, "cannot write");
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) return IoError(path, "cannot write");
  return {};
}

Status CheckWritable(const std::string& path) {
  struct stat info = {};
  const bool fresh = ::lstat(path.c_str(), &info) != 0;  // also no link that leads nowhere
  const bool exists = ::stat(path.c_str(), &info) == 0;
  // Opening a pipe would wait for its reader, and closing it end what the reader gets.
  if (exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return ::access(path.c_str(), W_OK) == 0 ? Status() : IoError(path, "cannot write");
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return IoError(path, "cannot write");
  ::close(fd);
  if (fresh) ::unlink(path.c_str());
  return {};
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  struct stat info = {};
  const Result<int> opened = OpenToRead(path, "cannot map", Kinds::kRegularFiles, info);
  if (!opened.ok()) return opened.error();
  const int fd = *opened;
  MappedFile file;
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ > 0) {
    void* mapped = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) {
      const Error error = IoError(path, "cannot map");
      ::close(fd);
      return error;
    }
    file.data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(fd);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace pawl
