// POSIX's calls, and what Linux and macOS have besides: space that is taken ahead, locks by flock.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/os/files.h"

namespace pawl::os {
namespace {

FileInfo InfoFrom(const struct stat& found) {
  FileInfo info;
  if (S_ISREG(found.st_mode)) info.kind = FileKind::kRegular;
  if (S_ISDIR(found.st_mode)) info.kind = FileKind::kFolder;
  info.bytes = static_cast<uint64_t>(found.st_size);
  info.device = static_cast<uint64_t>(found.st_dev);
  info.number = static_cast<uint64_t>(found.st_ino);
  return info;
}

int FlagsOf(Access access) {
  switch (access) {
    case Access::kRead:
      return O_RDONLY;
    case Access::kReadNoWait:
      return O_RDONLY | O_NONBLOCK;
    case Access::kWrite:
      return O_WRONLY | O_CREAT;
    case Access::kWriteNoLink:
      return O_WRONLY | O_CREAT | O_NOFOLLOW;
    case Access::kChange:
      return O_RDWR | O_CREAT;
    case Access::kChangeNoLink:
      return O_RDWR | O_CREAT | O_NOFOLLOW;
  }
  return O_RDONLY;
}

template <typename Call>
auto Again(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace

std::optional<FileInfo> InfoOf(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return InfoFrom(found);
}

std::optional<FileInfo> InfoOf(int file) {
  struct stat found = {};
  if (::fstat(file, &found) != 0) return std::nullopt;
  return InfoFrom(found);
}

bool Exists(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0;
}

bool HasName(const std::string& path) {
  struct stat found = {};
  return ::lstat(path.c_str(), &found) == 0;
}

bool MayRead(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }
bool MayWrite(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }
bool MayRun(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

std::string FolderOf(const std::string& path) {
  const size_t end = path.rfind('/');
  return end == std::string::npos ? "." : path.substr(0, std::max<size_t>(end, 1));
}

int OpenFile(const std::string& path, Access access) {
  return ::open(path.c_str(), FlagsOf(access) | O_CLOEXEC, 0666);
}

void CloseFile(int file) { ::close(file); }

std::FILE* OpenToAppend(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  std::FILE* const stream = file < 0 ? nullptr : ::fdopen(file, "a");
  if (file >= 0 && stream == nullptr) CloseFile(file);
  return stream;
}

int64_t Read(int file, char* to, size_t bytes) {
  return Again([&] { return ::read(file, to, bytes); });
}

int64_t Write(int file, const char* from, size_t bytes) {
  return Again([&] { return ::write(file, from, bytes); });
}

int64_t WriteAt(int file, const char* from, size_t bytes, uint64_t at) {
  return Again([&] { return ::pwrite(file, from, bytes, static_cast<off_t>(at)); });
}

bool Truncate(int file, uint64_t bytes) {
  return ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

bool Flush(int file) { return ::fsync(file) == 0; }

bool Reserve([[maybe_unused]] int file, [[maybe_unused]] int64_t bytes) {
#if defined(__linux__)
  return bytes <= 0 || ::fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0 ||
         (errno != ENOSPC && errno != EFBIG && errno != EDQUOT);
#else
  return true;
#endif
}

bool Remove(const std::string& path) { return ::unlink(path.c_str()) == 0; }

bool MakeLink(const std::string& target, const std::string& path) {
  return ::symlink(target.c_str(), path.c_str()) == 0;
}

std::optional<uint64_t> FreeBytes(const std::string& folder) {
  struct statvfs found = {};
  if (::statvfs(folder.c_str(), &found) != 0) return std::nullopt;
  return uint64_t{found.f_bavail} * found.f_frsize;
}

LockResult TryLock(int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return LockResult::kHeld;
  return errno == EWOULDBLOCK ? LockResult::kTaken : LockResult::kFailed;
}

bool WaitForLock(int file) {
  return Again([&] { return ::flock(file, LOCK_EX); }) == 0;
}

const std::byte* MapFile(int file, size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<const std::byte*>(mapped);
}

void UnmapFile(const std::byte* data, size_t bytes) {
  ::munmap(const_cast<std::byte*>(data), bytes);
}

void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace pawl::os
