// pawl maskbench, on a few files of the tests' own in MaskBench's form.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

// A folder with these files alone.
std::string Folder(const std::string& name,
                   const std::vector<std::pair<std::string, std::string>>& files) {
  std::string folder = ScratchPath(name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [file, text] : files) EXPECT_TRUE(WriteFile(folder + "/" + file, text).ok());
  return folder;
}

TEST(MaskbenchTest, CountsEveryKindOfOutcome) {
  const std::string schema =
      R"("schema": {"type": "object", "properties": {"n": {"type": "number", "minimum": 1}}})";
  const auto test = [&](const std::string& data, const std::string& valid) {
    return "{" + schema + R"(, "tests": [{"valid": )" + valid + R"(, "data": )" + data + "}]}";
  };
  const std::string data = Folder(
      "maskbench", {{"pass.json", test(R"({"n": 1e20, "é": [1.50, -0.00001, "\u0001"]})", "true")},
                    {"pass_invalid.json", test(R"({"n": 0})", "false")},
                    {"wrong_valid.json", test(R"({"n": 0})", "true")},
                    {"wrong_invalid.json", test(R"({"n": 7})", "false")},
                    {"refused.json", R"({"schema": {"minimum": "1"}, "tests": []})"},
                    {"nothing.json", R"({"schema": false, "tests": []})"},
                    {"bad.json", "[1]"}});
  const std::string out = ScratchPath("maskbench.json");
  for (const char* mode : {"--cold", "--warm"}) {
    const CommandResult result =
        RunPawl({"maskbench", "--tokenizer", SourceDir() + "/models/tiny-extract", "--data", data,
                 "--jobs", "2", mode, "--json", out, "--list-failures"});
    ASSERT_EQ(result.exit_code, 1) << result.err;  // bad.json was not measured
    const auto text = ReadFile(out);
    ASSERT_TRUE(text.ok());
    const auto report = json::Parse(*text);
    ASSERT_TRUE(report.ok()) << *text;
    const auto count = [&](const char* name) { return report->Find(name)->text; };
    EXPECT_EQ(count("schemas"), "7");
    EXPECT_EQ(count("passing"), "2");
    EXPECT_EQ(count("refused"), "2");
    EXPECT_EQ(count("unsatisfiable"), "1");
    EXPECT_EQ(count("valid_rejected"), "1");
    EXPECT_EQ(count("invalid_accepted"), "1");
    EXPECT_EQ(count("bad_files"), "1");
    EXPECT_EQ(report->Find("failures")->items.size(), 5u);
    EXPECT_NE(result.out.find("#/minimum"), std::string::npos) << result.out;
  }
}

// Bug: 0 meant all, and nothing said so.
TEST(MaskbenchTest, LimitZeroMeansAll) {
  const std::string data = Folder("maskbench_limit", {{"a.json", R"({"schema": {}})"},
                                                      {"b.json", R"({"schema": {}})"},
                                                      {"c.json", R"({"schema": {}})"}});
  for (const auto& [limit, schemas] : {std::pair("0", "schemas 3:"), {"2", "schemas 2:"}}) {
    const CommandResult result =
        RunPawl({"maskbench", "--tokenizer", SourceDir() + "/models/tiny-extract", "--data", data,
                 "--limit", limit});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with(schemas)) << result.out;
  }
  EXPECT_NE(RunPawl({"maskbench", "--help"}).out.find("0: all"), std::string::npos);
}

TEST(MaskbenchTest, BadInput) {
  const CommandResult empty =
      RunPawl({"maskbench", "--tokenizer", SourceDir() + "/models/tiny-extract", "--data",
               Folder("maskbench_empty", {})});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_NE(empty.err.find("holds no .json files"), std::string::npos) << empty.err;
}

}  // namespace
}  // namespace pawl
