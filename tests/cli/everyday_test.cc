// Forty everyday texts, each with a schema of its own: no output of the shipped model runs to the
// end of its budget. Strings, digits and decimals have bounds of their own (docs/json_schema.md).
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "src/base/json.h"
#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

TEST(EverydayTest, NoOutputIsClosedByTheBudget) {
  std::ifstream lines(SourceDir() + "/tests/cli/everyday/texts.jsonl");
  std::string line;
  int texts = 0;
  while (std::getline(lines, line)) {
    const Result<json::Value> entry = json::Parse(line);
    ASSERT_TRUE(entry.ok()) << line;
    const std::string name = entry->Find("name")->text, text = entry->Find("text")->text;
    // The schema as it is written, since the order of its properties counts.
    const size_t begin = line.find("\"schema\": ") + 10;
    const std::string schema = line.substr(begin, line.rfind('}') - begin);
    const CommandResult done =
        RunPawl({"extract", "--schema", WriteScratch("everyday.json", schema), "--text", text});
    EXPECT_EQ(done.exit_code, 0) << name << ": " << done.err;
    EXPECT_EQ(done.err, "") << name;
    EXPECT_LT(done.out.size(), 400u) << name << ": " << done.out;
    ++texts;
  }
  EXPECT_EQ(texts, 40);
}

}  // namespace
}  // namespace pawl
