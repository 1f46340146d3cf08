// Files as the system has them: descriptors, what they are, locks, maps. What reads and writes
// whole files is src/base/file.h.
//
//   const int file = os::OpenFile(path, os::Access::kRead);
//   if (file < 0) return std::strerror(errno);
//   const int64_t got = os::Read(file, buffer, sizeof buffer);
//   os::CloseFile(file);
//
// A call that fails returns -1, false or nullopt, and errno says why. A call that a signal has
// interrupted is made again.
#ifndef PAWL_SRC_BASE_OS_FILES_H_
#define PAWL_SRC_BASE_OS_FILES_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace pawl::os {

inline constexpr int kStandardInput = 0;

enum class FileKind { kRegular, kFolder, kOther };

struct FileInfo {
  FileKind kind = FileKind::kOther;
  uint64_t bytes = 0;
  uint64_t device = 0, number = 0;  // the same for two names of one file
  bool IsSame(const FileInfo& other) const {
    return device == other.device && number == other.number;
  }
};

// Links are followed.
std::optional<FileInfo> InfoOf(const std::string& path);
std::optional<FileInfo> InfoOf(int file);
bool Exists(const std::string& path);
// Also where a link leads nowhere.
bool HasName(const std::string& path);
bool MayRead(const std::string& path);
bool MayWrite(const std::string& path);
bool MayRun(const std::string& path);
// The folder of what the path names; "." where the path has none.
std::string FolderOf(const std::string& path);

enum class Access {
  kRead,
  kReadNoWait,   // does not wait for the writer of a pipe
  kWrite,        // makes the file; what it has stays
  kWriteNoLink,  // the same; a link is refused
  kChange,       // reads and writes, makes the file
  kChangeNoLink
};
int OpenFile(const std::string& path, Access access);
void CloseFile(int file);
// What is written goes to the end of the file, which is made; not passed on to programs.
std::FILE* OpenToAppend(const std::string& path);
// As many bytes as there are at once; 0 at the end.
int64_t Read(int file, char* to, size_t bytes);
int64_t Write(int file, const char* from, size_t bytes);
int64_t WriteAt(int file, const char* from, size_t bytes, uint64_t at);
bool Truncate(int file, uint64_t bytes);
// What was written is on the disk.
bool Flush(int file);
// Takes the space on the disk. true also where the file system cannot do that.
bool Reserve(int file, int64_t bytes);
bool Remove(const std::string& path);
bool MakeLink(const std::string& target, const std::string& path);
// Bytes that a user may still write in that folder.
std::optional<uint64_t> FreeBytes(const std::string& folder);

// A lock on the whole file, until it is closed.
enum class LockResult { kHeld, kTaken, kFailed };
LockResult TryLock(int file);
bool WaitForLock(int file);

// The file's bytes to read, not copied; null: errno says why. REQUIRES: bytes > 0.
const std::byte* MapFile(int file, size_t bytes);
void UnmapFile(const std::byte* data, size_t bytes);

// As many open files as the system lets this process have.
void RaiseFileLimit();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_FILES_H_
