// The sizes of all tensors follow from their types and shapes, so the header comes first and is
// never written again. The bytes go to NAME.incomplete in the folder of the file, which a lock
// keeps for one process. All of its space is asked for at the start, so that a full disk is known
// before hours of work. When everything is on the disk, a rename gives the file its name.
#include "src/model/gguf_output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "src/base/os/files.h"
#include "src/model/gguf.h"

namespace pawl {
namespace {

template <typename T>
void AppendNumber(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void AppendText(std::string& out, std::string_view text) {
  AppendNumber<uint64_t>(out, text.size());
  out += text;
}

int64_t RoundUp(int64_t bytes, uint64_t alignment) {
  const auto step = static_cast<int64_t>(alignment);
  return (bytes + step - 1) / step * step;
}

}  // namespace

void GgufHeader::Add(std::string_view key, std::string_view value) {
  AppendText(values_, key);
  values_ += value;
  ++value_count_;
}

void GgufHeader::AddUnsigned(std::string_view key, uint32_t value) {
  std::string bytes;
  AppendNumber<uint32_t>(bytes, 4);  // the type: 32 bits, unsigned
  AppendNumber<uint32_t>(bytes, value);
  Add(key, bytes);
}

void GgufHeader::AddTensor(std::string_view name, std::string_view dtype,
                           const std::vector<int64_t>& shape) {
  const GgufType& type = *FindGgufType(dtype);
  AppendText(tensors_, name);
  AppendNumber<uint32_t>(tensors_, static_cast<uint32_t>(shape.size()));
  int64_t elements = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    AppendNumber<uint64_t>(tensors_, static_cast<uint64_t>(shape[d]));
    elements *= shape[d];
  }
  AppendNumber<uint32_t>(tensors_, type.id);
  AppendNumber<uint64_t>(tensors_, static_cast<uint64_t>(offset_));
  sizes_.push_back(elements / type.elements * type.bytes);
  offset_ += RoundUp(sizes_.back(), alignment_);
}

std::string GgufHeader::Bytes() const {
  std::string out = "GGUF";
  AppendNumber<uint32_t>(out, 3);
  AppendNumber<uint64_t>(out, sizes_.size());
  AppendNumber<uint64_t>(out, value_count_);
  out += values_;
  out += tensors_;
  out.resize(static_cast<size_t>(RoundUp(static_cast<int64_t>(out.size()), alignment_)));
  return out;
}

int64_t GgufHeader::total_bytes() const { return static_cast<int64_t>(Bytes().size()) + offset_; }

GgufOutput::GgufOutput(std::string path, GgufHeader header)
    : path_(std::move(path)), partial_(path_ + ".incomplete"), header_(std::move(header)) {}

GgufOutput::GgufOutput(GgufOutput&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::move(other.partial_)),
      header_(std::move(other.header_)),
      fd_(std::exchange(other.fd_, -1)),
      tensor_(other.tensor_),
      written_(other.written_) {}

GgufOutput::~GgufOutput() {
  if (fd_ < 0) return;
  os::Remove(partial_);
  os::CloseFile(fd_);
}

Error GgufOutput::Failed(const char* action) const {
  return {ErrorCode::kIo, std::string(action) + ": " + std::strerror(errno), path_};
}

Result<GgufOutput> GgufOutput::Create(const std::string& path, const GgufHeader& header) {
  GgufOutput output(path, header);
  const std::optional<os::FileInfo> info = os::InfoOf(path);
  if (info && info->kind != os::FileKind::kRegular) {
    return Error{ErrorCode::kIo, "cannot be written: is no regular file", path};
  }
  const int fd = os::OpenFile(output.partial_, os::Access::kWriteNoLink);
  if (fd < 0) return output.Failed("cannot be written");
  if (os::TryLock(fd) != os::LockResult::kHeld) {
    os::CloseFile(fd);
    return Error{ErrorCode::kIo, "another process is writing it", path};
  }
  output.fd_ = fd;
  if (!os::Truncate(fd, 0)) return output.Failed("cannot be written");
  const int64_t total = header.total_bytes();
  // File systems that cannot reserve say so when they are full.
  if (!os::Reserve(fd, total)) {
    Error error = output.Failed("cannot be written");
    error.message += " (it needs " + std::to_string(total) + " bytes)";
    return error;
  }
  if (Status status = output.WriteAll(header.Bytes()); !status.ok()) return status.error();
  return output;
}

Status GgufOutput::WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const int64_t done = os::Write(fd_, bytes.data(), bytes.size());
    if (done < 0) return Failed("cannot be written");
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

Status GgufOutput::Write(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (Status status = WriteAll(text); !status.ok()) return status;
  written_ += static_cast<int64_t>(bytes.size());
  const int64_t size = header_.tensor_bytes(tensor_);
  if (written_ < size) return {};
  ++tensor_;
  written_ = 0;
  return WriteAll(std::string(static_cast<size_t>(RoundUp(size, header_.alignment()) - size), 0));
}

Status GgufOutput::Finish() {
  if (!os::Flush(fd_)) return Failed("cannot be written");
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) return Failed("cannot be written");
  os::CloseFile(std::exchange(fd_, -1));
  return {};
}

}  // namespace pawl
