// A repository in the cache of a hub, laid out as huggingface_hub does: blobs by checksum,
// snapshots of links to them, refs from names to commits, locks. A blob gets its name when it is
// whole.
//
//   Result<HubRepo> repo = HubRepo::Open(cache, "org/name");
//   Result<HubLock> lock = repo->Lock(etag, [] { Say("another download runs"); });
//   Result<PartFile> part = PartFile::Open(repo->PartPath(etag), kind, "");
//   part->Append(bytes);
//   part->Finish(repo->BlobPath(etag));
//   repo->Link(commit, "model.safetensors", etag);
//   repo->SetRef("main", commit);
#ifndef PAWL_SRC_ENGINE_HUB_STORE_H_
#define PAWL_SRC_ENGINE_HUB_STORE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/result.h"
#include "src/base/digest.h"

namespace pawl {

// A descriptor that closes itself.
class HubFd {
 public:
  explicit HubFd(int fd = -1) : fd_(fd) {}
  HubFd(HubFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HubFd& operator=(HubFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~HubFd();
  int get() const { return fd_; }

 private:
  int fd_;
};

// Held as long as it lives.
using HubLock = HubFd;

// A file that is being fetched, with the checksum of what it has.
class PartFile {
 public:
  // Goes on with what is there. `prefix`: bytes of the checksum in front of the file's, which git
  // has. Errors: kIo.
  static Result<PartFile> Open(const std::string& path, DigestKind kind, std::string_view prefix);
  uint64_t size() const { return size_; }
  // Errors: kIo where the disk is full, or a limit of the file's size is reached.
  Status Append(std::string_view bytes);
  // Drops what is there.
  Status Restart();
  std::string Hex() const { return digest_.Hex(); }
  // Gives the file its name, once its bytes are on the disk.
  Status Finish(const std::string& path);
  void Discard();

 private:
  PartFile(std::string path, int fd, const Digest& start)
      : path_(std::move(path)), fd_(fd), start_(start), digest_(start) {}

  std::string path_;
  HubFd fd_;
  Digest start_, digest_;
  uint64_t size_ = 0;
};

class HubRepo {
 public:
  // Makes the folders. Errors: kIo.
  static Result<HubRepo> Open(const std::string& cache, const std::string& repo);

  const std::string& folder() const { return folder_; }
  std::string BlobPath(const std::string& etag) const { return folder_ + "/blobs/" + etag; }
  // Whether there is a whole blob of this length.
  bool HasBlob(const std::string& etag, uint64_t size) const;
  // Bytes of the blob that an earlier download left.
  uint64_t PartBytes(const std::string& etag) const;
  std::string PartPath(const std::string& etag) const { return BlobPath(etag) + ".incomplete"; }
  // Waits for another process that fetches the same blob. `waiting`: called where there is one.
  Result<HubLock> Lock(const std::string& etag, const std::function<void()>& waiting) const;
  // REQUIRES: IsPlainName(file).
  Status Link(const std::string& commit, const std::string& file, const std::string& etag) const;
  Status SetRef(const std::string& revision, const std::string& commit) const;
  // Bytes that the disk has left; the largest number where the system does not say.
  uint64_t FreeBytes() const;

 private:
  std::string folder_, locks_;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_HUB_STORE_H_
