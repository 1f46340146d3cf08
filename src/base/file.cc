// Everything goes through descriptors: what was opened is what was checked, so a path cannot become
// a folder or a device between the two. Errors have the path as their place and the system's words
// as their reason.
#include "src/base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/os/files.h"

namespace pawl {
namespace {

Error IoError(const std::string& path, const char* action) {
  return {ErrorCode::kIo, std::string(action) + ": " + std::strerror(errno), path};
}

enum class Kinds { kAllButFolders, kRegularFiles };

// Opens for reading. `action`: of errors.
Result<int> OpenToRead(const std::string& path, const char* action, Kinds kinds,
                       os::FileInfo& info) {
  const bool regular = kinds == Kinds::kRegularFiles;
  const auto check = [&](const std::optional<os::FileInfo>& found) -> Status {
    if (!found) return IoError(path, action);
    info = *found;
    if (info.kind == os::FileKind::kFolder) {
      errno = EISDIR;
      return IoError(path, action);
    }
    if (regular && info.kind != os::FileKind::kRegular) {
      return Error{ErrorCode::kIo, std::string(action) + ": not a regular file", path};
    }
    return {};
  };
  // Before it is opened: that alone would wait for a pipe's writer, or end it.
  if (const auto found = regular ? os::InfoOf(path) : std::nullopt; found) {
    if (Status status = check(found); !status.ok()) return status.error();
  }
  const int fd = os::OpenFile(path, regular ? os::Access::kReadNoWait : os::Access::kRead);
  if (fd < 0) return IoError(path, action);
  Status status = check(os::InfoOf(fd));
  if (status.ok()) return fd;
  os::CloseFile(fd);
  return status.error();
}

Result<std::string> Read(const std::string& path, Kinds kinds, size_t max_bytes) {
  os::FileInfo info;
  const Result<int> fd = OpenToRead(path, "cannot read", kinds, info);
  if (!fd.ok()) return fd.error();
  Result<std::string> content = ReadDescriptor(*fd, path, max_bytes);
  os::CloseFile(*fd);
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
    const int64_t got = os::Read(fd, buffer, sizeof buffer);
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
  const bool fresh = !os::HasName(path);  // also no link that leads nowhere
  const std::optional<os::FileInfo> info = os::InfoOf(path);
  // Opening a pipe would wait for its reader, and closing it end what the reader gets.
  if (info && info->kind == os::FileKind::kOther) {
    return os::MayWrite(path) ? Status() : IoError(path, "cannot write");
  }
  const int fd = os::OpenFile(path, os::Access::kWrite);
  if (fd < 0) return IoError(path, "cannot write");
  os::CloseFile(fd);
  if (fresh) os::Remove(path);
  return {};
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  os::FileInfo info;
  const Result<int> opened = OpenToRead(path, "cannot map", Kinds::kRegularFiles, info);
  if (!opened.ok()) return opened.error();
  const int fd = *opened;
  MappedFile file;
  file.size_ = static_cast<size_t>(info.bytes);
  if (file.size_ > 0) {
    file.data_ = os::MapFile(fd, file.size_);
    if (file.data_ == nullptr) {
      const Error error = IoError(path, "cannot map");
      os::CloseFile(fd);
      return error;
    }
  }
  os::CloseFile(fd);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) os::UnmapFile(data_, size_);
}

}  // namespace pawl
