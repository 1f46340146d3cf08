// pawl schematest, on a suite of the tests' own that is laid out as the official one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

// Three cases that are exact, two that are not: a schema that is refused (a reference to another
// document), and in optional/ a text that is valid although the suite says that it is not.
std::string Suite() {
  WriteScratch("suite/tests/draft7/a.json", R"([
    {"description": "integers", "schema": {"type": "integer"}, "tests": [
      {"description": "one", "data": 1.0, "valid": true},
      {"description": "a half", "data": 0.5, "valid": false}]},
    {"description": "nothing", "schema": false, "tests": [
      {"description": "one", "data": 1, "valid": false}]},
    {"description": "elsewhere", "schema": {"$ref": "http://example.org/other.json"}, "tests": [
      {"description": "one", "data": 1, "valid": true}]}])");
  WriteScratch("suite/tests/draft7/optional/b.json", R"([
    {"description": "numbers", "schema": {"maximum": 3}, "tests": [
      {"description": "same name", "data": 2, "valid": true},
      {"description": "same name", "data": 2, "valid": false}]}])");
  WriteScratch("suite/tests/draft7/optional/format/c.json", R"([
    {"description": "dates", "schema": {"format": "date"}, "tests": [
      {"description": "not one", "data": "2024-02-30", "valid": false}]}])");
  return ScratchPath("suite");
}

CommandResult SchemaTest(const std::vector<std::string>& more, const std::string& draft = "7") {
  std::vector<std::string> arguments = {"schematest", "--suite", Suite(), "--draft", draft};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

TEST(SchemaTestTest, CountsWhatIsExact) {
  const std::string out = ScratchPath("schematest.json");
  const CommandResult result = SchemaTest({"--json", out, "--formats"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.out.find("required 3 of 4 exact  optional 1 of 2 exact  formats 1 of 1 exact"),
            std::string::npos)
      << result.out;
  const Json report = Json::parse(ReadWhole(out), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["required"], Json::parse(R"({"total":4,"exact":3})"));
  EXPECT_EQ(report["optional"], Json::parse(R"({"total":2,"exact":1})"));
  EXPECT_EQ(report["formats"], Json::parse(R"({"total":1,"exact":1})"));
  ASSERT_EQ(report["failures"].size(), 2U);
  EXPECT_EQ(report["failures"][0]["file"], "draft7/a.json");
  EXPECT_EQ(report["failures"][0]["description"], "elsewhere: one");
  EXPECT_EQ(report["failures"][0]["kind"], "refused");
  EXPECT_EQ(report["failures"][1]["description"], "numbers: same name (2)");
  EXPECT_EQ(report["failures"][1]["kind"], "invalid_accepted");
  EXPECT_EQ(report["failures"][1]["detail"], "2");
}

TEST(SchemaTestTest, ATokenizerChangesNothing) {
  const CommandResult result = SchemaTest({"--tokenizer", RandomModelFolder()});
  EXPECT_NE(result.out.find("required 3 of 4 exact  optional 1 of 2 exact\n"), std::string::npos)
      << result.out << result.err;
}

TEST(SchemaTestTest, TheRatchetHoldsWhatIsKnown) {
  const std::string ratchet = ScratchPath("known.ratchet");
  const CommandResult made = SchemaTest({"--ratchet", ratchet, "--update-ratchet"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const CommandResult same = SchemaTest({"--ratchet", ratchet});
  EXPECT_EQ(same.exit_code, 0) << same.out;
  EXPECT_EQ(same.out.find("not expected"), std::string::npos) << same.out;
  // A line too few, and one too many.
  const std::string other = WriteScratch(
      "other.ratchet",
      "# a remark\n"
      "draft7/optional/b.json\tnumbers: same name (2)\tinvalid_accepted\tthe suite is wrong\n"
      "draft7/a.json\tintegers: one\tvalid_rejected\tit was so once\n"
      "draft7/optional/format/c.json\tdates: not one\tinvalid_accepted\tnot run without --formats\n"
      "draft4/a.json\tx: y\trefused\tnot run\n");
  const CommandResult changed = SchemaTest({"--ratchet", other});
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_NE(changed.out.find("not expected: draft7/a.json: elsewhere: one: refused: "),
            std::string::npos)
      << changed.out;
  EXPECT_NE(changed.out.find("exact now: draft7/a.json: integers: one"), std::string::npos)
      << changed.out;
  EXPECT_EQ(changed.out.find("c.json"), std::string::npos) << changed.out;
  EXPECT_EQ(changed.out.find("draft4"), std::string::npos) << changed.out;
  // An update keeps the reasons, and the lines of what did not run.
  EXPECT_EQ(SchemaTest({"--ratchet", other, "--update-ratchet"}).exit_code, 0);
  const std::string updated = ReadWhole(other);
  EXPECT_NE(updated.find("\tthe suite is wrong\n"), std::string::npos) << updated;
  EXPECT_NE(updated.find("draft4/a.json\tx: y\trefused\tnot run\n"), std::string::npos) << updated;
  EXPECT_NE(updated.find("not run without --formats"), std::string::npos) << updated;
  EXPECT_EQ(updated.find("it was so once"), std::string::npos) << updated;
  EXPECT_EQ(SchemaTest({"--ratchet", other}).exit_code, 0);
}

TEST(SchemaTestTest, AnotherKindOfFailureIsNotTheKnownOne) {
  const std::string ratchet =
      WriteScratch("kind.ratchet",
                   "draft7/a.json\telsewhere: one\tvalid_rejected\tx\n"
                   "draft7/optional/b.json\tnumbers: same name (2)\tinvalid_accepted\tx\n");
  const CommandResult result = SchemaTest({"--ratchet", ratchet});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("not expected: draft7/a.json: elsewhere"), std::string::npos);
}

// Every case of the official suite that is not exact stands in tests/data/schematest.ratchet.
TEST(SchemaTestTest, TheOfficialSuite) {
  const char* data = std::getenv("PAWL_DATA_DIR");
  const std::string suite = std::string(data == nullptr ? "" : data) + "/json-schema-test-suite";
  if (data == nullptr || !std::filesystem::is_directory(suite)) {
    GTEST_SKIP() << "PAWL_DATA_DIR does not name a folder with json-schema-test-suite";
  }
  const CommandResult result =
      RunPawl({"schematest", "--suite", suite, "--draft", "all", "--formats", "--ratchet",
               SourceDir() + "/tests/data/schematest.ratchet"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out.find("exact now"), std::string::npos) << result.out;
}

void ExpectSuiteRefused(const CommandResult& result, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const std::string& part : parts) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " is not in: " << result.err;
  }
}

TEST(SchemaTestTest, BadInput) {
  ExpectSuiteRefused(SchemaTest({}, "3"), {"pawl schematest: ", "--draft", "2019-09"});
  ExpectSuiteRefused(SchemaTest({}, "6"), {"suite: ", "no folder tests/draft6"});
  ExpectSuiteRefused(RunPawl({"schematest", "--draft", "7"}), {"--suite"});
  ExpectSuiteRefused(SchemaTest({"--update-ratchet"}), {"--update-ratchet: needs --ratchet"});
  ExpectSuiteRefused(SchemaTest({"--tokenizer", ScratchPath("absent")}), {"absent"});
  const auto with = [](const std::string& content) {
    WriteScratch("broken/tests/draft7/a.json", content);
    return RunPawl({"schematest", "--suite", ScratchPath("broken"), "--draft", "7"});
  };
  ExpectSuiteRefused(with("[{"), {"tests/draft7/a.json: 1:3 (byte 2)"});
  ExpectSuiteRefused(with("{}"), {"tests/draft7/a.json: #: must be an array"});
  ExpectSuiteRefused(with(R"([{"description":"x","schema":{}}])"), {"a.json: #/0: must have"});
  ExpectSuiteRefused(with(R"([{"description":"x","schema":{},"tests":[{"data":1}]}])"),
                     {"a.json: #/0/tests/0: must have"});
}

TEST(SchemaTestTest, BadRatchets) {
  const auto error = [](const std::string& ratchet) {
    const CommandResult result = SchemaTest({"--ratchet", ratchet});
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_NE(error(ScratchPath("absent.ratchet")).find("absent.ratchet: "), std::string::npos);
  EXPECT_NE(error(WriteScratch("bad.ratchet", "# x\na\tb\n")).find("bad.ratchet: line 2: "),
            std::string::npos);
}

}  // namespace
}  // namespace pawl
