// Compiled classes: where they are (.jar and .jmod archives), and what a class file declares, with
// generic types where it has them (Java Virtual Machine Specification, chapter 4).
#ifndef PAWL_PLUGINS_MONITORS_JAVA_CLASS_PATH_H_
#define PAWL_PLUGINS_MONITORS_JAVA_CLASS_PATH_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pawl/result.h"
#include "plugins/monitors/java/types.h"
#include "plugins/monitors/java/zip_archive.h"

namespace pawl::monitors::java {

// Errors: kInvalid for bytes that are no class file, with the place.
Result<Class> ReadClassFile(std::string_view bytes);

// What the description of a module says.
struct Module {
  struct Requirement {
    std::string name;
    bool transitive = false;
  };
  std::string name;
  std::vector<Requirement> requirements;
  std::vector<std::string> exports;  // of a compiled one: packages that it exports to all
};
// A module-info.class. Errors: as above.
Result<Module> ReadModuleFile(std::string_view bytes);

// Archives, and folders that have archives. One that can't be read is passed over.
class ClassPath {
 public:
  explicit ClassPath(std::vector<std::string> places) : places_(std::move(places)) {}

  // The class with this dotted name, nullptr: there is none.
  std::unique_ptr<Class> Find(std::string_view name);
  bool HasPackage(std::string_view package);
  // Packages and classes in a package, sorted; nullopt: there is none of that name, or a limit cut
  // the reading short.
  std::optional<std::vector<std::string>> NamesIn(const std::string& package);
  // The classes at the top of a package, sorted.
  const std::vector<std::string>& ClassesIn(const std::string& package);
  struct LibraryModule {
    Module module;
    std::vector<std::string> packages;  // sorted
  };
  // The module that an archive is, nullptr: there is none of that name.
  const LibraryModule* ModuleNamed(const std::string& name);
  // Whether a module of the development kit that each program can see exports the package to all.
  // No other archive can add a class to it (a package lies in one module).
  bool OfKit(const std::string& package);
  // Bytes of the classes that Find has unpacked since the last Forget. When they reach
  // kMaxUnpackedBytes, Find knows no further class.
  size_t unpacked() const { return unpacked_; }
  void Forget() { unpacked_ = 0; }
  // The limits that were reached, in words.
  const std::vector<std::string>& limits() const { return limits_; }
  static constexpr size_t kMaxUnpackedBytes = size_t{256} << 20;
  size_t classes() {
    Open();
    return entries_.size();
  }

 private:
  struct Entry {
    uint32_t archive = 0;
    ZipArchive::Entry place;  // without its name
  };
  void Open();
  void OpenArchive(const std::string& path);
  void Reached(const std::string& limit);
  struct NamesOfPackage {
    std::vector<std::string> all;      // packages and classes, sorted
    std::vector<std::string> classes;  // sorted
  };
  const NamesOfPackage& Look(const std::string& package);
  void ReadModules();
  std::vector<std::string> places_;
  std::vector<std::string> limits_;
  size_t unpacked_ = 0;
  bool opened_ = false;
  std::vector<ZipArchive> archives_;
  std::unordered_map<std::string, Entry> entries_;  // java/util/Map$Entry
  std::unordered_set<std::string> packages_;        // java.util
  std::unordered_map<std::string, NamesOfPackage> names_in_;
  struct Description {
    uint32_t archive = 0;
    bool of_kit = false;  // a .jmod file
    ZipArchive::Entry place;
  };
  std::vector<Description> descriptions_;  // the archives' module-info.class
  bool modules_read_ = false;
  std::unordered_map<std::string, LibraryModule> modules_;
  std::unordered_set<std::string> of_kit_;
};

// Where a Java development kit keeps its .jmod files on this machine: that in `home`, the newest of
// /usr/lib/jvm, or what scripts/install_deps.sh has put next to the grammars. Empty: there is
// none. `note`: in words, that a newer kit was passed over.
std::string DefaultJavaModules(const std::string& home = "", std::string* note = nullptr);

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_CLASS_PATH_H_
