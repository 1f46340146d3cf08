// Every file appears under its name by a rename, so that a reader, or a process that ends in
// between, sees a whole file or none. The locks are those of huggingface_hub: flock on
// .locks/models--ORG--NAME/ETAG.lock.
#include "src/engine/hub_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <vector>

#include "src/base/file.h"
#include "src/base/os/files.h"
#include "src/base/os/processes.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

Error SystemError(const std::string& path, const char* action) {
  return {ErrorCode::kIo, std::string(action) + ": " + std::strerror(errno), path};
}

Status MakeFolders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return {};
  return Error{ErrorCode::kIo, "cannot make the folder: " + error.message(), path.string()};
}

std::string Temporary(const std::string& path) {
  return path + ".tmp-" + std::to_string(os::ThisProcess());
}

Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  const Error error = SystemError(to, "cannot write");
  os::Remove(from);
  return error;
}

}  // namespace

HubFd::~HubFd() {
  if (fd_ >= 0) os::CloseFile(fd_);
}

Result<PartFile> PartFile::Open(const std::string& path, DigestKind kind, std::string_view prefix) {
  const int fd = os::OpenFile(path, os::Access::kChangeNoLink);
  if (fd < 0) return SystemError(path, "cannot write");
  Digest start(kind);
  start.Add(prefix);
  PartFile part(path, fd, start);
  const std::optional<os::FileInfo> info = os::InfoOf(fd);
  if (!info || info->kind != os::FileKind::kRegular) {
    return Error{ErrorCode::kIo, "cannot write: not a regular file", path};
  }
  std::vector<char> buffer(size_t{1} << 20);
  while (true) {
    const int64_t got = os::Read(fd, buffer.data(), buffer.size());
    if (got < 0) return SystemError(path, "cannot read");
    if (got == 0) return part;
    part.digest_.Add({buffer.data(), static_cast<size_t>(got)});
    part.size_ += static_cast<uint64_t>(got);
  }
}

Status PartFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const int64_t done = os::WriteAt(fd_.get(), bytes.data(), bytes.size(), size_);
    if (done <= 0) return SystemError(path_, "cannot write");
    digest_.Add(bytes.substr(0, static_cast<size_t>(done)));
    size_ += static_cast<uint64_t>(done);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

Status PartFile::Restart() {
  digest_ = start_;
  size_ = 0;
  if (!os::Truncate(fd_.get(), 0)) return SystemError(path_, "cannot write");
  return {};
}

Status PartFile::Finish(const std::string& path) {
  if (!os::Flush(fd_.get())) return SystemError(path_, "cannot write");
  return Rename(path_, path);
}

void PartFile::Discard() { os::Remove(path_); }

Result<HubRepo> HubRepo::Open(const std::string& cache, const std::string& repo) {
  HubRepo out;
  std::string name = "models--" + repo;
  name.replace(name.find('/'), 1, "--");
  out.folder_ = cache + "/" + name;
  out.locks_ = cache + "/.locks/" + name;
  for (const std::string& folder :
       {out.folder_ + "/blobs", out.folder_ + "/refs", out.folder_ + "/snapshots", out.locks_}) {
    if (Status status = MakeFolders(folder); !status.ok()) return status.error();
  }
  return out;
}

bool HubRepo::HasBlob(const std::string& etag, uint64_t size) const {
  std::error_code error;
  const std::string path = BlobPath(etag);
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == size && !error;
}

uint64_t HubRepo::PartBytes(const std::string& etag) const {
  std::error_code error;
  const auto size = fs::file_size(PartPath(etag), error);
  return error ? 0 : size;
}

Result<HubLock> HubRepo::Lock(const std::string& etag, const std::function<void()>& waiting) const {
  const std::string path = locks_ + "/" + etag + ".lock";
  while (true) {
    HubLock lock(os::OpenFile(path, os::Access::kChange));
    if (lock.get() < 0) return SystemError(path, "cannot lock");
    const os::LockResult locked = os::TryLock(lock.get());
    if (locked == os::LockResult::kFailed) return SystemError(path, "cannot lock");
    if (locked == os::LockResult::kTaken) {
      waiting();
      if (!os::WaitForLock(lock.get())) return SystemError(path, "cannot lock");
    }
    // Another program may have removed the file while it held the lock.
    const std::optional<os::FileInfo> held = os::InfoOf(lock.get()), named = os::InfoOf(path);
    if (held && named && held->IsSame(*named)) return lock;
  }
}

Status HubRepo::Link(const std::string& commit, const std::string& file,
                     const std::string& etag) const {
  const fs::path path = fs::path(folder_) / "snapshots" / commit / file;
  if (Status status = MakeFolders(path.parent_path()); !status.ok()) return status;
  std::string target = "../../";
  for (const char c : file) target += c == '/' ? "../" : "";
  target += "blobs/" + etag;
  std::error_code error;
  if (fs::read_symlink(path, error) == fs::path(target)) return {};
  const std::string temporary = Temporary(path.string());
  os::Remove(temporary);
  if (!os::MakeLink(target, temporary)) {
    return SystemError(path.string(), "cannot make the link");
  }
  return Rename(temporary, path.string());
}

Status HubRepo::SetRef(const std::string& revision, const std::string& commit) const {
  const std::string path = folder_ + "/refs/" + revision;
  if (Status status = MakeFolders(fs::path(path).parent_path()); !status.ok()) return status;
  if (Status status = WriteFile(Temporary(path), commit); !status.ok()) return status;
  return Rename(Temporary(path), path);
}

uint64_t HubRepo::FreeBytes() const {
  return os::FreeBytes(folder_).value_or(std::numeric_limits<uint64_t>::max());
}

}  // namespace pawl
