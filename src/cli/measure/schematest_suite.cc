// Reading the suite with Pawl's own JSON reader: a tree of numbers as doubles would lose the
// difference between 1 and 1.0, which draft 4 makes, and the digits of bignum.json.
#include "src/cli/measure/schematest_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"

namespace pawl::cli {
namespace {

namespace fs = std::filesystem;

Error Malformed(std::string place, const char* message) {
  return Error{ErrorCode::kInvalid, message, std::move(place)};
}

// The member, when it is of the type.
const json::Value* Member(const json::Value& object, std::string_view key, json::Type type) {
  const json::Value* value = object.Find(key);
  return value != nullptr && value->type == type ? value : nullptr;
}

// A group without the names of its cases made unique.
Result<SuiteGroup> ReadGroup(const json::Value& value, const std::string& place) {
  const json::Value* name = Member(value, "description", json::Type::kString);
  const json::Value* schema = value.Find("schema");
  const json::Value* tests = Member(value, "tests", json::Type::kArray);
  if (name == nullptr || schema == nullptr || tests == nullptr) {
    return Malformed(place, "must have a description, a schema and tests");
  }
  SuiteGroup group{json::Dump(*schema), {}};
  for (size_t i = 0; i < tests->items.size(); ++i) {
    const json::Value& test = tests->items[i];
    const json::Value* description = Member(test, "description", json::Type::kString);
    const json::Value* data = test.Find("data");
    const json::Value* valid = test.Find("valid");
    if (description == nullptr || data == nullptr || valid == nullptr || !valid->is_bool()) {
      return Malformed(fmt::format("{}/tests/{}", place, i),
                       "must have a description, data and a boolean valid");
    }
    group.cases.push_back({name->text + ": " + description->text, json::Dump(*data),
                           valid->type == json::Type::kTrue});
  }
  return group;
}

Result<SuiteFile> ReadSuiteFile(const std::string& path, std::string name, Section section) {
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.error();
  const Result<json::Value> parsed = json::Parse(*text);
  if (!parsed.ok()) return InFile(path, parsed.error());
  if (parsed->type != json::Type::kArray) return Malformed(path + ": #", "must be an array");
  SuiteFile file{std::move(name), section, {}};
  std::map<std::string, int> seen;
  for (size_t i = 0; i < parsed->items.size(); ++i) {
    Result<SuiteGroup> group = ReadGroup(parsed->items[i], fmt::format("#/{}", i));
    if (!group.ok()) return InFile(path, group.error());
    for (SuiteCase& one : group->cases) {
      if (const int times = ++seen[one.description]; times > 1) {
        one.description += fmt::format(" ({})", times);
      }
    }
    file.groups.push_back(*std::move(group));
  }
  return file;
}

}  // namespace

const char* SectionName(Section section) {
  switch (section) {
    case Section::kRequired:
      return "required";
    case Section::kOptional:
      return "optional";
    case Section::kFormats:
      return "formats";
  }
  return "unknown";
}

Result<std::vector<SuiteFile>> ReadSuite(const std::string& suite, const SuiteDraft& draft,
                                         bool with_formats) {
  const fs::path root = fs::path(suite) / "tests" / draft.folder;
  std::error_code failure;
  if (!fs::is_directory(root, failure)) {
    return Error{
        ErrorCode::kIo,
        fmt::format("is not the JSON Schema test suite: it has no folder tests/{}", draft.folder),
        suite};
  }
  std::vector<std::pair<Section, std::string>> folders = {{Section::kRequired, ""},
                                                          {Section::kOptional, "optional/"}};
  if (with_formats) folders.emplace_back(Section::kFormats, "optional/format/");
  std::vector<SuiteFile> files;
  for (const auto& [section, folder] : folders) {
    std::vector<std::string> names;
    for (fs::directory_iterator entry(root / folder, failure), end; !failure && entry != end;
         entry.increment(failure)) {
      if (entry->path().extension() == ".json") names.push_back(entry->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      Result<SuiteFile> file =
          ReadSuiteFile((root / folder / name).string(),
                        fmt::format("{}/{}{}", draft.folder, folder, name), section);
      if (!file.ok()) return file.error();
      files.push_back(*std::move(file));
    }
  }
  return files;
}

}  // namespace pawl::cli
