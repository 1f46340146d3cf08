// Descriptors are those of the C library, over handles of Windows. What a name means is asked of a
// handle that is opened for nothing else, so that folders have an answer, too.
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#include <windows.h>

#include <algorithm>
#include <cerrno>

#include "src/base/os/files.h"
#include "src/base/os/wide_win32.h"

namespace pawl::os {
namespace {

HANDLE HandleOf(int file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file)); }

std::optional<FileInfo> InfoFrom(HANDLE handle) {
  FileInfo info;
  const DWORD type = ::GetFileType(handle);
  if (type != FILE_TYPE_DISK) return info;
  BY_HANDLE_FILE_INFORMATION found{};
  if (::GetFileInformationByHandle(handle, &found) == 0) {
    KeepLastError();
    return std::nullopt;
  }
  const bool folder = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  info.kind = folder ? FileKind::kFolder : FileKind::kRegular;
  info.bytes = uint64_t{found.nFileSizeHigh} << 32 | found.nFileSizeLow;
  info.device = found.dwVolumeSerialNumber;
  info.number = uint64_t{found.nFileIndexHigh} << 32 | found.nFileIndexLow;
  return info;
}

bool Accessible(const std::string& path, int mode) {
  return ::_waccess(Wide(path).c_str(), mode) == 0;
}

}  // namespace

std::wstring Wide(std::string_view text) {
  const int bytes = static_cast<int>(text.size());
  std::wstring wide(text.size(), L'\0');
  const int used =
      ::MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, wide.data(), static_cast<int>(bytes));
  wide.resize(static_cast<size_t>(std::max(used, 0)));
  return wide;
}

std::string Narrow(std::wstring_view text) {
  const int units = static_cast<int>(text.size());
  std::string narrow(text.size() * 3, '\0');
  const int used = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), units, narrow.data(),
                                         static_cast<int>(narrow.size()), nullptr, nullptr);
  narrow.resize(static_cast<size_t>(std::max(used, 0)));
  return narrow;
}

void KeepLastError() {
  switch (::GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
      errno = ENOENT;
      break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
      errno = EACCES;
      break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_COMMITMENT_LIMIT:
      errno = ENOMEM;
      break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      errno = ENOSPC;
      break;
    case ERROR_NO_DATA:
      errno = EAGAIN;
      break;
    case ERROR_BROKEN_PIPE:
      errno = EPIPE;
      break;
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS:
      errno = EEXIST;
      break;
    default:
      errno = EIO;
  }
}

std::optional<FileInfo> InfoOf(const std::string& path) {
  const HANDLE handle = ::CreateFileW(Wide(path).c_str(), FILE_READ_ATTRIBUTES,
                                      FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                      nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    KeepLastError();
    return std::nullopt;
  }
  std::optional<FileInfo> info = InfoFrom(handle);
  ::CloseHandle(handle);
  return info;
}

std::optional<FileInfo> InfoOf(int file) { return InfoFrom(HandleOf(file)); }

bool Exists(const std::string& path) { return InfoOf(path).has_value(); }

bool HasName(const std::string& path) {
  return ::GetFileAttributesW(Wide(path).c_str()) != INVALID_FILE_ATTRIBUTES;
}

bool MayRead(const std::string& path) { return Accessible(path, 4); }
bool MayWrite(const std::string& path) { return Accessible(path, 2); }
// What runs is told by the end of its name.
bool MayRun(const std::string& path) { return Accessible(path, 4); }

std::string FolderOf(const std::string& path) {
  const size_t end = path.find_last_of("/\\");
  if (end != std::string::npos) return path.substr(0, std::max<size_t>(end, 1));
  return path.size() > 1 && path[1] == ':' ? path.substr(0, 2) : ".";
}

int OpenFile(const std::string& path, Access access) {
  int flags = _O_BINARY | _O_NOINHERIT;
  switch (access) {
    case Access::kRead:
    case Access::kReadNoWait:
      flags |= _O_RDONLY;
      break;
    case Access::kWrite:
    case Access::kWriteNoLink:
      flags |= _O_WRONLY | _O_CREAT;
      break;
    case Access::kChange:
    case Access::kChangeNoLink:
      flags |= _O_RDWR | _O_CREAT;
      break;
  }
  const std::wstring name = Wide(path);
  if (access == Access::kWriteNoLink || access == Access::kChangeNoLink) {
    const DWORD attributes = ::GetFileAttributesW(name.c_str());
    if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
      errno = EEXIST;
      return -1;
    }
  }
  return ::_wopen(name.c_str(), flags, _S_IREAD | _S_IWRITE);
}

void CloseFile(int file) { ::_close(file); }

std::FILE* OpenToAppend(const std::string& path) { return ::_wfopen(Wide(path).c_str(), L"abN"); }

int64_t Read(int file, char* to, size_t bytes) {
  DWORD got = 0;
  const auto most = static_cast<DWORD>(std::min<size_t>(bytes, size_t{1} << 30));
  if (::ReadFile(HandleOf(file), to, most, &got, nullptr) != 0) return got;
  // A pipe that all writers have closed is at its end.
  if (::GetLastError() == ERROR_BROKEN_PIPE) return 0;
  KeepLastError();
  return -1;
}

int64_t Write(int file, const char* from, size_t bytes) {
  DWORD done = 0;
  const auto most = static_cast<DWORD>(std::min<size_t>(bytes, size_t{1} << 30));
  if (::WriteFile(HandleOf(file), from, most, &done, nullptr) == 0) {
    KeepLastError();
    return -1;
  }
  if (done > 0 || bytes == 0) return done;
  errno = EAGAIN;  // a pipe that is full and does not wait
  return -1;
}

int64_t WriteAt(int file, const char* from, size_t bytes, uint64_t at) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(at);
  place.OffsetHigh = static_cast<DWORD>(at >> 32);
  DWORD done = 0;
  const auto most = static_cast<DWORD>(std::min<size_t>(bytes, size_t{1} << 30));
  if (::WriteFile(HandleOf(file), from, most, &done, &place) != 0) return done;
  KeepLastError();
  return -1;
}

bool Truncate(int file, uint64_t bytes) {
  return ::_chsize_s(file, static_cast<int64_t>(bytes)) == 0;
}

bool Flush(int file) { return ::_commit(file) == 0; }

bool Reserve(int file, int64_t bytes) {
  FILE_ALLOCATION_INFO info{};
  info.AllocationSize.QuadPart = bytes;
  if (::SetFileInformationByHandle(HandleOf(file), FileAllocationInfo, &info, sizeof info) != 0) {
    return true;
  }
  KeepLastError();
  return errno != ENOSPC;
}

bool Remove(const std::string& path) { return ::_wunlink(Wide(path).c_str()) == 0; }

bool MakeLink(const std::string& target, const std::string& path) {
  constexpr DWORD kWithoutPrivilege = 2;  // in the mode for developers
  if (::CreateSymbolicLinkW(Wide(path).c_str(), Wide(target).c_str(), kWithoutPrivilege) != 0) {
    return true;
  }
  KeepLastError();
  return false;
}

std::optional<uint64_t> FreeBytes(const std::string& folder) {
  ULARGE_INTEGER bytes{};
  if (::GetDiskFreeSpaceExW(Wide(folder).c_str(), &bytes, nullptr, nullptr) == 0) {
    KeepLastError();
    return std::nullopt;
  }
  return bytes.QuadPart;
}

LockResult TryLock(int file) {
  OVERLAPPED whole{};
  constexpr DWORD kFlags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
  if (::LockFileEx(HandleOf(file), kFlags, 0, MAXDWORD, MAXDWORD, &whole) != 0) {
    return LockResult::kHeld;
  }
  if (::GetLastError() == ERROR_LOCK_VIOLATION) return LockResult::kTaken;
  KeepLastError();
  return LockResult::kFailed;
}

bool WaitForLock(int file) {
  OVERLAPPED whole{};
  if (::LockFileEx(HandleOf(file), LOCKFILE_EXCLUSIVE_LOCK, 0, MAXDWORD, MAXDWORD, &whole) != 0) {
    return true;
  }
  KeepLastError();
  return false;
}

const std::byte* MapFile(int file, size_t bytes) {
  const HANDLE mapping =
      ::CreateFileMappingW(HandleOf(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  void* data = mapping == nullptr ? nullptr : ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes);
  if (data == nullptr) KeepLastError();
  // The view keeps what it shows.
  if (mapping != nullptr) ::CloseHandle(mapping);
  return static_cast<const std::byte*>(data);
}

void UnmapFile(const std::byte* data, size_t /*bytes*/) { ::UnmapViewOfFile(data); }

// Windows has no such limit.
void RaiseFileLimit() {}

}  // namespace pawl::os
