// A module that would mean something else in a block, or that does not parse there, is left out,
// and what is imported from it is open.
#include "plugins/monitors/typescript/modules.h"

#include <optional>
#include <system_error>
#include <utility>

#include "plugins/monitors/scan.h"
#include "plugins/monitors/syntax.h"
#include "src/base/file.h"

namespace pawl::monitors::ts {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostModules = 24;
constexpr size_t kMostFileBytes = size_t{200} << 10;
constexpr size_t kMostBytes = size_t{400} << 10;
constexpr size_t kMostFiles = 400;  // that are kept

// The relative paths in `... from "./path"`.
std::vector<std::string> RelativePaths(std::string_view text) {
  std::vector<std::string> paths;
  for (size_t at = text.find("from"); at != std::string_view::npos;
       at = text.find("from", at + 4)) {
    size_t quote = at + 4;
    while (quote < text.size() && text[quote] == ' ') ++quote;
    if (quote >= text.size() || (text[quote] != '"' && text[quote] != '\'')) continue;
    const size_t end = text.find(text[quote], quote + 1);
    if (end == std::string_view::npos || end - quote > 400) continue;
    const std::string_view path = text.substr(quote + 1, end - quote - 1);
    if (path.starts_with("./") || path.starts_with("../")) paths.emplace_back(path);
  }
  return paths;
}

std::optional<std::string> FileOf(const std::string& folder, const std::string& path) {
  std::string base = (fs::path(folder) / path).lexically_normal().string();
  std::vector<std::string> tries = {base + ".ts", base + ".d.ts", base + "/index.ts"};
  if (base.ends_with(".js")) tries.insert(tries.begin(), base.substr(0, base.size() - 2) + "ts");
  std::error_code ignored;
  for (const std::string& file : tries) {
    if (fs::is_regular_file(file, ignored)) return file;
  }
  return std::nullopt;
}

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !NameByte(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == text.size() || !NameByte(text[end]))) return true;
  }
  return false;
}

// A `var` would be hoisted to the program; global declarations reach further than a module.
bool FitsInBlock(const std::string& text) {
  return !text.starts_with("#!") && !HasWord(text, "var") && !HasWord(text, "global") &&
         !HasWord(text, "namespace") && !HasWord(text, "module");
}

}  // namespace

void Modules::SetFile(const std::string& path) {
  std::error_code ignored;
  folder_ = path.empty() ? "" : fs::absolute(path, ignored).parent_path().string();
}

const Modules::File& Modules::Load(const std::string& path) {
  std::error_code ignored;
  const fs::file_time_type time = fs::last_write_time(path, ignored);
  const auto known = files_.find(path);
  if (known != files_.end() && known->second.time == time) return known->second;
  if (files_.size() > kMostFiles) files_.clear();
  File& file = files_[path];
  file = {};
  file.time = time;
  auto text = ReadRegularFile(path, kMostFileBytes);
  if (!text.ok() || !FitsInBlock(*text)) return file;
  Parser parser(Language::kTypeScript);
  if (parser.Parse("{" + *text + "\n}")->broken()) return file;
  file.text = *std::move(text);
  file.good = true;
  const std::string folder = fs::path(path).parent_path().string();
  for (const std::string& import : RelativePaths(file.text)) {
    if (auto of = FileOf(folder, import)) file.imports.emplace_back(import, *std::move(of));
  }
  return file;
}

const ModuleTexts& Modules::Behind(std::string_view program) {
  std::vector<std::pair<std::string, std::string>> imports;
  if (!folder_.empty()) {
    for (const std::string& import : RelativePaths(program)) {
      if (auto file = FileOf(folder_, import)) imports.emplace_back(import, *std::move(file));
    }
  }
  std::vector<std::string> files;  // of the modules
  std::unordered_map<std::string, size_t> number;
  std::string key;
  std::vector<ModulePlace> places(1);
  size_t bytes = 0;
  const auto follow = [&](const auto& of, size_t from) {
    for (const auto& [import, file] : of) {
      auto found = number.find(file);
      if (found == number.end()) {
        const File& loaded = Load(file);
        if (!loaded.good || files.size() >= kMostModules || bytes + loaded.text.size() > kMostBytes)
          continue;
        bytes += loaded.text.size();
        key += file + "\n" + std::to_string(loaded.time.time_since_epoch().count()) + "\n";
        files.push_back(file);
        places.emplace_back();
        found = number.emplace(file, places.size() - 1).first;
      }
      places[from].imports[import] = found->second;
    }
  };
  follow(imports, 0);
  for (size_t i = 0; i < files.size(); ++i) {
    // A copy: Load may make room.
    const auto of = Load(files[i]).imports;
    follow(of, i + 1);
  }
  for (const auto& [import, module] : places[0].imports)
    key += import + "=" + std::to_string(module) + "\n";
  if (key == key_) return texts_;
  key_ = std::move(key);
  texts_ = {};
  for (size_t i = 0; i < files.size(); ++i) {
    texts_.text += ";\n";
    places[i + 1].start = static_cast<uint32_t>(texts_.text.size());
    texts_.text += "{" + Load(files[i]).text + "\n}";
  }
  texts_.places = std::move(places);
  return texts_;
}

}  // namespace pawl::monitors::ts
