// Archives in the zip format, for reading: .jar files, and .jmod files, which have four bytes in
// front.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_ZIP_ARCHIVE_H_
#define PAWL_PLUGINS_MONITORS_JAVA_ZIP_ARCHIVE_H_

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace pawl::monitors::java {

class ZipArchive {
 public:
  struct Entry {
    std::string name;
    uint64_t header = 0;  // where its local header is, from the front of the archive
    uint64_t packed = 0;  // bytes in the file
    uint64_t size = 0;    // bytes when unpacked
    uint32_t checksum = 0;
    uint16_t method = 0;
  };

  // The table of contents. nullopt: the file cannot be read, or is no such archive.
  static std::optional<ZipArchive> Open(const std::string& path);

  const std::vector<Entry>& entries() const { return entries_; }
  // Forgets the table; what was copied out of it can still be read.
  void DropEntries() { entries_ = {}; }
  // The bytes of an entry. nullopt: they are damaged, encrypted, packed in a way that class files
  // are not, or more than `most`.
  std::optional<std::string> Read(const Entry& entry, size_t most);

 private:
  ZipArchive() = default;
  bool ReadAt(uint64_t offset, size_t size, std::string& bytes);
  bool FindTable(uint64_t& offset, uint64_t& size, uint64_t& count);
  bool ReadTable(const std::string& table, uint64_t count);

  std::ifstream file_;
  uint64_t size_ = 0;   // of the file
  uint64_t front_ = 0;  // bytes before the archive
  std::vector<Entry> entries_;
};

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_ZIP_ARCHIVE_H_
