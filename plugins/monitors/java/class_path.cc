// The archives are opened when the first class is looked for; then only their tables of contents
// are read. A class is unpacked when it is asked for. A .jmod file has its classes in a folder of
// that name.
#include "plugins/monitors/java/class_path.h"

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
constexpr size_t kMaxEntries = 1'000'000;

}  // namespace

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
  std::optional<ZipArchive> archive = ZipArchive::Open(path);
  if (!archive) return;
  const auto number = static_cast<uint32_t>(archives_.size());
  for (const ZipArchive::Entry& entry : archive->entries()) {
    if (entries_.size() >= kMaxEntries) {
      Reached(path + ": the class path has more than " + std::to_string(kMaxEntries) + " classes");
      break;
    }
    std::string_view name = entry.name;
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
    const auto [it, fresh] = entries_.try_emplace(std::string(name), Entry{number, entry});
    if (fresh) it->second.place.name = {};
  }
  archive->DropEntries();
  archives_.push_back(std::move(*archive));
}

void ClassPath::Reached(const std::string& limit) {
  constexpr size_t kMostLimits = 8;
  if (limits_.size() < kMostLimits &&
      std::find(limits_.begin(), limits_.end(), limit) == limits_.end()) {
    limits_.push_back(limit);
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
  const ZipArchive::Entry& place = found->second.place;
  if (place.size > kMaxClassBytes) {
    Reached(path + ".class: has more than " + std::to_string(kMaxClassBytes) + " bytes");
    return nullptr;
  }
  if (unpacked_ + place.size > kMaxUnpackedBytes) {
    Reached("the classes that one text needs have more than " + std::to_string(kMaxUnpackedBytes) +
            " bytes");
    return nullptr;
  }
  unpacked_ += place.size;
  const auto bytes = archives_[found->second.archive].Read(place, kMaxClassBytes);
  if (!bytes) return nullptr;
  auto read = ReadClassFile(*bytes);
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
