// The files behind imports: which file of the repository a specifier names, and its syntax tree.
//
//   ModuleFiles files("checkout");
//   if (auto path = files.Find("./shop", "src/app.ts")) {   // "src/shop/index.ts"
//     const ModuleText* module = files.Read(*path);         // nullptr: it cannot be read
//   }
//
// Only files in the folder are read (source_folder.h). What is not found or is too large is no
// module, and the names that are imported from it stay open.
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_MODULE_FILES_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_MODULE_FILES_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugins/monitors/source_folder.h"
#include "plugins/monitors/syntax.h"

namespace pawl::monitors::ts {

struct ModuleText {
  std::string path;  // relative to the folder
  std::unique_ptr<Tree> tree;
  bool declarations = false;  // a .d.ts file
};

// The files of the folder that say something of others, which need not import them.
struct AmbientFiles {
  std::vector<std::string> augmenting;  // with `declare module` or `declare global`
  // Files without imports and exports, and the names that they declare.
  std::vector<std::pair<std::string, std::vector<std::string>>> scripts;
};

class ModuleFiles {
 public:
  explicit ModuleFiles(const std::string& folder) : folder_(folder) {}

  std::string Inside(const std::string& path) const { return folder_.PathOf(path); }

  // The file that the specifier names in the file `from`, both relative to the folder.
  std::optional<std::string> Find(const std::string& specifier, const std::string& from);
  // nullptr: no file that can be read, or there are too many. Lives until Refresh or Clear.
  const ModuleText* Read(const std::string& path);

  // Looked for once, until Clear.
  const AmbientFiles& Ambient();

  // True: a file that was read has changed on disk. All trees are gone then. Looks at most once a
  // second.
  bool Refresh();
  void Clear();
  size_t size() const { return texts_.size(); }

 private:
  struct Paths {       // of a tsconfig.json
    std::string base;  // baseUrl, relative to the folder
    bool has_base = false;
    std::vector<std::pair<std::string, std::vector<std::string>>> patterns;
    std::string patterns_base;
  };
  std::optional<std::string> FindFile(const std::string& base);
  std::optional<std::string> FindAnywhere(const std::string& specifier, const std::string& from);
  std::optional<std::string> FindMapped(const std::string& specifier, const std::string& folder);
  std::optional<std::string> FindPackage(const std::string& specifier, const std::string& folder);
  std::optional<std::string> FindInPackage(const std::string& package, const std::string& rest);
  std::optional<std::string> FindEntry(const std::string& package, const std::string& entry);
  const Paths* PathsOf(const std::string& folder);
  Paths ReadConfig(const std::string& path, int depth);
  bool Has(const std::string& path);
  std::optional<std::string> Text(const std::string& path);

  struct Known {
    std::unique_ptr<ModuleText> text;  // nullptr: it cannot be read
    int64_t changed = 0;
    uint64_t bytes = 0;
  };
  SourceFolder folder_;
  std::optional<AmbientFiles> ambient_;
  std::unordered_map<std::string, Known> texts_;
  size_t bytes_ = 0;
  int entries_ = 0;  // of package.json that lead to each other
  std::unordered_map<std::string, std::optional<std::string>> found_;
  std::unordered_map<std::string, bool> has_;
  std::unordered_map<std::string, std::unique_ptr<Paths>> configs_;  // by folder
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

// JSON as tsconfig.json has it: without comments and without commas behind the last part.
std::string PlainJson(std::string_view text);

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_MODULE_FILES_H_
