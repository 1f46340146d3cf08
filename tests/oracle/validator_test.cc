// The oracle against the JSON Schema Test Suite and the labels of MaskBench, when their folders are
// here (PAWL_DATA_DIR), and a few cases of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "src/base/file.h"
#include "tests/oracle/json_schema_validator.h"

namespace pawl::oracle {
namespace {

namespace fs = std::filesystem;

Verdict Judge(const std::string& schema, const std::string& instance,
              Dialect dialect = Dialect::k2020) {
  ValidatorOptions options;
  options.dialect = dialect;
  auto validator = Validator::Create(schema, options);
  EXPECT_TRUE(validator.ok()) << schema;
  return (*validator)->Validate(instance);
}

TEST(OracleTest, NumbersAreExact) {
  EXPECT_EQ(Judge(R"({"multipleOf": 0.01})", "4.02"), Verdict::kValid);
  EXPECT_EQ(Judge(R"({"maximum": 9007199254740992})", "9007199254740993"), Verdict::kInvalid);
  EXPECT_EQ(Judge(R"({"const": 1.0})", "1e0"), Verdict::kValid);
  EXPECT_EQ(Judge(R"({"type": "integer"})", "1.0"), Verdict::kValid);
  EXPECT_EQ(Judge(R"({"type": "integer"})", "1.0", Dialect::kDraft4), Verdict::kInvalid);
  EXPECT_EQ(Judge(R"({"minimum": 1, "exclusiveMinimum": true})", "1", Dialect::kDraft4),
            Verdict::kInvalid);
}

TEST(OracleTest, DoubtSurvivesOnlyWhereItMatters) {
  const std::string lookahead = R"({"pattern": "(?=a)b"})";
  EXPECT_EQ(Judge(lookahead, R"("b")"), Verdict::kCannotTell);
  EXPECT_EQ(Judge(lookahead, "1"), Verdict::kValid);
  EXPECT_EQ(Judge(R"({"allOf": [)" + lookahead + R"(, {"maxLength": 0}]})", R"("b")"),
            Verdict::kInvalid);
  EXPECT_EQ(Judge(R"({"anyOf": [)" + lookahead + R"(, {"minLength": 1}]})", R"("b")"),
            Verdict::kValid);
  EXPECT_EQ(Judge(R"({"not": )" + lookahead + "}", R"("b")"), Verdict::kCannotTell);
  EXPECT_EQ(Judge(R"({"oneOf": [)" + lookahead + ", true, true]}", R"("b")"), Verdict::kInvalid);
  EXPECT_EQ(Judge(R"({"anyOf": [{"properties": {"a": )" + lookahead +
                      R"(}}], "unevaluatedProperties": false})",
                  R"({"a": "b"})"),
            Verdict::kCannotTell);
  EXPECT_EQ(Judge(R"({"$ref": "https://example.com/absent"})", "1"), Verdict::kCannotTell);
  EXPECT_EQ(Judge(R"({"$ref": "#"})", "1"), Verdict::kCannotTell);
}

TEST(OracleTest, TextThatIsNoJsonIsInvalid) {
  EXPECT_EQ(Judge("true", "{"), Verdict::kInvalid);
  EXPECT_EQ(Judge("true", R"({"a": 1, "a": 2})"), Verdict::kInvalid);
}

const char* DataDir() { return std::getenv("PAWL_DATA_DIR"); }

struct Count {
  int agree = 0, disagree = 0, cannot_tell = 0;
  void Add(Verdict verdict, bool expected) {
    if (verdict == Verdict::kCannotTell) {
      ++cannot_tell;
    } else {
      ++((verdict == Verdict::kValid) == expected ? agree : disagree);
    }
  }
};

std::ostream& operator<<(std::ostream& out, const Count& c) {
  return out << c.agree << " agree, " << c.disagree << " disagree, " << c.cannot_tell
             << " cannot be told";
}

// Every test of one file of the suite.
void RunSuiteFile(const fs::path& root, const fs::path& file, Dialect dialect, Count* count) {
  const auto text = ReadFile(file.string());
  ASSERT_TRUE(text.ok());
  json::ParseLimits limits;
  limits.allow_duplicate_keys = true;
  const auto cases = json::Parse(*text, limits);
  ASSERT_TRUE(cases.ok()) << file << ": " << cases.error().ToString();
  for (const json::Value& group : cases->items) {
    ValidatorOptions options;
    options.dialect = dialect;
    options.assert_formats = file.parent_path().filename() == "format";
    const std::string schema = json::Dump(*group.Find("schema"));
    auto validator = Validator::Create(schema, options);
    ASSERT_TRUE(validator.ok()) << file;
    if (schema.find("localhost:1234") != schema.npos) {
      for (const auto& entry : fs::recursive_directory_iterator(root / "remotes")) {
        if (entry.path().extension() != ".json") continue;
        const std::string path = fs::relative(entry.path(), root / "remotes").generic_string();
        const auto remote = ReadFile(entry.path().string());
        ASSERT_TRUE(
            (*validator)->AddDocument("http://localhost:1234/" + path, *remote, dialect).ok())
            << path;
      }
    }
    for (const json::Value& test : group.Find("tests")->items) {
      const bool expected = test.Find("valid")->type == json::Type::kTrue;
      const Verdict verdict = (*validator)->Validate(*test.Find("data"));
      count->Add(verdict, expected);
      const bool wrong =
          verdict != Verdict::kCannotTell && (verdict == Verdict::kValid) != expected;
      if (std::getenv("PAWL_ORACLE_VERBOSE") != nullptr &&
          (wrong || verdict == Verdict::kCannotTell)) {
        std::cout << (wrong ? "WRONG " : "doubt ") << fs::relative(file, root).generic_string()
                  << " | " << group.Find("description")->text << " | "
                  << test.Find("description")->text << " | " << (*validator)->reason() << "\n";
      }
    }
  }
}

TEST(OracleTest, JsonSchemaTestSuite) {
  if (DataDir() == nullptr) GTEST_SKIP() << "PAWL_DATA_DIR is not set";
  const fs::path root = fs::path(DataDir()) / "json-schema-test-suite";
  if (!fs::exists(root)) GTEST_SKIP() << root << " is absent";
  // Optional tests that the oracle fails by decision: "content*" as an assertion, and
  // "dependencies" in the drafts that dropped it.
  const struct {
    const char* name;
    Dialect dialect;
    int optional_disagree;
  } drafts[] = {{"draft4", Dialect::kDraft4, 0},
                {"draft6", Dialect::kDraft6, 0},
                {"draft7", Dialect::kDraft7, 4},
                {"draft2019-09", Dialect::k2019, 14},
                {"draft2020-12", Dialect::k2020, 14}};
  for (const auto& [name, dialect, optional_disagree] : drafts) {
    Count required, optional;
    for (const auto& entry : fs::recursive_directory_iterator(root / "tests" / name)) {
      if (entry.path().extension() != ".json" || entry.path().filename() == "refRemote.json")
        continue;
      const bool is_optional = entry.path().parent_path().filename() != name;
      RunSuiteFile(root, entry.path(), dialect, is_optional ? &optional : &required);
    }
    std::cout << name << ": required " << required << "; optional " << optional << "\n";
    EXPECT_EQ(required.disagree, 0) << name;
    EXPECT_LE(required.cannot_tell * 50, required.agree) << name;
    EXPECT_EQ(optional.disagree, optional_disagree) << name;
  }
}

TEST(OracleTest, MaskBenchLabels) {
  if (DataDir() == nullptr) GTEST_SKIP() << "PAWL_DATA_DIR is not set";
  const fs::path root = fs::path(DataDir()) / "maskbench-dev";
  if (!fs::exists(root)) GTEST_SKIP() << root << " is absent";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(root)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::mt19937 random(1);
  std::shuffle(files.begin(), files.end(), random);
  const char* wanted = std::getenv("PAWL_ORACLE_SAMPLE");
  files.resize(std::min<size_t>(files.size(),
                                wanted == nullptr ? 1000 : static_cast<size_t>(std::atoi(wanted))));
  Count count;
  int unreadable = 0;
  for (const fs::path& file : files) {
    json::ParseLimits limits;
    limits.allow_duplicate_keys = true;
    const auto text = ReadFile(file.string());
    const auto parsed = json::Parse(*text, limits);
    if (!parsed.ok()) {
      ++unreadable;
      continue;
    }
    auto validator = Validator::Create(json::Dump(*parsed->Find("schema")), {});
    ASSERT_TRUE(validator.ok()) << file << validator.error().ToString();
    for (const json::Value& test : parsed->Find("tests")->items) {
      const bool expected = test.Find("valid")->type == json::Type::kTrue;
      const Verdict verdict = (*validator)->Validate(*test.Find("data"));
      count.Add(verdict, expected);
      if (std::getenv("PAWL_ORACLE_VERBOSE") != nullptr &&
          (verdict == Verdict::kValid) != expected) {
        std::cout << (verdict == Verdict::kCannotTell ? "doubt " : "WRONG ") << file.filename()
                  << " expected " << (expected ? "valid" : "invalid") << " | "
                  << test.Find("description")->text << " | " << (*validator)->reason() << "\n";
      }
    }
  }
  std::cout << "MaskBench, " << files.size() << " schemas: " << count << "; " << unreadable
            << " files unreadable\n";
  EXPECT_LE(count.disagree * 100, count.agree);
}

}  // namespace
}  // namespace pawl::oracle
