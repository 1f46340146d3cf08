// A module is found by the module-info.java above the text. What it reads is found next to it, as
// `javac --module-source-path` has it, or on the class path. Anything that is missing makes the
// packages unknown.
#include "plugins/monitors/java/modules.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::java {
namespace {

constexpr std::string_view kDescription = "module-info.java";

// What may write sources of its own, so that a module has packages that no file shows.
constexpr std::array<std::string_view, 13> kBuildFiles = {
    "pom.xml",     "build.gradle", "build.gradle.kts", "build.xml",   "build.sbt",
    "BUILD",       "BUILD.bazel",  "Makefile",         "GNUmakefile", "makefile",
    "meson.build", "build.sc",     "CMakeLists.txt"};

// The folder above, without a slash at its end; the repository itself is "".
std::string FolderAbove(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string PathIn(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : folder + "/" + std::string(name);
}

// The nearest folder above the file that has a module's description.
std::optional<std::string> ModuleFolder(const Repository& repository, const std::string& file) {
  if (file.empty()) return std::nullopt;
  std::string folder = file;
  do {
    Work::Step(20);
    folder = FolderAbove(folder);
    if (repository.Has(PathIn(folder, kDescription))) return folder;
  } while (!folder.empty());
  return std::nullopt;
}

bool HasBuildFile(const Repository& repository, std::string folder) {
  for (;;) {
    Work::Step(20);
    for (const std::string_view name : kBuildFiles) {
      if (repository.Has(PathIn(folder, name))) return true;
    }
    if (folder.empty()) return false;
    folder = FolderAbove(folder);
  }
}

// Words and points and semicolons of a text, without comments and strings.
std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  Work::Bytes(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      const bool line = rest[1] == '/';
      const size_t end = text.find(line ? "\n" : "*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + (line ? 1 : 2);
    } else if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at) {
        if (text[at] == '\\') ++at;
      }
      ++at;
    } else if (NameByte(text[at])) {
      const size_t start = at;
      while (at < text.size() && NameByte(text[at])) ++at;
      words.push_back(text.substr(start, at - start));
    } else {
      if (text[at] > ' ') words.push_back(text.substr(at, 1));
      ++at;
    }
  }
  return words;
}

// The module of that name next to another one of the repository: its folder.
std::optional<std::string> Sibling(const Repository& repository, const std::string& folder,
                                   const std::string& name) {
  if (folder.empty()) return std::nullopt;
  std::string sibling = PathIn(FolderAbove(folder), name);
  if (!repository.Has(PathIn(sibling, kDescription))) return std::nullopt;
  return sibling;
}

void AddPackagesBelow(Repository& repository, const std::string& folder, const std::string& except,
                      std::set<std::string>& into) {
  const auto& all = repository.PackagesByFile();
  const std::string start = folder.empty() ? "" : folder + "/";
  Work::Step(8);
  for (auto at = std::lower_bound(all.begin(), all.end(), std::pair(start, std::string()));
       at != all.end() && at->first.starts_with(start); ++at) {
    Work::Step();
    if (at->first != except) into.insert(at->second);
  }
}

}  // namespace

std::optional<Module> ReadModuleText(std::string_view text) {
  const std::vector<std::string_view> words = WordsOf(text);
  Module module;
  const auto name_from = [&](size_t& i, std::string_view end) {
    std::string name;
    for (; i < words.size() && words[i] != end; ++i) {
      const bool joined = words[i] == "." || (!name.empty() && name.back() == '.');
      if (joined) {
        name += words[i];
      } else {
        if (name == "transitive" && !module.requirements.empty())
          module.requirements.back().transitive = true;
        name = words[i];
      }
    }
    return name;
  };
  size_t i = 0;
  while (i < words.size() && words[i] != "module") ++i;
  if (i == words.size()) return std::nullopt;
  ++i;
  module.name = name_from(i, "{");
  if (i == words.size() || module.name.empty()) return std::nullopt;
  for (++i; i < words.size(); ++i) {
    const bool begins = words[i - 1] == "{" || words[i - 1] == ";";
    if (!begins || words[i] != "requires") continue;
    module.requirements.emplace_back();
    std::string name = name_from(++i, ";");
    module.requirements.back().name = std::move(name);
    if (i == words.size()) return std::nullopt;
  }
  return module;
}

std::optional<std::vector<std::string>> ReadablePackages(Repository& repository, ClassPath& path,
                                                         const std::string& file) {
  const auto folder = ModuleFolder(repository, file);
  if (!folder || file == PathIn(*folder, kDescription)) return std::nullopt;
  if (HasBuildFile(repository, *folder)) return std::nullopt;
  const auto text = repository.Read(PathIn(*folder, kDescription));
  const auto own = text ? ReadModuleText(*text) : std::nullopt;
  if (!own) return std::nullopt;
  std::set<std::string> packages;
  AddPackagesBelow(repository, *folder, file, packages);
  // What the module reads: what it requires, and what those require for all who require them.
  std::vector<std::string> todo = {"java.base"};
  for (const Module::Requirement& one : own->requirements) todo.push_back(one.name);
  std::unordered_set<std::string> seen = {own->name};
  const auto add = [&](const Module& module) {
    for (const Module::Requirement& one : module.requirements) {
      if (one.transitive) todo.push_back(one.name);
    }
  };
  for (size_t i = 0; i < todo.size(); ++i) {
    const std::string name = todo[i];
    if (!seen.insert(name).second) continue;
    bool found = false;
    if (const auto sibling = Sibling(repository, *folder, name)) {
      const auto description = repository.Read(PathIn(*sibling, kDescription));
      const auto module = description ? ReadModuleText(*description) : std::nullopt;
      if (!module) return std::nullopt;
      add(*module);
      AddPackagesBelow(repository, *sibling, file, packages);
      found = true;
    }
    if (const ClassPath::LibraryModule* library = path.ModuleNamed(name)) {
      add(library->module);
      packages.insert(library->packages.begin(), library->packages.end());
      found = true;
    }
    if (!found) return std::nullopt;
  }
  // What lies in the class path's part of the module itself.
  if (const ClassPath::LibraryModule* library = path.ModuleNamed(own->name))
    packages.insert(library->packages.begin(), library->packages.end());
  if (!path.limits().empty()) return std::nullopt;
  return std::vector<std::string>(packages.begin(), packages.end());
}

std::string PackageOfFolder(Repository& repository, const std::string& file) {
  const std::string folder = FolderAbove(file);
  if (folder.empty()) return "";
  const auto& all = repository.PackagesByFile();
  const std::string start = folder + "/";
  std::string package;
  for (auto at = std::lower_bound(all.begin(), all.end(), std::pair(start, std::string()));
       at != all.end() && at->first.starts_with(start); ++at) {
    Work::Step();
    if (at->first == file || at->first.find('/', start.size()) != std::string::npos) continue;
    if (!package.empty() && package != at->second) return "";
    package = at->second;
  }
  std::string below = folder;
  if (package.empty()) {
    const auto module = ModuleFolder(repository, file);
    if (!module || module->size() + 1 >= folder.size()) return "";
    below = module->empty() ? folder : folder.substr(module->size() + 1);
    std::ranges::replace(below, '/', '.');
    return below;
  }
  // The folders say the same.
  std::string path = package;
  std::ranges::replace(path, '.', '/');
  return folder == path || folder.ends_with("/" + path) ? package : "";
}

}  // namespace pawl::monitors::java
