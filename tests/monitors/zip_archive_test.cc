// Archives that the test writes, byte by byte, and what is left of them when bytes are changed.
#include "plugins/monitors/java/zip_archive.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace pawl::monitors::java {
namespace {

struct File {
  std::string name;
  std::string bytes;
  bool packed = true;
};

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string Deflate(const std::string& bytes) {
  std::string out(bytes.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// `wide`: with the record that archives of more than 65,535 entries have.
std::string Zip(const std::vector<File>& files, const std::string& comment = "",
                bool wide = false) {
  std::string out;
  std::string table;
  for (const File& file : files) {
    const std::string data = file.packed ? Deflate(file.bytes) : file.bytes;
    const std::string sizes = Little(file.packed ? 8 : 0, 2) + Little(0, 4) +
                              Little(crc32(0, reinterpret_cast<const Bytef*>(file.bytes.data()),
                                           static_cast<uInt>(file.bytes.size())),
                                     4) +
                              Little(data.size(), 4) + Little(file.bytes.size(), 4) +
                              Little(file.name.size(), 2);
    table += Little(0x02014b50, 4) + Little(20, 2) + Little(20, 2) + Little(0, 2) + sizes +
             Little(3, 2) + Little(0, 2 + 2 + 2 + 4) + Little(out.size(), 4) + file.name + "xyz";
    out += Little(0x04034b50, 4) + Little(20, 2) + Little(0, 2) + sizes + Little(5, 2) + file.name +
           "extra" + data;
  }
  const size_t at = out.size();
  out += table;
  if (wide) {
    const size_t record = out.size();
    out += Little(0x06064b50, 4) + Little(44, 8) + Little(45, 2) + Little(45, 2) + Little(0, 8) +
           Little(files.size(), 8) + Little(files.size(), 8) + Little(table.size(), 8) +
           Little(at, 8);
    out += Little(0x07064b50, 4) + Little(0, 4) + Little(record, 8) + Little(1, 4);
  }
  const uint64_t count = wide ? 0xffff : files.size();
  return out + Little(0x06054b50, 4) + Little(0, 4) + Little(count, 2) + Little(count, 2) +
         Little(table.size(), 4) + Little(wide ? 0xffffffff : at, 4) + Little(comment.size(), 2) +
         comment;
}

class ZipArchiveTest : public testing::Test {
 protected:
  std::optional<ZipArchive> Open(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ZipArchive::Open(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  // Of its own: tests run side by side.
  const std::string path_ = testing::TempDir() + "/" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".zip";
};

const std::vector<File> kFiles = {{"a/B.class", std::string(5000, 'b') + "end"},
                                  {"c.txt", "stored", false},
                                  {"empty", "", false}};

TEST_F(ZipArchiveTest, ReadsWhatWasWritten) {
  for (const std::string& bytes :
       {Zip(kFiles), Zip(kFiles, "a comment with PK\5\6 in it"),
        "JM\1" + std::string(1, '\0') + Zip(kFiles), Zip(kFiles, "", true)}) {
    auto archive = Open(bytes);
    ASSERT_TRUE(archive.has_value());
    ASSERT_EQ(archive->entries().size(), kFiles.size());
    for (size_t i = 0; i < kFiles.size(); ++i) {
      const ZipArchive::Entry entry = archive->entries()[i];
      EXPECT_EQ(entry.name, kFiles[i].name);
      EXPECT_EQ(archive->Read(entry, 1 << 20), kFiles[i].bytes);
    }
    EXPECT_FALSE(archive->Read(archive->entries()[0], 5002).has_value());
  }
}

TEST_F(ZipArchiveTest, RefusesWhatIsNoArchive) {
  EXPECT_FALSE(Open("").has_value());
  EXPECT_FALSE(Open("PK\5\6").has_value());
  EXPECT_FALSE(Open(std::string(100, '\0')).has_value());
  EXPECT_FALSE(ZipArchive::Open(path_ + ".missing").has_value());
  EXPECT_FALSE(ZipArchive::Open(testing::TempDir()).has_value());
}

// Entries that unpack to more than they say, or claim more packed bytes than any class has.
TEST_F(ZipArchiveTest, BombsAreNotUnpacked) {
  const File bomb = {"a/Bomb.class", std::string(64 << 20, '\0')};
  auto archive = Open(Zip({bomb}));
  ASSERT_TRUE(archive.has_value());
  EXPECT_FALSE(archive->Read(archive->entries()[0], 4 << 20).has_value());
  for (const uint64_t size : {uint64_t{0}, uint64_t{1000}, uint64_t{4} << 20}) {
    ZipArchive::Entry entry = archive->entries()[0];
    entry.size = size;
    EXPECT_FALSE(archive->Read(entry, 4 << 20).has_value()) << size;
    entry.packed = uint64_t{2} << 30;
    EXPECT_FALSE(archive->Read(entry, 4 << 20).has_value()) << size;
  }
}

TEST_F(ZipArchiveTest, DamageIsSeen) {
  const std::string whole = Zip(kFiles);
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    if (round % 4 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    auto archive = Open(bytes);
    if (!archive) continue;
    for (const ZipArchive::Entry& entry : std::vector(archive->entries())) {
      const auto read = archive->Read(entry, 1 << 20);
      bool known = !read || read->empty();
      for (const File& file : kFiles) known = known || *read == file.bytes;
      EXPECT_TRUE(known) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace pawl::monitors::java
