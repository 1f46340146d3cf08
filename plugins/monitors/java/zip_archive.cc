// An archive ends with a record that says where its table of contents is; the record is looked for
// from the end, since a comment may follow it. Archives with more than 65,535 entries have a second
// such record with wider fields. The table gives each entry's sizes and the place of a header in
// front of its bytes, whose length only the header itself tells. Offsets count from the front of
// the archive, which in a .jmod file is not that of the file.
#include "plugins/monitors/java/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>

namespace pawl::monitors::java {
namespace {

constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kWideEnd = 0x06064b50;
constexpr uint32_t kWideEndLocator = 0x07064b50;
constexpr uint32_t kTableEntry = 0x02014b50;
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr size_t kEndBytes = 22;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kTableEntryBytes = 46;
constexpr size_t kLocalHeaderBytes = 30;
constexpr uint64_t kMaxTableBytes = uint64_t{256} << 20;

// Little-endian, of `bytes` bytes; the caller has looked that they are there.
uint64_t Number(std::string_view text, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[at + i]);
  return value;
}

bool Inflate(const std::string& packed, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return whole;
}

}  // namespace

bool ZipArchive::ReadAt(uint64_t offset, size_t size, std::string& bytes) {
  if (offset > size_ || size > size_ - offset) return false;
  bytes.resize(size);
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset));
  file_.read(bytes.data(), static_cast<std::streamsize>(size));
  return file_.gcount() == static_cast<std::streamsize>(size);
}

bool ZipArchive::FindTable(uint64_t& offset, uint64_t& size, uint64_t& count) {
  const size_t tail_size = std::min<uint64_t>(size_, kEndBytes + 0xffff);
  std::string tail;
  if (tail_size < kEndBytes || !ReadAt(size_ - tail_size, tail_size, tail)) return false;
  for (size_t at = tail_size - kEndBytes + 1; at-- > 0;) {
    if (Number(tail, at, 4) != kEnd || Number(tail, at + 20, 2) != tail_size - at - kEndBytes) {
      continue;
    }
    count = Number(tail, at + 10, 2);
    size = Number(tail, at + 12, 4);
    offset = front_ + Number(tail, at + 16, 4);
    if (at >= kLocatorBytes && Number(tail, at - kLocatorBytes, 4) == kWideEndLocator) {
      std::string wide;
      if (!ReadAt(front_ + Number(tail, at - kLocatorBytes + 8, 8), 56, wide) ||
          Number(wide, 0, 4) != kWideEnd) {
        return false;
      }
      count = Number(wide, 32, 8);
      size = Number(wide, 40, 8);
      offset = front_ + Number(wide, 48, 8);
    }
    return size <= kMaxTableBytes;
  }
  return false;
}

bool ZipArchive::ReadTable(const std::string& table, uint64_t count) {
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (table.size() - at < kTableEntryBytes || Number(table, at, 4) != kTableEntry) return false;
    const size_t name = Number(table, at + 28, 2);
    const size_t rest = Number(table, at + 30, 2) + Number(table, at + 32, 2);
    if (table.size() - at - kTableEntryBytes < name + rest) return false;
    Entry entry;
    const bool encrypted = (Number(table, at + 8, 2) & 1) != 0;
    entry.method = static_cast<uint16_t>(Number(table, at + 10, 2));
    entry.checksum = static_cast<uint32_t>(Number(table, at + 16, 4));
    entry.packed = Number(table, at + 20, 4);
    entry.size = Number(table, at + 24, 4);
    entry.header = Number(table, at + 42, 4);
    entry.name = table.substr(at + kTableEntryBytes, name);
    at += kTableEntryBytes + name + rest;
    // Entries of 4 GB and more have their numbers elsewhere; no class is as large.
    constexpr uint64_t kElsewhere = 0xffffffff;
    if (!encrypted && entry.packed != kElsewhere && entry.size != kElsewhere &&
        entry.header != kElsewhere) {
      entries_.push_back(std::move(entry));
    }
  }
  return true;
}

std::optional<ZipArchive> ZipArchive::Open(const std::string& path) {
  ZipArchive archive;
  // Opening a pipe would wait for its writer.
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return std::nullopt;
  archive.file_.open(path, std::ios::binary | std::ios::ate);
  if (!archive.file_) return std::nullopt;
  const auto size = archive.file_.tellg();
  if (size <= 0) return std::nullopt;
  archive.size_ = static_cast<uint64_t>(size);
  std::string front;
  if (archive.ReadAt(0, 2, front) && front == "JM") archive.front_ = 4;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::string table;
  if (!archive.FindTable(offset, bytes, count) || !archive.ReadAt(offset, bytes, table) ||
      !archive.ReadTable(table, count)) {
    return std::nullopt;
  }
  return archive;
}

std::optional<std::string> ZipArchive::Read(const Entry& entry, size_t most) {
  // Deflate makes no text longer than this, so more bytes do not belong to the entry.
  const uint64_t most_packed = entry.size + entry.size / 1000 + 64;
  if (entry.size > most || entry.packed > most_packed || entry.packed > size_ ||
      entry.packed > std::numeric_limits<uInt>::max()) {
    return std::nullopt;
  }
  std::string header;
  std::string packed;
  const uint64_t at = front_ + entry.header;
  if (!ReadAt(at, kLocalHeaderBytes, header) || Number(header, 0, 4) != kLocalHeader ||
      !ReadAt(at + kLocalHeaderBytes + Number(header, 26, 2) + Number(header, 28, 2), entry.packed,
              packed)) {
    return std::nullopt;
  }
  std::string bytes;
  if (entry.method == 0) {
    bytes = std::move(packed);
    if (bytes.size() != entry.size) return std::nullopt;
  } else if (entry.method == Z_DEFLATED) {
    bytes.resize(entry.size);
    if (!Inflate(packed, bytes)) return std::nullopt;
  } else {
    return std::nullopt;
  }
  const uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  if (sum != entry.checksum) return std::nullopt;
  return bytes;
}

}  // namespace pawl::monitors::java
