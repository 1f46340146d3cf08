// Compiled schemas against the official JSON Schema Test Suite, when its folder is here
// (PAWL_DATA_DIR): every test of drafts 4 to 2020-12, by whole texts. The table is a ratchet: a
// figure that changes either way wants to be looked at.
//
//   PAWL_SUITE_VERBOSE=1 schemas_test --gtest_filter='SuiteTest.*'     names what is not exact
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/json.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Vocabulary> Bytes() {
  VocabularyInit init;
  for (int b = 0; b < 256; ++b) init.tokens.push_back(std::string(1, static_cast<char>(b)));
  init.tokens.push_back("<end>");
  init.end_tokens = {256};
  return *Vocabulary::Create(std::move(init));
}

// The documents of the suite's "remotes" and the metaschemas, by URI.
std::map<std::string, std::string> Documents(const fs::path& suite) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(suite / "remotes")) {
    if (entry.path().extension() != ".json") continue;
    const std::string path = fs::relative(entry.path(), suite / "remotes").generic_string();
    out["http://localhost:1234/" + path] = *ReadFile(entry.path().string());
  }
  const fs::path metaschemas = fs::path(PAWL_SOURCE_DIR) / "tests/data/metaschemas";
  for (const auto& entry : fs::directory_iterator(metaschemas)) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = *ReadFile(entry.path().string());
    const auto value = json::Parse(text);
    const json::Value* id = value->Find("$id");
    if (id == nullptr) id = value->Find("id");
    out[id->text.substr(0, id->text.find('#'))] = text;
  }
  return out;
}

struct Count {
  int exact = 0, wrong = 0, refused = 0;
  friend bool operator==(const Count&, const Count&) = default;
};
std::ostream& operator<<(std::ostream& out, const Count& c) {
  return out << "{" << c.exact << ", " << c.wrong << ", " << c.refused << "}";
}

void RunFile(const Compiler& compiler, const std::map<std::string, std::string>& documents,
             const fs::path& file, const std::string& draft, Count& count) {
  const bool verbose = std::getenv("PAWL_SUITE_VERBOSE") != nullptr;
  json::ParseLimits limits;
  limits.allow_duplicate_keys = true;
  const auto groups = json::Parse(*ReadFile(file.string()), limits);
  ASSERT_TRUE(groups.ok()) << file;
  for (const json::Value& group : groups->items) {
    JsonSchemaOptions options;
    options.order = JsonSchemaOptions::Order::kAny;
    options.whitespace = JsonSchemaOptions::Whitespace::kAny;
    options.canonical_spelling = false;
    options.allow_exponents = true;
    options.default_dialect = draft;
    const std::string folder = file.parent_path().filename().string();
    options.assert_formats = folder == "format" || file.filename() == "format-assertion.json";
    options.resolve_document = [&](std::string_view uri) -> Result<std::string> {
      const auto it = documents.find(std::string(uri));
      if (it == documents.end()) return Error{ErrorCode::kIo, "no such document", ""};
      return it->second;
    };
    const std::string where =
        draft + " " + file.filename().string() + " | " + group.Find("description")->text;
    const auto grammar = compiler.CompileJsonSchema(json::Dump(*group.Find("schema")), options);
    const std::vector<json::Value>& tests = group.Find("tests")->items;
    if (!grammar.ok() && grammar.error().code != ErrorCode::kUnsatisfiable) {
      count.refused += static_cast<int>(tests.size());
      if (verbose)
        std::cout << "refused " << tests.size() << " " << where << " | "
                  << grammar.error().ToString() << "\n";
      continue;
    }
    for (const json::Value& test : tests) {
      bool accepted = false;
      if (grammar.ok()) {
        const auto state = grammar->Start().Advance(json::Dump(*test.Find("data")));
        accepted = state && state->accepting();
      }
      const bool right = accepted == (test.Find("valid")->type == json::Type::kTrue);
      ++(right ? count.exact : count.wrong);
      if (!right && verbose)
        std::cout << "WRONG " << where << " | " << test.Find("description")->text << " | "
                  << (accepted ? "accepted" : "refused") << "\n";
    }
  }
}

TEST(SuiteTest, Exactness) {
  const char* data = std::getenv("PAWL_DATA_DIR");
  if (data == nullptr) GTEST_SKIP() << "PAWL_DATA_DIR is not set";
  const fs::path root = fs::path(data) / "json-schema-test-suite";
  if (!fs::exists(root)) GTEST_SKIP() << root << " is absent";
  const Compiler compiler(Bytes());
  const std::map<std::string, std::string> documents = Documents(root);
  const struct {
    const char* name;
    Count required, formats, optional;  // exact, wrong, refused
    // What is left: A-labels of host names are not decoded, "content*" are annotations (draft 7
    // tests them as assertions), and "format": "regex" knows no named groups.
  } drafts[] = {{"draft4", {618, 0, 0}, {219, 0, 0}, {100, 0, 0}},
                {"draft6", {839, 0, 0}, {325, 0, 0}, {106, 0, 0}},
                {"draft7", {927, 0, 0}, {648, 28, 0}, {114, 4, 0}},
                {"draft2019-09", {1259, 0, 0}, {729, 28, 0}, {158, 0, 0}},
                {"draft2020-12", {1299, 0, 0}, {736, 28, 0}, {162, 0, 0}}};
  for (const auto& draft : drafts) {
    Count required, formats, optional;
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(root / "tests" / draft.name)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::string folder = file.parent_path().filename().string();
      RunFile(compiler, documents, file, draft.name,
              folder == draft.name ? required
              : folder == "format" ? formats
                                   : optional);
    }
    std::cout << draft.name << ": required " << required << ", formats " << formats << ", optional "
              << optional << "\n";
    EXPECT_EQ(required, draft.required) << draft.name;
    EXPECT_EQ(formats, draft.formats) << draft.name;
    EXPECT_EQ(optional, draft.optional) << draft.name;
  }
}

}  // namespace
}  // namespace pawl
