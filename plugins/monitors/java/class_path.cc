// The archives are opened when the first class is looked for; then only their tables of contents
// are read. A class is unpacked when it is asked for. A .jmod file is a zip archive behind four
// bytes, with its classes in a folder of that name.
#include "plugins/monitors/java/class_path.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>

#include "plugins/monitors/java/class_file.h"

#ifndef PAWL_JAVA_MODULES
#define PAWL_JAVA_MODULES ""
#endif

namespace pawl::monitors::java {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxClassBytes = size_t{4} << 20;
constexpr size_t kMaxEntries = 4'000'000;

}  // namespace

ClassPath::~ClassPath() {
  for (zip* archive : archives_) zip_discard(archive);
}

void ClassPath::Open() {
  if (opened_) return;
  opened_ = true;
  for (const std::string& place : places_) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) {
      OpenArchive(place);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(place, ignored)) {
      const std::string ending = entry.path().extension().string();
      if (ending == ".jar" || ending == ".jmod") inside.push_back(entry.path().string());
    }
    std::sort(inside.begin(), inside.end());
    for (const std::string& path : inside) OpenArchive(path);
  }
}

void ClassPath::OpenArchive(const std::string& path) {
  const bool module = path.ends_with(".jmod");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_file_create(path.c_str(), module ? 4 : 0, -1, &error);
  zip* archive = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive == nullptr) {
    if (source != nullptr) zip_source_free(source);
    zip_error_fini(&error);
    return;
  }
  zip_error_fini(&error);
  const auto number = static_cast<uint32_t>(archives_.size());
  archives_.push_back(archive);
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count && entries_.size() < kMaxEntries; ++i) {
    const char* raw = zip_get_name(archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (raw == nullptr) continue;
    std::string_view name = raw;
    if (module) {
      if (!name.starts_with("classes/")) continue;
      name.remove_prefix(8);
    }
    if (!name.ends_with(".class")) continue;
    name.remove_suffix(6);
    if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) {
      std::string package(name.substr(0, slash));
      std::replace(package.begin(), package.end(), '/', '.');
      packages_.insert(std::move(package));
    }
    entries_.emplace(std::string(name), Entry{number, static_cast<uint64_t>(i)});
  }
}

bool ClassPath::HasPackage(std::string_view package) {
  Open();
  return packages_.contains(std::string(package));
}

std::unique_ptr<Class> ClassPath::Find(std::string_view name) {
  Open();
  std::string path(name);
  std::replace(path.begin(), path.end(), '.', '/');
  // java/util/Map/Entry, java/util/Map$Entry, java/util$Map$Entry, ...
  auto found = entries_.find(path);
  for (size_t slash = path.rfind('/'); found == entries_.end() && slash != std::string::npos;
       slash = path.rfind('/')) {
    path[slash] = '$';
    found = entries_.find(path);
  }
  if (found == entries_.end()) return nullptr;
  zip* archive = archives_[found->second.archive];
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat_index(archive, found->second.index, 0, &stat) != 0 ||
      (stat.valid & ZIP_STAT_SIZE) == 0 || stat.size > kMaxClassBytes) {
    return nullptr;
  }
  zip_file_t* file = zip_fopen_index(archive, found->second.index, 0);
  if (file == nullptr) return nullptr;
  std::string bytes(stat.size, '\0');
  const zip_int64_t count = zip_fread(file, bytes.data(), bytes.size());
  zip_fclose(file);
  if (count < 0 || static_cast<size_t>(count) != bytes.size()) return nullptr;
  auto read = ReadClassFile(bytes);
  if (!read.ok()) return nullptr;
  return std::make_unique<Class>(std::move(*read));
}

std::string DefaultJavaModules() {
  std::error_code ignored;
  std::string best;
  int newest = -1;
  for (const auto& entry : fs::directory_iterator("/usr/lib/jvm", ignored)) {
    const std::string modules = (entry.path() / "jmods").string();
    if (!fs::is_directory(modules, ignored)) continue;
    // java-17-openjdk-amd64
    const std::string name = entry.path().filename().string();
    int version = 0;
    for (const char c : name.substr(std::min(name.size(), name.find('-') + 1))) {
      if (c < '0' || c > '9' || version > 10000) break;
      version = version * 10 + (c - '0');
    }
    if (version > newest) {
      newest = version;
      best = modules;
    }
  }
  if (best.empty() && fs::is_directory(PAWL_JAVA_MODULES, ignored)) best = PAWL_JAVA_MODULES;
  return best;
}

}  // namespace pawl::monitors::java
