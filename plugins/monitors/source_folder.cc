// A path is inside the folder when its real path, with all links followed, begins with the real
// path of the folder. The walk goes through the folders level by level, each sorted by name, so a
// limit ends it at the same file every time. Links to folders are not followed, since they make
// circles.
#include "plugins/monitors/source_folder.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <system_error>

#include "src/base/file.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

bool SkippedFolder(const std::string& name) {
  return name.starts_with(".") || name == "node_modules" || name == "__pycache__" ||
         name == "build" || name == "target" || name == "dist" || name == "venv";
}

}  // namespace

SourceFolder::SourceFolder(std::string folder) : path_(std::move(folder)) {
  std::error_code failed;
  const fs::path real = fs::canonical(path_, failed);
  if (!failed) real_ = real.string();
}

std::string SourceFolder::Inside(const std::string& path) const {
  if (real_.empty()) return {};
  std::error_code failed;
  std::string real = fs::canonical(fs::path(real_) / path, failed).string();
  if (failed) return {};
  const std::string front = real_ == "/" ? real_ : real_ + "/";
  return real == real_ || real.starts_with(front) ? real : std::string();
}

std::string SourceFolder::PathOf(const std::string& path) const {
  if (path.empty() || real_.empty()) return {};
  const fs::path root(real_);
  std::error_code failed;
  for (const fs::path& base : {fs::current_path(failed), root}) {
    const fs::path whole = base / path;  // an absolute path stays as it is
    const fs::path above = fs::canonical(whole.parent_path(), failed);
    if (failed) continue;
    const std::string relative = (above / whole.filename()).lexically_relative(root).string();
    if (!relative.empty() && relative != "." && !relative.starts_with("..")) return relative;
  }
  return {};
}

Result<std::string> SourceFolder::Read(const std::string& path, size_t max_bytes) const {
  const std::string real = Inside(path);
  if (real.empty()) {
    return Error{ErrorCode::kIo, "is no file of the folder " + path_, path};
  }
  return ReadRegularFile(real, max_bytes);
}

bool SourceFolder::HasFile(const std::string& path) const {
  const std::string real = Inside(path);
  std::error_code ignored;
  return !real.empty() && fs::is_regular_file(real, ignored);
}

bool SourceFolder::HasFolder(const std::string& path) const {
  const std::string real = Inside(path);
  std::error_code ignored;
  return !real.empty() && fs::is_directory(real, ignored);
}

std::vector<std::string> SourceFolder::NamesIn(const std::string& path, size_t most) const {
  std::vector<std::string> names;
  const std::string real = Inside(path);
  if (real.empty()) return names;
  std::error_code failed;
  fs::directory_iterator at(real, failed);
  for (; !failed && at != fs::directory_iterator() && names.size() < most; at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

Result<SourceList> SourceFolder::List(const SourceLimits& limits) const {
  if (real_.empty() || !HasFolder(".")) return Error{ErrorCode::kIo, "is no folder", path_};
  SourceList list;
  std::deque<std::string> folders = {""};  // relative, with a slash at the end
  size_t seen = 0;
  while (!folders.empty() && list.limit.empty()) {
    const std::string folder = std::move(folders.front());
    folders.pop_front();
    const size_t left = limits.entries - seen;
    // One more than may be looked at tells that there are more.
    std::vector<std::string> names = NamesIn(folder.empty() ? "." : folder, left + 1);
    if (names.size() > left) {
      list.limit = "has more than " + std::to_string(limits.entries) + " files and folders";
      names.resize(left);
    }
    if (names.empty() && Inside(folder.empty() ? "." : folder).empty()) ++list.deep;
    seen += names.size();
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string path = folder + name;
      std::error_code ignored;
      const fs::path on_disk = fs::path(real_) / path;
      const fs::file_status status = fs::symlink_status(on_disk, ignored);
      if (fs::is_directory(status)) {
        if (!SkippedFolder(name)) folders.push_back(path + "/");
        continue;
      }
      const auto language = LanguageOfFile(name);
      if (!language || !HasGrammar(*language)) continue;
      if (fs::is_symlink(status) && !HasFile(path)) {
        ++list.outside;
        continue;
      }
      if (!fs::is_symlink(status) && !fs::is_regular_file(status)) continue;
      if (list.files.size() >= limits.files) {
        list.limit = "has more than " + std::to_string(limits.files) + " source files";
        break;
      }
      const std::uintmax_t bytes = fs::file_size(on_disk, ignored);
      if (bytes <= limits.file_bytes) list.bytes += bytes;
      if (list.bytes > limits.source_bytes) {
        list.limit = "has more than " + std::to_string(limits.source_bytes) + " bytes of source";
        break;
      }
      list.files.emplace_back(path, *language);
    }
  }
  std::sort(list.files.begin(), list.files.end());
  return list;
}

}  // namespace pawl::monitors
