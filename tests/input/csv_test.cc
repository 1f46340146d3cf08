// Rows of tables, written as RFC 4180 has them and read again.
#include "src/input/csv.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace pawl {
namespace {

TEST(CsvTest, RandomRowsComeBack) {
  std::mt19937 random(4);
  const std::string letters = "ab,\"\n\r ";
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> fields(1 + random() % 4);
    std::string written;
    for (std::string& field : fields) {
      for (size_t i = random() % 6; i > 0; --i) field += letters[random() % letters.size()];
      const bool plain = field.find_first_of(",\"\n\r") == std::string::npos;
      std::string quoted = "\"";
      for (const char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
      written += (written.empty() && &field == fields.data() ? "" : ",") +
                 (plain && random() % 2 == 0 ? field : quoted + "\"");
    }
    CsvRow row;
    size_t begin = 0;
    for (size_t end = 0; end <= written.size(); begin = end + 1) {
      end = std::min(written.find('\n', begin), written.size());
      ASSERT_TRUE(row.Add(written.substr(begin, end - begin)).ok()) << written;
      ASSERT_EQ(row.open(), end < written.size()) << written;
      if (end == written.size()) break;
    }
    ASSERT_EQ(row.Take(), fields) << written;
  }
}

TEST(CsvTest, EndsOfLinesAndMistakes) {
  CsvRow row;
  ASSERT_TRUE(row.Add("a,,b\r").ok());
  EXPECT_EQ(row.Take(), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(row.Add("a,\"b\"c").error().ToString(),
            "field 2: a closing quote has to be followed by a comma");
}

}  // namespace
}  // namespace pawl
