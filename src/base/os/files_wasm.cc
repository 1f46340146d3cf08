// A browser gives no files. What is read here are bytes in memory that have names; a map of a file
// is those bytes. A descriptor is the place in a table of what is open. Nothing can be written.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include "src/base/os/files.h"
#include "src/base/os/memory_files.h"

namespace pawl::os {
namespace {

struct File {
  std::string path;
  std::byte* data;
  size_t bytes;
};
struct Opened {
  const File* file = nullptr;  // nullptr: this descriptor is free
  size_t at = 0;
};

constexpr int kFirstDescriptor = 3;

// There is one thread.
std::list<File>& Files() {
  static std::list<File> files;
  return files;
}
std::vector<Opened>& Table() {
  static std::vector<Opened> table;
  return table;
}

const File* Find(const std::string& path) {
  for (const File& file : Files()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

bool IsFolder(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return std::ranges::any_of(Files(),
                             [&](const File& file) { return file.path.starts_with(path + "/"); });
}

Opened* OpenedAt(int descriptor) {
  const auto at = static_cast<size_t>(descriptor - kFirstDescriptor);
  std::vector<Opened>& table = Table();
  if (descriptor < kFirstDescriptor || at >= table.size() || table[at].file == nullptr) {
    errno = EBADF;
    return nullptr;
  }
  return &table[at];
}

FileInfo InfoOfFile(const File& file) {
  return {FileKind::kRegular, file.bytes, 0, reinterpret_cast<uintptr_t>(&file)};
}

bool ReadOnly() {
  errno = EROFS;
  return false;
}

}  // namespace

void AddMemoryFile(std::string path, std::byte* data, size_t bytes) {
  for (File& file : Files()) {
    if (file.path != path) continue;
    std::free(file.data);
    file.data = data;
    file.bytes = bytes;
    return;
  }
  Files().push_back({std::move(path), data, bytes});
}

void RemoveMemoryFiles() {
  for (const File& file : Files()) std::free(file.data);
  Files().clear();
  Table().clear();
}

std::optional<FileInfo> InfoOf(const std::string& path) {
  if (const File* const file = Find(path)) return InfoOfFile(*file);
  if (IsFolder(path)) return FileInfo{FileKind::kFolder, 0, 0, 0};
  errno = ENOENT;
  return std::nullopt;
}
std::optional<FileInfo> InfoOf(int file) {
  const Opened* const opened = OpenedAt(file);
  if (opened == nullptr) return std::nullopt;
  return InfoOfFile(*opened->file);
}
bool Exists(const std::string& path) { return InfoOf(path).has_value(); }
bool HasName(const std::string& path) { return Exists(path); }
bool MayRead(const std::string& path) { return Exists(path); }
bool MayWrite(const std::string&) { return ReadOnly(); }
bool MayRun(const std::string&) { return ReadOnly(); }

std::string FolderOf(const std::string& path) {
  const size_t end = path.rfind('/');
  return end == std::string::npos ? "." : path.substr(0, std::max<size_t>(end, 1));
}

int OpenFile(const std::string& path, Access access) {
  if (access != Access::kRead && access != Access::kReadNoWait) {
    ReadOnly();
    return -1;
  }
  const File* const file = Find(path);
  if (file == nullptr) {
    errno = IsFolder(path) ? EISDIR : ENOENT;
    return -1;
  }
  std::vector<Opened>& table = Table();
  auto free = std::ranges::find(table, nullptr, &Opened::file);
  if (free == table.end()) free = table.insert(free, Opened());
  *free = {file, 0};
  return static_cast<int>(free - table.begin()) + kFirstDescriptor;
}

void CloseFile(int file) {
  if (Opened* const opened = OpenedAt(file)) *opened = {};
}

int64_t Read(int file, char* to, size_t bytes) {
  Opened* const opened = OpenedAt(file);
  if (opened == nullptr) return -1;
  const size_t count = std::min(bytes, opened->file->bytes - opened->at);
  if (count > 0) std::memcpy(to, opened->file->data + opened->at, count);
  opened->at += count;
  return static_cast<int64_t>(count);
}

const std::byte* MapFile(int file, size_t) {
  const Opened* const opened = OpenedAt(file);
  return opened == nullptr ? nullptr : opened->file->data;
}
void UnmapFile(const std::byte*, size_t) {}

}  // namespace pawl::os
